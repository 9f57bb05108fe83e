//! Many rows in one call: counting, inserting and deleting them.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use pantile_base::Timestamp;
use smallvec::SmallVec;

use crate::engine::index::IndexInner;
use crate::engine::memory_limit::Adds;
use crate::engine::table::{Index, Table};
use crate::transactions::fetch::{Keys, TOGETHER};
use crate::transactions::hold::Which;
use crate::transactions::row_edit::RowEdit;
use crate::transactions::steps::WHOLE_BATCH;
use crate::transactions::transaction::Transaction;
use crate::transactions::whole::Whole;
use crate::types::columns::ColumnRef;
use crate::types::error::Result;
use crate::types::isolation::Isolation;
use crate::types::owned_value::OwnedValue;
use crate::types::range::Range;
use crate::types::row::Row;
use crate::types::value::Value;

impl Transaction {
    /// Counts the rows in a range of primary keys, as this transaction sees them.
    ///
    /// The call looks at each row; [`Transaction::estimate`] does not.
    ///
    /// # Errors
    /// As [`Transaction::scan`].
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).primary_key(["id"]))?;
    /// let mut txn = db.begin()?;
    /// assert!(txn.is_empty(&t, Range::all())?);
    /// assert_eq!(txn.insert_many(&t, (0..100u64).map(|id| [id.into()]))?, 100);
    /// assert_eq!(txn.count(&t, Range::all())?, 100);
    /// let from: [Value; 1] = [90u64.into()];
    /// assert_eq!(txn.delete_range(&t, Range::all().from(std::ops::Bound::Included(&from)))?, 10);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn count(&self, table: &Table, range: Range<'_>) -> Result<u64> {
        self.count_tree(table, None, range)
    }

    /// Counts the rows in a range of keys of a secondary index.
    ///
    /// # Errors
    /// As [`Transaction::scan_index`].
    pub fn count_index(&self, index: &Index, range: Range<'_>) -> Result<u64> {
        self.count_tree(&index.table, Some(&index.inner), range)
    }

    /// Whether a range of primary keys has no row.
    ///
    /// # Errors
    /// As [`Transaction::scan`].
    pub fn is_empty(&self, table: &Table, range: Range<'_>) -> Result<bool> {
        let limit = range.limit.min(1);
        Ok(self.count(table, range.limit(limit))? == 0)
    }

    fn count_tree(&self, table: &Table, index: Option<&IndexInner>, range: Range<'_>) -> Result<u64> {
        let inner = &*table.inner;
        let batch = range.limit.saturating_add(range.skip).min(WHOLE_BATCH);
        let mut steps = self.steps(inner, index, range, batch)?;
        let mut rows = 0;
        while let Some(tuple) = steps.advance(self, inner, index) {
            if steps.visit(self, inner, index, tuple)?.is_some() && !steps.skip_row() {
                steps.count_row();
                rows += 1;
            }
        }
        Ok(rows)
    }

    /// Adds rows, all of them or none. Returns their number.
    ///
    /// The cache misses of the rows overlap, as with [`Transaction::get_many`].
    ///
    /// # Errors
    /// As [`Transaction::insert`]. If the call fails, or `rows` panics, no row has been added.
    pub fn insert_many<'v, R: AsRef<[Value<'v>]>>(
        &mut self,
        table: &Table,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<u64> {
        self.begin_write();
        let whole = Whole::begin(self);
        let (mut rows, mut together, mut added) = (rows.into_iter().fuse(), Vec::new(), 0);
        loop {
            together.clear();
            together.extend(rows.by_ref().take(TOGETHER));
            if together.is_empty() {
                whole.end();
                return Ok(added);
            }
            whole.txn.put_together(table, &together)?;
            added += together.len() as u64;
        }
    }

    fn put_together<'v, R: AsRef<[Value<'v>]>>(&mut self, table: &Table, rows: &[R]) -> Result<()> {
        self.check_write(&table.inner)?;
        // Nothing of the program's runs while rows lack keys.
        let rows: SmallVec<[&[Value<'v>]; TOGETHER]> = rows.iter().map(AsRef::as_ref).collect();
        let at = self.statement();
        let tuples = self.look_up_rows(table, &rows, at);
        self.gathered = (rows.len() > 1 && self.under.is_none()).then(SmallVec::new);
        let put = rows.iter().enumerate().try_for_each(|(n, row)| {
            let looked_up = tuples.map(|tuples| tuples[n]).filter(|_| self.reads_still(at));
            self.put(table, row, looked_up, false).map(drop)
        });
        let gathered = self.gathered.take().unwrap_or_default();
        put.and_then(|()| self.enter_gathered(&table.inner, &gathered))
    }

    /// Whether what it has looked up when it read at `at` holds: it may have begun again,
    /// and at read committed the next statement reads later.
    fn reads_still(&self, at: Timestamp) -> bool {
        self.ts == at && self.isolation != Isolation::ReadCommitted
    }

    /// Changes columns of the rows with these primary keys. Returns how many of the keys have a
    /// row.
    ///
    /// The cache misses of the rows overlap, as with [`Transaction::get_many`].
    ///
    /// # Errors
    /// As [`Transaction::modify`]. If the call fails, no row has been changed.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]))?;
    /// let mut txn = db.begin()?;
    /// txn.insert_many(&t, (0..100u64).map(|id| [id.into(), 0i64.into()]))?;
    /// let changes = [([Value::UInt(4)], [("n", Value::Int(1))]), ([Value::UInt(70)], [("n", Value::Int(2))])];
    /// assert_eq!(txn.update_many(&t, &changes)?, 2);
    /// assert_eq!(txn.modify_many(&t, &[[Value::UInt(4)], [Value::UInt(500)]], |_, row| {
    ///     let n: i64 = row.get("n")?;
    ///     row.set("n", (n + 1).into()).map(|()| true)
    /// })?, 1);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn update_many<'k, 'v, K, D, C>(&mut self, table: &Table, changes: &[(K, D)]) -> Result<u64>
    where
        K: AsRef<[Value<'k>]>,
        D: AsRef<[(C, Value<'v>)]>,
        C: ColumnRef,
    {
        let keys: Vec<_> = changes.iter().map(|(key, _)| key.as_ref()).collect();
        self.write_many(table, &keys, |txn, n, which| {
            txn.update_held(table, which, keys[n], changes[n].1.as_ref())
        })
    }

    /// Locks the rows with these primary keys and lets `edit` read and change each, as
    /// [`Transaction::modify`] does. Returns for how many of the keys a row was changed.
    ///
    /// `edit` is also given the number of the key in `keys`. The cache misses of the rows overlap,
    /// as with [`Transaction::get_many`].
    ///
    /// # Errors
    /// As [`Transaction::modify`]. If the call fails, or `edit` panics, no row has been changed.
    pub fn modify_many<'v, K: AsRef<[Value<'v>]>>(
        &mut self,
        table: &Table,
        keys: &[K],
        mut edit: impl FnMut(usize, &mut RowEdit<'_>) -> Result<bool>,
    ) -> Result<u64> {
        self.write_many(table, keys, |txn, n, which| txn.modify_held(table, which, |row| edit(n, row)))
    }

    /// Writes the rows with these keys by `write`, which is given the number of each. Returns how many it has
    /// found.
    fn write_many<'v, K: AsRef<[Value<'v>]>>(
        &mut self,
        table: &Table,
        keys: &[K],
        mut write: impl FnMut(&mut Self, usize, Which<'_>) -> Result<bool>,
    ) -> Result<u64> {
        self.begin_write();
        let whole = Whole::begin(self);
        let mut written = 0;
        for (chunk, together) in keys.chunks(TOGETHER).enumerate() {
            let write = |txn: &mut Self, n, which: Which<'_>| write(txn, chunk * TOGETHER + n, which);
            written += whole.txn.write_together(table, together, write)?;
        }
        whole.end();
        Ok(written)
    }

    fn write_together<'v, K: AsRef<[Value<'v>]>>(
        &mut self,
        table: &Table,
        keys: &[K],
        mut write: impl FnMut(&mut Self, usize, Which<'_>) -> Result<bool>,
    ) -> Result<u64> {
        self.check_write(&table.inner)?;
        let keys = Keys::of(&table.inner, keys)?;
        let at = self.statement();
        let tuples = self.look_up(&table.inner, &keys, at);
        let mut written = 0;
        for (n, (key, tuple)) in keys.iter().zip(tuples).enumerate() {
            self.check_memory(&table.inner, Adds::Version)?;
            let which = Which::Key(key, tuple.filter(|_| self.reads_still(at)));
            written += u64::from(self.or_undo(|txn| write(txn, n, which))?);
        }
        Ok(written)
    }

    /// Deletes the rows of a range of primary keys. Returns how many there were.
    ///
    /// # Errors
    /// As [`Transaction::delete`]. If the call fails, no row is deleted. A transaction can delete
    /// some millions of rows at most
    /// ([`Error::TransactionTooLarge`](crate::Error::TransactionTooLarge)).
    /// [`Database::truncate_table`](crate::Database::truncate_table) removes any number.
    pub fn delete_range(&mut self, table: &Table, range: Range<'_>) -> Result<u64> {
        // Not a length of the list of changes, which gets shorter where it is long.
        let before = self.savepoint();
        let outcome = catch_unwind(AssertUnwindSafe(|| self.delete_rows_of(table, range)));
        let undone = if let Ok(Ok(_)) = outcome { Ok(()) } else { self.rollback_to(before) };
        self.release(before);
        let outcome = outcome.unwrap_or_else(|panic| resume_unwind(panic));
        undone.and(outcome)
    }

    fn delete_rows_of(&mut self, table: &Table, range: Range<'_>) -> Result<u64> {
        let mut cursor = self.cursor(table, range)?;
        let mut deleted = 0;
        while cursor.next_for_update(self, false)?.is_some() {
            if let Some(row) = cursor.row_id() {
                deleted += u64::from(self.delete_row(table, row)?);
            }
        }
        Ok(deleted)
    }

    /// Adds a row or replaces the one with its primary key. Returns the values of the row that was
    /// replaced, if there was one.
    ///
    /// # Errors
    /// As [`Transaction::upsert`].
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]))?;
    /// let mut txn = db.begin()?;
    /// assert_eq!(txn.replace(&t, &[1u64.into(), 5i64.into()])?, None);
    /// assert_eq!(txn.replace(&t, &[1u64.into(), 6i64.into()])?, Some(vec![1u64.into(), 5i64.into()]));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn replace(&mut self, table: &Table, values: &[Value<'_>]) -> Result<Option<Vec<OwnedValue>>> {
        self.replace_read(table, values, |row| row.to_values())
    }

    /// The same; returns what `read` makes of the row that there was.
    pub(crate) fn replace_read<R>(
        &mut self,
        table: &Table,
        values: &[Value<'_>],
        read: impl FnOnce(&Row<'_>) -> Result<R>,
    ) -> Result<Option<R>> {
        self.begin_write();
        let whole = Whole::begin(self);
        let before = whole.txn.replace_row_of(table, values, read)?;
        whole.end();
        Ok(before)
    }

    fn replace_row_of<R>(
        &mut self,
        table: &Table,
        values: &[Value<'_>],
        read: impl FnOnce(&Row<'_>) -> Result<R>,
    ) -> Result<Option<R>> {
        let schema = table.inner.schema();
        let of_key = |id: &usize| table.columns.value(values, schema, *id);
        let key: Option<Vec<_>> =
            (values.len() == table.columns.len()).then(|| schema.primary_key.iter().map(of_key).collect());
        let mut read = Some(read);
        loop {
            let undo = self.buffers.undo.len();
            let row = match &key {
                Some(key) => self.get_for_update(table, key)?,
                // What is wrong is said below.
                None => None,
            };
            // It is read at most once: with a row, the loop ends.
            let before = match row {
                Some(row) => read.take().map(|read| read(&row)).transpose()?,
                None => None,
            };
            if !self.put(table, values, None, true)? || before.is_some() {
                return Ok(before);
            }
            // At read committed another transaction has added the row since the look at it.
            self.undo_to(undo);
        }
    }
}
