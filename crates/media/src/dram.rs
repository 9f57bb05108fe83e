//! Plain memory: contents live as long as the object.

use crate::ahead::Ahead;
use crate::contents::Contents;
use crate::map::MapOptions;
use crate::nodes::MachineNodes;
use crate::stats::Count;
use crate::{Facts, Medium, MediumError, MediumStatus, SyncPoint};
use std::sync::Arc;

/// A medium in plain memory, on huge pages where the system has them. On a machine with several nodes
/// (NUMA) its memory is on all of them in turn, and it knows which part is where ([`Facts::nodes`]).
///
/// Nothing survives the process, but a database that is closed and opened
/// again on the same object finds its contents. This is for tests, and for
/// measuring what an engine costs without a medium.
#[derive(Debug)]
pub struct DramMedium {
    // Dropped first: its thread uses the map.
    ahead: Option<Ahead>,
    contents: Contents,
}

impl DramMedium {
    /// An empty medium.
    ///
    /// # Errors
    /// [`MediumError::Io`] when no addresses can be reserved.
    pub fn new(options: MapOptions) -> Result<Arc<Self>, MediumError> {
        let mut contents = Contents::in_memory("dram", options)?;
        contents.map.prefer_huge_pages();
        if let Some(nodes) = MachineNodes::detect().map(Arc::new) {
            contents.map.spread_over(Arc::clone(&nodes));
            contents.facts.nodes = Some(nodes);
        }
        Ok(Arc::new(Self { ahead: Some(Ahead::of(&contents)), contents }))
    }

    /// An empty medium on ordinary pages that never grows further than it was
    /// told to: for simulations, which make thousands of small ones.
    ///
    /// # Errors
    /// As [`DramMedium::new`].
    pub fn small(options: MapOptions) -> Result<Arc<Self>, MediumError> {
        Ok(Arc::new(Self { ahead: None, contents: Contents::in_memory("dram", options)? }))
    }
}

// SAFETY: the mapping lasts as long as `contents` and never shrinks. Only
// `write`, `discard` and `restore` store to it.
unsafe impl Medium for DramMedium {
    fn facts(&self) -> &Facts {
        &self.contents.facts
    }

    #[inline]
    fn len(&self) -> u64 {
        self.contents.map.len()
    }

    fn grow(&self, len: u64) -> Result<(), MediumError> {
        self.ahead.as_ref().map_or_else(|| self.contents.grow(len), |ahead| ahead.grow(len))
    }

    unsafe fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.contents.map.check(offset, bytes.len() as u64)?;
        // SAFETY: the range is attached and writable, and the caller of
        // `write` promises that no other thread uses these bytes meanwhile.
        unsafe { self.contents.store(offset, bytes) };
        Ok(())
    }

    fn flush(&self, _offset: u64, _len: u64) {}

    fn fence(&self) -> Result<(), MediumError> {
        self.contents.counters.add(Count::Fences, 1);
        Ok(())
    }

    fn sync_all(&self) -> Result<(), MediumError> {
        Ok(())
    }

    fn sync_point(&self) -> SyncPoint {
        SyncPoint::new(0)
    }

    unsafe fn shrink(&self, len: u64) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        unsafe { self.contents.shrink(len, |left| self.ahead.iter().for_each(|ahead| ahead.rest(left))) }
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
}

#[cfg(test)]
#[path = "dram_test.rs"]
mod tests;
