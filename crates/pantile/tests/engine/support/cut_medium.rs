//! A medium whose power can be cut at any moment of its past.
//!
//! It logs what is done to it. From the log it makes images of what could be
//! found after a cut: what a thread wrote, flushed and fenced is there, of the
//! rest any part may be.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use pantile::Medium;
use pantile_media::{DramMedium, Facts, MapOptions, MediumError, MediumExt, MediumStatus, SyncPoint};

use pantile_testkit::mix;

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

    /// Makes lines zero. They stay part of the medium.
    fn clear(&mut self, lines: Range<u64>) {
        let cleared: Vec<u64> = self.lines.range(lines).map(|(line, _)| *line).collect();
        for line in cleared {
            self.lines.remove(&line);
            self.len = self.len.max(((line + 1) * LINE).next_multiple_of(CHUNK));
        }
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
    /// Chunks that become zero. Needs no flush.
    Discard {
        lines: Range<u64>,
        by: ThreadId,
    },
    /// A sync point: what this thread flushed is durable with anybody's next fence.
    Point(ThreadId),
    Fence(ThreadId),
    Sync,
    Grow(u64),
}

#[derive(Debug)]
pub struct CutMedium {
    memory: Arc<DramMedium>,
    facts: Facts,
    start: Image,
    log: Mutex<Vec<Event>>,
    honesty: Honesty,
}

/// How far a piece or a discard is on its way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Written,
    Flushed,
    /// Flushed, and a sync point of its writer followed.
    Pointed,
    Durable,
}

impl CutMedium {
    pub fn new(start: &Image, honesty: Honesty) -> Arc<Self> {
        let sizes = MapOptions { reserve_bytes: 1 << 28, max_bytes: None };
        let memory = DramMedium::small(sizes).expect("memory");
        memory.grow(start.len).expect("grow");
        for (line, bytes) in &start.lines {
            memory.write(line * LINE, bytes).expect("write");
        }
        let facts = Facts { survives_exit: true, ..Facts::new("cut", memory.base(), memory.facts().limit) };
        Arc::new(Self { memory, facts, start: start.clone(), log: Mutex::default(), honesty })
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

    /// The moments just before and after something was written to the page
    /// of a chunk: blocks were opened, frozen or released.
    pub fn changes_of_pages(&self) -> Vec<usize> {
        let log = self.log.lock().expect("log");
        let of = |(n, event): (usize, &Event)| match event {
            Event::Piece { offset, .. } if *offset >= CHUNK && offset % CHUNK < 4096 => Some([n, n + 1]),
            _ => None,
        };
        log.iter().enumerate().filter_map(of).flatten().collect()
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
                Event::Discard { lines, .. } if ways[n] == Way::Durable => image.clear(lines.clone()),
                Event::Discard { lines, .. } => choice.discard(&mut image, n, lines.clone()),
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

/// How far each piece and each discard is at the end of the log.
fn ways(log: &[Event]) -> Vec<Way> {
    let mut ways = vec![Way::Written; log.len()];
    let mut open = Vec::new();
    for (n, event) in log.iter().enumerate() {
        let writer = |m: usize| match &log[m] {
            Event::Piece { by, .. } | Event::Discard { by, .. } => *by,
            _ => unreachable!("only pieces and discards are open"),
        };
        let lies_in = |m: usize, lines: Range<u64>| match &log[m] {
            Event::Piece { offset, .. } => lines.contains(&(offset / LINE)),
            _ => false,
        };
        match event {
            Event::Piece { .. } => open.push(n),
            Event::Discard { .. } => {
                open.push(n);
                ways[n] = Way::Flushed;
            }
            Event::Flush { first, end, by } => {
                for &m in &open {
                    if ways[m] == Way::Written && writer(m) == *by && lies_in(m, *first..*end) {
                        ways[m] = Way::Flushed;
                    }
                }
            }
            Event::Point(by) => {
                for &m in &open {
                    if ways[m] == Way::Flushed && writer(m) == *by {
                        ways[m] = Way::Pointed;
                    }
                }
            }
            Event::Fence(_) | Event::Sync => open.retain(|&m| {
                let own = !matches!(event, Event::Fence(by) if writer(m) != *by);
                let durable = ways[m] == Way::Pointed || ways[m] == Way::Flushed && own;
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

/// Decides what is left of pieces and discards that are not durable.
struct Choice {
    keep: Keep,
    seed: u64,
    /// Pieces and discards of a line or sector that are still to be kept.
    left: HashMap<u64, u64>,
}

impl Choice {
    fn new(log: &[Event], ways: &[Way], keep: Keep, seed: u64) -> Self {
        let mut choice = Self { keep, seed, left: HashMap::new() };
        for (event, _) in log.iter().zip(ways).filter(|(_, way)| **way != Way::Durable) {
            let units = match event {
                Event::Piece { offset, .. } => choice.unit(*offset)..choice.unit(*offset) + 1,
                Event::Discard { lines, .. } => choice.units(lines),
                _ => continue,
            };
            units.for_each(|unit| *choice.left.entry(unit).or_default() += 1);
        }
        for (unit, left) in &mut choice.left {
            *left = mix(seed ^ mix(*unit)) % (*left + 1);
        }
        choice
    }

    fn unit_bytes(&self) -> u64 {
        if self.keep == Keep::Sectors { 512 } else { LINE }
    }

    fn unit(&self, offset: u64) -> u64 {
        offset / self.unit_bytes()
    }

    /// The units of lines that make up whole chunks.
    fn units(&self, lines: &Range<u64>) -> Range<u64> {
        self.unit(lines.start * LINE)..self.unit(lines.end * LINE)
    }

    /// Whether the next piece or discard of a unit is kept.
    fn take(&mut self, unit: u64) -> bool {
        let left = self.left.get_mut(&unit).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    }

    fn discard(&mut self, image: &mut Image, n: usize, lines: Range<u64>) {
        match self.keep {
            Keep::Nothing => {}
            Keep::All => image.clear(lines),
            Keep::Lines | Keep::Sectors => {
                let lines_each = self.unit_bytes() / LINE;
                for unit in self.units(&lines) {
                    if self.take(unit) {
                        image.clear(unit * lines_each..(unit + 1) * lines_each);
                    }
                }
            }
            Keep::Words => {
                let found: Vec<u64> = image.lines.range(lines).map(|(line, _)| line * LINE).collect();
                found.into_iter().for_each(|offset| self.store(image, n, offset, &[0; LINE as usize]));
            }
        }
    }

    fn store(&mut self, image: &mut Image, n: usize, offset: u64, bytes: &[u8]) {
        match self.keep {
            Keep::Nothing => {}
            Keep::All => image.store(offset, bytes),
            Keep::Lines | Keep::Sectors => {
                if self.take(self.unit(offset)) {
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
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn len(&self) -> u64 {
        self.memory.len()
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

    fn sync_point(&self) -> SyncPoint {
        // A failure shows at the fence, which then never comes.
        let _ = self.record([Event::Point(thread::current().id())]);
        SyncPoint::new(self.events() as u64)
    }

    fn is_durable(&self, point: SyncPoint) -> bool {
        let log = self.log.lock().expect("log");
        let fenced =
            || log[point.number() as usize..].iter().any(|e| matches!(e, Event::Fence(_) | Event::Sync));
        self.honesty == Honesty::FenceLies || fenced()
    }

    fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        let lines = offset / LINE..(offset + len) / LINE;
        self.record([Event::Discard { lines, by: thread::current().id() }])?;
        self.memory.discard(offset, len)
    }

    fn restore(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.record([])?;
        self.memory.restore(offset, len)
    }

    fn status(&self) -> MediumStatus {
        let has_failed = matches!(self.honesty, Honesty::FailsFrom(n) if self.events() >= n);
        let failure = has_failed.then(|| "the device is gone".into());
        MediumStatus { failure, ..self.memory.status() }
    }
}
