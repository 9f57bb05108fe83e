//! What was done to a medium, in order.

use std::sync::Arc;
use std::thread::{self, ThreadId};

use pantile_base::limits::{CHUNK_BYTES, HEAD_BYTES};

pub(crate) const LINE: u64 = 64;

/// The number of cores. Each has a bit.
pub(crate) const CORES: u8 = 64;

/// Size of a chunk's header page, which contains the block descriptors.
pub(crate) const CHUNK_PAGE: u64 = 12_288;
/// The part of it in which there is no copy.
const CHUNK_LINES: u64 = 8192;

/// The kind of medium that is simulated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CutKind {
    /// Persistent memory. A line is durable once a core has flushed it and then
    /// fenced. A sync point is a fence.
    Memory,
    /// A file. What was written before a sync is durable after it.
    File,
}

impl CutKind {
    /// Both.
    pub const ALL: [CutKind; 2] = [CutKind::Memory, CutKind::File];

    /// "memory" or "file".
    pub fn name(self) -> &'static str {
        match self {
            CutKind::Memory => "memory",
            CutKind::File => "file",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// The part of a write that lies in one line. Its bytes are in the log.
    Piece {
        offset: u64,
        from: usize,
        len: u8,
    },
    /// A flush of lines.
    Flush {
        first: u64,
        end: u64,
        core: u8,
    },
    /// Chunks that become zero, as a range of bytes. Needs no flush.
    Discard {
        start: u64,
        end: u64,
        core: u8,
    },
    Fence {
        core: u8,
    },
    Sync,
    Grow(u64),
    /// Durable after a sync, or when something beyond that is written later
    /// has become durable.
    Shrink(u64),
    /// A successor of the file beside the medium was written. Nobody waits until
    /// it is durable.
    Beside {
        file: usize,
    },
}

/// What was done to a medium.
#[derive(Default, Debug)]
pub struct Log {
    pub(crate) events: Vec<Event>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) syncs: u64,
    /// The files beside the medium.
    pub(crate) files: Vec<Arc<Vec<u8>>>,
    /// The threads that are cores, by the number of the core.
    threads: Vec<ThreadId>,
}

impl Log {
    /// The moments at which the power can be cut: before the first event, after
    /// the first, and so on.
    pub fn boundaries(&self) -> usize {
        self.events.len() + 1
    }

    /// The core of this thread.
    pub(crate) fn core_of_thread(&mut self) -> u8 {
        let thread = thread::current().id();
        let core = self.threads.iter().position(|known| *known == thread).unwrap_or_else(|| {
            self.threads.push(thread);
            self.threads.len() - 1
        });
        u8::try_from(core).ok().filter(|core| *core < CORES).expect("a core for each thread")
    }

    /// What was done up to a boundary.
    pub(crate) fn until(&self, boundary: usize) -> Self {
        let events = self.events[..boundary].to_vec();
        let syncs = events.iter().filter(|event| matches!(event, Event::Sync)).count() as u64;
        let (bytes, files, threads) = (self.bytes.clone(), self.files.clone(), self.threads.clone());
        Self { events, bytes, syncs, files, threads }
    }

    /// Whether an event makes something durable.
    pub fn is_persist(&self, event: usize) -> bool {
        matches!(self.events.get(event), Some(Event::Fence { .. } | Event::Sync))
    }

    /// Events that write to the first page of a chunk. They open, freeze or
    /// release blocks.
    pub fn changes_of_blocks(&self) -> Vec<usize> {
        let is_change =
            |event: &Event| matches!(event, Event::Piece { offset, .. } if in_chunk_page(*offset));
        (0..self.events.len()).filter(|&n| is_change(&self.events[n])).collect()
    }

    /// Describes the first difference of two logs; `None` if they are equal.
    pub fn difference(&self, other: &Log) -> Option<String> {
        let told = |log: &Log, n: usize| match log.events.get(n) {
            Some(Event::Piece { offset, from, len }) => {
                format!("{:x?} at {offset}", log.bytes(*from, *len))
            }
            Some(Event::Beside { file }) => format!("{:x?} beside", log.files[*file]),
            other => format!("{other:?}"),
        };
        let most = self.events.len().max(other.events.len());
        let differs = (0..most).map(|n| (n, told(self, n), told(other, n))).find(|(_, a, b)| a != b);
        differs.map(|(n, a, b)| format!("event {n} of {most}: {a} and {b}"))
    }

    /// Whether a boundary lies in the middle of a long write, where all
    /// boundaries are alike.
    pub fn is_long_run(&self, boundary: usize) -> bool {
        let around = self.events.get(boundary.saturating_sub(8)..boundary + 8);
        around.is_some_and(|events| events.iter().all(|event| matches!(event, Event::Piece { .. })))
    }

    pub(crate) fn bytes(&self, from: usize, len: u8) -> &[u8] {
        &self.bytes[from..from + usize::from(len)]
    }
}

pub(crate) fn in_chunk_page(offset: u64) -> bool {
    in_first(CHUNK_PAGE, offset)
}

/// Whether chunk headers and descriptors lie there, and not their copies.
pub(crate) fn in_lines(offset: u64) -> bool {
    in_first(CHUNK_LINES, offset)
}

fn in_first(bytes: u64, offset: u64) -> bool {
    let start = if offset < CHUNK_BYTES { HEAD_BYTES } else { 0 };
    (start..start + bytes).contains(&(offset % CHUNK_BYTES))
}
