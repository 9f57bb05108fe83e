//! Opening a store: the checkpoint is loaded, and the log replayed.

use crate::format::{ENTRY_BYTES, PIECE_ROWS, RECORD_BYTES, ROOT_BYTES, ROOTS, Root, is_sealed, word_at};
use crate::memory::Memory;
use crate::store::{RedoError, RedoStore};
use crate::tuples::{Beyond, SHARDS, Shard, Tuples, shard_of};
use pantile_media::Medium;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Where a record is.
type Place = (u64, u64);

/// Whether a record was written whole, by its bytes and the seed of its checksum.
type Check = fn(&[u8], u64) -> bool;

impl RedoStore {
    /// Opens the store on a medium. It has every transaction whose commit returned, and others whole or not at all.
    ///
    /// # Errors
    /// [`RedoError`].
    pub fn open(medium: Arc<dyn Medium>, beyond: Option<Beyond>) -> Result<Self, RedoError> {
        Self::open_checking(medium, beyond, is_sealed)
    }

    pub(crate) fn open_checking(
        medium: Arc<dyn Medium>,
        beyond: Option<Beyond>,
        check: Check,
    ) -> Result<Self, RedoError> {
        let memory = Memory::claim(medium).ok_or(RedoError::InUse)?;
        let roots = ROOTS.iter().filter_map(|&at| Root::decode(memory.read(at, ROOT_BYTES)?));
        let root = roots.max_by_key(|root| root.number).ok_or(RedoError::NoStore)?;
        let tuples = Tuples::new(root.row_bytes, beyond)?;
        load(&memory, root, &tuples)?;
        let log = whole_records(&memory, root, check)?;
        replay(&memory, root, &log, &tuples)?;
        let log_end = log.last().map_or(root.log_at(), |(at, len)| at + len);
        Ok(Self { memory, tuples, root, log_end, record: Vec::new() })
    }
}

/// Does `work` for each number below `count` on all cores. Returns the first error.
fn share_out(count: usize, work: impl Fn(usize) -> Result<(), RedoError> + Sync) -> Result<(), RedoError> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(count);
    let next = AtomicUsize::new(0);
    let each = || {
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        numbers.take_while(|&number| number < count).try_for_each(&work)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(each)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("recovery does not panic"))
    })
}

const LOST: RedoError = RedoError::Damaged("a part of the checkpoint is lost");

/// Loads the checkpoint.
fn load(memory: &Memory, root: Root, tuples: &Tuples) -> Result<(), RedoError> {
    let at = root.checkpoint_at;
    let directory = memory.read(at, 16 * SHARDS as u64 + 8).filter(|bytes| is_sealed(bytes, root.seed(at)));
    let directory = directory.ok_or(LOST)?;
    share_out(SHARDS, |number| {
        let [mut at, rows] = [0, 8].map(|word| word_at(directory, 16 * number + word));
        let mut shard = tuples.shard(number);
        shard.reserve(rows)?;
        let stride = 8 + root.row_bytes;
        for first in (0..rows).step_by(PIECE_ROWS as usize) {
            let len = PIECE_ROWS.min(rows - first) * stride;
            let piece =
                memory.read(at, len + 8).filter(|piece| is_sealed(piece, root.seed(at))).ok_or(LOST)?;
            for row in piece[..len as usize].chunks_exact(stride as usize) {
                shard.put(word_at(row, 0), &row[8..])?;
            }
            at += len + 8;
        }
        Ok(shard.settle()?)
    })
}

/// The records of the log, up to the first that was not written whole.
fn whole_records(memory: &Memory, root: Root, check: Check) -> Result<Vec<Place>, RedoError> {
    let mut places = Vec::new();
    let mut at = root.log_at();
    while let Some(len) = record_bytes(memory, root, at) {
        places.push((at, len));
        at += len;
    }
    let first_torn = AtomicUsize::new(places.len());
    let last_whole = AtomicUsize::new(0);
    share_out(places.len(), |number| {
        let (at, len) = places[number];
        let record = memory.read(at, len).expect("it ends before the medium");
        match check(record, root.seed(at)) {
            true => last_whole.fetch_max(number + 1, Ordering::Relaxed),
            false => first_torn.fetch_min(number, Ordering::Relaxed),
        };
        Ok(())
    })?;
    let whole = first_torn.into_inner();
    // Each was durable before the next was written.
    if last_whole.into_inner() > whole {
        return Err(RedoError::Damaged("a transaction in the log is lost, and a later one is there"));
    }
    places.truncate(whole);
    Ok(places)
}

/// The length of the record at an offset, by its own account; `None` where there can be none.
fn record_bytes(memory: &Memory, root: Root, at: u64) -> Option<u64> {
    let entries = word_at(memory.mapped(at, 8)?, 0);
    let len = entries.checked_mul(ENTRY_BYTES + root.row_bytes)?.checked_add(RECORD_BYTES)?;
    (entries > 0 && at.checked_add(len)? <= memory.len()).then_some(len)
}

/// Replays records in their order. Each thread has its own shards, and changes only these.
fn replay(memory: &Memory, root: Root, log: &[Place], tuples: &Tuples) -> Result<(), RedoError> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(SHARDS);
    share_out(threads, |thread| {
        let mut own: Vec<_> = (thread..SHARDS).step_by(threads).map(|number| tuples.shard(number)).collect();
        for &(at, len) in log {
            let record = memory.mapped(at, len).expect("it has been read");
            let entries = &record[8..record.len() - 8];
            for entry in entries.chunks_exact((ENTRY_BYTES + root.row_bytes) as usize) {
                let shard = shard_of(word_at(entry, 0));
                if shard % threads == thread {
                    apply(&mut own[shard / threads], entry)?;
                }
            }
        }
        own.iter().try_for_each(|shard| Ok(shard.settle()?))
    })
}

fn apply(shard: &mut Shard<'_>, entry: &[u8]) -> Result<(), RedoError> {
    match word_at(entry, 8) {
        0 => shard.remove(word_at(entry, 0)),
        _ => shard.put(word_at(entry, 0), &entry[ENTRY_BYTES as usize..])?,
    }
    Ok(())
}
