//! Opening a store that is damaged in part, to read what is undamaged.
//!
//! Contents are believed only if their checksums fit, so no wrong row is read. The data that leads
//! to contents can be recovered in part. The superblock has a copy. An entry in which one bit has
//! flipped is repaired. If the header of a chunk is lost, its contents show how it was divided.

use std::sync::Arc;

use pantile_base::Address;
use pantile_base::limits::{CHUNK_BYTES, SUPERBLOCK_COPY};
use pantile_media::{Medium, MediumExt};

use crate::block::Chunk;
use crate::error::StoreError;
use crate::format::{
    BLOCK_HEADER_BYTES, ChunkHeader, DESCRIPTOR_BYTES, Descriptor, FORMAT_VERSION, Lineage,
    MAX_BLOCKS_PER_CHUNK, Superblock, Unreadable,
};
use crate::geometry::{Class, Geometry};
use crate::lines::Lines;
use crate::own::{Own, mapped};
use crate::scan::start_of;
use crate::shape::Shape;
use crate::store::{Store, StoreOptions, newest_state, unreadable};

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
        let superblock = superblock(&*medium)?;
        let state = newest_state(&*medium, superblock.identity).unwrap_or_default();
        let (state, record_blocks) = state;
        let mut store = Self::over(medium, options, superblock, state, record_blocks);
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
    pub(crate) fn division(&self, lines: &Lines<'_>, number: u32) -> Option<Geometry> {
        let decode = |line: &[u8]| ChunkHeader::decode(line, lines.seed(0)).ok()?;
        if let Some(header) = self.mended(lines.line(0), &decode) {
            return Some(Geometry::of(number, header));
        }
        let found = |n: usize| {
            let whole = |found: Result<Option<Descriptor>, _>| found.ok().flatten();
            let line = whole(lines.read(n, Descriptor::decode));
            line.or_else(|| whole(lines.read_copy(n, Descriptor::decode)))
        };
        let opened: Vec<(u32, Descriptor)> = (0..MAX_BLOCKS_PER_CHUNK as u32)
            .filter_map(|index| Some((index, found(index as usize + 1)?)))
            .collect();
        let blocks = opened.last()?.0 + 1;
        let fitting = Class::all().map(|class| Geometry::new(number, class)).filter(|g| g.blocks >= blocks);
        fitting.max_by_key(|geometry| self.contents_in(number, *geometry, &opened))
    }

    /// The number of contents in these blocks of a chunk, if it is divided in
    /// this way.
    fn contents_in(&self, number: u32, geometry: Geometry, opened: &[(u32, Descriptor)]) -> usize {
        let chunk = Chunk::new(number, geometry, 0);
        let found_in = |(index, descriptor): &(u32, Descriptor)| {
            let Descriptor { opened_at, shape: Shape { stride, slots }, .. } = *descriptor;
            let seed = self.content_seed(opened_at);
            let first = chunk.header_offset(*index) + BLOCK_HEADER_BYTES as u64;
            let is_there = |slot: &u32| {
                let address = Address::from_offset(first + u64::from(*slot) * u64::from(stride));
                self.valid_content(address, stride as usize, seed).is_some()
            };
            if descriptor.shape.fits(geometry.block_bytes) { (0..slots).filter(is_there).count() } else { 0 }
        };
        opened.iter().map(found_in).sum()
    }
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
    let of = |identity| Superblock { version: FORMAT_VERSION, identity, lineage: Lineage::new(identity) };
    let found = found.or_else(|| named().map(of));
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
    let has_header = |number: u32| {
        let offset = start_of(number);
        if offset + DESCRIPTOR_BYTES as u64 > medium.len() {
            return false;
        }
        let page = mapped(medium, offset, DESCRIPTOR_BYTES);
        matches!(ChunkHeader::decode(page, identity ^ offset), Ok(Some(_)))
    };
    newest_state(medium, identity).is_ok() || (0..medium.len().div_ceil(CHUNK_BYTES) as u32).any(has_header)
}
