//! What a device is asked for.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Bytes of a page: the unit in which the system writes a file to its device.
pub const PAGE_BYTES: u64 = 4096;

/// Which of a device's write streams a page goes to: pages of one stream are expected to die
/// together, and share erase blocks.
pub type Stream = u8;

/// A request to a device. Pages are numbered from zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Writes pages that follow each other.
    Write {
        /// The pages.
        pages: Range<u64>,
        /// Where they go.
        stream: Stream,
    },
    /// Reads pages that follow each other.
    Read(Range<u64>),
    /// Says that what pages hold is not needed any more.
    Trim(Range<u64>),
    /// Waits until everything before is durable.
    Flush,
}

/// Requests, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Totals {
    /// Pages written.
    pub pages_written: u64,
    /// Requests that wrote them.
    pub writes: u64,
    /// Pages read.
    pub pages_read: u64,
    /// Requests that read them.
    pub reads: u64,
    /// Pages trimmed.
    pub pages_trimmed: u64,
    /// Flushes.
    pub flushes: u64,
}

impl Totals {
    /// Those of some requests.
    pub fn of(requests: &[Request]) -> Self {
        let mut totals = Self::default();
        requests.iter().for_each(|request| totals.add(request));
        totals
    }

    fn add(&mut self, request: &Request) {
        match request {
            Request::Write { pages, .. } => {
                self.pages_written += pages.end - pages.start;
                self.writes += 1;
            }
            Request::Read(pages) => {
                self.pages_read += pages.end - pages.start;
                self.reads += 1;
            }
            Request::Trim(pages) => self.pages_trimmed += pages.end - pages.start,
            Request::Flush => self.flushes += 1,
        }
    }

    /// Bytes written.
    pub fn bytes_written(&self) -> u64 {
        self.pages_written * PAGE_BYTES
    }
}

/// Most pages of a request, half a megabyte: what a block device commonly takes.
const LONGEST: u64 = 128;

/// Pages that the system keeps before it writes them by itself: 16 MB.
pub(crate) const MOST_DIRTY: u64 = 4096;

/// Requests to a device, behind the system's cache of pages.
///
/// The system writes a page when a sync asks for it, or when many wait. In between, further writes to a page
/// cost nothing. So a page that is written often between two syncs is written once.
///
/// The same cache keeps pages that were read or written, up to a number of them, and gives up those that were not used
/// for longest. Only a read of a page that it does not have is a request. Writing a part of a page reads nothing.
#[derive(Debug)]
pub(crate) struct Requests {
    /// Pages that wait in the cache, each with its stream.
    dirty: BTreeMap<u64, Stream>,
    most_dirty: u64,
    clean: Recent,
    list: Vec<Request>,
}

impl Requests {
    /// None yet. Pages are written at the latest when more than `most_dirty` wait; `most_clean` are kept for reads.
    pub fn new(most_dirty: u64, most_clean: usize) -> Self {
        Self { dirty: BTreeMap::new(), most_dirty, clean: Recent::new(most_clean), list: Vec::new() }
    }

    /// Reads pages through the cache.
    pub fn read(&mut self, pages: Range<u64>) {
        let (clean, dirty, list) = (&mut self.clean, &self.dirty, &mut self.list);
        let missed = pages.filter(|page| clean.touch(*page).is_missing && !dirty.contains_key(page));
        runs(missed, LONGEST, |pages| list.push(Request::Read(pages)));
    }

    /// Writes pages through the cache, in which they wait.
    pub fn write(&mut self, pages: impl IntoIterator<Item = u64>, stream: Stream) {
        for page in pages {
            self.dirty.insert(page, stream);
            self.clean.touch(page);
        }
        if self.dirty.len() as u64 > self.most_dirty {
            self.write_back();
        }
    }

    /// Writes pages at once, in their order.
    pub fn write_now(&mut self, pages: impl IntoIterator<Item = u64>, stream: Stream) {
        runs(pages, LONGEST, |pages| self.list.push(Request::Write { pages, stream }));
    }

    /// Writes all pages that wait, in their order, whatever their streams.
    pub fn write_back(&mut self) {
        let mut waiting = std::mem::take(&mut self.dirty).into_iter().peekable();
        while let Some((first, stream)) = waiting.next() {
            let more = std::iter::from_fn(|| waiting.next_if(|(_, of)| *of == stream));
            let pages: Vec<u64> = std::iter::once(first).chain(more.map(|(page, _)| page)).collect();
            self.write_now(pages, stream);
        }
    }

    /// Gives pages back. Those that wait are not written.
    pub fn trim(&mut self, pages: Range<u64>) {
        if !pages.is_empty() {
            self.dirty.retain(|page, _| !pages.contains(page));
            self.clean.forget(&pages);
            self.list.push(Request::Trim(pages));
        }
    }

    /// Waits for what has been written so far; pages in the cache stay there.
    pub fn flush(&mut self) {
        self.list.push(Request::Flush);
    }

    /// The requests so far, which are forgotten. What waits in the cache stays there.
    pub fn take(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.list)
    }
}

/// The pages that were used last.
#[derive(Debug)]
pub(crate) struct Recent {
    most: usize,
    /// When each was used, in uses.
    used: HashMap<u64, u64>,
    by_use: BTreeMap<u64, u64>,
    uses: u64,
}

/// What using a page has changed.
pub(crate) struct Touched {
    /// Whether it was not among the last.
    pub is_missing: bool,
    /// The page that is not among them any more.
    pub given_up: Option<u64>,
}

impl Recent {
    /// None yet, and never more than `most`.
    pub fn new(most: usize) -> Self {
        Self { most, used: HashMap::new(), by_use: BTreeMap::new(), uses: 0 }
    }

    /// Uses a page.
    pub fn touch(&mut self, page: u64) -> Touched {
        self.uses += 1;
        let before = self.used.insert(page, self.uses);
        before.map(|used| self.by_use.remove(&used));
        self.by_use.insert(self.uses, page);
        let is_full = self.used.len() > self.most;
        let given_up = is_full.then(|| self.by_use.pop_first()).flatten().map(|(_, oldest)| oldest);
        given_up.map(|oldest| self.used.remove(&oldest));
        Touched { is_missing: before.is_none(), given_up }
    }

    /// Forgets pages.
    pub fn forget(&mut self, pages: &Range<u64>) {
        self.by_use.retain(|_, page| !pages.contains(page));
        self.used.retain(|page, _| !pages.contains(page));
    }
}

/// Calls `each` with the runs of pages that follow each other, at most `longest` in a run. The pages rise.
fn runs(pages: impl IntoIterator<Item = u64>, longest: u64, mut each: impl FnMut(Range<u64>)) {
    let mut run: Option<Range<u64>> = None;
    for page in pages {
        match &mut run {
            Some(run) if run.end == page && run.end - run.start < longest => run.end += 1,
            _ => {
                run.replace(page..page + 1).into_iter().for_each(&mut each);
            }
        }
    }
    run.into_iter().for_each(&mut each);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_that_are_not_in_the_cache_are_read() {
        let mut requests = Requests::new(100, 3);
        let mut reads = |pages: Range<u64>| {
            requests.read(pages);
            requests.take()
        };
        assert_eq!(reads(1..4), [Request::Read(1..4)]);
        assert_eq!(reads(1..3), []);
        assert_eq!(reads(4..5), [Request::Read(4..5)]);
        assert_eq!(reads(3..4), [Request::Read(3..4)], "it was not used for longest");
        requests.write([7, 8, 9, 10], 0);
        requests.read(7..11);
        assert_eq!(requests.take(), [], "pages that wait are in the cache");
        requests.write_back();
        requests.trim(9..20);
        requests.take();
        requests.read(8..10);
        assert_eq!(requests.take(), [Request::Read(9..10)], "what was given back is not in it");
        let totals = Totals::of(&[Request::Read(1..4), Request::Read(7..8)]);
        assert_eq!((totals.pages_read, totals.reads, totals.pages_written), (4, 2, 0));
    }

    #[test]
    fn runs_are_cut_at_gaps_and_when_they_are_long() {
        let mut found = Vec::new();
        runs([1, 2, 3, 7, 8, 10], 2, |run| found.push(run));
        assert_eq!(found, [1..3, 3..4, 7..9, 10..11]);
        runs([], 2, |_| panic!("there is none"));
    }
}
