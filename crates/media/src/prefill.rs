//! Space that is written before it is used.
//!
//! A sync over bytes that were written before moves only those bytes; over a
//! hole or over allocated but never written space it has to change the file
//! system's records as well, which costs half as much again or double. So a
//! background thread keeps some zeros ahead of what is in use. It
//! writes them past the page cache where the file system allows it, lest the
//! next committer's sync has to carry them.
//!
//! The file's length is set before zeros are written: it is a multiple of
//! `GROWTH_BYTES` whenever the process or the machine stops.

use crate::MediumError;
use crate::data_file::DataFile;
use crate::failure::Failure;
use crate::limits::Explained;
use crate::os;
use pantile_base::limits::{CHUNK_BYTES, GROWTH_BYTES};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Least and most bytes kept ahead.
const AHEAD_BYTES: (u64, u64) = (2 * GROWTH_BYTES, 32 * CHUNK_BYTES);

/// Bytes written at once: long enough to be efficient, short enough not to
/// keep committers from the file for long.
const PIECE_BYTES: usize = 256 << 10;

/// Bytes to keep ahead of a file with `len` bytes in use.
fn ahead_of(len: u64) -> u64 {
    let sixteenth = (len / 16).next_multiple_of(GROWTH_BYTES);
    sixteenth.clamp(AHEAD_BYTES.0, AHEAD_BYTES.1)
}

#[derive(Debug)]
struct State {
    /// Bytes at the front of the file that are in use or written with zeros.
    filled: u64,
    /// Bytes that the thread is to fill up to.
    goal: u64,
    /// A thread is writing at `filled`.
    busy: bool,
    stop: bool,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    zeros: ZeroWriter,
    failure: Arc<Failure>,
    limit: u64,
}

/// Fills a file with zeros ahead of its use. Dropping it ends its thread.
#[derive(Debug)]
pub(crate) struct Prefill {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Prefill {
    /// For a data file of which `filled` bytes are in use or written, and
    /// which may become `limit` bytes long. No thread runs until the file
    /// first grows.
    pub(crate) fn over(file: &Arc<DataFile>, filled: u64, limit: u64, failure: &Arc<Failure>) -> Self {
        let shared = Shared {
            state: Mutex::new(State { filled, goal: filled, busy: false, stop: false }),
            changed: Condvar::new(),
            zeros: ZeroWriter::over(file),
            failure: Arc::clone(failure),
            limit,
        };
        Self { shared: Arc::new(shared), thread: Mutex::new(None) }
    }

    /// Returns once the first `len` bytes of the file are written, writing
    /// what is missing, and lets the thread continue from there. Without
    /// `zeros`, space is only found for what is missing, and the thread rests.
    ///
    /// # Errors
    /// [`MediumError::Full`] or [`MediumError::Io`]; the file is as before.
    pub(crate) fn ensure(&self, len: u64, zeros: bool) -> Result<(), MediumError> {
        let mut state = self.shared.state.lock();
        if !zeros {
            return self.shared.allocate(&mut state, len);
        }
        self.shared.fill(&mut state, len)?;
        state.goal = (len + ahead_of(len)).min(self.shared.limit);
        if state.goal > state.filled {
            self.shared.changed.notify_all();
            self.start_thread();
        }
        Ok(())
    }

    /// The file is only `len` bytes long from now on.
    pub(crate) fn shrink(&self, len: u64) {
        let mut state = self.shared.state.lock();
        state.goal = 0;
        while state.busy {
            self.shared.changed.wait(&mut state);
        }
        state.filled = state.filled.min(len);
    }

    /// Writes zeros over space within what [`Prefill::ensure`] was given, for
    /// which storage has been found anew, and syncs if it can: they are then as good
    /// as new space. A failed sync is latched.
    ///
    /// # Errors
    /// What the system says about the write.
    pub(crate) fn refill(&self, offset: u64, len: u64) -> io::Result<()> {
        self.shared.zeros.write_zeros(offset, offset + len)?;
        self.shared.zeros.fetch(offset, offset + len);
        self.shared.settle();
        Ok(())
    }

    /// A system that refuses a thread costs speed only: growth fills for itself.
    fn start_thread(&self) {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let named = thread::Builder::new().name("pantile-prefill".to_owned());
            *thread = named.spawn(move || shared.run()).ok();
        }
    }
}

impl Drop for Prefill {
    fn drop(&mut self) {
        self.shared.state.lock().stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.get_mut().take() {
            // A panic there was reported there; the file is whole chunks either way.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Fills up to `len`, or else leaves the file no longer than it was.
    fn fill(&self, state: &mut MutexGuard<'_, State>, len: u64) -> Result<(), MediumError> {
        let before = state.filled;
        while state.filled < len {
            if state.busy {
                self.changed.wait(state);
            } else if let Err(error) = self.fill_some(state, len) {
                self.zeros.buffered.shorten(before);
                state.filled = before;
                state.goal = before;
                return Err(error.needing(len));
            }
        }
        Ok(())
    }

    /// Finds space up to `len`, and stops writing zeros.
    fn allocate(&self, state: &mut MutexGuard<'_, State>, len: u64) -> Result<(), MediumError> {
        state.goal = 0;
        while state.busy {
            self.changed.wait(state);
        }
        if state.filled < len {
            self.zeros.buffered.allocate(state.filled, len)?;
            state.filled = len;
        }
        Ok(())
    }

    /// The background thread: fills up to the goal, then waits for a new one.
    fn run(&self) {
        let mut state = self.state.lock();
        while !state.stop {
            if state.busy || state.filled >= state.goal {
                self.changed.wait(&mut state);
            } else {
                self.fill_round(&mut state);
            }
        }
    }

    /// Fills up to the goal, then syncs once, so that committers' syncs find
    /// the file system's records settled.
    fn fill_round(&self, state: &mut MutexGuard<'_, State>) {
        while !state.stop && !state.busy && state.filled < state.goal {
            if self.fill_some(state, state.goal).is_err() {
                // The growth that needs the space tries again and reports it.
                state.goal = state.filled;
            }
        }
        if !state.stop {
            MutexGuard::unlocked(state, || self.settle());
        }
    }

    /// Where no opening of the file is the prefiller's own, the next commit's sync does it. The system says
    /// once to each opening that something could not be written, and commits must not miss that.
    fn settle(&self) {
        let Some(own) = &self.zeros.direct else { return };
        if let Err(error) = own.sync_data() {
            self.failure.latch_sync(format!("sync of new space: {}", Explained(&error)));
        }
    }

    /// Writes at `filled`, at most up to `end`, with the lock released.
    fn fill_some(&self, state: &mut MutexGuard<'_, State>, end: u64) -> Result<(), MediumError> {
        state.busy = true;
        let from = state.filled;
        let to = end.min(from + CHUNK_BYTES);
        let result = MutexGuard::unlocked(state, || self.zeros.append(from, to));
        state.busy = false;
        if result.is_ok() {
            state.filled = to;
        }
        self.changed.notify_all();
        result
    }
}

/// Zeros, aligned as unbuffered writes need them.
#[repr(C, align(4096))]
struct Piece([u8; PIECE_BYTES]);

static ZEROS: Piece = Piece([0; PIECE_BYTES]);

/// Appends zeros to a file, past the page cache if possible.
#[derive(Debug)]
struct ZeroWriter {
    direct: Option<File>,
    buffered: Arc<DataFile>,
}

impl ZeroWriter {
    fn over(file: &Arc<DataFile>) -> Self {
        // The file that is locked, whatever its name leads to by now.
        Self { direct: os::open_direct(file.file()), buffered: Arc::clone(file) }
    }

    /// Makes the file, `from` bytes long, longer by zeros.
    fn append(&self, from: u64, to: u64) -> Result<(), MediumError> {
        let set = self.buffered.lengthen(from, to);
        set.and_then(|()| self.write_zeros(from, to)).map_err(|error| {
            // What stays is zeros that are not in use.
            self.buffered.shorten(from);
            self.buffered.refused("write zeros to", to, error)
        })?;
        self.fetch(from, to);
        Ok(())
    }

    /// Reads what was written past the page cache into it. Otherwise the first
    /// write to a part of each page would wait for that.
    fn fetch(&self, from: u64, to: u64) {
        os::fetch(self.buffered.file(), from, to - from);
    }

    fn write_zeros(&self, from: u64, to: u64) -> io::Result<()> {
        let piece = |at: u64| &ZEROS.0[..(to - at).min(PIECE_BYTES as u64) as usize];
        (from..to).step_by(PIECE_BYTES).try_for_each(|at| self.write_piece(piece(at), at))
    }

    fn write_piece(&self, zeros: &[u8], at: u64) -> io::Result<()> {
        if let Some(direct) = &self.direct {
            match os::write_all_at(direct, zeros, at) {
                // Some file systems open a file this way and then refuse to write so.
                Err(error) if os::is_not_direct(&error) => {}
                result => return result,
            }
        }
        os::write_all_at(self.buffered.file(), zeros, at)
    }
}
