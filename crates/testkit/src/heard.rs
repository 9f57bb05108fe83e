//! A medium in memory that tells what it is asked to do.

use std::fmt;
use std::sync::Arc;

use pantile_media::{Charges, Facts, Medium, MediumError, MediumStatus, Reads, SyncPoint};

/// What a medium is asked to do, which it does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    /// To write bytes.
    Write {
        /// The first of them.
        offset: u64,
        /// Their number.
        len: u64,
    },
    /// To make durable what the thread has written.
    Fence,
    /// To sync everything.
    Sync,
    /// To grow. This is told afterwards, since it may grow by more than it is asked for.
    Grow {
        /// Its length before.
        from: u64,
        /// Its length after.
        to: u64,
    },
    /// To shrink. This is told afterwards, too.
    Shrink {
        /// Its length before.
        from: u64,
        /// Its length after.
        to: u64,
    },
    /// To give a part back.
    Discard {
        /// Where it begins.
        offset: u64,
        /// Its length.
        len: u64,
    },
    /// To find space again for a part.
    Restore {
        /// Where it begins.
        offset: u64,
    },
    /// To expect reads.
    Advice(Reads),
    /// Nothing, but a content was read, if reads are to be told ([`HeardMedium::with_reads`]).
    Read {
        /// Where it begins.
        offset: u64,
        /// Its length.
        len: u64,
    },
}

/// A medium in memory that calls a listener before it does something.
pub struct HeardMedium {
    inner: Arc<dyn Medium>,
    facts: Facts,
    hear: Listener,
}

type Listener = Arc<dyn Fn(Heard) + Send + Sync>;

/// Tells reads of contents. They cost nothing.
struct Reading(Listener);

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").finish_non_exhaustive()
    }
}

impl Charges for Reading {
    fn read(&self, offset: u64, len: u64) {
        (self.0)(Heard::Read { offset, len });
    }

    fn slots(&self, _: u64) {}
}

impl fmt::Debug for HeardMedium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeardMedium").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl HeardMedium {
    /// Over a medium that nobody else has.
    pub fn over(inner: Arc<dyn Medium>, hear: impl Fn(Heard) + Send + Sync + 'static) -> Self {
        let facts = inner.facts().clone();
        Self { inner, facts, hear: Arc::new(hear) }
    }

    /// The same, and reads of contents are told.
    #[must_use]
    pub fn with_reads(mut self) -> Self {
        self.facts.charges = Some(Arc::new(Reading(Arc::clone(&self.hear))));
        self
    }

    /// The same, as if the system kept it in this many bytes of memory.
    #[must_use]
    pub fn cached_in(mut self, bytes: u64) -> Self {
        self.facts.cached_in = Some(bytes);
        self
    }
}

// SAFETY: all bytes are those of another medium that nobody else has, and this
// one is used in its place.
#[allow(unsafe_code, reason = "it is a medium")]
unsafe impl Medium for HeardMedium {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn grow(&self, len: u64) -> Result<(), MediumError> {
        let from = self.inner.len();
        self.inner.grow(len)?;
        (self.hear)(Heard::Grow { from, to: self.inner.len().max(from) });
        Ok(())
    }

    unsafe fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        (self.hear)(Heard::Write { offset, len: bytes.len() as u64 });
        // SAFETY: as the caller promises.
        unsafe { self.inner.write(offset, bytes) }
    }

    fn flush(&self, offset: u64, len: u64) {
        self.inner.flush(offset, len);
    }

    fn fence(&self) -> Result<(), MediumError> {
        (self.hear)(Heard::Fence);
        self.inner.fence()
    }

    fn begin_fence(&self) -> Result<Option<SyncPoint>, MediumError> {
        (self.hear)(Heard::Fence);
        self.inner.begin_fence()
    }

    fn end_fence(&self, point: SyncPoint) -> Result<(), MediumError> {
        self.inner.end_fence(point)
    }

    fn sync_point(&self) -> SyncPoint {
        self.inner.sync_point()
    }

    fn is_durable(&self, point: SyncPoint) -> bool {
        self.inner.is_durable(point)
    }

    fn sync_all(&self) -> Result<(), MediumError> {
        (self.hear)(Heard::Sync);
        self.inner.sync_all()
    }

    fn advise(&self, reads: Reads) {
        (self.hear)(Heard::Advice(reads));
    }

    unsafe fn shrink(&self, len: u64) -> Result<(), MediumError> {
        let from = self.inner.len();
        // SAFETY: as the caller promises.
        unsafe { self.inner.shrink(len)? };
        (self.hear)(Heard::Shrink { from, to: self.inner.len().min(from) });
        Ok(())
    }

    unsafe fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        (self.hear)(Heard::Discard { offset, len });
        // SAFETY: as the caller promises.
        unsafe { self.inner.discard(offset, len) }
    }

    unsafe fn restore(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        (self.hear)(Heard::Restore { offset });
        // SAFETY: as the caller promises.
        unsafe { self.inner.restore(offset, len) }
    }

    fn status(&self) -> MediumStatus {
        self.inner.status()
    }
}
