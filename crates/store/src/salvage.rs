//! Opening a store of which parts are damaged, to read what is whole.
//!
//! No content is believed whose checksum does not fit, so no wrong row is
//! read. What leads to contents can be found again in part: the superblock has
//! a copy, an entry of which one bit has flipped is mended, and the division
//! of a chunk whose header is lost shows in its contents.

use std::collections::BTreeSet;
use std::sync::Arc;

use pantile_base::limits::{BLOCK_SLOTS, CHUNK_BYTES};
use pantile_media::{Medium, MediumExt};

use crate::block::Chunk;
use crate::content::HEADER_BYTES;
use crate::error::StoreError;
use crate::format::{
    CHUNK_HEADER_BYTES, ChunkHeader, DESCRIPTOR_BYTES, Descriptor, MAX_BLOCKS_PER_CHUNK, SUPERBLOCK_COPY,
    Superblock, Unreadable,
};
use crate::geometry::{Geometry, stride_for};
use crate::own::Own;
use crate::store::{Store, StoreOptions, mapped, newest_state, unreadable};

/// The longest content.
const LONGEST: usize = HEADER_BYTES + 65_535;

impl Store {
    /// Opens a store of which parts may be damaged. [`Store::recover`] then
    /// finds every committed content that is whole. Without a state record it
    /// is known of a transaction that it has committed only if all its
    /// contents are there.
    ///
    /// The medium should be one that is thrown away, since recovery makes
    /// damaged slots void.
    ///
    /// # Errors
    /// [`StoreError::Foreign`], [`StoreError::Version`];
    /// [`StoreError::Damaged`] if neither the superblock nor its copy can be
    /// read: no checksum can be verified without the identity that it holds.
    pub fn open_damaged(medium: Arc<dyn Medium>, options: StoreOptions) -> Result<Self, StoreError> {
        let medium = Own::claim(medium)?;
        let identity = superblock(&*medium)?.identity;
        let state = newest_state(&*medium, identity).unwrap_or_default();
        let mut store = Self::over(medium, options, identity, state);
        store.is_damaged = true;
        Ok(store)
    }

    /// An entry that can be read once one bit is flipped back.
    pub(crate) fn mended<T>(&self, entry: &[u8], decode: Decode<'_, T>) -> Option<T> {
        if self.is_damaged { mended(entry, decode) } else { None }
    }

    /// How a chunk without a header that can be read is divided: as the header
    /// says once one bit is flipped back, or as most contents are found. None
    /// if its page names no block.
    pub(crate) fn division(&self, number: u32) -> Option<Geometry> {
        let chunk_offset = u64::from(number) * CHUNK_BYTES;
        let page = self.bytes(chunk_offset, CHUNK_HEADER_BYTES);
        let decode = |line: &[u8]| ChunkHeader::decode(line, self.identity ^ chunk_offset).ok()?;
        if let Some(header) = self.mended(&page[..DESCRIPTOR_BYTES], &decode) {
            return Some(header.into());
        }
        let opened: Vec<(u32, u64)> = (0..MAX_BLOCKS_PER_CHUNK as u32)
            .filter_map(|index| {
                let at = (index as usize + 1) * DESCRIPTOR_BYTES;
                let line = &page[at..at + DESCRIPTOR_BYTES];
                let found = Descriptor::decode(line, self.identity ^ (chunk_offset + at as u64));
                Some((index, found.ok()??.opened_at))
            })
            .collect();
        let blocks = opened.last()?.0 + 1;
        let found_in = |geometry: &Geometry| {
            let chunk = Chunk::new(number, *geometry);
            let slots = opened.iter().flat_map(|&(index, opened_at)| {
                let slots = 0..geometry.slots;
                slots.map(move |slot| (index, slot, opened_at))
            });
            let is_there = |&(index, slot, opened_at): &(u32, u32, u64)| {
                self.valid_content(&chunk, chunk.address(index, slot), self.content_seed(opened_at)).is_some()
            };
            slots.filter(is_there).count()
        };
        let most = self.slots_elsewhere();
        let divisions =
            strides().flat_map(|stride| most.iter().map(move |&most| Geometry::new(stride, most)));
        let fitting = divisions.filter(|division| division.blocks >= blocks);
        fitting
            .map(|division| (found_in(&division), division))
            .max_by_key(|(found, _)| *found)
            .map(|(_, d)| d)
    }
}

impl Store {
    /// The numbers of slots that blocks of other chunks have.
    fn slots_elsewhere(&self) -> BTreeSet<u32> {
        let mut slots = BTreeSet::from([BLOCK_SLOTS as u32]);
        for offset in (CHUNK_BYTES..self.medium.len()).step_by(CHUNK_BYTES as usize) {
            let header = ChunkHeader::decode(self.bytes(offset, DESCRIPTOR_BYTES), self.identity ^ offset);
            slots.extend(header.ok().flatten().map(|header| header.slots));
        }
        slots.into_iter().filter(|slots| (1..=BLOCK_SLOTS as u32).contains(slots)).collect()
    }
}

/// The distances between slots of all size classes.
fn strides() -> impl Iterator<Item = u32> {
    let next =
        |stride: &u32| Some(stride_for(*stride as usize + 1)).filter(|&s| s as usize <= LONGEST + 4096);
    std::iter::successors(Some(stride_for(HEADER_BYTES)), next)
}

type Decode<'d, T> = &'d dyn Fn(&[u8]) -> Option<T>;

fn mended<T>(bytes: &[u8], decode: Decode<'_, T>) -> Option<T> {
    let mut bytes = bytes.to_vec();
    (0..bytes.len() * 8).find_map(|bit| {
        bytes[bit / 8] ^= 1 << (bit % 8);
        let found = decode(&bytes);
        bytes[bit / 8] ^= 1 << (bit % 8);
        found
    })
}

/// The superblock, or what can be found of it.
pub(crate) fn superblock(medium: &dyn Medium) -> Result<Superblock, StoreError> {
    if medium.is_empty() {
        return Err(StoreError::Foreign("it has no bytes".into()));
    }
    let places = [mapped(medium, 0, 64), mapped(medium, SUPERBLOCK_COPY, 64)];
    let whole = |bytes: &[u8]| Superblock::decode(bytes).ok();
    let found = places.iter().find_map(|bytes| whole(bytes));
    let found = found.or_else(|| places.iter().find_map(|bytes| mended(bytes, &whole)));
    // Several bytes of one may be lost, and its identity there.
    let named = || places.iter().map(|bytes| Superblock::fields(bytes).1).find(|id| fits(medium, *id));
    let found = found.or_else(|| Some(Superblock { version: crate::FORMAT_VERSION, identity: named()? }));
    found.ok_or_else(|| match Superblock::decode(places[0]) {
        Err(reason @ (Unreadable::Foreign | Unreadable::Version(_))) => unreadable(reason),
        _ => StoreError::Damaged {
            place: "offset 0, the superblock".into(),
            detail: "neither it nor its copy can be read, and no checksum can be verified without it".into(),
        },
    })
}

/// Whether the checksum of a state record or of a chunk header is seeded with
/// an identity.
fn fits(medium: &dyn Medium, identity: u64) -> bool {
    let has_header = |number: u64| {
        let offset = number * CHUNK_BYTES;
        let page = mapped(medium, offset, DESCRIPTOR_BYTES);
        matches!(ChunkHeader::decode(page, identity ^ offset), Ok(Some(_)))
    };
    newest_state(medium, identity).is_ok() || (1..medium.len() / CHUNK_BYTES).any(has_header)
}
