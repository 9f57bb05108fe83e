//! Tiles: the control data of one block's versions, in DRAM.
//!
//! A version's `begin_ts` is the `txn_id` of its content, its `end_ts` the
//! `begin_ts` of its successor, its `read_ts` a mark beside the table. What is
//! left for the header is the link to the older version, and it carries that
//! version's `begin_ts`, so that a walk decides about a version before it
//! touches its content (T13). A block without a tile has no links: all its
//! versions are visible to everyone, or have no predecessor.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use pantile_base::{Address, Timestamp};

/// The way to an older version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Where the older version's content lies.
    pub address: Address,
    /// The older version's `begin_ts`.
    pub begin_ts: Timestamp,
}

#[derive(Debug, Default)]
struct Header {
    address: AtomicU64,
    begin_ts: AtomicU64,
}

/// A tile that comes into being with its first link.
#[derive(Debug)]
pub(crate) struct TileCell {
    headers: AtomicPtr<Header>,
    slots: usize,
}

/// DRAM that a tile of this many slots takes, in bytes.
pub(crate) const fn tile_bytes(slots: usize) -> u64 {
    (slots * size_of::<Header>()) as u64
}

impl TileCell {
    pub fn new(slots: usize) -> Self {
        Self { headers: AtomicPtr::default(), slots }
    }

    fn get(&self) -> Option<&[Header]> {
        let start = self.headers.load(Ordering::Acquire);
        // SAFETY: published whole with this length, freed with the cell.
        (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start, self.slots) })
    }

    fn get_or_make(&self) -> &[Header] {
        if let Some(headers) = self.get() {
            return headers;
        }
        let fresh: Box<[Header]> = (0..self.slots).map(|_| Header::default()).collect();
        let fresh = Box::into_raw(fresh).cast::<Header>();
        let null = std::ptr::null_mut();
        if self.headers.compare_exchange(null, fresh, Ordering::AcqRel, Ordering::Acquire).is_err() {
            self.free(fresh);
        }
        self.get().unwrap_or_default()
    }

    /// Frees the tile. No transaction may be able to reach a version of the block.
    pub fn clear(&self) {
        self.free(self.headers.swap(std::ptr::null_mut(), Ordering::AcqRel));
    }

    fn free(&self, start: *mut Header) {
        if !start.is_null() {
            // SAFETY: made by `get_or_make` with this length and taken out of
            // the cell; by the caller's contract nobody else is left.
            unsafe { drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(start, self.slots))) };
        }
    }

    pub fn exists(&self) -> bool {
        !self.headers.load(Ordering::Relaxed).is_null()
    }

    /// Sets the link of a version that is not published yet.
    pub fn set(&self, slot: usize, link: Link) {
        let header = &self.get_or_make()[slot];
        header.begin_ts.store(link.begin_ts.get(), Ordering::Relaxed);
        header.address.store(link.address.word(), Ordering::Release);
    }

    pub fn link(&self, slot: usize) -> Option<Link> {
        let header = self.get()?.get(slot)?;
        let address = Address::from_word(header.address.load(Ordering::Acquire));
        let begin_ts = Timestamp::from_raw(header.begin_ts.load(Ordering::Relaxed));
        (!address.is_none()).then_some(Link { address, begin_ts })
    }
}

impl Drop for TileCell {
    fn drop(&mut self) {
        self.clear();
    }
}
