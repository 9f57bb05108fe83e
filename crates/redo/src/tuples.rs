//! Rows in volatile memory, and the index over them in DRAM.

use pantile_media::{DramMedium, MapOptions, Medium, MediumError, MediumExt};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Parts of the index, each with a part of the checkpoint. More than threads, so that they have the same to do.
pub(crate) const SHARDS: usize = 64;

/// The part that has a key.
pub(crate) fn shard_of(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SHARDS.ilog2())) as usize
}

/// Persistent memory in which rows are volatile that DRAM has no room for.
#[derive(Debug, Clone)]
pub struct Beyond {
    /// The memory.
    pub memory: Arc<dyn Medium>,
    /// One row in this many is in DRAM.
    pub ratio: u64,
}

/// Places of rows of one length, on huge pages where the system has them.
#[derive(Debug)]
struct Heap {
    dram: Arc<dyn Medium>,
    beyond: Option<Beyond>,
    row_bytes: u64,
    /// Places that were never used begin here.
    next: AtomicU64,
}

impl Heap {
    /// This many places that were never used. Returns the first.
    fn take(&self, count: u64) -> Result<u64, MediumError> {
        let first = self.next.fetch_add(count, Ordering::Relaxed);
        // Each memory has room for its own places only.
        let end = first + count;
        let in_dram = self.beyond.as_ref().map_or(end, |beyond| end.div_ceil(beyond.ratio));
        let memories =
            [(Some(&self.dram), in_dram), (self.beyond.as_ref().map(|beyond| &beyond.memory), end - in_dram)];
        for (memory, places) in memories {
            let bytes = places * self.row_bytes;
            if let Some(memory) = memory.filter(|memory| bytes > memory.len()) {
                memory.grow(bytes)?;
            }
        }
        Ok(first)
    }

    /// The memory beyond DRAM, if a place is there, and where the place is in its memory.
    fn at(&self, place: u64) -> (Option<&Arc<dyn Medium>>, u64) {
        let Some(Beyond { memory, ratio, .. }) = &self.beyond else { return (None, place * self.row_bytes) };
        let in_dram = place / ratio;
        match place.is_multiple_of(*ratio) {
            true => (None, in_dram * self.row_bytes),
            false => (Some(memory), (place - in_dram - 1) * self.row_bytes),
        }
    }

    /// Stores a row in a place that the caller's shard has.
    #[allow(unsafe_code, reason = "a medium is written to")]
    fn store(&self, place: u64, row: &[u8]) -> Result<(), MediumError> {
        assert_eq!(row.len() as u64, self.row_bytes, "rows have one length");
        // SAFETY: the caller has the lock of the shard that has the place, and nobody keeps references.
        unsafe {
            match self.at(place) {
                (None, offset) => self.dram.write(offset, row),
                // Nobody waits for it, but the memory has to write it.
                (Some(memory), offset) => memory.write_flushed(offset, row),
            }
        }
    }

    /// Copies a row out of a place that the caller's shard has.
    #[allow(unsafe_code, reason = "a medium is read")]
    fn load(&self, place: u64) -> Vec<u8> {
        let mut row = vec![0; self.row_bytes as usize];
        // SAFETY: as for `store`.
        unsafe {
            let (beyond, offset) = self.at(place);
            beyond.unwrap_or(&self.dram).read(offset, &mut row).expect("the place was taken");
        }
        row
    }
}

/// A part of the index, and the places that it has.
#[derive(Debug, Default)]
struct Part {
    places: HashMap<u64, u64, foldhash::fast::FixedState>,
    free: Vec<u64>,
}

/// Rows by key.
#[derive(Debug)]
pub(crate) struct Tuples {
    heap: Heap,
    parts: Vec<Mutex<Part>>,
}

/// A part that is locked.
#[derive(Debug)]
pub(crate) struct Shard<'t> {
    heap: &'t Heap,
    part: MutexGuard<'t, Part>,
}

impl Tuples {
    /// None yet, of this length.
    pub fn new(row_bytes: u64, beyond: Option<Beyond>) -> Result<Self, MediumError> {
        let dram = DramMedium::new(MapOptions::default())?;
        let heap = Heap { dram, beyond, row_bytes, next: AtomicU64::new(0) };
        Ok(Self { heap, parts: (0..SHARDS).map(|_| Mutex::default()).collect() })
    }

    pub fn shard(&self, number: usize) -> Shard<'_> {
        let part = self.parts[number].lock().unwrap_or_else(PoisonError::into_inner);
        Shard { heap: &self.heap, part }
    }

    /// The row with a key.
    pub fn get(&self, key: u64) -> Option<Vec<u8>> {
        let shard = self.shard(shard_of(key));
        shard.part.places.get(&key).map(|&place| self.heap.load(place))
    }
}

impl Shard<'_> {
    /// Makes room for this many more rows, side by side.
    pub fn reserve(&mut self, rows: u64) -> Result<(), MediumError> {
        let first = self.heap.take(rows)?;
        self.part.places.reserve(rows as usize);
        self.part.free.extend((first..first + rows).rev());
        Ok(())
    }

    /// Stores a row under a key, in place of the one that it has.
    pub fn put(&mut self, key: u64, row: &[u8]) -> Result<(), MediumError> {
        let place = match self.part.places.get(&key) {
            Some(&place) => place,
            None => match self.part.free.pop() {
                Some(place) => place,
                None => self.heap.take(1)?,
            },
        };
        self.heap.store(place, row)?;
        self.part.places.insert(key, place);
        Ok(())
    }

    /// Removes a key.
    pub fn remove(&mut self, key: u64) {
        let place = self.part.places.remove(&key);
        self.part.free.extend(place);
    }

    /// Waits until the memory beyond DRAM has what this thread has put there: caches have room for little of it.
    pub fn settle(&self) -> Result<(), MediumError> {
        self.heap.beyond.as_ref().map_or(Ok(()), |beyond| beyond.memory.fence())
    }

    pub fn len(&self) -> u64 {
        self.part.places.len() as u64
    }

    /// Calls `each` with every key and its row.
    pub fn each(&self, mut each: impl FnMut(u64, Vec<u8>)) {
        self.part.places.iter().for_each(|(&key, &place)| each(key, self.heap.load(place)));
    }
}
