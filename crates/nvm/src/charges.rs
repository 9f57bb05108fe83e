//! What engines of other designs would do on the memory in place of ours: a model of their costs.

use super::clock::Clock;
use super::design::{Design, Kind};
use super::dram_cache::{DramCache, spread};
use super::model::{Lane, Model, ReadCost};
use pantile_base::limits::CHUNK_BYTES;
use pantile_media::parts::LINE_BYTES;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a page of [`Kind::Foedus`].
const PAGE_BYTES: u64 = 4096;

/// Reads as short as this are looks of the engine at a header, for its own purposes.
const HEADER_BYTES: u64 = 24;

/// A design at work.
#[derive(Debug)]
pub(crate) struct AtWork {
    design: Design,
    /// What DRAM has copies of, of designs with copies.
    cache: DramCache,
    /// Where ends what has been written, in whole chunks. The medium may be longer.
    written: AtomicU64,
}

impl AtWork {
    /// Over a device with units of this many bytes.
    pub(crate) fn new(design: Design, unit_bytes: u64) -> Self {
        let piece = match design.kind {
            Kind::Zen | Kind::ZenNaive | Kind::Wbl | Kind::Mmdb => unit_bytes,
            Kind::Foedus => PAGE_BYTES,
        };
        Self { design, cache: DramCache::new(piece), written: AtomicU64::new(0) }
    }

    /// Makes room for copies of a part of what has been written up to here.
    pub(crate) fn make_room_for(&self, end: u64) {
        if end > self.written.load(Ordering::Relaxed) {
            let end = end.next_multiple_of(CHUNK_BYTES);
            let before = self.written.fetch_max(end, Ordering::Relaxed);
            let bytes = before.max(end) / u64::from(self.design.ratio);
            self.cache.resize(bytes);
        }
    }

    /// Whether a part of a database in memory is in DRAM: pages are spread evenly.
    fn is_in_dram(&self, offset: u64) -> bool {
        let page = offset / PAGE_BYTES;
        spread(page).is_multiple_of(u64::from(self.design.ratio))
    }

    /// A content is read.
    pub(crate) fn read<C: Clock>(&self, model: &Model<C>, offset: u64, len: u64) -> ReadCost {
        let mut read = ReadCost::default();
        match self.design.kind {
            Kind::Zen | Kind::ZenNaive | Kind::Foedus => self.fetch(model, offset, len, &mut read),
            Kind::Wbl => {
                self.fetch(model, offset, len, &mut read);
                if len > HEADER_BYTES {
                    self.persist_metadata(model, offset, &mut read);
                }
            }
            Kind::Mmdb => {
                // It needs no look for copies, but what a look takes the emulator must count for all designs alike.
                self.cache.touch_all(offset, len, |_| ());
                if self.is_in_dram(offset) {
                    return read;
                }
                read = model.read(offset, len);
                // Where the CPU has the tuple, what is written to it stays there, too.
                if read.missed > 0 && len > HEADER_BYTES {
                    read.written = model.with_lane(|lane| model.evict(lane, metadata(offset), LINE_BYTES));
                }
            }
        }
        read
    }

    /// Reads what is not in DRAM, and copies it there.
    fn fetch<C: Clock>(&self, model: &Model<C>, offset: u64, len: u64, read: &mut ReadCost) {
        self.cache.touch_all(offset, len, |piece| {
            let cost = model.read(piece.start, piece.bytes);
            read.missed += cost.missed;
            read.waited += cost.waited + model.copy_to_dram(piece.bytes);
        });
    }

    /// Writes the metadata of the tuple at `offset` and waits until they are durable.
    fn persist_metadata<C: Clock>(&self, model: &Model<C>, offset: u64, read: &mut ReadCost) {
        let now = model.now();
        let written = model.with_lane(|lane| {
            // Reads and writes of a tuple look at it more than once in a row.
            let is_another = lane.metadata_of.replace(offset) != Some(offset);
            is_another.then(|| model.flush(lane, now, metadata(offset), LINE_BYTES))
        });
        if let Some(written) = written {
            read.written += written;
            read.fences += 1;
            read.waited += model.fence();
        }
    }

    /// Whether the metadata of slots are made durable.
    pub(crate) fn persists_slots(&self) -> bool {
        self.design.kind == Kind::ZenNaive
    }

    /// Makes the metadata of slots durable, one after the other. Returns the units written, and the picoseconds waited.
    pub(crate) fn persist_slots<C: Clock>(&self, model: &Model<C>, count: u64) -> (u64, u64) {
        (0..count).fold((0, 0), |(written, waited), _| {
            let now = model.now();
            let units = model.with_lane(|lane| model.flush_apart(lane, now));
            (written + units, waited + model.fence())
        })
    }

    /// Something was written, in DRAM first where there are copies.
    pub(crate) fn written(&self, offset: u64, len: u64) {
        self.make_room_for(offset + len);
        self.cache.touch_all(offset, len, |_| ());
    }

    /// Something that was written is made durable. Returns the units written.
    pub(crate) fn flush<C: Clock>(
        &self,
        model: &Model<C>,
        lane: &mut Lane,
        now: u64,
        offset: u64,
        len: u64,
    ) -> u64 {
        let is_volatile = match self.design.kind {
            Kind::Zen | Kind::ZenNaive | Kind::Wbl => return model.flush(lane, now, offset, len),
            Kind::Mmdb => !self.is_in_dram(offset),
            Kind::Foedus => true,
        };
        let logged = model.log(lane, now, len);
        // A volatile tuple is written when the CPU evicts it, and a snapshot in the background: nobody waits
        // for that, but the device is busy.
        logged + if is_volatile { model.evict(lane, offset, len) } else { 0 }
    }
}

/// Where an engine keeps what its concurrency control knows of the tuple at `offset`: in one line.
fn metadata(offset: u64) -> u64 {
    offset / LINE_BYTES * LINE_BYTES
}

#[cfg(test)]
#[path = "charges_test.rs"]
mod tests;
