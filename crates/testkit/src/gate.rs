//! A medium whose fences take as long as a test wants.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use pantile_media::{DramMedium, Facts, MapOptions, Medium, MediumError, MediumStatus, SyncPoint};

use crate::await_that;

#[derive(Debug, Default)]
struct Gate {
    closed: bool,
    /// Fences that wait at the gate.
    waiting: usize,
    failure: Option<String>,
}

/// Memory whose fences wait as long as a gate is closed.
#[derive(Debug)]
pub struct GatedMedium {
    memory: Arc<DramMedium>,
    gate: Mutex<Gate>,
    changed: Condvar,
}

impl GatedMedium {
    /// A new medium with an open gate.
    ///
    /// # Panics
    /// If there is no memory.
    #[allow(clippy::new_ret_no_self, reason = "media are shared")]
    pub fn new() -> Arc<Self> {
        let memory = DramMedium::new(MapOptions::default()).expect("memory");
        Arc::new(Self { memory, gate: Mutex::default(), changed: Condvar::new() })
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().expect("no thread panics at the gate")
    }

    /// Fences wait from now on.
    pub fn close_gate(&self) {
        self.gate().closed = true;
    }

    /// The fences that wait return; if the medium has failed, with an error.
    pub fn open_gate(&self, failure: Option<&str>) {
        {
            let mut gate = self.gate();
            (gate.closed, gate.failure) = (false, failure.map(str::to_owned));
        }
        self.changed.notify_all();
    }

    /// Waits until `count` fences wait at the gate, or more.
    ///
    /// # Panics
    /// As [`await_that`].
    pub fn await_waiting(&self, count: usize) {
        await_that("fences wait at the gate", || self.gate().waiting >= count);
    }

    fn check(&self) -> Result<(), MediumError> {
        match self.gate().failure.clone() {
            Some(cause) => Err(MediumError::Failed { cause }),
            None => Ok(()),
        }
    }
}

// SAFETY: all bytes are those of another medium that nobody else has, and this
// one is used in its place.
#[allow(unsafe_code, reason = "it is a medium")]
unsafe impl Medium for GatedMedium {
    fn facts(&self) -> &Facts {
        self.memory.facts()
    }

    fn len(&self) -> u64 {
        self.memory.len()
    }

    fn grow(&self, len: u64) -> Result<(), MediumError> {
        self.check().and_then(|()| self.memory.grow(len))
    }

    unsafe fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        self.check().and_then(|()| unsafe { self.memory.write(offset, bytes) })
    }

    fn flush(&self, offset: u64, len: u64) {
        self.memory.flush(offset, len);
    }

    fn fence(&self) -> Result<(), MediumError> {
        let mut gate = self.gate();
        gate.waiting += 1;
        gate = self.changed.wait_while(gate, |gate| gate.closed).expect("no thread panics at the gate");
        gate.waiting -= 1;
        drop(gate);
        self.check()
    }

    fn sync_all(&self) -> Result<(), MediumError> {
        self.check()
    }

    fn sync_point(&self) -> SyncPoint {
        SyncPoint::new(u64::from(self.check().is_err()))
    }

    unsafe fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        self.check().and_then(|()| unsafe { self.memory.discard(offset, len) })
    }

    unsafe fn restore(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        self.check().and_then(|()| unsafe { self.memory.restore(offset, len) })
    }

    fn status(&self) -> MediumStatus {
        MediumStatus { failure: self.gate().failure.clone(), ..self.memory.status() }
    }
}
