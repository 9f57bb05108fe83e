//! A medium of which one operation fails.

use std::sync::{Arc, Mutex, MutexGuard};

use pantile_media::{Facts, FullReason, Medium, MediumError, MediumStatus, SyncPoint};

use crate::cut::{CutKind, CutMedium, Image, Keep};

/// A point that never becomes durable, since the medium failed before it.
const NEVER: SyncPoint = SyncPoint::new(u64::MAX);

/// What can fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// A write.
    Write,
    /// A fence, or a sync of everything.
    Sync,
    /// A growth.
    Grow,
    /// A discard.
    Discard,
    /// A restore.
    Restore,
}

/// How it fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// No space, this time.
    Full,
    /// No space, until there is some again.
    FullForLong,
    /// The system refuses, this time.
    Refused,
    /// The medium has failed, and takes nothing more. A write is torn.
    ForGood,
}

/// The n-th operation of a kind fails, counted from 1.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// What fails.
    pub operation: Operation,
    /// Which of them, counted from 1.
    pub nth: u64,
    /// How it fails.
    pub how: How,
}

#[derive(Debug, Default)]
struct Progress {
    /// Operations of the fault's kind so far.
    count: u64,
    struck: bool,
    is_full: bool,
    failure: Option<String>,
}

/// Memory that logs what would be durable, see [`CutMedium`].
#[derive(Debug)]
pub struct FaultMedium {
    inner: Arc<CutMedium>,
    fault: Option<Fault>,
    progress: Mutex<Progress>,
}

impl FaultMedium {
    /// A medium that holds what an image has.
    pub fn new(image: &Image, fault: Option<Fault>) -> Arc<Self> {
        Self::of_kind(CutKind::Memory, image, fault)
    }

    /// The same, of a kind.
    pub fn of_kind(kind: CutKind, image: &Image, fault: Option<Fault>) -> Arc<Self> {
        let inner = CutMedium::new(image, kind, None);
        Arc::new(Self { inner, fault, progress: Mutex::default() })
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().expect("progress")
    }

    /// Whether the fault has happened.
    pub fn has_struck(&self) -> bool {
        self.progress().struck
    }

    /// There is space again.
    pub fn relieve(&self) {
        self.progress().is_full = false;
    }

    /// From now on the medium has failed.
    pub fn fail(&self, cause: &str) {
        self.progress().failure = Some(cause.to_owned());
    }

    /// What could be found if the power went now.
    pub fn image(&self, keep: Keep, seed: u64) -> Image {
        self.inner.cut(self.inner.events(), keep, seed)
    }

    /// Whether the next operation may go on.
    fn ask(&self, operation: Operation) -> Result<(), MediumError> {
        let mut progress = self.progress();
        if let Some(cause) = &progress.failure {
            return Err(MediumError::Failed { cause: cause.clone() });
        }
        let needed = self.len() + 1;
        let full = || MediumError::Full { needed, path: None, reason: FullReason::Device };
        if progress.is_full && matches!(operation, Operation::Grow | Operation::Restore) {
            return Err(full());
        }
        let Some(fault) = self.fault.filter(|fault| fault.operation == operation) else { return Ok(()) };
        progress.count += 1;
        if progress.count != fault.nth {
            return Ok(());
        }
        progress.struck = true;
        Err(match fault.how {
            How::Full => full(),
            How::FullForLong => {
                progress.is_full = true;
                full()
            }
            How::Refused => {
                let source = std::io::Error::other("the system will not");
                MediumError::Io { operation: "bring about a fault in", path: None, source }
            }
            How::ForGood => {
                let cause = format!("{operation:?} {}: the device does not answer", fault.nth);
                progress.failure = Some(cause.clone());
                MediumError::Failed { cause }
            }
        })
    }
}

// SAFETY: all bytes are those of another medium that nobody else has, and this
// one is used in its place.
#[allow(unsafe_code, reason = "it is a medium")]
unsafe impl Medium for FaultMedium {
    fn facts(&self) -> &Facts {
        self.inner.facts()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn grow(&self, len: u64) -> Result<(), MediumError> {
        if len > self.len() { self.ask(Operation::Grow).and_then(|()| self.inner.grow(len)) } else { Ok(()) }
    }

    unsafe fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        let had_struck = self.has_struck();
        let asked = self.ask(Operation::Write);
        if asked.is_err() && !had_struck {
            // SAFETY: as the caller promises.
            unsafe { self.inner.write(offset, &bytes[..bytes.len() / 16 * 8])? };
        }
        // SAFETY: as the caller promises.
        asked.and_then(|()| unsafe { self.inner.write(offset, bytes) })
    }

    fn flush(&self, offset: u64, len: u64) {
        if self.progress().failure.is_none() {
            self.inner.flush(offset, len);
        }
    }

    fn fence(&self) -> Result<(), MediumError> {
        self.ask(Operation::Sync).and_then(|()| self.inner.fence())
    }

    fn begin_fence(&self) -> Result<Option<SyncPoint>, MediumError> {
        if let Some(cause) = &self.progress().failure {
            return Err(MediumError::Failed { cause: cause.clone() });
        }
        self.inner.begin_fence()
    }

    fn end_fence(&self, point: SyncPoint) -> Result<(), MediumError> {
        if self.is_durable(point) { Ok(()) } else { self.fence() }
    }

    fn sync_all(&self) -> Result<(), MediumError> {
        self.ask(Operation::Sync).and_then(|()| self.inner.sync_all())
    }

    fn sync_point(&self) -> SyncPoint {
        match self.progress().failure {
            Some(_) => NEVER,
            None => self.inner.sync_point(),
        }
    }

    fn is_durable(&self, point: SyncPoint) -> bool {
        point != NEVER && self.inner.is_durable(point)
    }

    unsafe fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        self.ask(Operation::Discard).and_then(|()| unsafe { self.inner.discard(offset, len) })
    }

    unsafe fn restore(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        self.ask(Operation::Restore).and_then(|()| unsafe { self.inner.restore(offset, len) })
    }

    fn status(&self) -> MediumStatus {
        MediumStatus { failure: self.progress().failure.clone(), ..self.inner.status() }
    }
}
