//! Emulated persistent memory as a medium.

use super::calibrate;
use super::charges::AtWork;
use super::clock::RealClock;
use super::config::{Bandwidth, NvmConfig};
use super::model::{Lane, Model};
use super::nodes::{ChunksByTurns, Placement};
use pantile_media::parts::{
    Ahead, Contents, Count, Counters, Directory, LINE_BYTES, LineFlush, Protection, store_fence,
};
use pantile_media::{
    Charges, DirectoryOptions, Facts, MapOptions, Medium, MediumError, MediumFactory, MediumStatus,
};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// For this many bytes or more, storing past the cache and waiting for it takes
/// less time than storing into the cache and flushing it.
const STREAM_BYTES: usize = 2048;

/// The device, and what it counts. Users of the medium charge it directly.
#[derive(Debug)]
struct Device {
    model: Model<RealClock>,
    counters: Counters,
    /// The design whose costs are charged, if it is not that of the engine.
    design: Option<AtWork>,
}

impl Charges for Device {
    fn read(&self, offset: u64, len: u64) {
        if len == 0 {
            return;
        }
        self.counters.add(Count::BytesRead, len);
        let cost = match &self.design {
            None => self.model.read(offset, len),
            Some(design) => design.read(&self.model, offset, len),
        };
        self.counters.add(Count::UnitsRead, cost.missed);
        self.counters.add(Count::ReadWait, cost.waited);
        if cost.written + cost.fences > 0 {
            self.count_written(cost.written);
            self.counters.add(Count::Fences, cost.fences);
        }
    }

    fn slots(&self, count: u64) {
        let Some(design) = self.design.as_ref().filter(|design| design.persists_slots()) else { return };
        let (written, waited) = design.persist_slots(&self.model, count);
        self.count_written(written);
        self.counters.add(Count::Fences, count);
        self.counters.add(Count::WriteWait, waited);
    }
}

impl Device {
    fn count_written(&self, units: u64) {
        self.counters.add(Count::UnitsWritten, units);
        self.counters.add(Count::DeviceWrite, self.model.take_work());
    }
}

/// A medium that behaves like persistent memory of some configuration.
#[derive(Debug)]
pub struct NvmMedium {
    // Dropped first: its thread uses the map.
    ahead: Ahead,
    contents: Contents,
    config: NvmConfig,
    /// Without an instruction lines are only counted. That is enough for
    /// emulation, since caches survive a process.
    line_flush: Option<LineFlush>,
    device: Arc<Device>,
}

impl NvmMedium {
    /// An empty memory on huge pages. Contents live as long as the object.
    ///
    /// The first emulated memory of a process takes about 40 ms for
    /// calibration.
    ///
    /// # Errors
    /// [`MediumError::Io`] when the configuration makes no sense, and it or [`MediumError::Full`] without addresses or
    /// 32 MiB of memory.
    pub fn anonymous(config: NvmConfig) -> Result<Arc<Self>, MediumError> {
        config.check()?;
        let contents = Contents::in_memory(name(config), MapOptions::default())?;
        contents.map.prefer_huge_pages();
        Ok(Arc::new(Self::over(calibrate::dram()?, config, contents)))
    }

    /// Opens the memory kept in directory `path`, or makes an empty one. It
    /// survives the process, however that ends. On a RAM disk or on
    /// persistent memory the disk has no part in what is measured.
    ///
    /// # Errors
    /// Those of [`FileMedium::open`](pantile_media::FileMedium::open) and of
    /// [`NvmMedium::anonymous`].
    pub fn open(
        path: impl AsRef<Path>,
        config: NvmConfig,
        options: DirectoryOptions,
    ) -> Result<Arc<Self>, MediumError> {
        config.check()?;
        let dram = calibrate::dram()?;
        let directory = Directory::open(path.as_ref(), options.create)?;
        let mut contents = Contents::in_directory(name(config), directory, options, Protection::ReadWrite)?;
        contents.facts.emulated = true;
        Ok(Arc::new(Self::over(dram, config, contents)))
    }

    fn over(dram: Bandwidth, config: NvmConfig, mut contents: Contents) -> Self {
        let model = Model::new(&config, dram, calibrate::cores(), RealClock::new())
            .with_bookkeeping(calibrate::bookkeeping(config));
        let design = config.design.map(|design| AtWork::new(design, config.unit_bytes));
        let device = Arc::new(Device { model, counters: contents.counters.clone(), design });
        contents.facts.charges = Some(Arc::clone(&device) as Arc<dyn Charges>);
        if config.nodes.is_some_and(|nodes| nodes.placement == Placement::LocalWrites) {
            contents.facts.nodes = Some(Arc::new(ChunksByTurns));
        }
        let (ahead, line_flush) = (Ahead::of(&contents), LineFlush::detect());
        Self { ahead, contents, config, line_flush, device }
    }

    /// What is emulated.
    pub fn config(&self) -> NvmConfig {
        self.config
    }

    fn note_cached(&self, offset: u64, len: u64) {
        self.device.model.with_lane(|lane| {
            self.device.model.cached(lane, offset, len);
            if offset < lane.streamed.end && lane.streamed.start < offset + len {
                lane.streamed = 0..0;
            }
        });
    }

    /// Notes what a device would take past the CPU's cache. It was stored as
    /// everything else, and flushing its lines is accounting only: real stores
    /// past the cache would be limited by the DRAM that stands in for the
    /// device, and not by the model.
    fn note_streamed(&self, offset: u64, len: u64) {
        let start = offset.next_multiple_of(LINE_BYTES);
        let end = (offset + len) / LINE_BYTES * LINE_BYTES;
        self.device.model.with_lane(|lane| {
            let continues = lane.streamed.end == start;
            lane.streamed = if continues { lane.streamed.start..end } else { start..end };
        });
    }

    /// Writes back the lines of `range` that are not known to be past the cache.
    fn flush_lines(&self, lane: &Lane, range: Range<u64>) {
        let streamed = &lane.streamed;
        let overlap = streamed.start.max(range.start)..streamed.end.min(range.end);
        if overlap.is_empty() {
            self.write_back(range);
        } else {
            self.write_back(range.start..overlap.start);
            self.write_back(overlap.end..range.end);
        }
    }

    fn write_back(&self, range: Range<u64>) {
        let lines = (range.end - range.start) / LINE_BYTES;
        if let Some(flush) = self.line_flush {
            // SAFETY: `flush` keeps the range inside the mapping.
            unsafe { flush.lines(self.contents.map.at(range.start).cast(), lines) };
        }
    }

    fn count(&self, count: Count, n: u64) {
        self.contents.counters.add(count, n);
    }
}

fn name(config: NvmConfig) -> String {
    format!("nvm:{config}")
}

impl MediumFactory for NvmConfig {
    fn open(&self, path: &Path, options: DirectoryOptions) -> Result<Arc<dyn Medium>, MediumError> {
        Ok(NvmMedium::open(path, *self, options)?)
    }
}

// SAFETY: as for the media of `pantile-media` over the same parts: only `write`,
// `discard` and `restore` store to the mapping, which `contents` keeps.
unsafe impl Medium for NvmMedium {
    fn facts(&self) -> &Facts {
        &self.contents.facts
    }

    #[inline]
    fn len(&self) -> u64 {
        self.contents.map.len()
    }

    fn grow(&self, len: u64) -> Result<(), MediumError> {
        self.contents.failure.check()?;
        self.ahead.grow(len)
    }

    unsafe fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        let len = bytes.len() as u64;
        self.contents.check(offset, len)?;
        // SAFETY: the range was checked, and the caller of `write` promises
        // that no other thread uses these bytes meanwhile.
        unsafe { self.contents.store(offset, bytes) };
        match bytes.len() {
            0 => return Ok(()),
            1..STREAM_BYTES => self.note_cached(offset, len),
            _ => self.note_streamed(offset, len),
        }
        self.device.design.iter().for_each(|design| design.written(offset, len));
        Ok(())
    }

    fn flush(&self, offset: u64, len: u64) {
        let end = offset.saturating_add(len).min(self.len());
        if offset >= end {
            return;
        }
        let model = &self.device.model;
        let now = model.now();
        let lines = offset / LINE_BYTES * LINE_BYTES..end.next_multiple_of(LINE_BYTES);
        self.count(Count::Flushes, (lines.end - lines.start) / LINE_BYTES);
        let units = model.with_lane(|lane| {
            self.flush_lines(lane, lines);
            match &self.device.design {
                None => model.flush(lane, now, offset, end - offset),
                Some(design) => design.flush(model, lane, now, offset, end - offset),
            }
        });
        self.device.count_written(units);
    }

    fn fence(&self) -> Result<(), MediumError> {
        self.count(Count::Fences, 1);
        store_fence();
        self.count(Count::WriteWait, self.device.model.fence());
        self.contents.failure.check()
    }

    fn sync_all(&self) -> Result<(), MediumError> {
        self.contents.failure.check()?;
        store_fence();
        self.count(Count::WriteWait, self.device.model.drain());
        self.contents.file().map_or(Ok(()), |file| self.contents.sync_file(file, false))?;
        self.contents.check_place()
    }

    unsafe fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        unsafe { self.contents.discard(offset, len, || {}) }
    }

    unsafe fn restore(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        unsafe { self.contents.restore(offset, len, || Ok(())) }
    }

    fn status(&self) -> MediumStatus {
        self.contents.status()
    }

    fn withdraw(&self) {
        self.contents.withdraw();
    }
}

#[cfg(test)]
#[path = "medium_test.rs"]
mod tests;
