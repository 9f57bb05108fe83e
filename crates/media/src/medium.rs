//! The seam between the engine and whatever keeps its contents.

use crate::{MediumError, MediumStats};
use std::fmt::Debug;
use std::ptr;

/// A moment in what a thread has written, see [`Medium::sync_point`]. It means
/// nothing to any other medium than the one that gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncPoint(u64);

impl SyncPoint {
    /// For media: a point known to them by this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number it was made with.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// A medium: where contents survive.
///
/// Every medium is mapped: reads go through [`base`](Medium::base), writes go
/// through [`write`](Medium::write) and become durable by
/// [`flush`](Medium::flush) followed by [`fence`](Medium::fence).
///
/// # What the caller promises
/// - No two threads write overlapping bytes at the same time.
/// - A reader reads only bytes whose `write` returned before the reader
///   learned of them (through a lock, or a release store and an acquire
///   load), and that nobody writes meanwhile; or it reads through atomics and
///   can tell a torn value.
/// - Pointers obtained from `base` are not used after the medium is dropped.
///
/// Broken promises about overlap give torn bytes on the file medium and are
/// undefined behaviour on the others.
///
/// # What a crash leaves
/// Bytes that were flushed and fenced by the thread that wrote them are there.
/// Of all other writes any subset may be there, at the grain of 8 aligned
/// bytes on persistent memory and of a disk sector on a file.
pub trait Medium: Send + Sync + Debug {
    /// "dram", "file", "dax", "nvm:optane", "nvm:A" to "nvm:E".
    fn name(&self) -> String;

    /// The first byte of the mapping. It never moves; bytes `0..len()` may be read.
    fn base(&self) -> *const u8;

    /// Bytes the medium has: a multiple of `CHUNK_BYTES`, 0 when new. On a
    /// file this may be more than was asked for when it was last open; what
    /// was never written reads as zero.
    fn len(&self) -> u64;

    /// Whether the medium has no bytes yet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Most bytes the medium may ever have.
    fn limit(&self) -> u64;

    /// Grows to at least `len` bytes; new bytes read as zero. Any number of
    /// threads may call it.
    ///
    /// # Errors
    /// [`MediumError::Full`] at the limit or on a full device, and everything
    /// is as it was; [`MediumError::Failed`] once the medium has failed;
    /// [`MediumError::Io`] otherwise.
    fn grow(&self, len: u64) -> Result<(), MediumError>;

    /// As [`Medium::grow`], and has the system find the space or the memory
    /// now rather than when it is first used, which may take a while.
    ///
    /// # Errors
    /// Those of [`Medium::grow`].
    fn preallocate(&self, len: u64) -> Result<(), MediumError> {
        self.grow(len)
    }

    /// Stores `bytes` at `offset`. On return every thread that learns of it
    /// sees them through `base`; they are not durable yet.
    ///
    /// # Errors
    /// [`MediumError::OutOfRange`] beyond `len()`, with nothing stored;
    /// [`MediumError::Failed`] when the store failed, now or earlier.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError>;

    /// Sends written bytes on their way; durable after the next `fence` of
    /// this thread. Does nothing on dram and file. Bytes beyond `len()` are ignored.
    fn flush(&self, offset: u64, len: u64);

    /// On return everything this thread wrote and flushed before is durable,
    /// unless the medium was opened to promise less.
    ///
    /// # Errors
    /// [`MediumError::Failed`] when a sync failed, now or earlier: nothing
    /// written since the last good fence can be counted on.
    fn fence(&self) -> Result<(), MediumError>;

    /// On return everything any thread wrote and flushed before is durable,
    /// whatever durability the medium was opened with.
    ///
    /// # Errors
    /// As for [`fence`](Medium::fence).
    fn sync_all(&self) -> Result<(), MediumError>;

    /// A point after everything this thread wrote and flushed so far, for
    /// those who do not wait for it to become durable. On persistent memory
    /// this is a fence.
    fn sync_point(&self) -> SyncPoint;

    /// Whether everything before `point` is durable by now, by whatever fence
    /// or sync of any thread; neither waits nor brings it about. Once true it
    /// stays true. What was not durable when the medium failed never becomes so.
    fn is_durable(&self, point: SyncPoint) -> bool;

    /// Gives the storage behind whole chunks back to the system. `len` stays
    /// as it is; the range then reads as zero, and must not be written until
    /// [`restore`](Medium::restore).
    ///
    /// The caller promises that nobody reads or writes the range meanwhile.
    /// To a crash a discard is a write of zeros that has been flushed: any part of
    /// the old bytes may be lost at once, and until it is durable any part
    /// may be back. So whatever makes them dispensable has to be durable before.
    ///
    /// A system that cannot take the storage back leaves it where it is; the
    /// range is then filled with zeros. In a file on a RAM disk, reading a
    /// discarded page takes memory for it again.
    ///
    /// # Errors
    /// [`MediumError::OutOfRange`] beyond `len()`, and
    /// [`MediumError::Failed`] once the medium has failed, with nothing
    /// changed; [`MediumError::Io`] otherwise, when any part of the range may
    /// read as zero. The medium goes on, and the call may be repeated.
    ///
    /// # Panics
    /// If the range does not consist of whole chunks.
    fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError>;

    /// Has the system find storage for chunks that were discarded, so that
    /// they can be written again; they still read as zero. May take as long
    /// as growing by as much. Chunks that were not discarded may lose their
    /// contents. The caller promises what it promises for
    /// [`discard`](Medium::discard).
    ///
    /// # Errors
    /// [`MediumError::Full`] on a full device and [`MediumError::Io`]: the
    /// range is still discarded, and the medium goes on.
    /// [`MediumError::OutOfRange`] and [`MediumError::Failed`] as for
    /// [`discard`](Medium::discard).
    ///
    /// # Panics
    /// If the range does not consist of whole chunks.
    fn restore(&self, offset: u64, len: u64) -> Result<(), MediumError>;

    /// Has the system read bytes that will be looked at soon. Where they are
    /// a file's, a failure is an error here, and the end of the process for
    /// whoever looks at them without having asked.
    ///
    /// # Errors
    /// [`MediumError::Unreadable`] with the place, and
    /// [`MediumError::OutOfRange`] beyond `len()`.
    fn check_readable(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        let _ = (offset, len);
        Ok(())
    }

    /// Whether it only behaves like persistent memory: what was fenced
    /// outlives the process, and the machine only after a
    /// [`sync_all`](Medium::sync_all).
    fn is_emulated(&self) -> bool {
        false
    }

    /// Whether [`charge_read`](Medium::charge_read) does anything.
    fn charges_reads(&self) -> bool {
        false
    }

    /// Accounts for a read of content bytes, and delays the caller as the
    /// medium would.
    fn charge_read(&self, offset: u64, len: u64) {
        let _ = (offset, len);
    }

    /// Totals since the medium was opened.
    fn stats(&self) -> MediumStats;

    /// Whether contents outlive the process.
    fn survives_exit(&self) -> bool;

    /// Whether a write or sync has failed; the medium then only reads.
    fn is_failed(&self) -> bool {
        self.failure().is_some()
    }

    /// The first failure in words, if there was one.
    fn failure(&self) -> Option<String>;

    /// Copies bytes at `offset` out, under the promises of a reader. Charges nothing.
    ///
    /// # Errors
    /// [`MediumError::OutOfRange`] beyond `len()`.
    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), MediumError> {
        let (len, size) = (out.len() as u64, self.len());
        if offset.checked_add(len).is_none_or(|end| end > size) {
            return Err(MediumError::OutOfRange { offset, len, size });
        }
        // SAFETY: the range was just checked, `base` is readable up to `len`,
        // and the caller promises that nobody writes these bytes meanwhile.
        unsafe {
            ptr::copy_nonoverlapping(self.base().add(offset as usize), out.as_mut_ptr(), out.len());
        }
        Ok(())
    }
}
