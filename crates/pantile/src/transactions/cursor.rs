//! Cursors: scans that let their transaction write meanwhile, and lock what they come to.

use std::ops::Bound;
use std::sync::Arc;

use pantile_base::TupleId;

use crate::engine::anchor::Anchor;
use crate::engine::index::IndexInner;
use crate::engine::table::{Index, Table, TableInner};
use crate::transactions::hold::Held;
use crate::transactions::moved::Moved;
use crate::transactions::read::Seen;
use crate::transactions::steps::{FIRST_BATCH, Steps, Words, check_index, order_of};
use crate::transactions::transaction::Transaction;
use crate::types::error::{Conflict, Error, Result};
use crate::types::isolation::Isolation;
use crate::types::position::Position;
use crate::types::range::Range;
use crate::types::row::Row;
use crate::types::row_id::RowId;
use crate::types::running::TransactionId;
use crate::types::transaction_options::ConflictPolicy;

/// Iterates over a range of rows, and lets its transaction write meanwhile.
///
/// Unlike a [`Scan`](crate::Scan), a cursor lets its transaction write between two rows, and can
/// lock the rows that it comes to. If the transaction changes the columns of the index in a row
/// that the cursor has returned, and so moves the row further along the range, the cursor does not
/// return it again. Other rows that are moved or inserted meanwhile may or may not be returned.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]))?;
/// let mut txn = db.begin()?;
/// for id in 0..5u64 {
///     txn.insert(&t, &[id.into(), 10i64.into()])?;
/// }
/// let mut cursor = txn.cursor(&t, Range::all())?;
/// while let Some(row) = cursor.next(&txn)? {
///     let id: u64 = row.get("id")?;
///     if id % 2 == 0 {
///         let place = cursor.row_id().expect("it has come to a row");
///         txn.delete_row(&t, place)?;
///     }
/// }
/// assert_eq!(txn.scan(&t, Range::all())?.count(), 2);
/// # Ok::<(), Error>(())
/// ```
pub struct Cursor {
    table: Table,
    index: Option<Arc<IndexInner>>,
    steps: Steps,
    /// Where its range begins.
    near: Bound<Words>,
    /// The transaction and the statement that it is of.
    of: (TransactionId, u64),
    row: Option<TupleId>,
    /// The one before.
    row_before: Option<TupleId>,
    /// Whether it has come to an entry and could not look at it: reading failed, or the program's own code panicked,
    /// for which it waited ([`Transaction::interrupt_when`]).
    is_unsettled: bool,
    /// Of an index that may be written to.
    moved: Option<Moved>,
}

impl Transaction {
    /// A cursor before the first row of a range of primary keys.
    ///
    /// # Errors
    /// As [`Transaction::scan`].
    pub fn cursor(&self, table: &Table, range: Range<'_>) -> Result<Cursor> {
        self.cursor_of(table, None, range)
    }

    /// A cursor before the first row of a range of keys of a secondary index.
    ///
    /// # Errors
    /// As [`Transaction::scan_index`].
    pub fn index_cursor(&self, index: &Index, range: Range<'_>) -> Result<Cursor> {
        self.cursor_of(&index.table, Some(&index.inner), range)
    }

    fn cursor_of(&self, table: &Table, index: Option<&Arc<IndexInner>>, range: Range<'_>) -> Result<Cursor> {
        let steps = self.steps(&table.inner, index.map(|i| &**i), range, FIRST_BATCH)?;
        self.has_cursors.set(true);
        let moved = self.tell_moves(&table.inner, index);
        Ok(Cursor {
            table: table.clone(),
            index: index.cloned(),
            near: steps.near(),
            steps,
            of: self.statement_id(),
            row: None,
            row_before: None,
            is_unsettled: false,
            moved,
        })
    }

    fn statement_id(&self) -> (TransactionId, u64) {
        (self.id(), self.statements)
    }

    fn tell_moves(&self, table: &TableInner, index: Option<&Arc<IndexInner>>) -> Option<Moved> {
        let index = index.filter(|_| !self.read_only)?;
        Some(self.told.begin(table.id, index.number))
    }
}

impl Cursor {
    /// The next row, as the transaction sees it.
    ///
    /// # Errors
    /// As [`Transaction::get`], and [`Error::UnknownCursor`] if another transaction has made the cursor, or
    /// another statement ([`Transaction::end_statement`]).
    pub fn next<'c>(&'c mut self, txn: &'c Transaction) -> Result<Option<Row<'c>>> {
        self.check(txn)?;
        self.settle();
        self.note_moved();
        let (table, index) = (&*self.table.inner, self.index.as_deref());
        self.steps.take_more();
        while let Some(tuple) = self.steps.advance(txn, table, index) {
            if self.moved.as_ref().is_some_and(|moved| moved.is_met_again(tuple)) {
                continue;
            }
            self.is_unsettled = true;
            let visited = self.steps.visit(txn, table, index, tuple)?;
            self.is_unsettled = false;
            if let Some(row) = visited
                && !self.steps.skip_row()
            {
                self.steps.count_row_and_keep();
                self.row_before = self.row.replace(tuple);
                if let Some(moved) = &mut self.moved {
                    moved.has_come(tuple);
                }
                return Ok(Some(txn.row(&self.table, row, self.steps.at())));
            }
        }
        Ok(None)
    }

    /// Locks the next row and returns it. No other transaction can change the row before this one
    /// ends.
    ///
    /// At read committed this is the newest committed row, which may be newer than the statement.
    /// Rows that others move meanwhile are found where they are then, if that lies ahead of the cursor.
    /// With `skip_locked`, the cursor skips rows that others have locked.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`], and [`Error::UnknownCursor`].
    pub fn next_for_update<'c>(
        &'c mut self,
        txn: &'c mut Transaction,
        skip_locked: bool,
    ) -> Result<Option<Row<'c>>> {
        self.check(txn)?;
        txn.check_lock(&self.table.inner)?;
        self.settle();
        self.note_moved();
        self.steps.take_more();
        let found = match skip_locked {
            true => self.find_and_hold(Unwaiting::of(txn).txn, true),
            false => self.find_and_hold(txn, false),
        };
        let Some((tuple, held)) = found? else { return Ok(None) };
        self.row_before = self.row.replace(tuple);
        if let Some(moved) = &mut self.moved {
            moved.has_come(tuple);
        }
        Ok(txn.held_row(&self.table, held))
    }

    fn find_and_hold(&mut self, txn: &mut Transaction, skip_locked: bool) -> Result<Option<(TupleId, Held)>> {
        let follows = self.follows(txn);
        while let Some(tuple) = self.advance(txn, follows) {
            let skips = self.steps.skips();
            let is_met_again = self.moved.as_ref().is_some_and(|moved| moved.is_met_again(tuple));
            self.is_unsettled = true;
            let held = if is_met_again { Ok(None) } else { self.hold(txn, tuple) };
            self.is_unsettled = false;
            match held {
                Ok(None) if follows && !skips && !is_met_again && self.has_changed(txn, tuple) => {
                    // Of one that is dropped, those who change rows now know nothing.
                    check_index(&self.table.inner, self.index.as_deref())?;
                    if self.steps.go_back(txn, &self.near) {
                        continue;
                    }
                }
                Ok(None) => {}
                Err(Error::Conflict { conflict: Conflict::Locked, .. }) if skip_locked => {}
                Ok(Some(held)) => {
                    self.steps.count_row_and_keep();
                    return Ok(Some((tuple, held)));
                }
                Err(error) => {
                    self.is_unsettled = true;
                    return Err(error);
                }
            }
            if follows {
                self.steps.pass();
                if skips {
                    // Rows that were left out are not met when it goes back.
                    self.near = Bound::Excluded(self.steps.passed().clone());
                }
            }
        }
        Ok(None)
    }

    /// An entry that it could not look at is the next one again.
    fn settle(&mut self) {
        if std::mem::take(&mut self.is_unsettled) {
            self.steps.step_back();
        }
    }

    fn advance(&mut self, txn: &Transaction, follows: bool) -> Option<TupleId> {
        let (table, index) = (&*self.table.inner, self.index.as_deref());
        match follows {
            true => self.steps.advance_live(txn, table, index, &self.near),
            false => self.steps.advance(txn, table, index),
        }
    }

    /// Whether it locks the newest rows, so that it has to follow the changes of others. At other levels those are
    /// conflicts, but for a cursor that reads what was there before its transaction took a snapshot.
    fn follows(&self, txn: &Transaction) -> bool {
        txn.isolation == Isolation::ReadCommitted || txn.reads_wider && self.steps.at() < txn.ts
    }

    /// Whether a row that is not where its entry says has been changed since the entries around were read. Its new entry,
    /// or that of the row that has taken its place, may then lie where the cursor has been.
    fn has_changed(&self, txn: &Transaction, tuple: TupleId) -> bool {
        let _pin = txn.core.registry.pin(txn.slot);
        let anchor = Anchor::load(self.table.inner.anchor(tuple));
        // A dead one had lost its row before the statement began.
        !anchor.is_dead() && txn.begin_of(anchor.newest()) >= self.steps.seen()
    }

    /// Notes the rows that have been moved since it stands where it is. Those that it had come to, it would come
    /// to again if they were moved on.
    fn note_moved(&mut self) {
        if let Some(moved) = &mut self.moved {
            let (row, steps) = (self.row, &self.steps);
            // At read committed the row may have got another entry since.
            moved.look(|entry| row == Some(entry.tuple) || steps.has_passed(&entry.key));
        }
    }

    /// Locks the tuple that was come to, unless the transaction does not see it in
    /// the range or it is to be left out.
    fn hold(&mut self, txn: &mut Transaction, tuple: TupleId) -> Result<Option<Held>> {
        let (table, index) = (&*self.table.inner, self.index.as_deref());
        if self.steps.skips() {
            if self.steps.visit(txn, table, index, tuple)?.is_some() {
                self.steps.skip_row();
            }
            return Ok(None);
        }
        if !self.follows(txn) && self.steps.visit(txn, table, index, tuple)?.is_none() {
            return Ok(None);
        }
        let undo = txn.buffers.undo.len();
        let Some(held) = txn.hold(table, tuple)? else { return Ok(None) };
        // Whether it is in the range is read from a whole row only.
        let verified = if txn.is_row(held) { txn.verify_held(held) } else { Ok(()) };
        let outcome = verified.map(|()| match txn.current(table, held) {
            Seen::Row(row) if self.steps.leads_to(index, tuple, &row) => Some(held),
            _ => None,
        });
        if !matches!(outcome, Ok(Some(_))) {
            // What gets the entry's key from here on is committed above what has been seen, also if the entry is there already.
            if self.follows(txn) && txn.mark(self.steps.seen()).is_some() {
                txn.core.marks.raise(table.id, tuple, self.steps.seen());
            }
            txn.undo_to(undo);
        }
        outcome
    }

    /// Continues from the row that the cursor has returned last, up or down, in this transaction.
    ///
    /// The cursor then goes as far as the index does, whatever its range was. A cursor that has
    /// returned no row is not changed, and stays with the transaction that it belongs to.
    ///
    /// # Errors
    /// As [`Transaction::cursor`].
    pub fn turn(&mut self, txn: &Transaction, reverse: bool) -> Result<()> {
        if self.steps.row_key().is_empty() {
            return Ok(());
        }
        let goes_on = self.check(txn).is_ok() && self.steps.is_reverse() == reverse;
        self.steps.restart(txn, &self.table.inner, self.index.as_deref(), reverse)?;
        self.near = self.steps.near();
        self.is_unsettled = false;
        if !goes_on {
            self.moved = txn.tell_moves(&self.table.inner, self.index.as_ref());
        }
        // Now only: what it reads with is the transaction's own moment and notes.
        self.of = txn.statement_id();
        txn.has_cursors.set(true);
        Ok(())
    }

    /// Makes the row that was returned last the next one again, because nobody has received it.
    #[doc(hidden)]
    pub fn step_back(&mut self) {
        self.row = self.row_before.take();
        self.steps.uncount_row();
    }

    /// Identifies the row that the cursor has returned last.
    pub fn row_id(&self) -> Option<RowId> {
        self.row.map(|tuple| RowId(tuple.0))
    }

    /// The position behind the row that the cursor has returned last. Later ranges over the same
    /// index can begin there, in any transaction.
    pub fn position(&self) -> Option<Position> {
        let key = self.steps.row_key().to_vec();
        let order = order_of(&self.table.inner, self.index.as_deref());
        (!key.is_empty()).then_some(Position { order, key })
    }

    fn check(&self, txn: &Transaction) -> Result<()> {
        // Transactions of two databases may have one id.
        let is_own = txn.statement_id() == self.of && txn.core.tables.is_of_this(&self.table.inner);
        if is_own { Ok(()) } else { Err(Error::UnknownCursor) }
    }
}

/// A transaction that waits for no lock, and has its own policy again after that, also where the program's own code
/// panics.
struct Unwaiting<'t> {
    txn: &'t mut Transaction,
    policy: ConflictPolicy,
}

impl<'t> Unwaiting<'t> {
    fn of(txn: &'t mut Transaction) -> Self {
        let policy = std::mem::replace(&mut txn.policy, ConflictPolicy::Abort);
        Self { txn, policy }
    }
}

impl Drop for Unwaiting<'_> {
    fn drop(&mut self) {
        self.txn.policy = self.policy;
    }
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor")
            .field("table", &self.table.name())
            .field("row", &self.row)
            .finish_non_exhaustive()
    }
}
