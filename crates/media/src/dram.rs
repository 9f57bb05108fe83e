//! Plain memory: contents live as long as the object.

use crate::ahead::Ahead;
use crate::map::{Map, MapOptions};
use crate::stats::{Count, Counters};
use crate::{Medium, MediumError, MediumStats, SyncPoint};
use std::ptr;
use std::sync::Arc;

/// A medium in plain memory, on huge pages where the system has them.
///
/// Nothing survives the process, yet a database closed and opened again on
/// the same object finds its contents: for tests, and to see what an engine
/// costs without a medium.
#[derive(Debug)]
pub struct DramMedium {
    map: Arc<Map>,
    ahead: Option<Ahead>,
    counters: Counters,
}

impl DramMedium {
    /// An empty medium.
    ///
    /// # Errors
    /// [`MediumError::Io`] when no addresses can be reserved.
    pub fn new(options: MapOptions) -> Result<Arc<Self>, MediumError> {
        let map = Map::reserve(options)?;
        map.prefer_huge_pages();
        let map = Arc::new(map);
        let ahead = Ahead::new(Arc::clone(&map), Box::new(Map::attach_memory));
        Ok(Arc::new(Self { map, ahead: Some(ahead), counters: Counters::new() }))
    }

    /// An empty medium on ordinary pages that is never longer than was asked
    /// for: for simulations, which make thousands of small ones.
    ///
    /// # Errors
    /// As [`DramMedium::new`].
    pub fn small(options: MapOptions) -> Result<Arc<Self>, MediumError> {
        let map = Arc::new(Map::reserve(options)?);
        Ok(Arc::new(Self { map, ahead: None, counters: Counters::new() }))
    }
}

impl Medium for DramMedium {
    fn name(&self) -> String {
        "dram".to_owned()
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
        match &self.ahead {
            Some(ahead) => ahead.grow(len),
            None => self.map.grow(len, |from, to| self.map.attach_memory(from, to)),
        }
    }

    fn preallocate(&self, len: u64) -> Result<(), MediumError> {
        self.ahead.as_ref().map_or_else(|| self.grow(len), |ahead| ahead.preallocate(len))
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.map.check(offset, bytes.len() as u64)?;
        // SAFETY: the range is attached and writable, and the caller of
        // `write` promises that nobody else uses these bytes meanwhile.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.map.at(offset).cast(), bytes.len());
        }
        self.counters.add(Count::BytesWritten, bytes.len() as u64);
        Ok(())
    }

    fn flush(&self, _offset: u64, _len: u64) {}

    fn fence(&self) -> Result<(), MediumError> {
        self.counters.add(Count::Fences, 1);
        Ok(())
    }

    fn sync_all(&self) -> Result<(), MediumError> {
        Ok(())
    }

    fn sync_point(&self) -> SyncPoint {
        SyncPoint::new(0)
    }

    fn is_durable(&self, _point: SyncPoint) -> bool {
        true
    }

    fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.map.check_chunks(offset, len)?;
        self.map.discard_memory(offset, len);
        self.counters.add(Count::BytesDiscarded, len);
        Ok(())
    }

    fn restore(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.map.check_chunks(offset, len)?;
        self.counters.add(Count::BytesRestored, len);
        Ok(())
    }

    fn stats(&self) -> MediumStats {
        self.counters.snapshot()
    }

    fn survives_exit(&self) -> bool {
        false
    }

    fn failure(&self) -> Option<String> {
        None
    }
}

#[cfg(test)]
#[path = "dram_test.rs"]
mod tests;
