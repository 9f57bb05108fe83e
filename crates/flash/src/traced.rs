//! A medium that records what is written to it.

use crate::request::{PAGE_BYTES, Request, Requests, Stream};
use pantile_media::{DirectoryOptions, DramMedium, Medium, MediumError, MediumFactory};
use pantile_testkit::{Heard, HeardMedium};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Where a database has read a content or begun to write, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It has read the content at this offset.
    Read(u64),
    /// It has written from this offset on.
    Write(u64),
}

/// What has been read from a medium and written to it, in the order in which a device would see it behind the system's cache.
#[derive(Debug)]
pub struct Trace {
    requests: Mutex<Requests>,
    accesses: Mutex<Vec<Access>>,
    /// Where blocks begin, their lengths, and the streams of what is written to them.
    expected: Mutex<BTreeMap<u64, (u64, Stream)>>,
}

impl Trace {
    /// Nothing yet. Pages are written at the latest when more than `most_dirty` wait in the cache, which keeps
    /// `most_clean` others for reads.
    pub fn new(most_dirty: u64, most_clean: usize) -> Arc<Self> {
        let requests = Mutex::new(Requests::new(most_dirty, most_clean));
        Arc::new(Self { requests, accesses: Mutex::default(), expected: Mutex::default() })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Requests) -> T) -> T {
        work(&mut self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, access: Access) {
        self.accesses.lock().unwrap_or_else(PoisonError::into_inner).push(access);
    }

    /// Notes that a content has been read.
    pub fn read(&self, offset: u64, len: u64) {
        self.note(Access::Read(offset));
        self.with(|requests| requests.read(offset / PAGE_BYTES..(offset + len).div_ceil(PAGE_BYTES)));
    }

    /// From here on, what is written to this block goes to a stream of its own kind.
    pub fn expect(&self, offset: u64, len: u64, stream: Stream) {
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        // A chunk that has been given back may be divided in another way.
        let gone: Vec<u64> = expected.range(offset..offset + len).map(|(from, _)| *from).collect();
        gone.iter().for_each(|from| _ = expected.remove(from));
        expected.insert(offset, (len, stream));
    }

    /// The stream of what is written here: the first one where nothing is expected.
    fn stream_at(&self, offset: u64) -> Stream {
        let expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        let block = expected.range(..=offset).next_back();
        block.filter(|(from, (len, _))| offset < **from + len).map_or(0, |(_, (_, stream))| *stream)
    }

    /// Notes that bytes have been written.
    pub fn write(&self, offset: u64, len: u64, stream: Stream) {
        if len > 0 {
            self.note(Access::Write(offset));
            let pages = offset / PAGE_BYTES..=(offset + len - 1) / PAGE_BYTES;
            self.with(|requests| requests.write(pages, stream));
        }
    }

    /// Notes that whole pages are given back.
    pub fn trim(&self, offset: u64, len: u64) {
        self.with(|requests| requests.trim(offset.div_ceil(PAGE_BYTES)..(offset + len) / PAGE_BYTES));
    }

    /// Notes a sync.
    pub fn sync(&self) {
        self.with(|requests| {
            requests.write_back();
            requests.flush();
        });
    }

    /// The requests so far, which are forgotten. What waits in the cache stays there.
    pub fn take(&self) -> Vec<Request> {
        self.with(Requests::take)
    }

    /// The accesses so far, which are forgotten.
    pub fn take_accesses(&self) -> Vec<Access> {
        std::mem::take(&mut self.accesses.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Opens databases in memory whose reads of contents and writes are recorded as those of a file would be.
#[derive(Debug, Clone)]
pub struct TracedFactory {
    /// Where they are recorded.
    pub trace: Arc<Trace>,
    /// Whether fences are syncs, as those of durable commits are.
    pub syncs_at_fences: bool,
}

impl TracedFactory {
    fn hear(&self, call: Heard) {
        match call {
            Heard::Read { offset, len } => self.trace.read(offset, len),
            Heard::Write { offset, len } => self.trace.write(offset, len, self.trace.stream_at(offset)),
            // A file that is synced often is written with zeros ahead of its use.
            Heard::Grow { from, to } if self.syncs_at_fences => self.trace.write(from, to - from, 0),
            Heard::Fence if self.syncs_at_fences => self.trace.sync(),
            Heard::Sync => self.trace.sync(),
            Heard::Shrink { from, to } => self.trace.trim(to, from - to),
            Heard::Discard { offset, len } => self.trace.trim(offset, len),
            Heard::Grow { .. } | Heard::Fence | Heard::Restore { .. } | Heard::Advice(_) => {}
        }
    }
}

impl MediumFactory for TracedFactory {
    fn open(&self, _path: &Path, options: DirectoryOptions) -> Result<Arc<dyn Medium>, MediumError> {
        let traced = self.clone();
        let medium = HeardMedium::over(DramMedium::new(options.map)?, move |call| traced.hear(call));
        Ok(Arc::new(medium.with_reads()))
    }
}

#[cfg(test)]
#[allow(unsafe_code, reason = "a medium is written to")]
mod tests {
    use super::*;
    use crate::request::Totals;

    #[test]
    fn what_is_written_to_a_block_goes_to_its_stream() {
        let trace = Trace::new(100, 0);
        trace.expect(4 * PAGE_BYTES, 2 * PAGE_BYTES, 3);
        let streams = |trace: &Trace| [3, 4, 5, 6].map(|page| trace.stream_at(page * PAGE_BYTES));
        assert_eq!(streams(&trace), [0, 3, 3, 0]);
        // The chunk is divided anew.
        trace.expect(3 * PAGE_BYTES, 3 * PAGE_BYTES, 1);
        assert_eq!(streams(&trace), [1, 1, 1, 0]);
    }

    #[test]
    fn pages_wait_for_a_sync_and_follow_each_other_in_requests() {
        let trace = Trace::new(100, 0);
        trace.write(5000, 10, 0);
        trace.write(0, 1, 0);
        trace.write(4095, 2, 0);
        trace.write(5 * PAGE_BYTES, PAGE_BYTES, 1);
        assert_eq!(trace.take(), []);
        trace.sync();
        let write = |pages, stream| Request::Write { pages, stream };
        let mut all = trace.take();
        assert_eq!(all, [write(0..2, 0), write(5..6, 1), Request::Flush]);
        trace.sync();
        let more = trace.take();
        assert_eq!(more, [Request::Flush]);
        all.extend(more);
        let totals = Totals::of(&all);
        assert_eq!((totals.pages_written, totals.writes, totals.flushes), (3, 2, 2));
    }

    #[test]
    fn many_pages_do_not_wait_and_what_is_trimmed_is_not_written() {
        let trace = Trace::new(3, 0);
        trace.write(0, 2 * PAGE_BYTES, 0);
        trace.trim(100, PAGE_BYTES + 10);
        assert_eq!(trace.take(), [], "no whole page");
        trace.trim(PAGE_BYTES, 10 * PAGE_BYTES);
        trace.write(20 * PAGE_BYTES, 3 * PAGE_BYTES, 0);
        let write = |pages| Request::Write { pages, stream: 0 };
        assert_eq!(trace.take(), [Request::Trim(1..11), write(0..1), write(20..23)]);
    }

    #[test]
    fn a_medium_records_what_is_written_discarded_and_synced() {
        let trace = Trace::new(1 << 20, 2);
        let factory = TracedFactory { trace: Arc::clone(&trace), syncs_at_fences: true };
        let medium = factory.open(Path::new(""), DirectoryOptions::default()).expect("medium");
        medium.grow(1 << 22).expect("grow");
        medium.sync_all().expect("sync");
        let zeros: Vec<_> = (0..8).map(|n| n * 128..(n + 1) * 128).collect();
        let written: Vec<_> = zeros.into_iter().map(|pages| Request::Write { pages, stream: 0 }).collect();
        let mut requests = trace.take();
        assert_eq!(requests.pop(), Some(Request::Flush));
        assert_eq!(requests, written);
        // SAFETY: nobody else has the medium.
        unsafe {
            medium.write(10, b"some").expect("write");
            medium.write(1 << 21, b"more").expect("write");
            medium.fence().expect("fence");
            medium.discard(1 << 21, 1 << 21).expect("discard");
            medium.restore(1 << 21, 1 << 21).expect("restore");
        }
        medium.sync_all().expect("sync");
        let write = |page| Request::Write { pages: page..page + 1, stream: 0 };
        let flush = || Request::Flush;
        assert_eq!(trace.take(), [write(0), write(512), flush(), Request::Trim(512..1024), flush()]);
        trace.take_accesses();
        let cost = medium.facts().charges.as_ref().expect("reads are heard");
        cost.read(4090, 10);
        cost.read(20, 8);
        assert_eq!(trace.take(), [Request::Read(1..2)], "the first page was written, and is in the cache");
        assert_eq!(trace.take_accesses(), [Access::Read(4090), Access::Read(20)]);
    }
}
