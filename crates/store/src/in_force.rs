//! State records: what is sampled for them, and when they take effect.
//!
//! Two records are special. The last one says that the database was closed, and stays in force
//! after the next opening until something is written. The first one after that says that the
//! database is open again.

use pantile_base::Timestamp;
use pantile_base::sync::atomic::Ordering;

use crate::error::StoreError;
use crate::image::ImageName;
use crate::state_record::{PartlyFilled, StateRecord};
use crate::store::Store;

/// Fills of open blocks at one time; see [`Store::sample`].
#[derive(Clone, Debug)]
pub struct StateSample {
    taken_at: Timestamp,
    carved: u64,
    partly_filled: Vec<PartlyFilled>,
    /// The image that is valid as soon as the record is durable.
    image: Option<ImageName>,
}

impl StateSample {
    /// When it was taken.
    pub fn taken_at(&self) -> Timestamp {
        self.taken_at
    }
}

impl Store {
    /// The blocks that streams append to, with their fill: one half of a new
    /// state record. Every block opened by `taken_at` is either among them or
    /// full.
    ///
    /// `taken_at` is called once it is known which image the sample names: whatever an image holds is
    /// below the sample (I-23). One that is made while this waits for locks may hold more.
    pub fn sample(&self, taken_at: impl FnOnce() -> Timestamp) -> StateSample {
        let image = *self.image.lock();
        let taken_at = taken_at();
        // All locks at once, or a block that a lane takes meanwhile would be
        // missed. Small commits do not wait while this waits for a large one.
        let streams: Vec<_> = self.all_streams().map(|stream| stream.lock()).collect();
        let resumable = self.resumable.lock();
        let open = streams.iter().flat_map(|stream| stream.partly_filled());
        let waiting = resumable.values().flatten().map(|id| (*id, self.block(*id).1.fill()));
        let closed_early = self.closed_early.lock();
        let early = closed_early.iter().map(|id| (*id, self.block(*id).1.fill()));
        let partly_filled = open.chain(waiting).chain(early).map(|(id, fill)| {
            let opened_at = self.block(id).1.opened_at();
            PartlyFilled { chunk: id.chunk, index: id.index, fill, opened_at }
        });
        self.appended_before.store(self.appended.sum(), Ordering::Relaxed);
        let carved = self.allocator.lock().carved as u64;
        StateSample { taken_at, carved, partly_filled: partly_filled.collect(), image }
    }

    /// Writes a state record from a sample. Every transaction at or below the
    /// sample's `taken_at` must have been decided, except the `undecided` ones.
    /// So must every transaction that had appended when the sample was taken.
    ///
    /// # Errors
    /// [`StoreError::Medium`]; the previous record stays valid.
    pub fn record_state(&self, sample: StateSample, undecided: &[Timestamp]) -> Result<(), StoreError> {
        self.record(sample, false, undecided)
    }

    /// Writes the last state record: the database is closed.
    ///
    /// # Errors
    /// As [`Store::record_state`].
    pub fn record_closed(&self, sample: StateSample) -> Result<(), StoreError> {
        self.record(sample, true, &[])
    }

    /// Makes later samples name an index image, or none. All that it holds must
    /// have been published.
    pub fn name_image(&self, image: Option<ImageName>) {
        *self.image.lock() = image;
    }

    /// Notes how many bytes the index image and its successor take.
    pub fn note_image_bytes(&self, bytes: u64) {
        self.image_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Bytes beside the medium that the index image and its successor take.
    pub fn image_bytes(&self) -> u64 {
        self.image_bytes.load(Ordering::Relaxed)
    }

    /// Whether there is an index image that samples name.
    pub fn has_image(&self) -> bool {
        self.image.lock().is_some()
    }

    /// The index image that the record in force names.
    pub fn image_in_force(&self) -> Option<ImageName> {
        self.state.lock().image
    }

    /// Whether that is the one that samples name.
    pub fn is_image_in_force(&self) -> bool {
        let next = *self.image.lock();
        next == self.image_in_force()
    }

    fn record(&self, sample: StateSample, closed: bool, undecided: &[Timestamp]) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        self.assert_open();
        self.closed.store(closed, Ordering::SeqCst);
        let mut partly_filled = sample.partly_filled;
        if closed {
            // What is released and not free yet stays listed until the medium has
            // forgotten it. The sync below sees to that.
            partly_filled.retain(|listed| self.block(listed.id()).1.state().is_used());
        }
        let next = StateRecord {
            sequence: state.sequence + 1,
            watermark: sample.taken_at.get(),
            taken_at: sample.taken_at.get(),
            boot: self.options.boot,
            closed,
            relaxed: self.options.relaxed,
            emulated: self.medium.facts().emulated,
            carved: sample.carved,
            used: if closed { self.count_used() } else { 0 },
            image: sample.image,
            partly_filled,
            undecided: undecided.iter().map(|timestamp| timestamp.get()).collect(),
        };
        self.medium.sync_all()?;
        self.put_in_force(&mut state, next)
    }

    /// Writes a record, which is the one that counts from here on.
    fn put_in_force(&self, state: &mut StateRecord, next: StateRecord) -> Result<(), StoreError> {
        self.write_record(&next)?;
        self.medium.sync_all()?;
        self.durable.store(next.watermark, Ordering::Release);
        *state = next;
        self.dormant.store(false, Ordering::Release);
        Ok(())
    }

    /// The record that says closed stays in force until something is written.
    pub(crate) fn stay_closed(&self, highest: Timestamp) {
        self.highest.store(highest.get(), Ordering::Relaxed);
        self.dormant.store(true, Ordering::Release);
    }

    /// Whether commits do not wait for the device, so that a power failure takes what the record in force does
    /// not cover.
    pub fn is_relaxed(&self) -> bool {
        self.options.relaxed
    }

    /// Whether nothing has been written since the store was opened, and it had been
    /// closed before.
    pub fn is_unchanged(&self) -> bool {
        self.dormant.load(Ordering::Acquire)
    }

    /// Closes a store to which nothing has been written since it was opened.
    /// Returns whether it is one; otherwise the last record is still to be
    /// written.
    pub fn close_unchanged(&self) -> bool {
        let is_dormant = self.is_unchanged();
        if is_dormant {
            self.closed.store(true, Ordering::SeqCst);
        }
        is_dormant
    }

    /// Before anything is written, a record that says closed must be followed by
    /// one that does not (I-23).
    #[inline]
    pub(crate) fn begin_write(&self) -> Result<(), StoreError> {
        self.assert_open();
        if self.is_unchanged() { self.wake() } else { Ok(()) }
    }

    /// Writes the first record since the store was opened. All that it speaks of
    /// has been durable since the last one.
    #[cold]
    fn wake(&self) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        if !self.is_unchanged() {
            return Ok(());
        }
        let highest = self.highest.load(Ordering::Relaxed);
        let next = StateRecord {
            sequence: state.sequence + 1,
            watermark: highest,
            taken_at: highest,
            boot: self.options.boot,
            closed: false,
            relaxed: self.options.relaxed,
            emulated: self.medium.facts().emulated,
            used: 0,
            ..state.clone()
        };
        // A process that was killed may have left the record that says closed in the page cache only. This one takes
        // the place of the record before that, which is all that a power cut would leave.
        self.medium.sync_all()?;
        self.put_in_force(&mut state, next)
    }

    /// Nothing is written after the record that says closed (I-20). A write
    /// would destroy a database that was whole.
    #[inline]
    pub(crate) fn assert_open(&self) {
        assert!(!self.closed.load(Ordering::Relaxed), "nothing is written to a closed database (I-20)");
    }

    /// Number of blocks whose descriptors are written, while no thread changes
    /// that.
    fn count_used(&self) -> u64 {
        let _chunks = self.chunks_lock.read();
        self.used().count() as u64
    }

    /// The durable watermark: transactions at or below it need no evidence.
    pub fn durable_watermark(&self) -> Timestamp {
        Timestamp::from_raw(self.durable.load(Ordering::Acquire))
    }
}
