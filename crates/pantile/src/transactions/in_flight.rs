//! Commits that are visible and that nobody waits for yet.
//!
//! The syncer waits for their points and ends them (`engine/syncer.rs`).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use pantile_base::Timestamp;
use pantile_base::sync::{Condvar, Mutex, MutexGuard};
use pantile_media::MediumExt;

use crate::engine::seats::Seat;
use crate::engine::syncer::{Syncer, Urge};
use crate::transactions::commit::Published;
use crate::transactions::transaction::Transaction;
use crate::types::error::{Error, Result};

/// A commit that is visible and not yet durable, from [`Transaction::publish`].
///
/// It is a future, for programs that have an executor. If it is dropped, the commit still becomes
/// durable soon, within some milliseconds or with the next sync of another commit. If that fails,
/// nobody is told. Dropping the last handle of the database waits for it.
#[must_use = "waiting returns whether the commit is durable"]
pub struct InFlight {
    timestamp: Timestamp,
    how: How,
}

enum How {
    /// The syncer has it.
    Left(Arc<Landing>),
    /// There is no syncer.
    Kept(Box<(Transaction, Published)>),
    /// It has ended, and what has failed, if that did.
    Over(Option<String>),
}

impl std::fmt::Debug for InFlight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InFlight").field("timestamp", &self.timestamp).finish_non_exhaustive()
    }
}

impl Transaction {
    /// Makes the writes visible, all or none, and returns before they are durable:
    /// one thread can have many commits in flight. Transactions that depend on
    /// this one become durable after it or not at all.
    ///
    /// If many commits are in flight, it waits for some of them.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let def = TableDef::new("log").column("id", Type::U64).primary_key(["id"]);
    /// # let log = db.create_table(def)?;
    /// let mut in_flight = Vec::new();
    /// for id in 0..100u64 {
    ///     let mut txn = db.begin()?;
    ///     txn.insert(&log, &[id.into()])?;
    ///     in_flight.push(txn.publish()?);
    /// }
    /// // All of them are durable after this.
    /// in_flight.into_iter().try_for_each(|commit| commit.wait().map(|_| ()))?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn publish(mut self) -> Result<InFlight> {
        let published = self.make_visible()?;
        Ok(InFlight::of_published(self, published))
    }
}

impl InFlight {
    /// Of a transaction whose writes others see. The next transaction of this thread
    /// sees them.
    pub(crate) fn of_published(txn: Transaction, published: Published) -> Self {
        txn.core.registry.await_passed(published.timestamp());
        let timestamp = published.timestamp();
        let core = Seat::clone(&txn.core);
        let how = match core.syncer.has_thread(&core.options) {
            true => How::Left(leave(&core.syncer, txn, published)),
            // Nothing is to be awaited, so that nothing can fail; and `Database::sync` waits for what has not ended.
            false if published.point().is_none() => {
                let _ = land((txn, published));
                How::Over(None)
            }
            false => How::Kept(Box::new((txn, published))),
        };
        Self { timestamp, how }
    }

    /// The timestamp of the commit. Every transaction that begins from now on sees it.
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// Whether waiting would return at once.
    pub fn is_over(&self) -> bool {
        match &self.how {
            How::Left(landing) => landing.outcome.lock().0.is_some(),
            How::Kept(kept) => {
                let medium = kept.0.core.store.medium();
                medium.is_failed() || kept.1.point().is_none_or(|point| medium.is_durable(point))
            }
            How::Over(_) => true,
        }
    }

    /// Waits until the commit is durable.
    ///
    /// # Errors
    /// [`Error::MediumFailed`]: the commit may or may not be there when the database is next
    /// opened.
    pub fn wait(mut self) -> Result<Timestamp> {
        match std::mem::replace(&mut self.how, How::Over(None)) {
            How::Left(landing) => landing.wait(),
            How::Kept(kept) => land(*kept),
            How::Over(failed) => told(self.timestamp, failed),
        }
    }
}

impl Future for InFlight {
    type Output = Result<Timestamp>;

    /// Blocks if the system has refused the thread that waits for syncs.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match std::mem::replace(&mut self.how, How::Over(None)) {
            How::Left(landing) => match landing.poll(context.waker()) {
                Some(outcome) => outcome,
                None => {
                    self.how = How::Left(landing);
                    return Poll::Pending;
                }
            },
            How::Kept(kept) => land(*kept),
            How::Over(failed) => told(self.timestamp, failed),
        };
        if let Err(Error::MediumFailed { cause }) = &outcome {
            self.how = How::Over(Some(cause.clone()));
        }
        Poll::Ready(outcome)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let How::Kept(kept) = std::mem::replace(&mut self.how, How::Over(None)) {
            // Nobody wants to know.
            let _ = land(*kept);
        }
    }
}

/// The outcome once more.
fn told(timestamp: Timestamp, failed: Option<String>) -> Result<Timestamp> {
    failed.map_or(Ok(timestamp), |cause| Err(Error::MediumFailed { cause }))
}

fn land((mut txn, published): (Transaction, Published)) -> Result<Timestamp> {
    txn.land(published)
}

/// Leaves a commit to the syncer.
fn leave(syncer: &Syncer, txn: Transaction, published: Published) -> Arc<Landing> {
    let landing = Arc::new(Landing::with(syncer.urge()));
    let told = Told(Some(Arc::clone(&landing)));
    syncer.run_later(Box::new(move || {
        let outcome = land((txn, published));
        told.end(outcome);
    }));
    landing
}

/// A caller that waits is told in any case, even if the syncer has panicked.
struct Told(Option<Arc<Landing>>);

impl Told {
    fn end(mut self, outcome: Result<Timestamp>) {
        if let Some(landing) = self.0.take() {
            landing.end(outcome);
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if let Some(landing) = self.0.take() {
            landing.end(Err(Error::MediumFailed {
                cause: "the thread that waits for syncs has panicked".into(),
            }));
        }
    }
}

/// Where the syncer says how a commit has ended.
struct Landing {
    outcome: Mutex<(Option<Result<Timestamp>>, Option<Waker>)>,
    changed: Condvar,
    urge: Urge,
}

impl Landing {
    fn with(urge: Urge) -> Self {
        Self { outcome: Mutex::default(), changed: Condvar::new(), urge }
    }

    fn end(&self, outcome: Result<Timestamp>) {
        let waker = {
            let mut state = self.outcome.lock();
            state.0 = Some(outcome);
            state.1.take()
        };
        self.changed.notify_all();
        waker.into_iter().for_each(Waker::wake);
    }

    fn wait(&self) -> Result<Timestamp> {
        let mut state = self.outcome.lock();
        if state.0.is_none() {
            MutexGuard::unlocked(&mut state, || self.urge.now());
        }
        loop {
            match state.0.take() {
                Some(outcome) => return outcome,
                None => self.changed.wait(&mut state),
            }
        }
    }

    fn poll(&self, waker: &Waker) -> Option<Result<Timestamp>> {
        // Programs' wakers are cloned and dropped without the lock: they may drop the last handle of the database,
        // which waits for the syncer.
        let waker = waker.clone();
        let mut state = self.outcome.lock();
        let outcome = state.0.take();
        if outcome.is_none() {
            let before = state.1.replace(waker);
            drop(state);
            if before.is_none() {
                self.urge.now();
            }
        }
        outcome
    }
}
