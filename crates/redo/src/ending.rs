//! A medium that takes nothing more from a moment on.

use pantile_media::{Facts, Medium, MediumError, MediumStatus, Reads, SyncPoint};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A medium over another one that ends: from then on that one stays as it is, also while this one is in use. So it has what a
/// process leaves that is killed at that moment.
#[derive(Debug)]
pub struct EndingMedium {
    inner: Arc<dyn Medium>,
    has_ended: AtomicBool,
}

impl EndingMedium {
    /// Over a medium that nothing else uses until the end.
    pub fn over(inner: Arc<dyn Medium>) -> Arc<Self> {
        Arc::new(Self { inner, has_ended: AtomicBool::new(false) })
    }

    /// It ends. The caller sees to it that nothing is under way.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
    }

    fn check(&self) -> Result<(), MediumError> {
        match self.has_ended.load(Ordering::SeqCst) {
            true => Err(MediumError::Failed { cause: "the process has been killed".into() }),
            false => Ok(()),
        }
    }
}

// SAFETY: all bytes are those of another medium, and this one is used in its place.
#[allow(unsafe_code, reason = "it is a medium")]
unsafe impl Medium for EndingMedium {
    fn facts(&self) -> &Facts {
        self.inner.facts()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn grow(&self, len: u64) -> Result<(), MediumError> {
        self.check().and_then(|()| self.inner.grow(len))
    }

    unsafe fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        self.check().and_then(|()| unsafe { self.inner.write(offset, bytes) })
    }

    fn flush(&self, offset: u64, len: u64) {
        if self.check().is_ok() {
            self.inner.flush(offset, len);
        }
    }

    fn fence(&self) -> Result<(), MediumError> {
        self.check().and_then(|()| self.inner.fence())
    }

    fn sync_all(&self) -> Result<(), MediumError> {
        self.check().and_then(|()| self.inner.sync_all())
    }

    fn sync_point(&self) -> SyncPoint {
        self.inner.sync_point()
    }

    fn is_durable(&self, point: SyncPoint) -> bool {
        self.inner.is_durable(point)
    }

    fn advise(&self, reads: Reads) {
        self.inner.advise(reads);
    }

    unsafe fn shrink(&self, len: u64) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        self.check().and_then(|()| unsafe { self.inner.shrink(len) })
    }

    unsafe fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        self.check().and_then(|()| unsafe { self.inner.discard(offset, len) })
    }

    unsafe fn restore(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        self.check().and_then(|()| unsafe { self.inner.restore(offset, len) })
    }

    fn status(&self) -> MediumStatus {
        let failure = self.check().err().map(|error| error.to_string());
        MediumStatus { failure, ..self.inner.status() }
    }
}
