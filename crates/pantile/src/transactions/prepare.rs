//! The first phase of a two-phase commit. A transaction records what it has changed. From then on
//! its commit can fail only because of the medium (I-32).
//!
//! A separate transaction writes the record, as rows of the table `#prepared`. The commit writes
//! the recorded changes and deletes these rows together, so one piece of evidence covers both.
//! `api/prepared.rs` keeps prepared transactions by name, and makes them again when the database is
//! opened.

use std::sync::Arc;

use pantile_base::control::{Control, is_removed};
use pantile_base::{TableId, Timestamp};

use crate::engine::core::Core;
use crate::engine::pieces;
use crate::engine::prepared::Prepared;
use crate::engine::seats::Seat;
use crate::engine::table::Table;
use crate::engine::writes::Pending;
use crate::transactions::transaction::Transaction;
use crate::types::error::{Error, Result};
use crate::types::isolation::Isolation;
use crate::types::pieces::PIECE;
use crate::types::prepared_record::{self as record, Change};
use crate::types::value::Value;

/// The part of a record that says why it cannot be repeated.
pub(crate) const BROKEN: u32 = u32::MAX;

/// The key of a row of the record.
fn key(name: &[u8], part: usize) -> [Value<'_>; 2] {
    [Value::Bytes(name), Value::UInt(part as u64)]
}

impl Transaction {
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn seat(&self) -> Seat {
        Seat::clone(&self.core)
    }

    /// Whether it can write behind its record: it draws its timestamp at the commit, or
    /// can move. No protocol of the laboratory keeps what it has read until then.
    pub(crate) fn can_be_prepared(&self) -> bool {
        self.under.is_none() && (self.isolation != Isolation::Serializable || self.moves || self.read_only)
    }

    /// The tables whose rows its commit would change.
    pub(crate) fn changed_tables(&self) -> Vec<TableId> {
        let writes = self.buffers.writes.iter().filter(|write| write.pending != Pending::Nothing);
        let mut tables: Vec<_> =
            writes.map(|write| self.buffers.tables[write.table as usize].table.id).collect();
        tables.sort_unstable();
        tables.dedup();
        tables
    }

    /// All that can refuse its commit, but for its timestamp.
    pub(crate) fn check_prepare(&mut self) -> Result<()> {
        self.check_ended()?;
        self.core.check_open()?;
        let checked = self.check_definitions().and_then(|()| self.list_appends());
        // It looks again when it commits.
        self.core.registry.set_idle(self.slot);
        self.core.registry.wake(self.slot);
        checked
    }

    /// Calls `each` with what its commit would change, with values out of line in their places.
    fn each_change(&self, mut each: impl FnMut(TableId, &Change) -> Result<()>) -> Result<()> {
        for write in &self.buffers.writes {
            let used = &self.buffers.tables[write.table as usize].table;
            if pieces::is_hidden(used.id) {
                continue;
            }
            let table = Table::of(used.clone());
            let change = match write.pending {
                Pending::Nothing => continue,
                Pending::Row { start, len, layout } => {
                    let row = used.row_in(layout, &self.buffers.rows[start..start + len as usize]);
                    Change::Row(self.row(&table, row, Timestamp::MAX).to_values()?)
                }
                Pending::Tombstone => {
                    // A row that was inserted and deleted again was never there for others.
                    if !self.rows_in_use.is_row(&self.core, write.base) {
                        continue;
                    }
                    // It may have been deleted by its key, unread.
                    self.verify_newest(write.base)?;
                    let row = self.row(
                        &table,
                        used.row_of(self.rows_in_use.content(&self.core, write.base)),
                        Timestamp::MAX,
                    );
                    let columns = table.definition().primary_key;
                    Change::Deleted(columns.iter().map(|column| row.get(column)).collect::<Result<_>>()?)
                }
            };
            each(used.id, &change)?;
        }
        Ok(())
    }

    /// Writes the record of another transaction, for [`Transaction::prepare`] of that one, on whose
    /// dependencies this one depends as well. Returns the parts in which it lies. Each is a row as
    /// soon as it is full: then its memory counts.
    pub(crate) fn write_record(&mut self, table: &Table, name: &[u8], of: &mut Transaction) -> Result<usize> {
        if !is_removed(Control::PreparedDepends) {
            of.buffers.depends.get_mut().iter().for_each(|flight| self.depend_on(*flight));
        }
        let mut parts = 0;
        let mut put = |bytes: &[u8]| {
            let [name, part] = key(name, parts);
            parts += 1;
            self.insert(table, &[name, part, Value::Bytes(bytes)])
        };
        let mut bytes = record::begin();
        of.each_change(|id, change| {
            record::encode(id, change, &mut bytes);
            let full = bytes.len() / PIECE * PIECE;
            bytes[..full].chunks(PIECE).try_for_each(&mut put)?;
            bytes.drain(..full);
            Ok(())
        })?;
        if !bytes.is_empty() {
            put(&bytes)?;
        }
        Ok(parts)
    }

    /// Notes in a record why it cannot be repeated.
    pub(crate) fn mark_broken(&mut self, table: &Table, name: &[u8], why: &str) -> Result<()> {
        let [name, part] = key(name, BROKEN as usize);
        let why = &why.as_bytes()[..why.len().min(PIECE)];
        self.upsert(table, &[name, part, Value::Bytes(why)]).map(drop)
    }

    /// Deletes such a note.
    pub(crate) fn delete_mark(&mut self, table: &Table, name: &[u8]) -> Result<()> {
        self.delete_key(table, &key(name, BROKEN as usize)).map(drop)
    }

    /// Deletes a record.
    pub(crate) fn delete_record(&mut self, table: &Table, name: &[u8], parts: usize) -> Result<()> {
        (0..parts).try_for_each(|part| self.delete_key(table, &key(name, part)).map(drop))
    }

    /// What has failed is work for this transaction, which its error is not to name.
    pub(crate) fn name_another_holder(&self, error: Error) -> Error {
        self.core.name_another_holder(error, self.slot)
    }

    /// The record is durable. From here on the commit deletes it as well, and nothing
    /// refuses the commit.
    pub(crate) fn prepare(&mut self, table: &Table, name: &[u8], parts: usize) -> Result<()> {
        let core = &self.core;
        let promised = core.store.promise(self.lengths(parts));
        let promised = promised.map_err(|e| core.name_holder(core.store_error(e), self.slot))?;
        self.begin_prepared(promised);
        self.hold_record(table, name, parts)?;
        self.list_appends()?;
        if self.isolation == Isolation::Serializable {
            // Definitions were looked at before.
            let settled = self.validate_commit()?.0;
            self.core.registry.settle_at(self.slot, settled);
            self.prepared.as_mut().expect("it has just been set").settled = Some(settled);
        }
        self.end_preparing()
    }

    /// The same for one that was prepared when the database was last open.
    pub(crate) fn prepare_again(&mut self, table: &Table, name: &[u8], parts: usize) -> Result<()> {
        let promised = self.core.store.promise_again(self.lengths(parts));
        self.begin_prepared(promised);
        self.hold_record(table, name, parts)?;
        self.end_preparing()
    }

    /// One that changes nothing and has no record.
    pub(crate) fn prepare_nothing(&mut self) -> Result<()> {
        self.check_ended()?;
        self.core.check_open()?;
        // What it has read stays: others go on by it once they hear that it is prepared.
        self.await_met()?;
        self.begin_prepared(0);
        self.end_preparing()
    }

    /// The lengths of the rows that its commit writes.
    fn lengths(&self, parts: usize) -> impl Iterator<Item = usize> {
        let of_writes = self.buffers.writes.iter().map(|write| match write.pending {
            Pending::Row { len, .. } => len as usize,
            Pending::Nothing | Pending::Tombstone => 0,
        });
        of_writes.chain((0..parts).map(|_| 0))
    }

    fn begin_prepared(&mut self, promised: u64) {
        let before_record = self.buffers.undo.len();
        self.prepared = Some(Prepared { settled: None, before_record, promised });
    }

    fn end_preparing(&mut self) -> Result<()> {
        self.core.note_prepared(self.slot, self.id())?;
        self.core.registry.set_prepared(self.slot);
        self.core.registry.reads_no_more(self.slot);
        self.core.alarm.ended();
        self.leave_stage();
        self.stop = None;
        Ok(())
    }

    /// Locks the rows of its record, to delete them, and moves behind them. Nobody else
    /// reads or writes them.
    pub(crate) fn hold_record(&mut self, table: &Table, name: &[u8], parts: usize) -> Result<()> {
        if is_removed(Control::PreparedAsOne) {
            return Ok(());
        }
        let (isolation, statement_at) = (self.isolation, self.statement_at);
        (self.isolation, self.statement_at) = (Isolation::ReadCommitted, Some(Timestamp::MAX));
        let held = self.delete_record(table, name, parts);
        (self.isolation, self.statement_at) = (isolation, statement_at);
        self.must_move.set(self.moves);
        // Nobody comes in the way of a few locks that nobody else wants.
        self.leave_stage();
        held
    }

    /// Where it commits, if that has been settled.
    pub(super) fn settled_before(&self) -> Option<Timestamp> {
        self.prepared.as_ref().and_then(|prepared| prepared.settled)
    }

    /// Lets go of its record, so that another transaction can delete it.
    pub(crate) fn let_go_of_record(&mut self) {
        if let Some(before) = self.prepared.as_ref().map(|prepared| prepared.before_record) {
            self.undo_to(before);
        }
    }

    /// Its commit was refused, and it stays as it is. It will announce itself again.
    pub(crate) fn stay_prepared(&mut self) {
        if self.settled_before().is_none() {
            self.core.registry.withdraw_commit(self.slot);
        }
        self.core.registry.set_prepared(self.slot);
    }

    /// It was not prepared, or cannot be made again, but its record is there. So it stays, with what it
    /// has locked, until it is rolled back. Nobody waits for its commit.
    pub(crate) fn stay_broken(&mut self) -> Result<()> {
        self.core.registry.withdraw_commit(self.slot);
        self.core.registry.reads_no_more(self.slot);
        self.core.alarm.ended();
        self.core.registry.set_prepared(self.slot);
        self.leave_stage();
        self.core.note_prepared(self.slot, self.id())
    }

    pub(super) fn end_promise(&mut self) {
        if let Some(prepared) = self.prepared.take() {
            self.core.store.end_promise(prepared.promised);
        }
    }

    /// Makes the changes of a record again.
    pub(crate) fn repeat(&mut self, changes: &[(TableId, Change)]) -> Result<()> {
        self.repeats = true;
        let mut tables = Vec::with_capacity(changes.len());
        for (id, change) in changes {
            let table = self.core.tables.by_id(*id);
            let table = Table::of(table.ok_or_else(|| Error::TableDropped(format!("number {}", id.0)))?);
            // Keys that rows have passed on to each other are free before they are taken.
            let key = match change {
                Change::Deleted(key) => key.iter().map(|value| value.as_value()).collect(),
                Change::Row(values) => {
                    let definition = table.definition();
                    let at = |name: &String| definition.columns.iter().position(|c| c.name == *name);
                    let place = |name| at(name).and_then(|at| values.get(at));
                    let key = definition.primary_key.iter().map(place).collect::<Option<Vec<_>>>();
                    let misfit =
                        || Error::UnknownColumn { table: table.name().into(), column: "primary".into() };
                    key.ok_or_else(misfit)?.into_iter().map(|value| value.as_value()).collect::<Vec<_>>()
                }
            };
            self.delete(&table, &key)?;
            tables.push(table);
        }
        for (table, (_, change)) in tables.iter().zip(changes) {
            if let Change::Row(values) = change {
                let values: Vec<_> = values.iter().map(|value| value.as_value()).collect();
                self.insert(table, &values)?;
            }
        }
        Ok(())
    }
}
