//! When state records are written (I-9).

use std::time::Duration;

use pantile_base::Timestamp;
use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use pantile_cc::{CommitsUnderWay, Registry};
use pantile_reclaim::Debt;
use pantile_store::{StateSample, Store, StoreError};

/// A new state record is due when this share of the used bytes has been
/// appended (within bounds in bytes), or after this many epochs (half a second).
const STATE_SHARE: u64 = 16;
const LEAST_STATE_BYTES: u64 = 4 << 20;
const MOST_STATE_BYTES: u64 = 64 << 20;
const STATE_EPOCHS: u32 = 12;
/// The same while more space is taken than promised: what was emptied is free
/// only after the next record.
const HASTY_EPOCHS: u32 = 4;
/// The worker writes records, so that no commit waits for the device. After this many times
/// `STATE_EPOCHS` since it was asked, or this many times the bytes, it is late, and a commit
/// sees to it.
const LATE: u64 = 4;

/// A state record takes two steps: a sample is taken, and it is written once
/// every transaction that was committing then has ended.
#[derive(Default)]
pub(crate) struct StateRecords {
    upkeep: Mutex<Upkeep>,
    /// Whether a sample waits to be written.
    has_sample: AtomicBool,
    /// Since when a step has been due that nobody has taken, in microseconds by the
    /// clock; zero if none is known to be.
    due_since: AtomicU64,
}

#[derive(Default)]
struct Upkeep {
    /// With the commits that were under way when it was taken.
    sample: Option<(StateSample, CommitsUnderWay)>,
    /// When the last sample was taken, by the clock.
    last: Duration,
}

impl Upkeep {
    /// What the record of the sample lists as undecided, if it can be written now. It
    /// does not wait for a long transaction: what that has yet to write is evidence to
    /// be counted, like everything later.
    fn undecided(&self, registry: &Registry) -> Option<Vec<Timestamp>> {
        let (sample, commits) = self.sample.as_ref()?;
        registry.undecided(sample.taken_at(), commits)
    }
}

impl StateRecords {
    /// Whether enough has been appended for a new record. The collector can
    /// free nothing that is younger than the last record.
    pub fn is_due_by_bytes(store: &Store, wanted: u64) -> bool {
        store.appended_since_sample_about() >= Self::bytes_between(store, wanted)
    }

    /// Whether the worker is late with a step that is due.
    pub fn is_late(&self, store: &Store, wanted: u64, epoch: Duration, now: Duration) -> bool {
        let now = now.as_micros() as u64;
        let since = match self.due_since.load(Ordering::Relaxed) {
            0 => {
                self.due_since.store(now, Ordering::Relaxed);
                now
            }
            since => since,
        };
        let time = epoch.as_micros() as u64 * u64::from(STATE_EPOCHS) * LATE;
        now.saturating_sub(since) >= time
            || store.appended_since_sample_about() >= Self::bytes_between(store, wanted).saturating_mul(LATE)
    }

    /// Whether a sample waits and could be written now.
    pub fn can_be_written(&self, registry: &Registry) -> bool {
        self.upkeep.try_lock().is_some_and(|upkeep| upkeep.undecided(registry).is_some())
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

    /// Takes the next step, unless another thread is at it. Returns whether it wrote a
    /// record, which moves the durable watermark on.
    pub fn advance(&self, store: &Store, registry: &Registry) -> bool {
        self.upkeep.try_lock().is_some_and(|mut upkeep| self.step(&mut upkeep, store, registry))
    }

    /// Takes two steps, after another thread that is at it: a sample and its record, as
    /// far as no commit is in the way, be it the caller's own. None, if they are not `needed`
    /// any more.
    pub fn catch_up(&self, store: &Store, registry: &Registry, needed: impl FnOnce() -> bool) -> bool {
        let mut upkeep = self.upkeep.lock();
        let mut step = || self.step(&mut upkeep, store, registry);
        needed() && (step() | step())
    }

    fn step(&self, upkeep: &mut Upkeep, store: &Store, registry: &Registry) -> bool {
        self.due_since.store(0, Ordering::Relaxed);
        if upkeep.sample.is_some() {
            let Some(undecided) = upkeep.undecided(registry) else { return false };
            let Some((sample, _)) = upkeep.sample.take() else { return false };
            self.has_sample.store(false, Ordering::Relaxed);
            // A failure latches in the medium and shows at the next commit.
            let _ = store.record_state(sample, &undecided);
            return true;
        }
        upkeep.last = registry.clock().elapsed();
        let sample = store.sample(|| sample_time(registry));
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
        store.sample(|| sample_time(registry))
    }
}

/// Below the timestamp of every block that is opened from now on.
fn sample_time(registry: &Registry) -> Timestamp {
    let now = registry.now();
    Timestamp::new(now.tick().saturating_sub(registry.clock().skew() + 1), 0)
}

#[cfg(test)]
#[path = "state_records_test.rs"]
mod tests;
