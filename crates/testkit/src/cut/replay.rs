//! What recovery could find if the power had been cut.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::image::{Image, PAGE};
use super::log::{CutKind, Event, LINE, Log};
use crate::mix;

/// Bytes of a sector. A disk writes a sector whole or not at all.
const SECTOR: u64 = 512;
/// Bytes of a word. Memory writes a word whole or not at all.
const WORD: u64 = 8;

/// What remains of writes that were not durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// Nothing of them.
    Nothing,
    /// All of them.
    All,
    /// Some lines of 64 bytes, each as of some moment.
    Lines,
    /// Some sectors of 512 bytes, each as of some moment.
    Sectors,
    /// Any words of 8 bytes of any write.
    Words,
}

impl Keep {
    /// All of them. Whole sectors can remain in memory too, but that is unlikely.
    pub const ALL: [Keep; 5] = [Keep::Nothing, Keep::All, Keep::Lines, Keep::Sectors, Keep::Words];

    /// What can remain on a medium of this kind.
    pub fn of(kind: CutKind) -> &'static [Keep] {
        match kind {
            CutKind::Memory => &[Keep::Nothing, Keep::All, Keep::Lines, Keep::Words],
            CutKind::File => &[Keep::Nothing, Keep::All, Keep::Sectors],
        }
    }

    /// The name, one word.
    pub fn name(self) -> &'static str {
        match self {
            Keep::Nothing => "nothing",
            Keep::All => "all",
            Keep::Lines => "lines",
            Keep::Sectors => "sectors",
            Keep::Words => "words",
        }
    }

    /// The value with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|keep| keep.name() == name)
    }
}

/// A discard that is not durable as a whole. It counts as zeros that its core
/// has flushed.
#[derive(Debug)]
struct Discarded {
    event: usize,
    core: u8,
    /// Lines that have been written since and are durable as of then. A line
    /// does not go back in time, so the zeros no longer reach them.
    overtaken: BTreeSet<u64>,
}

impl Discarded {
    /// Whether its zeros lie below what an event has written to a line.
    fn is_below(&self, log: &Log, event: usize, line: u64) -> bool {
        let Event::Discard { start, end, .. } = log.events[self.event] else { return false };
        self.event < event && (start / LINE..end / LINE).contains(&line) && !self.overtaken.contains(&line)
    }

    /// Zeroes what nothing has overtaken.
    fn apply(&self, image: &mut Image, log: &Log) {
        let Event::Discard { start, end, .. } = log.events[self.event] else { return };
        let mut from = start;
        for line in &self.overtaken {
            image.clear(from..line * LINE);
            from = (line + 1) * LINE;
        }
        image.clear(from..end);
    }
}

/// Replays a log, and knows at each boundary what is durable.
#[derive(Debug)]
pub struct Replay<'l> {
    log: &'l Log,
    kind: CutKind,
    at: usize,
    durable: Image,
    /// By line, in the order of events: pieces that are not durable, each with
    /// the cores that have flushed it (one bit per core).
    pending: BTreeMap<u64, Vec<(usize, u64)>>,
    /// Discards that are not durable.
    discards: Vec<Discarded>,
    /// By core, the lines that it has flushed since its last fence.
    flushed: HashMap<u8, Vec<u64>>,
    /// Shortenings that are not durable, each with the length that it left.
    shrinks: Vec<(usize, u64)>,
    /// The length after the last growth or shortening, durable or not.
    grown: u64,
    /// The files beside the medium so far.
    files: Vec<Arc<Vec<u8>>>,
}

impl<'l> Replay<'l> {
    /// Starts at the first boundary of a log whose medium began as `image`.
    pub fn new(image: &Image, log: &'l Log, kind: CutKind) -> Self {
        Self {
            log,
            kind,
            at: 0,
            durable: image.clone(),
            pending: BTreeMap::new(),
            discards: Vec::new(),
            flushed: HashMap::new(),
            shrinks: Vec::new(),
            grown: image.len(),
            files: image.beside().to_vec(),
        }
    }

    /// Advances to a boundary.
    pub fn advance_to(&mut self, boundary: usize) {
        while self.at < boundary {
            let n = self.at;
            self.at += 1;
            match self.log.events[n] {
                Event::Piece { offset, .. } => self.pending.entry(offset / LINE).or_default().push((n, 0)),
                Event::Flush { first, end, core } => {
                    // A flush writes the whole line, including what other cores stored in
                    // it.
                    for (&line, pieces) in self.pending.range_mut(first..end) {
                        pieces.iter_mut().for_each(|(_, cores)| *cores |= 1 << core);
                        self.flushed.entry(core).or_default().push(line);
                    }
                }
                Event::Fence { core } => self.fence(core),
                Event::Sync => self.sync(),
                Event::Discard { core, .. } => {
                    self.discards.push(Discarded { event: n, core, overtaken: BTreeSet::new() });
                }
                Event::Beside { file } => self.files.push(Arc::clone(&self.log.files[file])),
                Event::Grow(len) => self.grown = self.grown.max(len),
                Event::Shrink(len) => {
                    self.grown = len;
                    self.shrinks.push((n, len));
                }
            }
        }
    }

    fn fence(&mut self, core: u8) {
        for line in self.flushed.remove(&core).unwrap_or_default() {
            let Some(pieces) = self.pending.remove(&line) else { continue };
            let (durable, pending): (Vec<_>, Vec<_>) =
                pieces.into_iter().partition(|(_, cores)| cores & (1 << core) != 0);
            self.settle(durable.into_iter().map(|(n, _)| n));
            if !pending.is_empty() {
                self.pending.insert(line, pending);
            }
        }
        let (durable, pending) = std::mem::take(&mut self.discards).into_iter().partition(|d| d.core == core);
        self.discards = pending;
        self.settle_discards(durable);
    }

    /// Everything becomes durable. In memory it must also have been flushed.
    fn sync(&mut self) {
        self.settle_shrinks(self.shrinks.len());
        match self.kind {
            CutKind::Memory => {
                let cores: Vec<u8> = self.flushed.keys().copied().collect();
                cores.into_iter().for_each(|core| self.fence(core));
                let discards = std::mem::take(&mut self.discards);
                self.settle_discards(discards);
            }
            CutKind::File => {
                let mut pieces: Vec<usize> =
                    std::mem::take(&mut self.pending).into_values().flatten().map(|(n, _)| n).collect();
                pieces.extend(std::mem::take(&mut self.discards).into_iter().map(|discard| discard.event));
                pieces.sort_unstable();
                self.settle(pieces.into_iter());
                self.durable.grow(self.grown);
            }
        }
    }

    fn settle_discards(&mut self, discards: Vec<Discarded>) {
        for discard in discards {
            let n = discard.event;
            let Event::Discard { start, end, .. } = self.log.events[n] else { continue };
            // Earlier writes there are gone, whatever they were.
            let lines: Vec<u64> = self.pending.range(start / LINE..end / LINE).map(|(l, _)| *l).collect();
            for line in lines {
                let pieces = self.pending.get_mut(&line).expect("the line was found above");
                pieces.retain(|&(m, _)| m > n);
                if pieces.is_empty() {
                    self.pending.remove(&line);
                }
            }
            discard.apply(&mut self.durable, self.log);
        }
    }

    fn settle(&mut self, events: impl Iterator<Item = usize>) {
        for n in events {
            let older = self.shrinks.iter().rposition(|&shrink| self.is_beyond(n, shrink));
            self.settle_shrinks(older.map_or(0, |last| last + 1));
            self.overtake(n);
            apply(&mut self.durable, self.log, n);
        }
    }

    /// The line that an event has written is durable: so are the zeros that the
    /// line held before.
    fn overtake(&mut self, n: usize) {
        let Event::Piece { offset, .. } = self.log.events[n] else { return };
        let line = offset / LINE;
        for discard in &mut self.discards {
            if discard.is_below(self.log, n, line) {
                self.durable.clear(line * LINE..(line + 1) * LINE);
                discard.overtaken.insert(line);
            }
        }
    }

    /// Whether an event writes to what a shortening had taken away before.
    fn is_beyond(&self, n: usize, (shrink, len): (usize, u64)) -> bool {
        n > shrink && matches!(self.log.events[n], Event::Piece { offset, .. } if offset >= len)
    }

    /// Makes the first `count` shortenings durable.
    fn settle_shrinks(&mut self, count: usize) {
        for (n, len) in self.shrinks.drain(..count) {
            self.durable.cut(len);
            // Earlier writes there are gone.
            for pieces in self.pending.range_mut(len / LINE..).map(|(_, pieces)| pieces) {
                pieces.retain(|&(m, _)| m > n);
            }
        }
        if count > 0 {
            self.pending.retain(|_, pieces| !pieces.is_empty());
        }
    }

    /// What recovery could find if the power were cut here.
    pub fn image(&self, keep: Keep, choice: u64) -> Image {
        let mut image = self.durable.clone();
        if keep != Keep::Nothing {
            let mut events: Vec<usize> = self.pending.values().flatten().map(|&(n, _)| n).collect();
            events.extend(self.discards.iter().map(|discard| discard.event));
            // The first shortenings may have become durable, and what was written
            // beyond the others after them has not.
            let (done, lost) = self.shrinks.split_at(match keep {
                Keep::All => self.shrinks.len(),
                _ => (mix(choice) % (self.shrinks.len() as u64 + 1)) as usize,
            });
            events.retain(|&n| !lost.iter().any(|&shrink| self.is_beyond(n, shrink)));
            events.extend(done.iter().map(|&(n, _)| n));
            events.sort_unstable();
            let mut left = Left::new(self.log, &events, keep, choice);
            for n in events {
                match self.discards.iter().find(|discard| discard.event == n) {
                    Some(discard) => left.keep_discard(&mut image, self.log, discard),
                    None => left.keep(&mut image, self.log, n),
                }
            }
        }
        image.set_beside(self.beside(keep, choice));
        // Growth that nothing durable relies on may be lost as well.
        if choice.is_multiple_of(2) {
            image.grow(self.grown);
        }
        image
    }
}

impl Replay<'_> {
    /// What is beside the medium, which is never synced: the last two files that
    /// were written, one of them, some sectors of the last one, or nothing.
    fn beside(&self, keep: Keep, choice: u64) -> Vec<Arc<Vec<u8>>> {
        let last_two = &self.files[self.files.len().saturating_sub(2)..];
        let choice = if keep == Keep::All { 0 } else { mix(choice ^ 0xBE5) };
        let mut files = last_two.to_vec();
        match choice % 5 {
            0 => {}
            1 => files.clear(),
            2 => drop(files.pop()),
            3 => drop(files.drain(..files.len().saturating_sub(1))),
            _ => {
                if let Some(last) = files.last_mut() {
                    let sectors = Arc::make_mut(last).chunks_mut(SECTOR as usize);
                    let is_lost = |n| mix(choice ^ mix(n)).is_multiple_of(2);
                    (0..).zip(sectors).filter(|(n, _)| is_lost(*n)).for_each(|(_, sector)| sector.fill(0));
                }
            }
        }
        files
    }
}

fn apply(image: &mut Image, log: &Log, n: usize) {
    match log.events[n] {
        Event::Piece { offset, from, len, .. } => image.store(offset, log.bytes(from, len)),
        Event::Discard { start, end, .. } => image.clear(start..end),
        Event::Shrink(len) => image.cut(len),
        _ => {}
    }
}

/// Decides what remains of pieces and discards that are not durable.
struct Left {
    keep: Keep,
    choice: u64,
    /// How many of the events of a line or sector remain to be kept, because it
    /// is as it was at some moment.
    of_unit: HashMap<u64, u64>,
}

impl Left {
    fn new(log: &Log, events: &[usize], keep: Keep, choice: u64) -> Self {
        let mut left = Self { keep, choice, of_unit: HashMap::new() };
        if matches!(keep, Keep::Lines | Keep::Sectors) {
            for &n in events {
                if let Event::Piece { offset, .. } = log.events[n] {
                    *left.of_unit.entry(offset / left.unit()).or_default() += 1;
                }
            }
            for (unit, left) in &mut left.of_unit {
                *left = mix(choice ^ mix(*unit)) % (*left + 1);
            }
        }
        left
    }

    fn unit(&self) -> u64 {
        if self.keep == Keep::Sectors { SECTOR } else { LINE }
    }

    fn keep(&mut self, image: &mut Image, log: &Log, n: usize) {
        match (self.keep, log.events[n]) {
            (Keep::All, _) | (_, Event::Shrink(_)) => apply(image, log, n),
            (Keep::Words, Event::Piece { offset, from, len, .. }) => {
                let bytes = log.bytes(from, len);
                let mut at = 0;
                while at < bytes.len() {
                    let start = offset + at as u64;
                    let end = bytes.len().min(at + (WORD - start % WORD) as usize);
                    if mix(self.choice ^ mix(start ^ ((n as u64) << 40))).is_multiple_of(2) {
                        image.store(start, &bytes[at..end]);
                    }
                    at = end;
                }
            }
            (Keep::Lines | Keep::Sectors, Event::Piece { offset, .. }) => {
                let left = self.of_unit.get_mut(&(offset / self.unit())).filter(|left| **left > 0);
                if let Some(left) = left {
                    *left -= 1;
                    apply(image, log, n);
                }
            }
            _ => {}
        }
    }

    fn keep_discard(&self, image: &mut Image, log: &Log, discard: &Discarded) {
        let Event::Discard { start, end, .. } = log.events[discard.event] else { return };
        if self.keep == Keep::All {
            return discard.apply(image, log);
        }
        for page in image.pages_in(&(start..end)) {
            let units = (page * PAGE..(page + 1) * PAGE).step_by(self.unit() as usize);
            for unit in units.filter(|unit| !discard.overtaken.contains(&(unit / LINE))) {
                if mix(self.choice ^ mix(unit ^ ((discard.event as u64) << 40))).is_multiple_of(2) {
                    image.clear(unit..unit + self.unit());
                }
            }
        }
    }
}
