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
        if self.reads_by_statement() {
            self.statement_at = None;
            self.statement_at = Some(self.statement_read_committed());
        }
    }

    /// Ends a statement of a read-committed transaction: until the transaction reads again, nothing is kept for it
    /// but the rows that it has locked.
    ///
    /// Otherwise all versions are kept that were visible since the transaction began. So call this where the
    /// transaction may stay open for some time, as between the statements of a client. Cursors of the statement
    /// return [`Error::UnknownCursor`](crate::Error::UnknownCursor) from now on, and [`Cursor::turn`](crate::Cursor::turn)
    /// lets them go on.
    ///
    /// After [`Transaction::take_snapshot`] only the snapshot is kept from now on. At other levels the call does
    /// nothing.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).primary_key(["id"]))?;
    /// let mut client = db.begin_with(TransactionOptions::new().isolation(Isolation::ReadCommitted))?;
    /// client.insert(&t, &[1u64.into()])?;
    /// client.end_statement();
    /// // Whatever is updated while the client thinks can be reclaimed.
    /// assert_eq!(db.transactions()[0].held_bytes, 0);
    /// client.commit()?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn end_statement(&mut self) {
        if self.reads_by_statement() {
            self.statement_at = None;
            if self.is_reading.replace(false) {
                self.statements += 1;
                self.core.registry.read_nothing_for_now(self.slot);
                self.core.alarm.ended();
            }
        } else if std::mem::take(&mut self.reads_wider) {
            self.statements += 1;
            self.core.registry.read_at(self.slot, self.ts);
            self.core.alarm.ended();
        }
    }

    pub(super) fn reads_by_statement(&self) -> bool {
        self.isolation == Isolation::ReadCommitted && !self.safe && self.under.is_none()
    }

    /// Turns a read-committed transaction into one at snapshot isolation, with a snapshot of this
    /// moment.
    ///
    /// What it has locked and written before stays. So a transaction can lock rows first, wait for
    /// the locks, and take its snapshot afterwards. Cursors go on to read what they read before, up to
    /// [`Transaction::end_statement`]. At other levels the call does nothing.
    pub fn take_snapshot(&mut self) {
        if self.reads_by_statement() {
            self.statement_at = None;
            self.ts = self.statement_read_committed();
            self.reads_wider = true;
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
    /// `stop` begins to return true. `stop` is called before the transaction waits, and every 20 ms
    /// while it does, with the [number](crate::TransactionOptions::number) of the transaction that
    /// it waits for, if that has one.
    pub fn interrupt_when(&mut self, stop: impl Fn(Option<u64>) -> bool + Send + Sync + 'static) {
        self.stop = Some(Arc::new(stop));
    }

    /// Waits in stretches, and asks `stop` before the first and after each: that may also see to it
    /// that the holder ends. Returns what [`Registry::wait`](pantile_cc::Registry::wait) returns, and
    /// whether `stop` has said that this is enough.
    #[cold]
    pub(super) fn wait_stoppable(
        &self,
        holder: Slot,
        bound: Timestamp,
        limit: Duration,
        stop: &Stop,
        over: impl Fn() -> bool,
    ) -> (Option<bool>, bool) {
        let number = self.number_of(holder);
        if !over() && stop(number) {
            return (Some(false), true);
        }
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
        match self.statement_at {
            Some(at) => at,
            None => {
                // What it has locked may have been committed by a core whose clock is ahead.
                self.core.registry.await_passed(self.newest_met.get());
                self.go_on_reading().unwrap_or_else(|| self.core.registry.draw(self.slot))
            }
        }
    }

    /// Lets versions be kept from this moment on, if none have been since its last statement ended.
    #[inline]
    pub(super) fn go_on_reading(&self) -> Option<Timestamp> {
        (!self.is_reading.replace(true)).then(|| self.core.registry.read_again(self.slot))
    }
}

#[cfg(test)]
#[path = "statement_test.rs"]
mod tests;
