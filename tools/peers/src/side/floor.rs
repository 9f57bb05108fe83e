//! The floor: the memory accesses that a store in memory cannot do without, and nothing else. A
//! hash index leads to a word for each row, and that to its bytes; a changed row is written
//! anew. There is no order to keep, nobody to keep apart, and nothing to make durable, so no
//! store gets here. How far one is away can be compared between machines.

use std::collections::HashMap;
use std::path::Path;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pantile_bench::memory::Failure;
use pantile_testkit::mix;

use super::store::{How, Peer, Row, Store, VALUE_BYTES, missing, read_all, taste};

pub struct Floor;

pub const NAME: &str = "floor";

/// Places of the index, each a key and a row number. At most half are used.
const PLACES: usize = 1 << 22;
/// In a place whose key has gone.
const FREED: u64 = u64::MAX;
/// Words of a row: its key, its owner and its value.
const WORDS: usize = 2 + VALUE_BYTES.div_ceil(8);
/// Rows that there is room for. Then the oldest bytes are written over.
const ROOM: usize = 1 << 22;

/// Rows in memory. Not for keeping anything.
struct Rows {
    /// One more than a key, 0 where there was none, or [`FREED`]; and the number of its row.
    index: Vec<[AtomicU64; 2]>,
    /// Where the bytes of a row are.
    anchors: Vec<AtomicU64>,
    bytes: Vec<[AtomicU64; WORDS]>,
    rows: AtomicU64,
    written: AtomicU64,
    large: RwLock<HashMap<u64, Vec<u8>>>,
}

impl Peer for Floor {
    fn name(&self) -> &'static str {
        NAME
    }

    fn keeps(&self) -> bool {
        false
    }

    fn open(&self, _: &Path, _: How) -> Result<Box<dyn Store>, Failure> {
        Ok(Box::new(Rows {
            index: zeroed(PLACES),
            anchors: (0..PLACES / 2).map(|_| AtomicU64::new(0)).collect(),
            bytes: zeroed(ROOM),
            rows: AtomicU64::new(0),
            written: AtomicU64::new(0),
            large: RwLock::default(),
        }))
    }
}

fn zeroed<const N: usize>(len: usize) -> Vec<[AtomicU64; N]> {
    (0..len).map(|_| std::array::from_fn(|_| AtomicU64::new(0))).collect()
}

impl Rows {
    /// The places where a key may be, in the order in which they are tried.
    fn places(&self, key: u64) -> impl Iterator<Item = &[AtomicU64; 2]> {
        let first = mix(key) as usize;
        (0..PLACES).map(move |n| &self.index[(first + n) % PLACES])
    }

    fn place(&self, key: u64) -> Result<&[AtomicU64; 2], Failure> {
        let place = self.places(key).find(|place| [0, key + 1].contains(&place[0].load(Relaxed)));
        place.filter(|place| place[0].load(Relaxed) != 0).ok_or_else(|| missing(key))
    }

    fn row(&self, key: u64) -> Result<usize, Failure> {
        Ok(self.place(key)?[1].load(Relaxed) as usize)
    }

    /// Writes the bytes of a row anew.
    fn write(&self, number: usize, row: &Row) {
        let at = self.written.fetch_add(1, Relaxed) as usize % ROOM;
        let bytes = &self.bytes[at];
        bytes[0].store(row.key, Relaxed);
        bytes[1].store(row.owner, Relaxed);
        for (word, part) in bytes[2..].iter().zip(row.value.chunks(8)) {
            let mut all = [0; 8];
            all[..part.len()].copy_from_slice(part);
            word.store(u64::from_le_bytes(all), Relaxed);
        }
        self.anchors[number].store(at as u64, Relaxed);
    }

    fn read(&self, number: usize) -> u64 {
        let bytes = &self.bytes[self.anchors[number].load(Relaxed) as usize];
        let mut value = [0; WORDS * 8];
        for (part, word) in value.chunks_mut(8).zip(bytes) {
            part.copy_from_slice(&word.load(Relaxed).to_le_bytes());
        }
        taste(&value[16..16 + VALUE_BYTES])
    }

    fn add(&self, row: &Row) {
        let number = self.rows.fetch_add(1, Relaxed) as usize % (PLACES / 2);
        let place = self.places(row.key).find(|place| [0, FREED].contains(&place[0].load(Relaxed)));
        let place = place.expect("at most half of the places are used");
        place[1].store(number as u64, Relaxed);
        place[0].store(row.key + 1, Relaxed);
        self.write(number, row);
    }
}

impl Store for Rows {
    fn load(&self, rows: &[Row], _: bool) -> Result<(), Failure> {
        rows.iter().for_each(|row| self.add(row));
        Ok(())
    }

    fn work(&self, reads: &[u64], writes: &[Row]) -> Result<u64, Failure> {
        let sum = reads.iter().try_fold(0, |sum, key| Ok::<_, Failure>(sum + self.read(self.row(*key)?)))?;
        for row in writes {
            self.write(self.row(row.key)?, row);
        }
        Ok(sum)
    }

    /// Rows were added in the order of their keys, so their words lie side by side.
    fn scan(&self, from: u64, rows: usize) -> Result<u64, Failure> {
        let first = self.row(from)?;
        let end = (first + rows).min(self.rows.load(Relaxed) as usize);
        Ok((first..end).map(|number| self.read(number)).sum())
    }

    fn turn(&self, add: &Row, take: u64) -> Result<(), Failure> {
        self.add(add);
        self.place(take)?[0].store(FREED, Relaxed);
        Ok(())
    }

    fn put_large(&self, values: &[(u64, Vec<u8>)]) -> Result<(), Failure> {
        let mut large = self.large.write().map_err(|_| "a thread panicked")?;
        large.extend(values.iter().cloned());
        Ok(())
    }

    fn get_large(&self, key: u64) -> Result<u64, Failure> {
        let large = self.large.read().map_err(|_| "a thread panicked")?;
        large.get(&key).map(|value| read_all(value)).ok_or_else(|| missing(key))
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }
}
