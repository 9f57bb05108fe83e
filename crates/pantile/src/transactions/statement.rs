//! What a program that runs statements for others sets: what a statement reads,
//! how it waits, and when it stops waiting.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pantile_base::Timestamp;
use pantile_cc::Slot;

use crate::engine::holders::Purpose;
use crate::engine::table::Table;
use crate::transactions::transaction::{Stop, Transaction};
use crate::types::isolation::Isolation;
use crate::types::transaction_options::ConflictPolicy;

/// How often a transaction that waits asks whether it is to stop.
const ASK_EVERY: Duration = Duration::from_millis(20);

impl Transaction {
    /// Begins a statement of a read-committed transaction.
    ///
    /// All calls up to the next statement then read one state, that of this moment. Without it,
    /// each call reads a state of its own. At other levels all calls read the transaction's state
    /// anyway.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).primary_key(["id"]))?;
    /// let mut report = db.begin_with(TransactionOptions::new().isolation(Isolation::ReadCommitted))?;
    /// report.begin_statement();
    /// db.run(|txn| txn.insert(&t, &[1u64.into()]))?;
    /// assert_eq!(report.scan(&t, Range::all())?.count(), 0);
    /// report.begin_statement();
    /// assert_eq!(report.scan(&t, Range::all())?.count(), 1);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn begin_statement(&mut self) {
        if self.isolation == Isolation::ReadCommitted && !self.safe && self.under.is_none() {
            self.statement_at = Some(self.core.registry.draw(self.slot));
        }
    }

    /// Turns a read-committed transaction into one at snapshot isolation, with a snapshot of this
    /// moment.
    ///
    /// What it has locked and written before stays. So a transaction can lock rows first, wait for
    /// the locks, and take its snapshot afterwards. At other levels the call does nothing.
    pub fn take_snapshot(&mut self) {
        if self.isolation == Isolation::ReadCommitted && !self.safe && self.under.is_none() {
            self.ts = self.core.registry.draw(self.slot);
            self.isolation = Isolation::Snapshot;
            // They are newer than the transaction, but not than its snapshot.
            self.core.registry.use_newer_tables(self.slot);
            let purpose = Purpose::Transaction { isolation: self.isolation, read_only: self.read_only };
            self.core.buffers.with_holder(self.slot, |holder| holder.purpose = purpose);
        }
    }

    /// Whether a table was created, or truncated, after the timestamp at which this transaction
    /// reads.
    ///
    /// At that timestamp the table did not exist, or had other rows. At read committed, where each
    /// statement reads at its own timestamp, the one at which the transaction began counts.
    pub fn is_before(&self, table: &Table) -> bool {
        self.is_known.set(true);
        table.inner.is_newer_than(self.ts)
    }

    /// Sets what happens when the transaction meets a locked row, from here on.
    pub fn set_conflict(&mut self, policy: ConflictPolicy) {
        self.policy = policy;
    }

    /// Sets a function that can end waits for rows that others have locked.
    ///
    /// A wait ends with [`Conflict::Interrupted`](crate::Conflict::Interrupted) within 20 ms after
    /// `stop` begins to return true. `stop` is called while the transaction waits, with the
    /// [number](crate::TransactionOptions::number) of the transaction that it waits for, if that
    /// has one.
    pub fn interrupt_when(&mut self, stop: impl Fn(Option<u64>) -> bool + Send + Sync + 'static) {
        self.stop = Some(Arc::new(stop));
    }

    /// Waits in stretches, after each of which it asks `stop` once. Returns what
    /// [`Registry::wait`](pantile_cc::Registry::wait) returns, and whether `stop` has said
    /// that this is enough.
    #[cold]
    pub(super) fn wait_stoppable(
        &self,
        holder: Slot,
        bound: Timestamp,
        limit: Duration,
        stop: &Stop,
        over: impl Fn() -> bool,
    ) -> (Option<bool>, bool) {
        let began = Instant::now();
        loop {
            let left = limit.saturating_sub(began.elapsed());
            let outcome = self.core.registry.wait(self.slot, holder, bound, left.min(ASK_EVERY), &over);
            let is_stopped = outcome == Some(false) && stop(self.number_of(holder));
            if outcome != Some(false) || is_stopped || left <= ASK_EVERY {
                return (outcome, is_stopped);
            }
        }
    }

    /// The number of the transaction in a slot, if it has one.
    pub(super) fn number_of(&self, slot: Slot) -> Option<u64> {
        self.core.buffers.holder(slot).and_then(|holder| holder.number)
    }

    /// Where a statement at read committed reads.
    #[inline]
    pub(super) fn statement_read_committed(&self) -> Timestamp {
        self.statement_at.unwrap_or_else(|| self.core.registry.draw(self.slot))
    }
}
