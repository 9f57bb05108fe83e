//! Tiles: the control data of one block's versions, in DRAM.
//!
//! A version's `begin_ts` is the `timestamp` of its content, its `end_ts` is
//! the `begin_ts` of its successor, and its `read_ts` is a read mark beside the
//! table. What remains for the tile is the link to the older version. The link
//! carries that version's `begin_ts`, so that a walk decides about a version
//! before it touches its content (T13). A block without a tile has no links:
//! each of its versions is visible to every reader, or has no predecessor.

use std::fmt::Debug;

use pantile_base::sync::atomic::{AtomicU64, Ordering, fence};
use pantile_base::sync::hint;
use pantile_base::{Address, Timestamp};

/// A link to an older version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Where the older version's content lies, or lay.
    pub address: Address,
    /// The older version's `begin_ts`.
    pub begin_ts: Timestamp,
    /// The generation of the block that it lies in.
    pub(crate) generation: u16,
}

impl Link {
    fn word(self) -> u64 {
        self.address.word() | (u64::from(self.generation) << GENERATION_SHIFT)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Header {
    /// The address, and the generation above it.
    address: AtomicU64,
    begin_ts: AtomicU64,
}

const GENERATION_SHIFT: u32 = Address::BITS;
/// No link.
const NONE: u64 = 0;
/// A link is being replaced. No content has so high an address.
const CHANGING: u64 = u64::MAX;
const _: () = assert!(GENERATION_SHIFT + u16::BITS == u64::BITS);

impl Header {
    fn set(&self, link: Link) {
        self.begin_ts.store(link.begin_ts.get(), Ordering::Relaxed);
        self.address.store(link.word(), Ordering::Release);
    }

    pub fn link(&self) -> Option<Link> {
        loop {
            let word = self.address.load(Ordering::Acquire);
            let address = Address::from_word(word & ((1 << GENERATION_SHIFT) - 1));
            let begin_ts = Timestamp::from_raw(self.begin_ts.load(Ordering::Relaxed));
            // The link may be being replaced; read both words or none.
            fence(Ordering::Acquire);
            if word != CHANGING && self.address.load(Ordering::Relaxed) == word {
                let generation = (word >> GENERATION_SHIFT) as u16;
                return (!address.is_none()).then_some(Link { address, begin_ts, generation });
            }
            hint::spin_loop();
        }
    }

    /// Removes the link if it is still the given one; returns whether it did.
    fn take(&self, link: Link) -> bool {
        self.address.compare_exchange(link.word(), NONE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Replaces the link while walks may be reading it.
    fn replace(&self, link: Link) {
        self.address.store(CHANGING, Ordering::Relaxed);
        fence(Ordering::Release);
        self.set(link);
    }
}

/// The links of a block's versions, stored apart from the block.
#[derive(Debug)]
pub struct Tile(Box<[Header]>);

fn links_of(headers: &[Header]) -> impl Iterator<Item = (u32, Link)> {
    (0u32..).zip(headers).filter_map(|(slot, header)| Some((slot, header.link()?)))
}

impl Tile {
    /// Number of slots.
    pub(crate) fn slots(&self) -> usize {
        self.0.len()
    }

    /// Removes a version's link that no walk needs; returns whether it had one.
    pub(crate) fn clear(&self, slot: u32) -> bool {
        self.0.get(slot as usize).is_some_and(|header| header.address.swap(NONE, Ordering::AcqRel) != NONE)
    }

    /// The links, each with the slot of the version that it starts from.
    pub fn links(&self) -> impl Iterator<Item = (u32, Link)> {
        links_of(&self.0)
    }
}

/// The links of a released block.
pub trait KeptLinks: Send + Sync + Debug {
    /// The link of the version that was in a slot.
    fn link(&self, slot: u32) -> Option<Link>;

    /// DRAM that the links take, in bytes.
    fn bytes(&self) -> u64;
}

/// Makes what is kept in place of a tile.
pub type KeepInstead = fn(&Tile) -> Box<dyn KeptLinks>;

impl KeptLinks for Tile {
    fn link(&self, slot: u32) -> Option<Link> {
        self.0.get(slot as usize)?.link()
    }

    fn bytes(&self) -> u64 {
        tile_bytes(self.0.len())
    }
}

/// A tile that is allocated with its first link.
///
/// Blocks have other numbers of slots in other generations, so a walk needs
/// pointer and length in one load: the length is in the pointer's top bits.
#[derive(Debug, Default)]
pub(crate) struct TileCell {
    headers: AtomicU64,
}

const LENGTH_SHIFT: u32 = 48;
const _: () = assert!(pantile_base::limits::BLOCK_SLOTS < 1 << (u64::BITS - LENGTH_SHIFT));

/// Pointer and length of a tile in one word, and back. 0 is no tile.
fn packed(start: *mut Header, slots: usize) -> u64 {
    let address = start.expose_provenance() as u64;
    assert!(address >> LENGTH_SHIFT == 0, "addresses of programs are below 2^48");
    address | ((slots as u64) << LENGTH_SHIFT)
}

fn unpacked(word: u64) -> *mut [Header] {
    let address = (word & ((1 << LENGTH_SHIFT) - 1)) as usize;
    let start = std::ptr::with_exposed_provenance_mut::<Header>(address);
    std::ptr::slice_from_raw_parts_mut(start, (word >> LENGTH_SHIFT) as usize)
}

/// DRAM that a tile of this many slots takes, in bytes.
pub(crate) const fn tile_bytes(slots: usize) -> u64 {
    (slots * size_of::<Header>()) as u64
}

impl TileCell {
    #[inline]
    fn get(&self) -> Option<&[Header]> {
        let word = self.headers.load(Ordering::Acquire);
        // SAFETY: published whole with this length. The thread that takes the
        // tile out of the cell drops it only when no other thread can be
        // looking at it (T6).
        (word != 0).then(|| unsafe { &*unpacked(word) })
    }

    /// Sets the link of a version that is not published yet. Returns whether
    /// the tile was allocated for it, with this number of slots.
    #[inline]
    pub fn set(&self, slot: u32, link: Link, slots: impl FnOnce() -> u32) -> bool {
        match self.get() {
            Some(headers) => headers[slot as usize].set(link),
            None => return self.set_first(slot, link, slots()),
        }
        false
    }

    #[cold]
    fn set_first(&self, slot: u32, link: Link, slots: u32) -> bool {
        let fresh: Box<[Header]> = (0..slots).map(|_| Header::default()).collect();
        let fresh = packed(Box::into_raw(fresh).cast::<Header>(), slots as usize);
        let made = self.headers.compare_exchange(0, fresh, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !made {
            drop(own(fresh));
        }
        if let Some(headers) = self.get() {
            headers[slot as usize].set(link);
        }
        made
    }

    #[inline]
    pub fn link(&self, slot: u32) -> Option<Link> {
        self.get()?.get(slot as usize)?.link()
    }

    /// The links, each with the slot of the version that it starts from.
    pub fn links(&self) -> impl Iterator<Item = (u32, Link)> {
        links_of(self.get().unwrap_or_default())
    }

    fn header(&self, slot: u32) -> Option<&Header> {
        self.get()?.get(slot as usize)
    }

    /// Removes a version's link if it is still the given one; returns whether
    /// it did.
    pub fn take_link(&self, slot: u32, link: Link) -> bool {
        self.header(slot).is_some_and(|header| header.take(link))
    }

    /// Replaces a version's link while walks may be reading it.
    pub fn replace_link(&self, slot: u32, link: Option<Link>) {
        let Some(header) = self.header(slot) else { return };
        match link {
            Some(link) => header.replace(link),
            None => header.address.store(NONE, Ordering::Release),
        }
    }

    /// Takes the tile out of the cell. Threads may still be looking at it.
    pub fn take(&self) -> Option<Tile> {
        own(self.headers.swap(0, Ordering::AcqRel))
    }

    /// DRAM that the tile takes, in bytes.
    pub fn bytes(&self) -> u64 {
        tile_bytes((self.headers.load(Ordering::Relaxed) >> LENGTH_SHIFT) as usize)
    }
}

fn own(word: u64) -> Option<Tile> {
    // SAFETY: made by `set_first` with this length and no longer in the cell.
    (word != 0).then(|| Tile(unsafe { Box::from_raw(unpacked(word)) }))
}

impl Drop for TileCell {
    fn drop(&mut self) {
        drop(self.take());
    }
}
