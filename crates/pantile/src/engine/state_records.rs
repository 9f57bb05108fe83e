//! When state records are written (I-9).

use std::time::Duration;

use pantile_base::Timestamp;
use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicBool, Ordering};
use pantile_cc::{CommitsUnderWay, Registry};
use pantile_reclaim::Debt;
use pantile_store::{StateSample, Store, StoreError};

/// A new state record is due when this share of the used bytes has been
/// appended (within bounds in bytes), or after this many epochs (half a second).
const STATE_SHARE: u64 = 16;
const LEAST_STATE_BYTES: u64 = 4 << 20;
const MOST_STATE_BYTES: u64 = 64 << 20;
const STATE_EPOCHS: u32 = 12;
/// The worker writes records, so that no commit waits for the device. Where this many
/// times the bytes have been appended, it does not keep up, and a commit writes one.
const LATE: u64 = 4;
/// The same while more space is taken than promised: what was emptied is free
/// only after the next record.
const HASTY_EPOCHS: u32 = 4;

/// A state record takes two steps: a sample is taken, and it is written once
/// every transaction that was committing then has ended.
#[derive(Default)]
pub(crate) struct StateRecords {
    upkeep: Mutex<Upkeep>,
    /// Whether a sample waits to be written.
    has_sample: AtomicBool,
}

#[derive(Default)]
struct Upkeep {
    /// With the commits that were under way when it was taken.
    sample: Option<(StateSample, CommitsUnderWay)>,
    /// When the last sample was taken, by the clock.
    last: Duration,
}

impl StateRecords {
    /// Whether enough has been appended for a new record. The collector can
    /// free nothing that is younger than the last record.
    pub fn is_due_by_bytes(store: &Store, wanted: u64) -> bool {
        store.appended_since_sample_about() >= Self::bytes_between(store, wanted)
    }

    /// Whether so much has been appended that the worker is late with a record.
    pub fn is_overdue(store: &Store, wanted: u64) -> bool {
        store.appended_since_sample_about() >= Self::bytes_between(store, wanted).saturating_mul(LATE)
    }

    fn bytes_between(store: &Store, wanted: u64) -> u64 {
        let bytes = (store.used_bytes() / STATE_SHARE).clamp(LEAST_STATE_BYTES, MOST_STATE_BYTES);
        bytes.min(wanted)
    }

    /// Whether a sample waits to be written or the last one is old.
    pub fn is_due_by_time(&self, epoch: Duration, now: Duration, debt: Debt) -> bool {
        let epochs = if debt.is_of_space() { HASTY_EPOCHS } else { STATE_EPOCHS };
        let is_due = |upkeep: &Upkeep| upkeep.sample.is_some() || now >= upkeep.last + epoch * epochs;
        self.upkeep.try_lock().is_some_and(|upkeep| is_due(&upkeep))
    }

    /// Whether a sample waits to be written.
    pub fn has_sample(&self) -> bool {
        self.has_sample.load(Ordering::Relaxed)
    }

    /// Takes the next step. Returns whether it wrote a record, which moves the
    /// durable watermark on.
    pub fn advance(&self, store: &Store, registry: &Registry) -> bool {
        let Some(mut upkeep) = self.upkeep.try_lock() else { return false };
        if let Some((sample, commits)) = upkeep.sample.take() {
            // The record does not wait for a long transaction: what that has
            // yet to write is evidence to be counted, like everything later.
            let undecided = registry.undecided(sample.taken_at());
            let Some(undecided) = undecided.filter(|_| registry.are_over(&commits)) else {
                upkeep.sample = Some((sample, commits));
                return false;
            };
            self.has_sample.store(false, Ordering::Relaxed);
            // A failure latches in the medium and shows at the next commit.
            let _ = store.record_state(sample, &undecided);
            return true;
        }
        upkeep.last = registry.clock().elapsed();
        let sample = store.sample(sample_time(registry));
        upkeep.sample = Some((sample, registry.commits_under_way()));
        self.has_sample.store(true, Ordering::Relaxed);
        false
    }

    /// Writes a record now. No transaction may be running.
    pub fn record_now(&self, store: &Store, registry: &Registry) -> Result<(), StoreError> {
        store.record_state(self.sample_now(store, registry), &[])
    }

    /// Writes the record that says closed.
    pub fn record_last(&self, store: &Store, registry: &Registry) -> Result<(), StoreError> {
        store.record_closed(self.sample_now(store, registry))
    }

    fn sample_now(&self, store: &Store, registry: &Registry) -> StateSample {
        let mut upkeep = self.upkeep.lock();
        upkeep.sample = None;
        self.has_sample.store(false, Ordering::Relaxed);
        store.sample(sample_time(registry))
    }
}

/// Below the timestamp of every block that is opened from now on.
fn sample_time(registry: &Registry) -> Timestamp {
    let now = registry.now();
    Timestamp::new(now.tick().saturating_sub(registry.clock().skew() + 1), 0)
}
