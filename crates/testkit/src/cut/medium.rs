//! A medium that logs everything done to it, so that its power can be cut at
//! any moment of its past.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pantile_base::limits::HEAD_BYTES;
use pantile_media::unshared::Unshared;
use pantile_media::{DramMedium, Facts, MapOptions, Medium, MediumError, MediumExt, MediumStatus, SyncPoint};

use super::beside::CutBeside;
use super::image::Image;
use super::log::{CORES, CutKind, Event, LINE, Log, in_chunk_page};
use super::replay::{Keep, Replay};

/// Most bytes of a simulated medium.
const RESERVE: u64 = 256 << 20;

/// No core is set. Each thread is its own.
const BY_THREAD: u8 = u8::MAX;

/// A promise that the medium breaks, for simulations that must notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// Fences do nothing.
    Fence,
    /// Syncs do nothing; on a file, fences do nothing either.
    Sync,
    /// Sync points are durable at once.
    SyncPoint,
    /// Flushes of contents do nothing.
    FlushOfContents,
    /// Flushes of chunk headers and block descriptors do nothing.
    FlushOfDescriptors,
    /// Flushes of zeroed descriptors do nothing.
    FlushOfZeros,
    /// Flushes of state records do nothing.
    FlushOfState,
}

/// A medium in memory that can lose what is not durable.
///
/// A fence of one core has no effect on what another core has flushed. Each
/// thread is a core of its own, until a simulation that runs in one thread sets
/// the core that runs next ([`CutMedium::run_as`]).
#[derive(Debug)]
pub struct CutMedium {
    memory: Arc<DramMedium>,
    start: Image,
    kind: CutKind,
    broken: Option<Broken>,
    facts: Facts,
    core: AtomicU8,
    log: Arc<Mutex<Log>>,
}

impl CutMedium {
    /// A medium with the contents of an image.
    pub fn new(image: &Image, kind: CutKind, broken: Option<Broken>) -> Arc<Self> {
        Self::with_limit(image, kind, broken, None)
    }

    /// As [`CutMedium::new`], with room for at most `limit` bytes.
    pub fn with_limit(image: &Image, kind: CutKind, broken: Option<Broken>, limit: Option<u64>) -> Arc<Self> {
        let (start, log) = (image.clone(), Log::default());
        Arc::new(Self { broken, ..Self::over(image, kind, limit, start, log) })
    }

    /// A medium that shows an image. `start` was durable, and the log says how it became the image.
    fn over(image: &Image, kind: CutKind, limit: Option<u64>, start: Image, log: Log) -> Self {
        let memory = DramMedium::small(MapOptions { reserve_bytes: RESERVE, max_bytes: None })
            .expect("there is memory for a small database");
        memory.grow(image.len()).expect("as before");
        for (offset, page) in image.pages() {
            memory.put(offset, page).expect("the medium has been grown");
        }
        let name = format!("simulated {}", kind.name());
        let limit = limit.unwrap_or(RESERVE);
        let log = Arc::new(Mutex::new(log));
        let beside = Arc::new(CutBeside::new(image.beside().to_vec(), Arc::clone(&log)));
        let facts =
            Facts { survives_exit: true, beside: Some(beside), ..Facts::new(name, memory.base(), limit) };
        Self { memory, start, kind, broken: None, facts, core: AtomicU8::new(BY_THREAD), log }
    }

    /// An honest medium of the same kind that shows all that a process has left which was
    /// killed after `events` events. The log goes on, so what was not durable may still be
    /// lost when the power is cut.
    pub fn after_kill(&self, events: usize) -> Arc<Self> {
        let (seen, log) = (self.cut(events, Keep::All, 0), self.log().until(events));
        Arc::new(Self::over(&seen, self.kind, None, self.start.clone(), log))
    }

    /// Sets the core that runs from now on.
    ///
    /// # Panics
    /// If there are fewer cores.
    pub fn run_as(&self, core: u8) {
        assert!(core < CORES);
        self.core.store(core, Ordering::Relaxed);
    }

    /// The number of events so far.
    pub fn events(&self) -> usize {
        self.log().events.len()
    }

    /// Takes the log.
    pub fn take_log(&self) -> Log {
        std::mem::take(&mut *self.log())
    }

    /// The boundaries before and after each event that makes something durable.
    pub fn persists(&self) -> Vec<usize> {
        let log = self.log();
        (0..log.events.len()).filter(|&n| log.is_persist(n)).flat_map(|n| [n, n + 1]).collect()
    }

    /// The boundaries before and after each event that changes blocks.
    pub fn changes_of_blocks(&self) -> Vec<usize> {
        self.log().changes_of_blocks().into_iter().flat_map(|n| [n, n + 1]).collect()
    }

    /// What could be found if the power had been cut after `events` events.
    pub fn cut(&self, events: usize, keep: Keep, choice: u64) -> Image {
        let log = self.log();
        let mut replay = Replay::new(&self.start, &log, self.kind);
        replay.advance_to(events);
        replay.image(keep, choice)
    }

    /// An honest medium of the same kind that holds what could be found if the
    /// power had been cut after `events` events.
    pub fn after_cut(&self, events: usize, keep: Keep, choice: u64) -> Arc<Self> {
        Self::new(&self.cut(events, keep, choice), self.kind, None)
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs what a core has done.
    fn record(&self, event: impl FnOnce(u8) -> Event) {
        let mut log = self.log();
        let core = match self.core.load(Ordering::Relaxed) {
            BY_THREAD => log.core_of_thread(),
            core => core,
        };
        log.events.push(event(core));
    }

    fn drops_flush(&self, offset: u64, len: u64) -> bool {
        let in_page = in_chunk_page(offset);
        let is_zero = || {
            let mut bytes = vec![0; len as usize];
            self.memory.get(offset, &mut bytes).is_ok_and(|()| bytes.iter().all(|&b| b == 0))
        };
        match self.broken {
            Some(Broken::FlushOfContents) => offset >= HEAD_BYTES && !in_page,
            Some(Broken::FlushOfDescriptors) => in_page && !is_zero(),
            Some(Broken::FlushOfZeros) => in_page && is_zero(),
            Some(Broken::FlushOfState) => (64..HEAD_BYTES).contains(&offset),
            _ => false,
        }
    }
}

fn lines(offset: u64, len: u64) -> Range<u64> {
    offset / LINE..(offset + len).div_ceil(LINE)
}

// SAFETY: all bytes are those of another medium that nobody else has, and this
// one is used in its place.
#[allow(unsafe_code, reason = "it is a medium")]
unsafe impl Medium for CutMedium {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn len(&self) -> u64 {
        self.memory.len()
    }

    fn grow(&self, len: u64) -> Result<(), MediumError> {
        if len > self.facts.limit {
            let reason = pantile_media::FullReason::Limit(self.facts.limit);
            return Err(MediumError::Full { needed: len, path: None, reason });
        }
        self.memory.grow(len)?;
        self.log().events.push(Event::Grow(self.memory.len()));
        Ok(())
    }

    unsafe fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        unsafe { self.memory.write(offset, bytes)? };
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
        if self.kind == CutKind::Memory && len > 0 && !self.drops_flush(offset, len) {
            let Range { start: first, end } = lines(offset, len);
            self.record(|core| Event::Flush { first, end, core });
        }
    }

    fn fence(&self) -> Result<(), MediumError> {
        match (self.kind, self.broken) {
            (_, Some(Broken::Fence)) | (CutKind::File, Some(Broken::Sync)) => {}
            (CutKind::Memory, _) => self.record(|core| Event::Fence { core }),
            (CutKind::File, _) => return self.sync_all(),
        }
        Ok(())
    }

    fn begin_fence(&self) -> Result<Option<SyncPoint>, MediumError> {
        match self.kind {
            CutKind::Memory => self.fence().map(|()| None),
            CutKind::File => Ok(Some(self.sync_point())),
        }
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
        if self.kind == CutKind::Memory && self.broken != Some(Broken::SyncPoint) {
            self.record(|core| Event::Fence { core });
        }
        SyncPoint::new(self.log().syncs)
    }

    fn is_durable(&self, point: SyncPoint) -> bool {
        self.kind == CutKind::Memory
            || self.broken == Some(Broken::SyncPoint)
            || self.log().syncs > point.number()
    }

    unsafe fn shrink(&self, len: u64) -> Result<(), MediumError> {
        let before = self.memory.len();
        // SAFETY: as the caller promises.
        unsafe { self.memory.shrink(len)? };
        if self.memory.len() < before {
            self.log().events.push(Event::Shrink(self.memory.len()));
        }
        Ok(())
    }

    unsafe fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        unsafe { self.memory.discard(offset, len)? };
        self.record(|core| Event::Discard { start: offset, end: offset + len, core });
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
