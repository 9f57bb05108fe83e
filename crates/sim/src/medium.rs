//! A medium that logs what is done to it, so that its power can be cut at any
//! moment of its past.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pantile::Medium;
use pantile_base::limits::CHUNK_BYTES;
use pantile_media::{DramMedium, Facts, MapOptions, MediumError, MediumExt, MediumStatus, SyncPoint};

use crate::image::Image;

pub(crate) const LINE: u64 = 64;

/// Most bytes of a simulated medium.
const RESERVE: u64 = 256 << 20;

/// Chunk pages, which have the descriptors of blocks.
const CHUNK_PAGE: u64 = 4096;

/// What is simulated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Persistent memory: a line is durable once it has been flushed and the
    /// core that flushed it has fenced; a sync point is a fence.
    Memory,
    /// A file: what has been written before a sync is durable after it.
    File,
}

impl Kind {
    /// Both.
    pub const ALL: [Kind; 2] = [Kind::Memory, Kind::File];

    /// "memory" or "file".
    pub fn name(self) -> &'static str {
        match self {
            Kind::Memory => "memory",
            Kind::File => "file",
        }
    }
}

/// A promise that the medium breaks, for simulations that must notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// Fences do nothing.
    Fence,
    /// Syncs of everything do nothing; on a file, fences neither.
    Sync,
    /// Sync points are durable at once.
    SyncPoint,
    /// Flushes of contents do nothing.
    FlushOfContents,
    /// Flushes of chunk headers and block descriptors do nothing.
    FlushOfDescriptors,
    /// Flushes of descriptors that have been zeroed do nothing.
    FlushOfZeros,
    /// Flushes of state records do nothing.
    FlushOfState,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// A part of a write that lies in one line; its bytes are in the log's.
    Piece {
        offset: u64,
        from: usize,
        len: u8,
    },
    /// Lines.
    Flush {
        first: u64,
        end: u64,
        core: u8,
    },
    /// Chunks, by bytes, that become zero. Needs no flush.
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
}

/// What has been done to a medium.
#[derive(Default, Debug)]
pub struct Log {
    pub(crate) events: Vec<Event>,
    bytes: Vec<u8>,
    syncs: u64,
}

impl Log {
    /// Moments at which the power can be cut: after none of the events, after
    /// the first, and so on.
    pub fn boundaries(&self) -> usize {
        self.events.len() + 1
    }

    /// Whether an event makes something durable.
    pub(crate) fn is_persist(&self, event: usize) -> bool {
        matches!(self.events.get(event), Some(Event::Fence { .. } | Event::Sync))
    }

    /// Events that write to the page of a chunk: blocks are opened, frozen or released.
    pub(crate) fn changes_of_blocks(&self) -> Vec<usize> {
        let is_change =
            |event: &Event| matches!(event, Event::Piece { offset, .. } if in_chunk_page(*offset));
        (0..self.events.len()).filter(|&n| is_change(&self.events[n])).collect()
    }

    /// Where two logs differ first, in words; `None` if they are the same.
    pub fn difference(&self, other: &Log) -> Option<String> {
        let told = |log: &Log, n: usize| match log.events.get(n) {
            Some(Event::Piece { offset, from, len }) => {
                format!("{:x?} at {offset}", log.bytes(*from, *len))
            }
            other => format!("{other:?}"),
        };
        let most = self.events.len().max(other.events.len());
        let differs = (0..most).map(|n| (n, told(self, n), told(other, n))).find(|(_, a, b)| a != b);
        differs.map(|(n, a, b)| format!("event {n} of {most}: {a} and {b}"))
    }

    /// Whether a boundary lies in the middle of a long write, where all look alike.
    pub(crate) fn is_long_run(&self, boundary: usize) -> bool {
        let around = self.events.get(boundary.saturating_sub(8)..boundary + 8);
        around.is_some_and(|events| events.iter().all(|event| matches!(event, Event::Piece { .. })))
    }

    pub(crate) fn bytes(&self, from: usize, len: u8) -> &[u8] {
        &self.bytes[from..from + usize::from(len)]
    }
}

/// A medium in memory that can lose what is not durable.
///
/// Several cores are simulated in one thread: whoever runs it says which core
/// goes on, and a fence of one does nothing for what another has flushed.
#[derive(Debug)]
pub struct SimMedium {
    memory: Arc<DramMedium>,
    kind: Kind,
    broken: Option<Broken>,
    facts: Facts,
    core: AtomicU8,
    log: Mutex<Log>,
}

impl SimMedium {
    /// A medium that holds what an image has.
    pub fn new(image: &Image, kind: Kind, broken: Option<Broken>) -> Arc<Self> {
        Self::with_limit(image, kind, broken, None)
    }

    /// As [`SimMedium::new`], with room for `limit` bytes at most.
    pub fn with_limit(image: &Image, kind: Kind, broken: Option<Broken>, limit: Option<u64>) -> Arc<Self> {
        let memory = DramMedium::small(MapOptions { reserve_bytes: RESERVE, max_bytes: None })
            .expect("the machine has memory for a small database");
        memory.grow(image.len()).expect("as before");
        for (offset, page) in image.pages() {
            memory.write(offset, page).expect("the medium has been grown");
        }
        let name = format!("simulated {}", kind.name());
        let limit = limit.unwrap_or(RESERVE);
        let facts = Facts { survives_exit: true, ..Facts::new(name, memory.base(), limit) };
        Arc::new(Self { memory, kind, broken, facts, core: AtomicU8::new(0), log: Mutex::default() })
    }

    /// The core that goes on.
    pub fn run_as(&self, core: u8) {
        assert!(core < 64);
        self.core.store(core, Ordering::Relaxed);
    }

    /// The number of events so far.
    pub fn events(&self) -> usize {
        self.log().events.len()
    }

    /// Takes what has been logged.
    pub fn take_log(&self) -> Log {
        std::mem::take(&mut *self.log())
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn core(&self) -> u8 {
        self.core.load(Ordering::Relaxed)
    }

    fn drops_flush(&self, offset: u64, len: u64) -> bool {
        let in_page = in_chunk_page(offset);
        let is_zero = || {
            let mut bytes = vec![0; len as usize];
            self.memory.read(offset, &mut bytes).is_ok_and(|()| bytes.iter().all(|&b| b == 0))
        };
        match self.broken {
            Some(Broken::FlushOfContents) => offset >= CHUNK_BYTES && !in_page,
            Some(Broken::FlushOfDescriptors) => in_page && !is_zero(),
            Some(Broken::FlushOfZeros) => in_page && is_zero(),
            Some(Broken::FlushOfState) => (CHUNK_PAGE..CHUNK_BYTES).contains(&offset),
            _ => false,
        }
    }
}

fn in_chunk_page(offset: u64) -> bool {
    offset >= CHUNK_BYTES && offset % CHUNK_BYTES < CHUNK_PAGE
}

fn lines(offset: u64, len: u64) -> Range<u64> {
    offset / LINE..(offset + len).div_ceil(LINE)
}

impl Medium for SimMedium {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn len(&self) -> u64 {
        self.memory.len()
    }

    fn grow(&self, len: u64) -> Result<(), MediumError> {
        if len > self.facts.limit {
            let reason = pantile_media::FullReason::Limit(self.facts.limit);
            return Err(MediumError::Full { needed: len, reason });
        }
        self.memory.grow(len)?;
        self.log().events.push(Event::Grow(self.memory.len()));
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.memory.write(offset, bytes)?;
        let mut log = self.log();
        let from = log.bytes.len();
        log.bytes.extend_from_slice(bytes);
        for line in lines(offset, bytes.len() as u64) {
            let (start, end) =
                (offset.max(line * LINE), (offset + bytes.len() as u64).min((line + 1) * LINE));
            log.events.push(Event::Piece {
                offset: start,
                from: from + (start - offset) as usize,
                len: (end - start) as u8,
            });
        }
        Ok(())
    }

    fn flush(&self, offset: u64, len: u64) {
        if self.kind == Kind::Memory && len > 0 && !self.drops_flush(offset, len) {
            let Range { start: first, end } = lines(offset, len);
            self.log().events.push(Event::Flush { first, end, core: self.core() });
        }
    }

    fn fence(&self) -> Result<(), MediumError> {
        match (self.kind, self.broken) {
            (_, Some(Broken::Fence)) | (Kind::File, Some(Broken::Sync)) => {}
            (Kind::Memory, _) => self.log().events.push(Event::Fence { core: self.core() }),
            (Kind::File, _) => return self.sync_all(),
        }
        Ok(())
    }

    fn sync_all(&self) -> Result<(), MediumError> {
        if self.broken != Some(Broken::Sync) {
            let mut log = self.log();
            log.syncs += 1;
            log.events.push(Event::Sync);
        }
        Ok(())
    }

    fn sync_point(&self) -> SyncPoint {
        if self.kind == Kind::Memory && self.broken != Some(Broken::SyncPoint) {
            self.log().events.push(Event::Fence { core: self.core() });
        }
        SyncPoint::new(self.log().syncs)
    }

    fn is_durable(&self, point: SyncPoint) -> bool {
        self.kind == Kind::Memory
            || self.broken == Some(Broken::SyncPoint)
            || self.log().syncs > point.number()
    }

    fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.memory.discard(offset, len)?;
        let core = self.core();
        self.log().events.push(Event::Discard { start: offset, end: offset + len, core });
        Ok(())
    }

    fn restore(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.memory.restore(offset, len)
    }

    fn status(&self) -> MediumStatus {
        self.memory.status()
    }
}
