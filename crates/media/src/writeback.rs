//! Writing to the device that begins before anybody waits for it.
//!
//! The system keeps what is written to a file in memory until a sync, or for some seconds. So a large
//! transaction, or a load, would first use the processor and then, in its last sync, the device. Here the system is
//! asked to begin with a chunk as soon as large writes have filled it (`sync_file_range` on Linux; RocksDB's
//! `bytes_per_sync` does the same). Nothing is promised by that: it is the sync that makes contents durable.
//!
//! Small commits are left alone. Their versions often die before the system writes them, and a device is slower
//! with many small requests than with few large ones.

use crate::data_file::DataFile;
use crate::os;
use pantile_base::limits::CHUNK_BYTES;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// A write that is not small.
const LARGE_BYTES: u64 = 32 << 10;

/// Bytes of a chunk, written by large writes, that are worth a request. The last rows of a chunk may not fill it,
/// and then come with the sync.
const WORTH_BYTES: u64 = CHUNK_BYTES / 4 * 3;

/// Chunks that are filled side by side, about as many as large transactions at one time.
const CHUNKS: usize = 8;

/// Chunks that wait for a device that is slower than the writers. More are left to the system.
const MOST_WAITING: usize = 64;

/// Asks the system to begin. Dropping it ends its thread, which there is once something is worth it.
#[derive(Debug)]
pub(crate) struct Writeback {
    state: Mutex<State>,
    file: Arc<DataFile>,
    /// [`os::forks`] when it was made: a forked child has no thread.
    forks: u32,
}

#[derive(Debug, Default)]
struct State {
    /// The chunks that are being filled, and by how many bytes.
    filling: [(u64, u64); CHUNKS],
    /// The place for the next one.
    next: usize,
    thread: Option<(SyncSender<u64>, JoinHandle<()>)>,
    is_refused: bool,
}

impl Writeback {
    /// For a data file; none where the system cannot be asked.
    pub(crate) fn over(file: &Arc<DataFile>) -> Option<Self> {
        let can = os::BEGINS_WRITES && !os::is_in_memory(file.file());
        can.then(|| Self { state: Mutex::default(), file: Arc::clone(file), forks: os::watch_forks() })
    }

    /// Notes a write.
    #[inline]
    pub(crate) fn note(&self, offset: u64, len: u64) {
        if len >= LARGE_BYTES {
            self.note_large(offset, len);
        }
    }

    fn note_large(&self, offset: u64, len: u64) {
        let mut state = self.state.lock();
        let chunk = offset / CHUNK_BYTES;
        if state.fill(chunk, len) && !state.is_refused {
            self.send(&mut state, chunk);
        }
    }

    fn send(&self, state: &mut State, chunk: u64) {
        if state.thread.is_none() {
            let (sender, receiver) = sync_channel(MOST_WAITING);
            let file = Arc::clone(&self.file);
            let named = thread::Builder::new().name("pantile-writeback".to_owned());
            // A system that refuses a thread costs speed only.
            let started = named.spawn(move || begin_each(&file, &receiver));
            state.is_refused = started.is_err();
            state.thread = started.ok().map(|thread| (sender, thread));
        }
        if let Some((sender, _)) = &state.thread {
            let _ = sender.try_send(chunk);
        }
    }
}

impl Drop for Writeback {
    fn drop(&mut self) {
        let Some((sender, thread)) = self.state.get_mut().thread.take() else { return };
        drop(sender);
        if os::forks() == self.forks {
            // A panic there was reported there, and nothing depends on the thread.
            let _ = thread.join();
        }
    }
}

fn begin_each(file: &DataFile, chunks: &Receiver<u64>) {
    while let Ok(chunk) = chunks.recv() {
        os::begin_write(file.file(), chunk * CHUNK_BYTES, CHUNK_BYTES);
    }
}

impl State {
    /// Adds what was written to a chunk. Returns whether that has become worth a request.
    fn fill(&mut self, chunk: u64, len: u64) -> bool {
        let known = self.filling.iter().position(|&(of, bytes)| of == chunk && bytes > 0);
        let at = known.unwrap_or_else(|| {
            let at = self.next;
            self.next = (at + 1) % CHUNKS;
            self.filling[at] = (chunk, 0);
            at
        });
        let bytes = &mut self.filling[at].1;
        *bytes += len;
        let is_worth = *bytes >= WORTH_BYTES;
        if is_worth {
            *bytes = 0;
        }
        is_worth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_begun_when_most_of_it_was_written() {
        let mut state = State::default();
        let part = WORTH_BYTES / 3;
        let begun: Vec<_> = (0..7).map(|_| state.fill(0, part)).collect();
        assert_eq!(begun, [false, false, true, false, false, true, false]);
    }

    #[test]
    fn chunks_are_filled_side_by_side() {
        let mut state = State::default();
        let half = WORTH_BYTES / 2;
        assert!((0..CHUNKS as u64).all(|chunk| !state.fill(chunk, half)));
        assert!((0..CHUNKS as u64).all(|chunk| state.fill(chunk, half)));
        // Of more, those that were begun first are forgotten.
        assert!((10..11 + CHUNKS as u64).all(|chunk| !state.fill(chunk, half)));
        assert!(!state.fill(10, half) && state.fill(12, half));
    }

    #[test]
    fn small_writes_start_no_thread() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = DataFile::open(&dir.path().join("data"), true).expect("a file");
        let Some(writeback) = Writeback::over(&file) else { return };
        let parts = |len: u64| (0..CHUNK_BYTES / len).for_each(|n| writeback.note(n * len, len));
        parts(LARGE_BYTES / 2);
        assert!(writeback.state.lock().thread.is_none());
        parts(LARGE_BYTES);
        assert!(writeback.state.lock().thread.is_some());
    }
}
