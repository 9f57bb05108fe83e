//! The interface between the engine and the medium that keeps its contents.

use crate::beside::Beside;
use crate::data_file::DataFile;
use crate::nodes::Nodes;
use crate::os::populate;
use crate::{DirectoryOptions, MediumError, MediumStats};
use std::fmt::Debug;
use std::ops::Range;
use std::path::Path;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A moment in what a thread has written, see [`Medium::sync_point`]. It has
/// a meaning only for the medium that returned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SyncPoint(u64);

impl SyncPoint {
    /// For media: the point that the medium knows by this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number it was made with.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// Whether an engine uses a medium. One can at a time, see [`InUse::claim`].
#[derive(Debug, Clone, Default)]
pub struct InUse(Arc<AtomicBool>);

impl InUse {
    /// Takes the medium for an engine, until the claim is dropped. None if it
    /// is taken.
    pub fn claim(&self) -> Option<Claim> {
        let was_taken = self.0.swap(true, Ordering::Acquire);
        (!was_taken).then(|| Claim(self.clone()))
    }
}

/// Keeps other engines from using a medium.
#[derive(Debug)]
pub struct Claim(InUse);

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}

/// How a medium will be read next, see [`Medium::advise`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// Here and there, a few hundred bytes at a time. What lies around them is
    /// not wanted.
    AtRandom,
    /// These bytes, in a moment: reading them may begin.
    Soon {
        /// The first of them.
        offset: u64,
        /// Their number.
        len: u64,
    },
}

/// What a medium that imitates another device charges for more than it sees. Each
/// call delays the caller as the device would.
pub trait Charges: Send + Sync + Debug {
    /// Accounts for a read of content bytes.
    fn read(&self, offset: u64, len: u64);

    /// Accounts for this many slots for contents that are taken.
    fn slots(&self, count: u64);
}

/// Properties of a medium that stay the same while it is open.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The name, as in "dram", "file" or "dax".
    pub name: String,
    /// The first byte of the mapping. It never moves; bytes `0..len()` of the
    /// medium may be read.
    pub base: *const u8,
    /// The most bytes that the medium may ever have.
    pub limit: u64,
    /// Whether contents outlive the process.
    pub survives_exit: bool,
    /// Whether the medium only imitates persistent memory. What was fenced then survives a killed
    /// process, but survives a crash of the machine only after a [`sync_all`](Medium::sync_all).
    pub emulated: bool,
    /// The file that has the contents, if there is one.
    pub file: Option<Arc<DataFile>>,
    /// The file that is mapped: `file`, or one that is only read. Loads from a mapped file can
    /// fail, so bytes are checked first; see [`MediumExt::check_readable`].
    pub mapped: Option<Arc<DataFile>>,
    /// Bytes of memory in which the system keeps copies of what a device has. If the medium is
    /// longer, some reads wait for the device. `None` if no read ever does.
    pub cached_in: Option<u64>,
    /// Where a cache can be kept beside the medium, if anywhere.
    pub beside: Option<Arc<dyn Beside>>,
    /// What the medium charges its users in addition to the time that the calls take, if anything.
    pub charges: Option<Arc<dyn Charges>>,
    /// Which NUMA node has which part of the medium, if there are several nodes and the medium
    /// knows. What a thread writes then goes to its own node, as long as that has space.
    pub nodes: Option<Arc<dyn Nodes>>,
    /// Whether an engine uses the medium.
    pub in_use: InUse,
}

// SAFETY: the pointer is only a number here. Code that follows it keeps the
// rules of `Medium`.
unsafe impl Send for Facts {}
// SAFETY: as for Send.
unsafe impl Sync for Facts {}

impl Facts {
    /// The facts of a medium in memory that is mapped at `base`, may have up to `limit` bytes, and
    /// ends with the process.
    pub fn new(name: impl Into<String>, base: *const u8, limit: u64) -> Self {
        let name = name.into();
        Self {
            name,
            base,
            limit,
            survives_exit: false,
            emulated: false,
            file: None,
            mapped: None,
            cached_in: None,
            beside: None,
            charges: None,
            nodes: None,
            in_use: InUse::default(),
        }
    }
}

/// What has become of a medium so far.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct MediumStatus {
    /// Totals since the medium was opened.
    pub stats: MediumStats,
    /// The first failure of a write or sync in words, if there was one. The
    /// medium then only reads.
    pub failure: Option<String>,
}

/// A medium: the place where contents survive.
///
/// Every medium is mapped. Reads go through [`Facts::base`]. Writes go through
/// [`write`](Medium::write), and become durable by [`flush`](Medium::flush) followed by
/// [`fence`](Medium::fence).
///
/// # Safety
/// Callers borrow mapped bytes, so a medium that breaks these promises breaks
/// memory safety. It promises:
/// - [`facts`](Medium::facts) stays the same, except for what
///   [`Facts::in_use`] says.
/// - The bytes `0..len()` at [`Facts::base`] can be read from any thread until the medium is
///   dropped. `len` falls only in [`shrink`](Medium::shrink).
/// - These bytes change only while `write`, `discard` or `restore` is called for them. Nothing else
///   that safe code can reach, through the medium or beside it, changes them. Two media over the
///   same bytes share one [`InUse`].
/// - After a `write` that returned Ok, the bytes are what was written, and
///   after a `discard` that returned Ok they are zero.
///
/// # What the caller promises
/// These are the conditions of the unsafe methods.
/// - No two threads write overlapping bytes at the same time, and no reference
///   to the bytes exists.
/// - A reader reads only bytes whose `write` returned before the reader learned of them (through a
///   lock, or a release store and an acquire load), and that no thread writes while they are read.
///   Or it reads through atomics and can detect a torn value.
/// - Pointers into the mapping are not used after the medium is dropped.
///
/// An engine that keeps these promises has claimed the medium ([`InUse::claim`]), so no second
/// engine works on the same bytes.
///
/// # What a crash leaves
/// Bytes that were flushed and fenced by the thread that wrote them are there. Of all other writes,
/// any subset may be there. The grain is 8 aligned bytes on persistent memory, and a disk sector on
/// a file.
///
/// # A medium of your own
/// A test can replace a real medium by its own. This one is memory that fails for good at its third
/// fence:
///
/// ```
/// use pantile_media::{DramMedium, Facts, MapOptions, Medium, MediumError, MediumExt, MediumStatus};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicI64, Ordering};
///
/// #[derive(Debug)]
/// struct Failing {
///     memory: Arc<DramMedium>,
///     fences_left: AtomicI64,
/// }
///
/// impl Failing {
///     fn check(&self) -> Result<(), MediumError> {
///         match self.status().failure {
///             Some(cause) => Err(MediumError::Failed { cause }),
///             None => Ok(()),
///         }
///     }
/// }
///
/// // SAFETY: all bytes are those of `memory`, which keeps the promises.
/// unsafe impl Medium for Failing {
///     fn facts(&self) -> &Facts {
///         self.memory.facts()
///     }
///     fn len(&self) -> u64 {
///         self.memory.len()
///     }
///     fn grow(&self, len: u64) -> Result<(), MediumError> {
///         self.check().and_then(|()| self.memory.grow(len))
///     }
///     unsafe fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
///         // SAFETY: as the caller promises.
///         self.check().and_then(|()| unsafe { self.memory.write(offset, bytes) })
///     }
///     fn flush(&self, offset: u64, len: u64) {
///         self.memory.flush(offset, len);
///     }
///     fn fence(&self) -> Result<(), MediumError> {
///         self.fences_left.fetch_sub(1, Ordering::Relaxed);
///         self.check()
///     }
///     fn sync_all(&self) -> Result<(), MediumError> {
///         self.check()
///     }
///     unsafe fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
///         // SAFETY: as the caller promises.
///         self.check().and_then(|()| unsafe { self.memory.discard(offset, len) })
///     }
///     unsafe fn restore(&self, offset: u64, len: u64) -> Result<(), MediumError> {
///         // SAFETY: as the caller promises.
///         self.check().and_then(|()| unsafe { self.memory.restore(offset, len) })
///     }
///     fn status(&self) -> MediumStatus {
///         let has_failed = self.fences_left.load(Ordering::Relaxed) < 0;
///         let failure = has_failed.then(|| "the device is gone".to_owned());
///         MediumStatus { failure, ..self.memory.status() }
///     }
/// }
///
/// let memory = DramMedium::new(MapOptions::default())?;
/// let medium = Failing { memory, fences_left: AtomicI64::new(2) };
/// medium.grow(100)?;
/// // SAFETY: nobody else has the medium.
/// unsafe { medium.write(7, b"kept")? };
/// medium.flush(7, 4);
/// medium.fence()?;
/// medium.fence()?;
/// // SAFETY: as before.
/// assert!(medium.fence().is_err() && unsafe { medium.write(7, b"lost") }.is_err());
/// let mut found = [0; 4];
/// // SAFETY: as before.
/// unsafe { medium.read(7, &mut found)? };
/// assert_eq!(&found, b"kept");
/// # Ok::<(), MediumError>(())
/// ```
#[expect(clippy::len_without_is_empty, reason = "see `MediumExt::is_empty`")]
pub unsafe trait Medium: Send + Sync + Debug {
    /// The properties that stay the same while the medium is open.
    fn facts(&self) -> &Facts;

    /// The length of the medium in bytes: a multiple of `GROWTH_BYTES`, 0 when new. A file may be
    /// longer than the last opening asked for. What was never written reads as zero.
    fn len(&self) -> u64;

    /// Grows to at least `len` bytes; new bytes read as zero. Any number of
    /// threads may call it.
    ///
    /// # Errors
    /// [`MediumError::Full`] at the limit or on a full device, with nothing changed;
    /// [`MediumError::Failed`] once the medium has failed; [`MediumError::Io`] otherwise.
    fn grow(&self, len: u64) -> Result<(), MediumError>;

    /// Stores `bytes` at `offset`. After the call, every thread that learns of it sees the bytes
    /// through the mapping. They are not durable yet.
    ///
    /// # Errors
    /// [`MediumError::OutOfRange`] beyond `len()`, with nothing stored;
    /// [`MediumError::Failed`] when the store failed, now or earlier.
    ///
    /// # Safety
    /// No reference to these bytes exists, and no other thread reads or writes
    /// them meanwhile.
    unsafe fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError>;

    /// Starts to make written bytes durable. They are durable after the next `fence` of this
    /// thread. Does nothing on dram and file. Bytes beyond `len()` are ignored.
    fn flush(&self, offset: u64, len: u64);

    /// Makes everything durable that this thread wrote and flushed before, unless the medium was
    /// opened to promise less.
    ///
    /// # Errors
    /// [`MediumError::Failed`] when a sync failed, now or earlier. Writes since the last successful
    /// fence may be lost.
    fn fence(&self) -> Result<(), MediumError>;

    /// Makes everything durable that any thread wrote and flushed before, whatever durability the
    /// medium was opened with.
    ///
    /// # Errors
    /// As for [`fence`](Medium::fence).
    fn sync_all(&self) -> Result<(), MediumError>;

    /// The first half of a [`fence`](Medium::fence), for callers that have something to do in
    /// between. On a medium whose threads share syncs, it returns the point that
    /// [`end_fence`](Medium::end_fence) has to wait for. On other media it is the whole fence, and
    /// there is nothing left to wait for.
    ///
    /// When a point is durable, so is everything for which a thread had got the same point or an
    /// earlier one.
    ///
    /// # Errors
    /// As for [`fence`](Medium::fence).
    fn begin_fence(&self) -> Result<Option<SyncPoint>, MediumError> {
        self.fence().map(|()| None)
    }

    /// Returns once a point of [`begin_fence`](Medium::begin_fence) is durable.
    ///
    /// # Errors
    /// As for [`fence`](Medium::fence). The point will never be durable then.
    fn end_fence(&self, point: SyncPoint) -> Result<(), MediumError> {
        if self.is_durable(point) { Ok(()) } else { self.fence() }
    }

    /// Returns a point after everything that this thread wrote and flushed so far, for callers that
    /// do not wait until it is durable.
    ///
    /// The default suits media whose fences are cheap. It fences, and the point's number is how
    /// many fences are still missing: 0, or 1 for ever if this fence failed.
    fn sync_point(&self) -> SyncPoint {
        SyncPoint::new(u64::from(self.fence().is_err()))
    }

    /// Returns whether everything before `point` is durable by now, through any fence or sync of
    /// any thread. The call does not wait and starts nothing. Once true, the answer stays true.
    /// What was not durable when the medium failed never becomes durable.
    fn is_durable(&self, point: SyncPoint) -> bool {
        point.number() == 0
    }

    /// Says how the medium will be read from now on. This only changes how long reads take. Bytes
    /// beyond `len()` are ignored. The default does nothing, which suits media that have all bytes
    /// in memory.
    fn advise(&self, reads: Reads) {
        let _ = reads;
    }

    /// Gives up everything beyond the first `len` bytes, as far as the medium can.
    /// [`len`](Medium::len) returns afterwards what is left. A later [`grow`](Medium::grow) brings
    /// zeros. The default gives up nothing.
    ///
    /// The caller promises that no thread reads or writes there, now or before the medium has grown
    /// again. To a crash, the call is a discard: any part of the old bytes may return.
    ///
    /// # Errors
    /// [`MediumError::Failed`] once the medium has failed, with nothing changed;
    /// [`MediumError::Io`] otherwise.
    ///
    /// # Safety
    /// As for [`write`](Medium::write).
    unsafe fn shrink(&self, len: u64) -> Result<(), MediumError> {
        let _ = len;
        Ok(())
    }

    /// Gives the storage behind a range back to the system. `len` stays as it is. The range then
    /// reads as zero, and must not be written until [`restore`](Medium::restore).
    ///
    /// To a crash, a discard is a write of zeros that has been flushed. Any part of the old bytes
    /// may be lost at once. Until the zeros are durable, any part may return. So the caller must no
    /// longer need the old bytes, and the reason for that must be durable before the call. Whatever
    /// a thread writes after [`restore`](Medium::restore) is newer than the zeros, which never
    /// replace it.
    ///
    /// If the system cannot take the storage back, the medium keeps it and fills the range with
    /// zeros. In a file on a RAM disk, reading a discarded page takes memory for it again.
    ///
    /// # Errors
    /// [`MediumError::OutOfRange`] beyond `len()`, and [`MediumError::Failed`] once the medium has
    /// failed, both with nothing changed; [`MediumError::Io`] otherwise. After `Io`, any part of
    /// the range may read as zero. The medium still works, and the call may be repeated.
    ///
    /// # Panics
    /// If the range does not begin and end at multiples of `GROWTH_BYTES`.
    ///
    /// # Safety
    /// As for [`write`](Medium::write).
    unsafe fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError>;

    /// Allocates storage for a range that was discarded, so that it can be written again. The range
    /// still reads as zero. The call may take as long as growing by as much. A part that was not
    /// discarded may lose its contents.
    ///
    /// # Errors
    /// [`MediumError::Full`] on a full device, and [`MediumError::Io`]. The range is still
    /// discarded then, and the medium still works. [`MediumError::OutOfRange`] and
    /// [`MediumError::Failed`] as for [`discard`](Medium::discard).
    ///
    /// # Panics
    /// If the range does not begin and end at multiples of `GROWTH_BYTES`.
    ///
    /// # Safety
    /// As for [`write`](Medium::write).
    unsafe fn restore(&self, offset: u64, len: u64) -> Result<(), MediumError>;

    /// Allocates storage for the parts that have none, except those in `except`, which are in
    /// ascending order. A file may be a copy that was made without its zeros. A write to a hole in
    /// it fails the medium when the device is full.
    ///
    /// # Errors
    /// [`MediumError::Full`] and [`MediumError::Io`]. Some parts have no storage then, and the
    /// medium still works.
    fn fill_holes(&self, _except: &[Range<u64>]) -> Result<(), MediumError> {
        Ok(())
    }

    /// Counters, and the first failure.
    fn status(&self) -> MediumStatus {
        MediumStatus::default()
    }

    /// Removes the files and directories that opening this medium has made, for a caller that could
    /// not make a database on it. What was there before stays. After this call, the medium can only
    /// be dropped.
    fn withdraw(&self) {}
}

/// Methods that every medium has in addition to those that it implements.
pub trait MediumExt: Medium {
    /// The first byte of the mapping, see [`Facts::base`].
    fn base(&self) -> *const u8 {
        self.facts().base
    }

    /// Whether the medium has no bytes yet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Totals since the medium was opened.
    fn stats(&self) -> MediumStats {
        self.status().stats
    }

    /// Whether a write or sync has failed. The medium can then only be read.
    fn is_failed(&self) -> bool {
        self.status().failure.is_some()
    }

    /// Fails unless the medium has `len` bytes at `offset`.
    ///
    /// # Errors
    /// [`MediumError::OutOfRange`].
    fn check_range(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        match self.len() {
            size if offset.checked_add(len).is_none_or(|end| end > size) => {
                Err(MediumError::OutOfRange { offset, len, size })
            }
            _ => Ok(()),
        }
    }

    /// Writes bytes and flushes them. They are durable after the next fence.
    ///
    /// # Errors
    /// Those of [`Medium::write`].
    ///
    /// # Safety
    /// As for [`Medium::write`].
    #[inline]
    unsafe fn write_flushed(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        unsafe { self.write(offset, bytes)? };
        self.flush(offset, bytes.len() as u64);
        Ok(())
    }

    /// Copies bytes at `offset` out. Charges nothing.
    ///
    /// # Errors
    /// [`MediumError::OutOfRange`] beyond `len()`.
    ///
    /// # Safety
    /// No thread writes these bytes meanwhile.
    unsafe fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), MediumError> {
        self.check_range(offset, out.len() as u64)?;
        // SAFETY: the range was just checked, the mapping is readable up to
        // `len`, and the caller promises that no thread writes these bytes.
        unsafe {
            ptr::copy_nonoverlapping(self.base().add(offset as usize), out.as_mut_ptr(), out.len());
        }
        Ok(())
    }

    /// Makes the system read bytes that will soon be used. If a mapped file cannot be read, this
    /// call returns an error, whereas a load through the mapping would end the process.
    ///
    /// # Errors
    /// [`MediumError::Unreadable`] with the place, and
    /// [`MediumError::OutOfRange`] beyond `len()`.
    fn check_readable(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.check_range(offset, len)?;
        match &self.facts().mapped {
            Some(file) => file.check_readable(self.base(), offset, len),
            None => Ok(()),
        }
    }

    /// Whether bytes that [`check_readable`](Self::check_readable) refuses are nevertheless zeros.
    /// A hole in a file that is in memory cannot be loaded from when there is no more memory for
    /// the file.
    fn is_hole(&self, offset: u64, len: u64) -> bool {
        self.facts().mapped.as_ref().is_some_and(|file| file.is_zero(offset, len))
    }

    /// As [`Medium::grow`], and makes the system allocate memory for all of it now rather than at
    /// its first use. This may take a while.
    ///
    /// # Errors
    /// Those of [`Medium::grow`].
    fn preallocate(&self, len: u64) -> Result<(), MediumError> {
        self.grow(len)?;
        if self.facts().file.is_none() || self.facts().emulated {
            // Without effect before Linux 5.14; the memory then comes with use.
            let _ = populate(self.base(), len);
        }
        Ok(())
    }
}

impl<M: Medium + ?Sized> MediumExt for M {}

/// Opens media of a kind that this library does not have. An engine takes a factory in place of one
/// of its own kinds.
pub trait MediumFactory: Send + Sync + Debug {
    /// Opens the medium in the directory `path`, or makes it as
    /// [`DirectoryOptions::create`] says. The medium must lock the directory,
    /// as [`parts::Directory`](crate::parts::Directory) does.
    ///
    /// # Errors
    /// Those of [`FileMedium::open`](crate::FileMedium::open).
    fn open(&self, path: &Path, options: DirectoryOptions) -> Result<Arc<dyn Medium>, MediumError>;
}
