//! A simulated SSD.

use crate::request::{PAGE_BYTES, Request, Stream};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::ops::Range;

/// What an [`Ssd`] is like.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct SsdSettings {
    /// Pages that it offers.
    pub pages: u64,
    /// Share of the flash that it keeps for itself: 0.07 is common, 0.28 in devices for servers.
    pub over_provisioning: f64,
    /// Pages of an erase block.
    pub block_pages: u32,
    /// Streams that writes can be put into. Others share the first.
    pub streams: Stream,
    /// Channels that work at the same time. Pages that are written one after the other lie on
    /// one after the other, and erase blocks are filled and erased in groups of one on each.
    pub channels: u32,
    /// How long operations take.
    pub times: Times,
}

/// Microseconds of operations on flash.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct Times {
    /// Reading a page.
    pub read: f64,
    /// Writing a page.
    pub program: f64,
    /// Erasing a block.
    pub erase: f64,
}

impl Default for SsdSettings {
    /// A small device after the Intel X25-E of the SIAS paper: SLC flash in pages of 4 KB and erase blocks of
    /// 256 KB on ten channels.
    fn default() -> Self {
        Self {
            pages: 1 << 16,
            over_provisioning: 0.2,
            block_pages: 64,
            streams: 1,
            channels: 10,
            times: Times { read: 25.0, program: 250.0, erase: 2_000.0 },
        }
    }
}

/// What an SSD has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Report {
    /// Pages that the host has written.
    pub host_pages: u64,
    /// Pages that cleaning has copied.
    pub copied_pages: u64,
    /// Pages trimmed that held something.
    pub trimmed_pages: u64,
    /// Pages that the host has read and that held something.
    pub read_pages: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Microseconds from the first request to the end of the last.
    pub micros: f64,
}

impl Report {
    /// Pages written to flash for each page that the host has written.
    pub fn write_amplification(&self) -> f64 {
        match self.host_pages {
            0 => 1.0,
            host => (host + self.copied_pages) as f64 / host as f64,
        }
    }

    /// Bytes that the host has written.
    pub fn host_bytes(&self) -> u64 {
        self.host_pages * PAGE_BYTES
    }
}

/// No page.
const NONE: u32 = u32::MAX;

/// Blocks that are kept free for cleaning, beside one for each stream.
const SPARE_BLOCKS: usize = 2;

#[derive(Debug, Clone, Copy, Default)]
struct Block {
    /// Pages with what the host still needs.
    valid: u32,
    /// Pages that have been written.
    written: u32,
    is_open: bool,
}

/// An SSD with a flash translation layer that maps pages. When few blocks are free, one is cleaned: that
/// with the fewest pages that are still needed (greedy), which are copied to a block of their own.
///
/// Time is counted by channel. A request begins when one of those before it has ended, so that at most `depth`
/// are under way; its pages are read or written on their channels, one after the other on each, and cleaning keeps
/// channels busy as well. There is no buffer in front of the flash, and the bus costs nothing.
#[derive(Debug)]
pub struct Ssd {
    settings: SsdSettings,
    /// Pages of a block: an erase block on each channel. They are written and erased together.
    group: u32,
    /// Where each page of the host is.
    places: Vec<u32>,
    /// Which page of the host each page of the flash holds.
    holds: Vec<u32>,
    blocks: Vec<Block>,
    free: VecDeque<u32>,
    /// Full blocks by the number of pages that are needed.
    full: BTreeSet<(u32, u32)>,
    /// The open block of each stream, and last that of cleaning.
    open: Vec<Option<u32>>,
    report: Report,
    /// When each channel has nothing to do.
    idle_at: Vec<f64>,
    /// Ends of the requests that are under way.
    under_way: BinaryHeap<Reverse<Moment>>,
    depth: usize,
    now: f64,
}

/// A time that can be compared.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Moment(f64);

impl Eq for Moment {}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Moment {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Ssd {
    /// An empty device, with at most `depth` requests under way.
    ///
    /// # Panics
    /// If it has more than 2^32 pages, none at all, or no channel.
    pub fn new(settings: SsdSettings, depth: usize) -> Self {
        assert!(settings.pages > 0 && settings.block_pages > 0 && settings.channels > 0 && depth > 0);
        let flash = settings.pages as f64 / (1.0 - settings.over_provisioning);
        let streams = usize::from(settings.streams.max(1));
        let group = settings.block_pages * settings.channels;
        let least = settings.pages.div_ceil(u64::from(group)) + (streams + 1 + SPARE_BLOCKS) as u64;
        let blocks = ((flash / f64::from(group)).ceil() as u64).max(least);
        let pages = blocks * u64::from(group);
        assert!(pages < u64::from(NONE), "the device is too large");
        Self {
            settings,
            group,
            places: vec![NONE; settings.pages as usize],
            holds: vec![NONE; pages as usize],
            blocks: vec![Block::default(); blocks as usize],
            free: (0..blocks as u32).collect(),
            full: BTreeSet::new(),
            open: vec![None; streams + 1],
            report: Report::default(),
            idle_at: vec![0.0; settings.channels as usize],
            under_way: BinaryHeap::new(),
            depth,
            now: 0.0,
        }
    }

    /// Executes a request. Pages beyond the device are taken modulo its size.
    pub fn execute(&mut self, request: &Request) {
        match request {
            Request::Write { pages, stream } => {
                let stream = usize::from(*stream).min(self.open.len() - 2);
                let begin = self.begin();
                let mut end = begin;
                for page in self.pages(pages) {
                    end = end.max(self.write(page, stream, begin));
                }
                self.report.host_pages += pages.end - pages.start;
                self.under_way.push(Reverse(Moment(end)));
            }
            Request::Read(pages) => {
                let begin = self.begin();
                let mut end = begin;
                for page in self.pages(pages) {
                    if self.places[page] != NONE {
                        end = end.max(self.work(self.places[page], begin, self.settings.times.read));
                        self.report.read_pages += 1;
                    }
                }
                self.under_way.push(Reverse(Moment(end)));
            }
            Request::Trim(pages) => {
                for page in self.pages(pages) {
                    if self.forget(page) {
                        self.report.trimmed_pages += 1;
                    }
                }
            }
            Request::Flush => self.drain(),
        }
    }

    /// What has been done so far, the requests under way included.
    pub fn report(&self) -> Report {
        let last = self.under_way.iter().map(|Reverse(end)| end.0).fold(self.now, f64::max);
        Report { micros: last, ..self.report }
    }

    /// Begins to count anew, for instance after filling. What is stored stays.
    pub fn start_over(&mut self) {
        self.drain();
        self.report = Report::default();
        self.idle_at.fill(0.0);
        self.now = 0.0;
    }

    fn pages(&self, pages: &Range<u64>) -> impl Iterator<Item = usize> + use<> {
        let (pages, size) = (pages.clone(), self.settings.pages);
        pages.map(move |page| (page % size) as usize)
    }

    /// When a request can begin.
    fn begin(&mut self) -> f64 {
        while self.under_way.len() >= self.depth {
            self.end_one();
        }
        self.now
    }

    fn drain(&mut self) {
        while !self.under_way.is_empty() {
            self.end_one();
        }
    }

    fn end_one(&mut self) {
        if let Some(Reverse(Moment(end))) = self.under_way.pop() {
            self.now = self.now.max(end);
        }
    }

    /// Keeps the channel of a page of the flash busy, from `begin` at the earliest. Returns the end.
    fn work(&mut self, place: u32, begin: f64, micros: f64) -> f64 {
        let channel = &mut self.idle_at[(place % self.settings.channels) as usize];
        *channel = channel.max(begin) + micros;
        *channel
    }

    fn write(&mut self, page: usize, stream: usize, begin: f64) -> f64 {
        self.forget(page);
        let reserve = self.open.len() + SPARE_BLOCKS;
        while self.open[stream].is_none() && self.free.len() < reserve && self.clean(begin) {}
        self.put(page, stream, begin)
    }

    /// Writes a page to the open block of a stream.
    fn put(&mut self, page: usize, stream: usize, begin: f64) -> f64 {
        let block = match self.open[stream] {
            Some(block) => block,
            None => self.open_block(stream),
        };
        let state = &mut self.blocks[block as usize];
        let place = block * self.group + state.written;
        state.written += 1;
        state.valid += 1;
        let is_full = state.written == self.group;
        self.places[page] = place;
        self.holds[place as usize] = page as u32;
        if is_full {
            self.blocks[block as usize].is_open = false;
            self.full.insert((self.blocks[block as usize].valid, block));
            self.open[stream] = None;
        }
        self.work(place, begin, self.settings.times.program)
    }

    fn open_block(&mut self, stream: usize) -> u32 {
        let block = self.free.pop_front().expect("cleaning keeps blocks free");
        self.blocks[block as usize] = Block { is_open: true, ..Block::default() };
        self.open[stream] = Some(block);
        block
    }

    /// Drops what a page of the host holds. Returns whether it held anything.
    fn forget(&mut self, page: usize) -> bool {
        let place = std::mem::replace(&mut self.places[page], NONE);
        if place == NONE {
            return false;
        }
        self.holds[place as usize] = NONE;
        let block = place / self.group;
        let state = &mut self.blocks[block as usize];
        let before = state.valid;
        state.valid -= 1;
        if !state.is_open {
            self.full.remove(&(before, block));
            self.full.insert((before - 1, block));
        }
        true
    }

    /// Empties and erases the full block with the fewest pages that are needed. Returns false if none has a page less.
    fn clean(&mut self, begin: f64) -> bool {
        let Some(&(valid, block)) = self.full.first() else { return false };
        if valid == self.group {
            return false;
        }
        self.full.remove(&(valid, block));
        let first = block * self.group;
        let cleaning = self.open.len() - 1;
        for place in first..first + self.group {
            let page = std::mem::replace(&mut self.holds[place as usize], NONE);
            if page != NONE {
                let read = self.work(place, begin, self.settings.times.read);
                self.places[page as usize] = NONE;
                self.put(page as usize, cleaning, read);
                self.report.copied_pages += 1;
            }
        }
        for channel in 0..self.settings.channels {
            self.work(channel, begin, self.settings.times.erase);
        }
        self.blocks[block as usize] = Block::default();
        self.free.push_back(block);
        self.report.erases += u64::from(self.settings.channels);
        true
    }
}

#[cfg(test)]
#[path = "ssd_test.rs"]
mod tests;
