//! Emulated persistent memory as a medium.

use super::calibrate;
use super::clock::RealClock;
use super::config::NvmConfig;
use super::model::{Bandwidth, Lane, Model};
use crate::ahead::{Ahead, Attach};
use crate::directory::{Create, Directory, map_opened};
use crate::failure::Failure;
use crate::file::clone_of;
use crate::line_flush::{LINE_BYTES, LineFlush, store_fence};
use crate::map::{Map, MapOptions, Protection};
use crate::readable;
use crate::space::{self, allocate};
use crate::stats::{Count, Counters};
use crate::{Medium, MediumError, MediumStats, SyncPoint};
use std::ops::Range;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

/// From this many bytes on, storing past the cache and waiting for it takes
/// less time than storing into the cache and flushing that.
const STREAM_BYTES: usize = 2048;

/// How to open an [`NvmMedium`] in a directory.
#[derive(Debug, Clone, Copy)]
pub struct NvmOptions {
    /// How large it may become.
    pub map: MapOptions,
    /// What to do about a database that is not there, or is.
    pub create: Create,
    /// As [`FileOptions::explain_bus_errors`](crate::FileOptions::explain_bus_errors).
    pub explain_bus_errors: bool,
}

impl Default for NvmOptions {
    /// No limit, created if missing, with failed reads explained.
    fn default() -> Self {
        Self { map: MapOptions::default(), create: Create::IfMissing, explain_bus_errors: true }
    }
}

/// A medium that behaves like persistent memory of some configuration.
#[derive(Debug)]
pub struct NvmMedium {
    // Dropped in this order: the thread that grows the map, the map, the lock.
    ahead: Ahead,
    map: Arc<Map>,
    directory: Option<Directory>,
    config: NvmConfig,
    /// Without an instruction only the accounting is done, which is enough for
    /// emulation, since caches survive a process.
    line_flush: Option<LineFlush>,
    model: Model<RealClock>,
    counters: Counters,
    failure: Failure,
}

impl NvmMedium {
    /// An empty memory on huge pages. Contents live as long as the object.
    ///
    /// The first emulated memory of a process takes about 40 ms for
    /// calibration.
    ///
    /// # Errors
    /// [`MediumError::BadConfig`] when the configuration makes no sense,
    /// [`MediumError::Io`] or [`MediumError::Full`] without addresses or
    /// 32 MiB of memory.
    pub fn anonymous(config: NvmConfig) -> Result<Arc<Self>, MediumError> {
        Self::anonymous_with(config, MapOptions::default())
    }

    /// As [`NvmMedium::anonymous`], of limited size.
    ///
    /// # Errors
    /// As for [`NvmMedium::anonymous`].
    pub fn anonymous_with(config: NvmConfig, map: MapOptions) -> Result<Arc<Self>, MediumError> {
        config.check()?;
        let map = memory(map)?;
        Ok(Arc::new(Self::over(calibrate::dram()?, config, map, Box::new(Map::attach_memory), None)))
    }

    /// As [`NvmMedium::anonymous`], on a machine with DRAM of this bandwidth.
    pub(super) fn beside(dram: Bandwidth, config: NvmConfig) -> Result<Self, MediumError> {
        config.check()?;
        let map = memory(MapOptions::default())?;
        Ok(Self::over(dram, config, map, Box::new(Map::attach_memory), None))
    }

    /// Opens the memory kept in directory `path`, or makes an empty one. It
    /// survives the process, however that ends; put it on a RAM disk or on
    /// persistent memory to keep the disk out of the picture.
    ///
    /// # Errors
    /// Those of [`FileMedium::open`](crate::FileMedium::open) and of
    /// [`NvmMedium::anonymous`].
    pub fn open(
        path: impl AsRef<Path>,
        config: NvmConfig,
        options: NvmOptions,
    ) -> Result<Arc<Self>, MediumError> {
        config.check()?;
        let directory = Directory::open(path.as_ref(), options.create)?;
        let map = map_opened(&directory, options.map, Protection::ReadWrite, options.explain_bus_errors)?;
        let dram = calibrate::dram()?;
        let data = clone_of(directory.data(), directory.data_path())?;
        let path = directory.data_path().to_owned();
        let attach: Attach = Box::new(move |map, from, to| {
            allocate(&data, &path, from, to)?;
            map.attach_file(&data, Protection::ReadWrite, from, to)
        });
        Ok(Arc::new(Self::over(dram, config, map, attach, Some(directory))))
    }

    fn over(
        dram: Bandwidth,
        config: NvmConfig,
        map: Map,
        attach: Attach,
        directory: Option<Directory>,
    ) -> Self {
        let map = Arc::new(map);
        Self {
            ahead: Ahead::new(Arc::clone(&map), attach),
            map,
            directory,
            config,
            line_flush: LineFlush::detect(),
            model: Model::new(&config, dram, RealClock::new())
                .with_bookkeeping(calibrate::bookkeeping(config)),
            counters: Counters::new(),
            failure: Failure::default(),
        }
    }

    /// What is emulated.
    pub fn config(&self) -> NvmConfig {
        self.config
    }

    /// Stores into the CPU's cache.
    fn store(&self, offset: u64, bytes: &[u8]) {
        // SAFETY: `write` checked the range, and its caller promises that
        // nobody else uses these bytes meanwhile.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.map.at(offset).cast(), bytes.len());
        }
    }

    fn store_cached(&self, offset: u64, bytes: &[u8]) {
        self.store(offset, bytes);
        let len = bytes.len() as u64;
        self.model.with_lane(|lane| {
            self.model.cached(lane, offset, len);
            if offset < lane.streamed.end && lane.streamed.start < offset + len {
                lane.streamed = 0..0;
            }
        });
    }

    /// Stores what a device would take past the CPU's cache. Here it is an
    /// ordinary store, and flushing its lines is accounting only: real stores
    /// past the cache would be limited by the DRAM that stands in for the
    /// device, and not by the model.
    fn store_streamed(&self, offset: u64, bytes: &[u8]) {
        let start = offset.next_multiple_of(LINE_BYTES);
        let end = (offset + bytes.len() as u64) / LINE_BYTES * LINE_BYTES;
        self.store(offset, bytes);
        self.model.with_lane(|lane| note_streamed(lane, start..end));
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
            unsafe { flush.lines(self.map.at(range.start).cast(), lines) };
        }
    }

    fn sync_file(&self, directory: &Directory) -> Result<(), MediumError> {
        self.counters.add(Count::Syncs, 1);
        directory.data().sync_data().map_err(|error| self.failure.latch(format!("sync: {error}")))
    }
}

/// Addresses for memory on huge pages.
fn memory(options: MapOptions) -> Result<Map, MediumError> {
    let map = Map::reserve(options)?;
    map.prefer_huge_pages();
    Ok(map)
}

/// Adds to what was streamed if it continues there, or else replaces it.
fn note_streamed(lane: &mut Lane, range: Range<u64>) {
    if lane.streamed.end == range.start {
        lane.streamed.end = range.end;
    } else {
        lane.streamed = range;
    }
}

impl Medium for NvmMedium {
    fn name(&self) -> String {
        format!("nvm:{}", self.config.name)
    }

    #[inline]
    fn base(&self) -> *const u8 {
        self.map.base()
    }

    #[inline]
    fn len(&self) -> u64 {
        self.map.len()
    }

    fn limit(&self) -> u64 {
        self.map.limit()
    }

    fn grow(&self, len: u64) -> Result<(), MediumError> {
        self.failure.check()?;
        self.ahead.grow(len)
    }

    fn preallocate(&self, len: u64) -> Result<(), MediumError> {
        self.ahead.preallocate(len)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.failure.check()?;
        self.map.check(offset, bytes.len() as u64)?;
        match bytes.len() {
            0 => return Ok(()),
            1..STREAM_BYTES => self.store_cached(offset, bytes),
            _ => self.store_streamed(offset, bytes),
        }
        self.counters.add(Count::BytesWritten, bytes.len() as u64);
        Ok(())
    }

    fn flush(&self, offset: u64, len: u64) {
        let end = offset.saturating_add(len).min(self.map.len());
        if offset >= end {
            return;
        }
        let now = self.model.now();
        let lines = offset / LINE_BYTES * LINE_BYTES..end.next_multiple_of(LINE_BYTES);
        self.counters.add(Count::Flushes, (lines.end - lines.start) / LINE_BYTES);
        let units = self.model.with_lane(|lane| {
            self.flush_lines(lane, lines);
            self.model.flush(lane, now, offset, end - offset)
        });
        self.counters.add(Count::UnitsWritten, units);
    }

    fn fence(&self) -> Result<(), MediumError> {
        self.counters.add(Count::Fences, 1);
        store_fence();
        self.counters.add(Count::WriteWait, self.model.fence());
        self.failure.check()
    }

    fn sync_all(&self) -> Result<(), MediumError> {
        self.failure.check()?;
        store_fence();
        self.counters.add(Count::WriteWait, self.model.drain());
        match &self.directory {
            Some(directory) => self.sync_file(directory),
            None => Ok(()),
        }
    }

    /// A fence: the point's number says how many fences are still missing
    /// before it, which is one for ever if this one failed.
    fn sync_point(&self) -> SyncPoint {
        SyncPoint::new(u64::from(self.fence().is_err()))
    }

    fn is_durable(&self, point: SyncPoint) -> bool {
        point.number() == 0
    }

    fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.failure.check()?;
        self.map.check_chunks(offset, len)?;
        match &self.directory {
            Some(directory) => space::discard(directory.data(), directory.data_path(), offset, len)?,
            None => self.map.discard_memory(offset, len),
        }
        self.counters.add(Count::BytesDiscarded, len);
        Ok(())
    }

    fn restore(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.failure.check()?;
        self.map.check_chunks(offset, len)?;
        if let Some(directory) = &self.directory {
            space::restore(directory.data(), directory.data_path(), offset, len, || Ok(()))?;
        }
        self.counters.add(Count::BytesRestored, len);
        Ok(())
    }

    fn check_readable(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        match &self.directory {
            Some(directory) => {
                readable::check(&self.map, directory.data(), directory.data_path(), offset, len)
            }
            None => self.map.check(offset, len),
        }
    }

    fn is_emulated(&self) -> bool {
        self.directory.is_some()
    }

    fn charges_reads(&self) -> bool {
        true
    }

    fn charge_read(&self, offset: u64, len: u64) {
        if len > 0 {
            let cost = self.model.read(offset, len);
            self.counters.add(Count::BytesRead, len);
            self.counters.add(Count::UnitsRead, cost.missed);
            self.counters.add(Count::ReadWait, cost.waited);
        }
    }

    fn stats(&self) -> MediumStats {
        let stats = self.counters.snapshot();
        MediumStats { device_write_ps: self.model.write_time(stats.units_written), ..stats }
    }

    /// True in a directory, false for [`NvmMedium::anonymous`].
    fn survives_exit(&self) -> bool {
        self.directory.is_some()
    }

    fn is_failed(&self) -> bool {
        self.failure.is_latched()
    }

    fn failure(&self) -> Option<String> {
        self.failure.cause().map(str::to_owned)
    }
}

#[cfg(test)]
#[path = "medium_test.rs"]
mod tests;
