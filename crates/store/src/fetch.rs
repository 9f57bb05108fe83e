//! Prefetching, on a medium that is larger than memory.
//!
//! A load from a page that is not in memory waits for the device. The system reads one page at a
//! time, because the bytes around a row are rarely wanted (`Reads::AtRandom`). So before the store
//! reads more than a page, it says what it is about to read: contents that lie across two pages,
//! rows of several keys, survivors of a block.

use pantile_base::Address;
use pantile_base::limits::CHUNK_BYTES;
use pantile_base::sync::atomic::Ordering;
use pantile_media::Reads;

use crate::store::Store;

/// The unit in which the system reads a file into memory.
const PAGE_BYTES: u64 = 4096;

/// Bytes between two contents that are read together rather than apart.
const GAP: u64 = 4 * PAGE_BYTES;

/// A medium is taken to be larger than memory from this part of memory on. The
/// rest is for indexes and for the other memory of the process.
const SHARE: u64 = 2;

/// The first byte of a piece of the medium, and the one behind it.
pub type Extent = (u64, u64);

impl Store {
    /// From now on the store fetches ahead what it reads here and there. The
    /// scan fetches whole chunks.
    pub fn expect_transactions(&self) {
        self.is_running.store(true, Ordering::Relaxed);
        self.note_size();
    }

    /// The medium has become longer or shorter.
    pub(crate) fn note_size(&self) {
        let is_larger = |memory: u64| self.medium.len() > memory / SHARE;
        let may_wait =
            self.is_running.load(Ordering::Relaxed) && self.medium.facts().cached_in.is_some_and(is_larger);
        self.may_wait.store(may_wait, Ordering::Relaxed);
    }

    /// Whether a read may wait for the device. Fetching ahead pays then.
    #[inline]
    pub fn may_wait(&self) -> bool {
        self.may_wait.load(Ordering::Relaxed)
    }

    /// Where contents lie that will be read next, in pieces to be
    /// [fetched](Self::fetch). Changes the order of `addresses`, which need not be
    /// valid any more. The caller has pinned its slot, or nothing is freed.
    pub fn extents(&self, addresses: &mut [Address]) -> Vec<Extent> {
        addresses.sort_unstable();
        let mut extents: Vec<Extent> = Vec::new();
        for &address in addresses.iter() {
            let Some(len) = self.slot_len(address) else { continue };
            let (from, to) = (address.offset(), address.offset() + len);
            match extents.last_mut() {
                Some((_, end)) if from <= *end + GAP => *end = to.max(*end),
                _ => extents.push((from, to)),
            }
        }
        extents
    }

    /// Begins to read pieces of the medium. Waits for nothing.
    pub fn fetch(&self, extents: &[Extent]) {
        for &(from, to) in extents {
            self.medium.advise(Reads::Soon { offset: from, len: to - from });
        }
    }

    /// Begins to read a content if it lies across pages, which would be read
    /// one after the other. The caller has pinned its slot, or nothing is freed.
    #[cold]
    pub fn fetch_across(&self, address: Address) {
        let Some(len) = self.slot_len(address) else { return };
        if address.offset() % PAGE_BYTES + len > PAGE_BYTES {
            self.medium.advise(Reads::Soon { offset: address.offset(), len });
        }
    }

    /// The bytes of a slot, if the address is that of one.
    fn slot_len(&self, address: Address) -> Option<u64> {
        if address.is_none() {
            return None;
        }
        let chunk = self.chunk((address.offset() / CHUNK_BYTES) as u32)?;
        let (index, _) = chunk.find(address)?;
        Some(u64::from(chunk.blocks[index as usize].stride()))
    }
}
