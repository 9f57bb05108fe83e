//! What a device is asked for.

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
    /// Pages trimmed.
    pub pages_trimmed: u64,
    /// Flushes.
    pub flushes: u64,
}

impl Totals {
    /// Adds a request.
    pub fn add(&mut self, request: &Request) {
        match request {
            Request::Write { pages, .. } => {
                self.pages_written += pages.end - pages.start;
                self.writes += 1;
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

/// Calls `each` with the runs of pages that follow each other, at most `longest` in a run. The pages rise.
pub(crate) fn runs(pages: impl IntoIterator<Item = u64>, longest: u64, mut each: impl FnMut(Range<u64>)) {
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
    fn runs_are_cut_at_gaps_and_when_they_are_long() {
        let mut found = Vec::new();
        runs([1, 2, 3, 7, 8, 10], 2, |run| found.push(run));
        assert_eq!(found, [1..3, 3..4, 7..9, 10..11]);
        runs([], 2, |_| panic!("there is none"));
    }
}
