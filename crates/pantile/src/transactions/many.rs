//! Many rows in one call: counting, inserting and deleting them.

use crate::engine::table::{Index, IndexInner, Table};
use crate::transactions::steps::WHOLE_BATCH;
use crate::transactions::transaction::Transaction;
use crate::types::error::Result;
use crate::types::owned_value::OwnedValue;
use crate::types::range::Range;
use crate::types::row::Row;
use crate::types::value::Value;

impl Transaction {
    /// How many rows a range of primary keys has, as this transaction sees them. It
    /// looks at each of them; [`Transaction::estimate`] does not.
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

    /// How many rows a range of keys of a secondary index has.
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
        Ok(self.count(table, range.limit(1))? == 0)
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

    /// Adds rows, all of them or none. Returns how many they are.
    ///
    /// # Errors
    /// As [`Transaction::insert`]; no row has been added then.
    pub fn insert_many<'v, R: AsRef<[Value<'v>]>>(
        &mut self,
        table: &Table,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<u64> {
        self.begin_write();
        let undo = self.buffers.undo.len();
        let mut added = 0;
        for row in rows {
            if let Err(error) = self.put(table, row.as_ref(), false) {
                self.undo_to(undo);
                return Err(error);
            }
            added += 1;
        }
        Ok(added)
    }

    /// Deletes the rows of a range of primary keys. Returns how many there were.
    ///
    /// # Errors
    /// As [`Transaction::delete`]; the rows before the one with the error are
    /// deleted. A transaction deletes some millions of rows at most
    /// ([`Error::TransactionTooLarge`](crate::Error::TransactionTooLarge));
    /// [`Database::truncate_table`](crate::Database::truncate_table) any number.
    pub fn delete_range(&mut self, table: &Table, range: Range<'_>) -> Result<u64> {
        let mut cursor = self.cursor(table, range)?;
        let mut deleted = 0;
        while cursor.next_for_update(self, false)?.is_some() {
            if let Some(row) = cursor.row_id() {
                deleted += u64::from(self.delete_row(table, row)?);
            }
        }
        Ok(deleted)
    }

    /// Adds a row or replaces the one with its primary key. Returns the values of
    /// the row that there was.
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
        let undo = self.buffers.undo.len();
        let outcome = self.replace_row_of(table, values, read);
        if outcome.is_err() {
            self.undo_to(undo);
        }
        outcome
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
        let before = match key {
            Some(key) => self.get_for_update(table, &key)?.map(|row| read(&row)).transpose()?,
            // What is wrong is said below.
            None => None,
        };
        self.put(table, values, true)?;
        Ok(before)
    }
}
