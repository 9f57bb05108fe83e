//! Moving a serializable writer to a later timestamp.
//!
//! There are two cases. If another writer has changed a row first, and this one has read and
//! written nothing yet, this one begins again. If later transactions have read what it writes, it
//! commits after them, provided that everything that it has read is still the same.
//!
//! CockroachDB pushes timestamps and refreshes reads in this way (R. Taft et al., "CockroachDB: The
//! Resilient Geo-Distributed SQL Database", SIGMOD 2020, 3.3 and 3.4).

use std::sync::Arc;

use pantile_base::control::{Control, is_removed};
use pantile_base::sync::hint;
use pantile_base::{TableId, Timestamp, TupleId};
use pantile_cc::Slot;
use pantile_index::Batch;

use crate::engine::anchor::{Anchor, Owner};
use crate::engine::read_set::RangeRead;
use crate::engine::table::{PRIMARY, TableInner};
use crate::engine::writes::Write;
use crate::transactions::transaction::Transaction;
use crate::types::error::{Conflict, Error, Result};

/// Rows that are looked at before anybody waits for that, if there are as many.
const MANY: u64 = 256;

impl Transaction {
    /// Whether it has read and written nothing, has no cursor that reads at its
    /// timestamp, and the program knows nothing of that, so that it may as well begin
    /// now.
    #[inline]
    pub(super) fn is_fresh(&self) -> bool {
        let buffers = &self.buffers;
        self.moves
            && !self.is_known.get()
            && !self.has_cursors.get()
            && buffers.writes.is_empty()
            && self.versions_read.get() == 0
            && (buffers.reads.is_empty() || is_removed(Control::FreshHaveRead))
    }

    /// Begins now, so that it comes behind what others have written meanwhile.
    #[cold]
    pub(super) fn begin_again(&mut self) {
        self.core.stage.pass(self.core.options.wait_to_begin());
        self.ts = self.core.registry.begin_again(self.slot);
        self.core.buffers.with_holder(self.slot, |holder| {
            (holder.reads_at, holder.is_noted) = (self.ts, false);
        });
    }

    /// The timestamp at which a serializable transaction writes: the one at
    /// which it reads, or a later one if later transactions have read what it
    /// writes. It has announced that it decides (I-21).
    pub(super) fn settle(&self) -> Result<Timestamp> {
        let writes = !self.buffers.appends.is_empty();
        if !self.moves || !writes || !(self.must_move.get() || self.is_read_by_later()) {
            return Ok(self.ts);
        }
        self.move_later()
    }

    #[cold]
    fn move_later(&self) -> Result<Timestamp> {
        let registry = &self.core.registry;
        registry.set_moving(self.slot);
        // However far the clocks of cores are apart, it comes behind those who have read what it writes.
        let marks = self.buffers.appends.iter().map(|&n| self.mark_of(&self.buffers.writes[n as usize]));
        marks.for_each(|mark| self.come_behind(mark));
        let to = registry.draw_commit(self.slot, self.newest_met.get());
        // Those who wait for it may be below its bound.
        registry.wake(self.slot);
        // Transactions that begin from here on are later.
        registry.await_passed(to);
        self.read_again(to)?;
        Ok(to)
    }

    fn is_read_by_later(&self) -> bool {
        let buffers = &self.buffers;
        !is_removed(Control::MarksAtCommit)
            && buffers.appends.iter().any(|&n| self.has_later_mark(&buffers.writes[n as usize]))
    }

    pub(super) fn has_later_mark(&self, write: &Write) -> bool {
        self.mark_of(write) > self.ts
    }

    fn mark_of(&self, write: &Write) -> Timestamp {
        let table = &self.buffers.tables[write.table as usize].table;
        self.core.marks.highest(table.id, write.tuple)
    }

    /// Looks at all that it has read, if the transaction will probably move, before
    /// anybody waits for it. What lies on the device comes into memory, so that readers
    /// wait for what takes nanoseconds a row (I-21).
    #[inline]
    pub(super) fn read_ahead(&self) {
        if self.moves && self.versions_read.get() >= MANY {
            self.read_much_ahead();
        }
    }

    #[cold]
    fn read_much_ahead(&self) {
        if self.must_move.get() || self.buffers.writes.iter().any(|write| self.has_later_mark(write)) {
            // What is wrong shows when it counts.
            let _ = self.each_again(None, |table, tuple| {
                let _pin = self.core.registry.pin(self.slot);
                let newest = Anchor::load(table.anchor(tuple)).newest();
                // Where it lies, whether there is a copy or not: the copy may be gone when it counts.
                std::hint::black_box(self.core.store.is_row(newest));
                self.check_ended()
            });
        }
    }

    /// Makes sure that all that it has read is the same at `to`, and stays so
    /// (I-22).
    fn read_again(&self, to: Timestamp) -> Result<()> {
        let mark = (!is_removed(Control::MarksMove)).then_some(to);
        self.each_again(mark, |table, tuple| self.row_again(table, tuple, to))
    }

    /// Calls `look` with each row that it has read, and leaves marks in the ranges.
    fn each_again(
        &self,
        mark: Option<Timestamp>,
        look: impl Fn(&TableInner, TupleId) -> Result<()>,
    ) -> Result<()> {
        let mut last: Option<Arc<TableInner>> = None;
        if !is_removed(Control::RowsReadAgain) {
            for point in self.buffers.reads.points().iter() {
                let table = match last.take() {
                    Some(table) if table.id == point.table => table,
                    _ => self.table_again(point.table)?,
                };
                look(&table, point.tuple)?;
                last = Some(table);
            }
        }
        for range in self.buffers.reads.ranges().iter() {
            let table = self.table_again(range.table)?;
            self.range_again(&table, range, mark, &look)?;
        }
        Ok(())
    }

    /// A table that it has read. If it was dropped or renamed, a reader before `to` may
    /// have found another that has its name now, and this one comes after that reader.
    /// If that happens later than `to`, it is found as it was: it loses its name
    /// before others can begin that find another.
    pub(super) fn table_again(&self, id: TableId) -> Result<Arc<TableInner>> {
        let tables = &self.core.tables;
        let table = tables.in_use(id).ok_or_else(|| Error::TableDropped(format!("number {}", id.0)))?;
        let is_gone = tables.by_id(id).is_none() || tables.was_renamed(id, self.ts);
        match is_gone && !is_removed(Control::DroppedAreChanged) {
            true => Err(table.conflict(Conflict::ReadChanged)),
            false => Ok(table),
        }
    }

    pub(super) fn range_again(
        &self,
        table: &TableInner,
        range: &RangeRead,
        mark: Option<Timestamp>,
        look: impl Fn(&TableInner, TupleId) -> Result<()>,
    ) -> Result<()> {
        if is_removed(Control::RangesReadAgain) {
            return Ok(());
        }
        let mut cursor = range.cursor();
        let indexes = table.indexes();
        let index = indexes.iter().find(|i| i.number == range.index);
        let tree = match index {
            Some(index) => index.tree(),
            None if range.index == PRIMARY => table.tree(),
            None => return Err(table.conflict(Conflict::ReadChanged)),
        };
        let mut batch = Batch::new();
        while cursor.next_batch(tree, mark.map(Timestamp::get), &mut batch) {
            for (_, tuple) in batch.iter() {
                look(table, TupleId(tuple))?;
            }
        }
        // Writers that began after an index was dropped do not maintain it. If
        // it is still there, they are above `to`.
        if index.is_some_and(|index| !index.is_ready()) {
            return Err(table.conflict(Conflict::ReadChanged));
        }
        Ok(())
    }

    /// Makes sure that nobody has published, or will, a version of a tuple
    /// between this transaction's reads and `to`.
    fn row_again(&self, table: &TableInner, tuple: TupleId, to: Timestamp) -> Result<()> {
        let cell = table.anchor(tuple);
        if !is_removed(Control::MarksMove) {
            self.core.marks.raise(table.id, tuple, to);
        }
        loop {
            let pin = self.core.registry.pin(self.slot);
            let anchor = Anchor::load(cell);
            if anchor.is_owned_by(self.slot) {
                return Ok(());
            }
            if let Owner::Transaction(holder) = anchor.owner() {
                let registry = &self.core.registry;
                let moves = registry.will_look_at_marks(holder);
                let bound = registry.pending(holder);
                if Anchor::load(cell) != anchor {
                    hint::spin_loop();
                    continue;
                }
                if bound <= to && !moves {
                    drop(pin);
                    // It may have more to do before it decides, and waits for others there.
                    let over = || Anchor::load(cell) != anchor || registry.will_look_at_marks(holder);
                    self.await_decided(table, holder, bound, over)?;
                    continue;
                }
            }
            return match self.begin_of(anchor.newest()) <= self.ts {
                true => Ok(()),
                false => Err(table.conflict(Conflict::ReadChanged)),
            };
        }
    }

    /// Waits for another transaction that is committing. Only the one whose
    /// bound is higher waits, so no two wait for each other.
    pub(super) fn await_decided(
        &self,
        table: &TableInner,
        holder: Slot,
        bound: Timestamp,
        over: impl Fn() -> bool,
    ) -> Result<()> {
        if bound > self.core.registry.pending(self.slot) {
            return Err(table.conflict(Conflict::ReadChanged));
        }
        // It would wait with its locks and its bound, for which others wait in turn.
        match self.await_commit(table, holder, bound, over)? {
            true => Err(table.conflict(Conflict::Locked)),
            false => Ok(()),
        }
    }
}
