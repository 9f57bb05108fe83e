//! Space that is written before it is used.
//!
//! A sync over bytes that were written before moves only those bytes; over a
//! hole or over allocated but never written space it has to change the file
//! system's records as well, which costs half as much again or double. So a
//! background thread keeps some chunks of zeros ahead of what is in use. It
//! writes them past the page cache where the file system allows it, lest the
//! next committer's sync has to carry them.
//!
//! The file's length is set before a chunk is written: it is a whole number
//! of chunks whenever the process or the machine stops.

use crate::MediumError;
use crate::data_file::DataFile;
use crate::failure::Failure;
use pantile_base::limits::CHUNK_BYTES;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Least and most bytes kept ahead.
const AHEAD_BYTES: (u64, u64) = (4 * CHUNK_BYTES, 32 * CHUNK_BYTES);

/// Bytes written at once: long enough to be efficient, short enough not to
/// keep committers from the file for long.
const PIECE_BYTES: usize = 256 << 10;

/// Bytes to keep ahead of a file with `len` bytes in use.
fn ahead_of(len: u64) -> u64 {
    let sixteenth = (len / 16).next_multiple_of(CHUNK_BYTES);
    sixteenth.clamp(AHEAD_BYTES.0, AHEAD_BYTES.1)
}

#[derive(Debug)]
struct State {
    /// Bytes at the front of the file that are in use or written with zeros.
    filled: u64,
    /// Bytes that the thread is to fill up to.
    goal: u64,
    /// A thread is writing the chunk at `filled`.
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
    /// what is missing, and lets the thread continue from there.
    ///
    /// # Errors
    /// [`MediumError::Full`] or [`MediumError::Io`]; the file is as before.
    pub(crate) fn ensure(&self, len: u64) -> Result<(), MediumError> {
        let mut state = self.shared.state.lock();
        self.shared.fill(&mut state, len)?;
        state.goal = (len + ahead_of(len)).min(self.shared.limit);
        if state.goal > state.filled {
            self.shared.changed.notify_all();
            self.start_thread();
        }
        Ok(())
    }

    /// Writes zeros over chunks within what [`Prefill::ensure`] was given, for
    /// which storage has been found anew, and syncs: they are then as good
    /// as new space. A failed sync is latched.
    ///
    /// # Errors
    /// What the system says about the write.
    pub(crate) fn refill(&self, offset: u64, len: u64) -> io::Result<()> {
        for at in (offset..offset + len).step_by(CHUNK_BYTES as usize) {
            self.shared.zeros.write_zeros(at)?;
            self.shared.zeros.fetch(at);
        }
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
            } else if let Err(error) = self.fill_chunk(state) {
                self.zeros.buffered.shorten(before);
                state.filled = before;
                state.goal = before;
                return Err(error.needing(len));
            }
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
            if self.fill_chunk(state).is_err() {
                // The growth that needs the space tries again and reports it.
                state.goal = state.filled;
            }
        }
        if !state.stop {
            MutexGuard::unlocked(state, || self.settle());
        }
    }

    fn settle(&self) {
        if let Err(error) = self.zeros.buffered.file().sync_data() {
            self.failure.latch(format!("sync of new space: {error}"));
        }
    }

    /// Writes the chunk at `filled` with the lock released.
    fn fill_chunk(&self, state: &mut MutexGuard<'_, State>) -> Result<(), MediumError> {
        state.busy = true;
        let at = state.filled;
        let result = MutexGuard::unlocked(state, || self.zeros.append_chunk(at));
        state.busy = false;
        if result.is_ok() {
            state.filled = at + CHUNK_BYTES;
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
        let same = format!("/proc/self/fd/{}", file.file().as_raw_fd());
        let direct = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(same);
        Self { direct: direct.ok(), buffered: Arc::clone(file) }
    }

    /// Makes the file, `at` bytes long, one chunk of zeros longer.
    fn append_chunk(&self, at: u64) -> Result<(), MediumError> {
        let end = at + CHUNK_BYTES;
        let set = self.buffered.lengthen(at, end);
        set.and_then(|()| self.write_zeros(at)).map_err(|error| {
            // What stays is whole chunks of zeros that are not in use.
            self.buffered.shorten(at);
            self.buffered.refused("write zeros to", end, error)
        })?;
        self.fetch(at);
        Ok(())
    }

    /// Reads a chunk that was written past the page cache into it. Otherwise
    /// the first write to a part of each page would wait for that.
    fn fetch(&self, at: u64) {
        let (offset, len) = (at as libc::off_t, CHUNK_BYTES as libc::off_t);
        let file = self.buffered.file().as_raw_fd();
        // SAFETY: the descriptor is open; advice changes no bytes.
        unsafe { libc::posix_fadvise(file, offset, len, libc::POSIX_FADV_WILLNEED) };
    }

    fn write_zeros(&self, at: u64) -> io::Result<()> {
        (at..at + CHUNK_BYTES).step_by(PIECE_BYTES).try_for_each(|at| self.write_piece(at))
    }

    fn write_piece(&self, at: u64) -> io::Result<()> {
        if let Some(direct) = &self.direct {
            match direct.write_all_at(&ZEROS.0, at) {
                // Some file systems open a file this way and then refuse to write so.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
                result => return result,
            }
        }
        self.buffered.file().write_all_at(&ZEROS.0, at)
    }
}
