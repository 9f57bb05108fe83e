//! A medium that records what is written to it.

// A medium is unsafe to implement: what it maps is borrowed by callers.
#![allow(unsafe_code)]

use crate::request::{PAGE_BYTES, Request, Stream, Totals, runs};
use pantile_media::{
    DirectoryOptions, DramMedium, Facts, MapOptions, Medium, MediumError, MediumFactory, MediumStatus,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Most pages of a request, half a megabyte: what a block device commonly takes.
const LONGEST: u64 = 128;

/// What has been written to a medium, in the order in which a device would see it.
///
/// The system writes a page when a sync asks for it, or when many wait. In between, further writes to a page
/// cost nothing. So a page that is written often between two syncs is written once.
#[derive(Debug)]
pub struct Trace(Mutex<Recorded>);

#[derive(Debug)]
struct Recorded {
    /// Pages that wait in the system's cache, each with its stream.
    dirty: BTreeMap<u64, Stream>,
    most_dirty: usize,
    requests: Vec<Request>,
    totals: Totals,
    written: u64,
}

impl Trace {
    /// Nothing yet. Pages are written at the latest when more than `most_dirty` wait.
    pub fn new(most_dirty: usize) -> Arc<Self> {
        let (dirty, requests, totals) = (BTreeMap::new(), Vec::new(), Totals::default());
        Arc::new(Self(Mutex::new(Recorded { dirty, most_dirty, requests, totals, written: 0 })))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Recorded) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes that bytes have been written.
    pub fn write(&self, offset: u64, len: u64, stream: Stream) {
        if len > 0 {
            self.with(|recorded| {
                recorded.written += len;
                let pages = offset / PAGE_BYTES..=(offset + len - 1) / PAGE_BYTES;
                recorded.dirty.extend(pages.map(|page| (page, stream)));
                if recorded.dirty.len() > recorded.most_dirty {
                    recorded.write_back();
                }
            });
        }
    }

    /// Notes that whole pages are given back.
    pub fn trim(&self, offset: u64, len: u64) {
        self.with(|recorded| {
            let pages = offset.div_ceil(PAGE_BYTES)..(offset + len) / PAGE_BYTES;
            if !pages.is_empty() {
                recorded.dirty.retain(|page, _| !pages.contains(page));
                recorded.push(Request::Trim(pages));
            }
        });
    }

    /// Notes a sync.
    pub fn sync(&self) {
        self.with(|recorded| {
            recorded.write_back();
            recorded.push(Request::Flush);
        });
    }

    /// The requests so far, which are counted and forgotten. What waits in the cache stays there.
    pub fn take(&self) -> Vec<Request> {
        self.with(|recorded| std::mem::take(&mut recorded.requests))
    }

    /// All requests since the beginning, added up, also those that were taken.
    pub fn totals(&self) -> Totals {
        self.with(|recorded| recorded.totals)
    }

    /// Bytes given to writes since the beginning.
    pub fn bytes_given(&self) -> u64 {
        self.with(|recorded| recorded.written)
    }
}

impl Recorded {
    fn push(&mut self, request: Request) {
        self.totals.add(&request);
        self.requests.push(request);
    }

    /// Writes all pages that wait, one stream after the other, in their order.
    fn write_back(&mut self) {
        let dirty = std::mem::take(&mut self.dirty);
        let mut streams: BTreeMap<Stream, Vec<u64>> = BTreeMap::new();
        dirty.into_iter().for_each(|(page, stream)| streams.entry(stream).or_default().push(page));
        for (stream, pages) in streams {
            runs(pages, LONGEST, |pages| self.push(Request::Write { pages, stream }));
        }
    }
}

/// A medium in memory whose writes are recorded as those of a file would be.
#[derive(Debug)]
pub struct TracedMedium {
    memory: Arc<DramMedium>,
    facts: Facts,
    trace: Arc<Trace>,
    /// Whether fences are syncs, as those of durable commits are.
    syncs_at_fences: bool,
}

impl TracedMedium {
    /// An empty medium.
    ///
    /// # Errors
    /// As for [`DramMedium::new`].
    pub fn new(trace: Arc<Trace>, map: MapOptions, syncs_at_fences: bool) -> Result<Arc<Self>, MediumError> {
        let memory = DramMedium::new(map)?;
        let facts = Facts { name: "traced".into(), ..memory.facts().clone() };
        Ok(Arc::new(Self { memory, facts, trace, syncs_at_fences }))
    }
}

// SAFETY: all bytes are those of `memory`, which keeps the promises.
unsafe impl Medium for TracedMedium {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn len(&self) -> u64 {
        self.memory.len()
    }

    fn grow(&self, len: u64) -> Result<(), MediumError> {
        let before = self.memory.len();
        self.memory.grow(len)?;
        if self.syncs_at_fences {
            // A file that is synced often is written with zeros ahead of its use.
            self.trace.write(before, self.memory.len().saturating_sub(before), 0);
        }
        Ok(())
    }

    unsafe fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        unsafe { self.memory.write(offset, bytes)? };
        self.trace.write(offset, bytes.len() as u64, 0);
        Ok(())
    }

    fn flush(&self, offset: u64, len: u64) {
        self.memory.flush(offset, len);
    }

    fn fence(&self) -> Result<(), MediumError> {
        self.memory.fence()?;
        if self.syncs_at_fences {
            self.trace.sync();
        }
        Ok(())
    }

    fn sync_all(&self) -> Result<(), MediumError> {
        self.memory.sync_all()?;
        self.trace.sync();
        Ok(())
    }

    unsafe fn shrink(&self, len: u64) -> Result<(), MediumError> {
        let before = self.memory.len();
        // SAFETY: as the caller promises.
        unsafe { self.memory.shrink(len)? };
        let left = self.memory.len();
        self.trace.trim(left, before - left);
        Ok(())
    }

    unsafe fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        unsafe { self.memory.discard(offset, len)? };
        self.trace.trim(offset, len);
        Ok(())
    }

    unsafe fn restore(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        unsafe { self.memory.restore(offset, len) }
    }

    fn status(&self) -> MediumStatus {
        self.memory.status()
    }
}

/// Opens databases on traced media.
#[derive(Debug, Clone)]
pub struct TracedFactory {
    /// Where writes are recorded.
    pub trace: Arc<Trace>,
    /// Whether fences are syncs, as those of durable commits are.
    pub syncs_at_fences: bool,
}

impl MediumFactory for TracedFactory {
    fn open(&self, _path: &Path, options: DirectoryOptions) -> Result<Arc<dyn Medium>, MediumError> {
        Ok(TracedMedium::new(Arc::clone(&self.trace), options.map, self.syncs_at_fences)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_wait_for_a_sync_and_follow_each_other_in_requests() {
        let trace = Trace::new(100);
        trace.write(5000, 10, 0);
        trace.write(0, 1, 0);
        trace.write(4095, 2, 0);
        trace.write(5 * PAGE_BYTES, PAGE_BYTES, 1);
        assert_eq!(trace.take(), []);
        trace.sync();
        let write = |pages, stream| Request::Write { pages, stream };
        assert_eq!(trace.take(), [write(0..2, 0), write(5..6, 1), Request::Flush]);
        trace.sync();
        assert_eq!(trace.take(), [Request::Flush]);
        let totals = trace.totals();
        assert_eq!((totals.pages_written, totals.writes, totals.flushes), (3, 2, 2));
        assert_eq!(trace.bytes_given(), 10 + 1 + 2 + PAGE_BYTES);
    }

    #[test]
    fn many_pages_do_not_wait_and_what_is_trimmed_is_not_written() {
        let trace = Trace::new(3);
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
        let trace = Trace::new(1 << 20);
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
    }
}
