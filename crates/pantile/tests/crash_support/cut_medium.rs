//! A medium whose power can be cut at any moment of its past.
//!
//! It logs what is done to it. From the log it makes images of what could be
//! found after a cut: what a thread wrote, flushed and fenced is there, of the
//! rest any part may be.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use pantile::{Medium, MediumStats};
use pantile_media::{DramMedium, MapOptions, MediumError};

use super::mix;

pub const CHUNK: u64 = 2 << 20;
const LINE: u64 = 64;

/// The lines of a medium that are not zero.
#[derive(Clone, Default, Debug)]
pub struct Image {
    pub len: u64,
    pub lines: BTreeMap<u64, [u8; LINE as usize]>,
}

impl Image {
    fn store(&mut self, offset: u64, bytes: &[u8]) {
        let line = self.lines.entry(offset / LINE).or_insert([0; LINE as usize]);
        let at = (offset % LINE) as usize;
        line[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// What is left of writes that were not durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    Nothing,
    All,
    /// Some lines of 64 bytes, as of some moment each.
    Lines,
    /// Some sectors of 512 bytes, as of some moment each.
    Sectors,
    /// Any words of 8 bytes of any write.
    Words,
}

pub const KEEP: [Keep; 5] = [Keep::Nothing, Keep::All, Keep::Lines, Keep::Sectors, Keep::Words];

/// How a medium fails its users, for tests that must notice it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Honesty {
    Honest,
    /// Fences and syncs do nothing.
    FenceLies,
    /// Flushes do nothing.
    FlushLies,
    /// Fences promise nothing, as is agreed under relaxed durability.
    OnlySyncs,
    /// Every write and sync fails from this event on.
    FailsFrom(usize),
}

#[derive(Debug)]
enum Event {
    /// A part of a write that lies in one line.
    Piece {
        offset: u64,
        bytes: Vec<u8>,
        by: ThreadId,
    },
    Flush {
        first: u64,
        end: u64,
        by: ThreadId,
    },
    Fence(ThreadId),
    Sync,
    Grow(u64),
}

#[derive(Debug)]
pub struct CutMedium {
    memory: Arc<DramMedium>,
    start: Image,
    log: Mutex<Vec<Event>>,
    honesty: Honesty,
}

/// How far a piece is on its way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Written,
    Flushed,
    Durable,
}

impl CutMedium {
    pub fn new(start: &Image, honesty: Honesty) -> Arc<Self> {
        let sizes = MapOptions { reserve_bytes: 1 << 28, max_bytes: None };
        let memory = DramMedium::new(sizes).expect("memory");
        memory.grow(start.len).expect("grow");
        for (line, bytes) in &start.lines {
            memory.write(line * LINE, bytes).expect("write");
        }
        Arc::new(Self { memory, start: start.clone(), log: Mutex::default(), honesty })
    }

    /// Number of events so far: a moment at which the power can be cut.
    pub fn events(&self) -> usize {
        self.log.lock().expect("log").len()
    }

    /// The moments after which something had become durable.
    pub fn fences(&self) -> Vec<usize> {
        let log = self.log.lock().expect("log");
        let of =
            |(n, event): (usize, &Event)| matches!(event, Event::Fence(_) | Event::Sync).then_some(n + 1);
        log.iter().enumerate().filter_map(of).collect()
    }

    /// What could be found if the power had been cut after `events` events.
    pub fn cut(&self, events: usize, keep: Keep, seed: u64) -> Image {
        let log = self.log.lock().expect("log");
        let log = &log[..events];
        let ways = ways(log);
        let mut choice = Choice::new(log, &ways, keep, seed);
        let mut image = self.start.clone();
        for (n, event) in log.iter().enumerate() {
            match event {
                Event::Piece { offset, bytes, .. } if ways[n] == Way::Durable => image.store(*offset, bytes),
                Event::Piece { offset, bytes, .. } => choice.store(&mut image, n, *offset, bytes),
                // Growth that nothing durable relies on may be lost as well.
                Event::Grow(len) if seed.is_multiple_of(2) => image.len = *len,
                _ => {}
            }
        }
        let last = image.lines.keys().next_back().map_or(0, |line| (line + 1) * LINE);
        image.len = image.len.max(last.next_multiple_of(CHUNK));
        image
    }

    fn record(&self, events: impl IntoIterator<Item = Event>) -> Result<(), MediumError> {
        let mut log = self.log.lock().expect("log");
        if matches!(self.honesty, Honesty::FailsFrom(n) if log.len() >= n) {
            return Err(MediumError::Failed { cause: "the device is gone".into() });
        }
        log.extend(events);
        Ok(())
    }
}

/// How far each piece is at the end of the log.
fn ways(log: &[Event]) -> Vec<Way> {
    let mut ways = vec![Way::Written; log.len()];
    let mut open = Vec::new();
    for (n, event) in log.iter().enumerate() {
        let piece = |m: usize| match &log[m] {
            Event::Piece { offset, by, .. } => (offset / LINE, *by),
            _ => unreachable!("only pieces are open"),
        };
        match event {
            Event::Piece { .. } => open.push(n),
            Event::Flush { first, end, by } => {
                for &m in &open {
                    let (line, writer) = piece(m);
                    if writer == *by && (*first..*end).contains(&line) {
                        ways[m] = Way::Flushed;
                    }
                }
            }
            Event::Fence(_) | Event::Sync => open.retain(|&m| {
                let covered = !matches!(event, Event::Fence(by) if piece(m).1 != *by);
                let durable = covered && ways[m] == Way::Flushed;
                if durable {
                    ways[m] = Way::Durable;
                }
                !durable
            }),
            Event::Grow(_) => {}
        }
    }
    ways
}

/// Decides what is left of pieces that are not durable.
struct Choice {
    keep: Keep,
    seed: u64,
    /// Pieces of a line or sector that are still to be kept.
    left: HashMap<u64, u64>,
}

impl Choice {
    fn new(log: &[Event], ways: &[Way], keep: Keep, seed: u64) -> Self {
        let mut choice = Self { keep, seed, left: HashMap::new() };
        for (event, way) in log.iter().zip(ways) {
            if let Event::Piece { offset, .. } = event
                && *way != Way::Durable
            {
                *choice.left.entry(choice.unit(*offset)).or_default() += 1;
            }
        }
        for (unit, left) in &mut choice.left {
            *left = mix(seed ^ mix(*unit)) % (*left + 1);
        }
        choice
    }

    fn unit(&self, offset: u64) -> u64 {
        if self.keep == Keep::Sectors { offset / 512 } else { offset / LINE }
    }

    fn store(&mut self, image: &mut Image, n: usize, offset: u64, bytes: &[u8]) {
        match self.keep {
            Keep::Nothing => {}
            Keep::All => image.store(offset, bytes),
            Keep::Lines | Keep::Sectors => {
                let unit = self.unit(offset);
                if let Some(left) = self.left.get_mut(&unit).filter(|left| **left > 0) {
                    *left -= 1;
                    image.store(offset, bytes);
                }
            }
            Keep::Words => {
                let mut at = 0;
                while at < bytes.len() {
                    let end = bytes.len().min(at + 8 - (offset as usize + at) % 8);
                    let start = offset + at as u64;
                    if mix(self.seed ^ mix(start ^ ((n as u64) << 40))).is_multiple_of(2) {
                        image.store(start, &bytes[at..end]);
                    }
                    at = end;
                }
            }
        }
    }
}

impl Medium for CutMedium {
    fn name(&self) -> String {
        "cut".into()
    }

    fn base(&self) -> *const u8 {
        self.memory.base()
    }

    fn len(&self) -> u64 {
        self.memory.len()
    }

    fn limit(&self) -> u64 {
        self.memory.limit()
    }

    fn grow(&self, len: u64) -> Result<(), MediumError> {
        self.memory.grow(len)?;
        self.record([Event::Grow(self.memory.len())])
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let start = offset + at as u64;
            let end = bytes.len().min(at + (LINE - start % LINE) as usize);
            let by = thread::current().id();
            pieces.push(Event::Piece { offset: start, bytes: bytes[at..end].to_vec(), by });
            at = end;
        }
        self.record(pieces)?;
        self.memory.write(offset, bytes)
    }

    fn flush(&self, offset: u64, len: u64) {
        if self.honesty != Honesty::FlushLies && len > 0 {
            let (first, end) = (offset / LINE, (offset + len).div_ceil(LINE));
            // A failure shows at the fence.
            let _ = self.record([Event::Flush { first, end, by: thread::current().id() }]);
        }
    }

    fn fence(&self) -> Result<(), MediumError> {
        match self.honesty {
            Honesty::FenceLies | Honesty::OnlySyncs => Ok(()),
            _ => self.record([Event::Fence(thread::current().id())]),
        }
    }

    fn sync_all(&self) -> Result<(), MediumError> {
        match self.honesty {
            Honesty::FenceLies => Ok(()),
            _ => self.record([Event::Sync]),
        }
    }

    fn stats(&self) -> MediumStats {
        self.memory.stats()
    }

    fn survives_exit(&self) -> bool {
        true
    }

    fn failure(&self) -> Option<String> {
        match self.honesty {
            Honesty::FailsFrom(n) if self.events() >= n => Some("the device is gone".into()),
            _ => None,
        }
    }
}
