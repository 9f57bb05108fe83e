//! Range scans.

use std::ops::Bound;

use crate::engine::index::IndexInner;
use crate::engine::table::{Index, Table, TableInner};
use crate::transactions::steps::{Steps, WHOLE_BATCH, check_index, tree_of, walk};
use crate::transactions::transaction::Transaction;
use crate::types::error::Result;
use crate::types::range::Range;
use crate::types::row::Row;
use crate::types::value::Value;

/// Iterates over the rows of a range, as its transaction sees them.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]))?;
/// let mut txn = db.begin()?;
/// for id in 0..5u64 {
///     txn.insert(&t, &[id.into(), 10i64.into()])?;
/// }
/// let mut sum = 0;
/// for row in txn.scan(&t, Range::all())? {
///     sum += row?.get::<i64>("n")?;
/// }
/// assert_eq!(sum, 50);
/// # Ok::<(), Error>(())
/// ```
pub struct Scan<'t> {
    txn: &'t Transaction,
    table: &'t Table,
    index: Option<&'t IndexInner>,
    steps: Steps,
}

impl Transaction {
    /// The rows of a range of primary keys.
    ///
    /// # Errors
    /// The call fails if a bound does not fit the key, and with
    /// [`Error::TableDropped`](crate::Error::TableDropped). Each row may be an error that
    /// [`Transaction::get`] returns.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).primary_key(["id"]))?;
    /// # let mut txn = db.begin()?;
    /// for id in 0..10u64 {
    ///     txn.insert(&t, &[id.into()])?;
    /// }
    /// let last: Vec<u64> =
    ///     txn.scan(&t, Range::all().reverse().limit(3))?.map(|row| row?.get(0)).collect::<Result<_>>()?;
    /// assert_eq!(last, [9, 8, 7]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn scan<'t>(&'t self, table: &'t Table, range: Range<'_>) -> Result<Scan<'t>> {
        self.scan_tree(table, None, range)
    }

    /// The rows of a range of keys of a secondary index, in the index's order.
    ///
    /// # Errors
    /// As [`Transaction::scan`], and [`Error::UnknownIndex`](crate::Error::UnknownIndex) if the index has
    /// been dropped.
    pub fn scan_index<'t>(&'t self, index: &'t Index, range: Range<'_>) -> Result<Scan<'t>> {
        self.scan_tree(&index.table, Some(&index.inner), range)
    }

    /// The first row with this key of a secondary index. In a unique index it is
    /// the only one.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn get_by_index<'t>(&'t self, index: &'t Index, key: &[Value<'_>]) -> Result<Option<Row<'t>>> {
        self.scan_index(index, Range::prefix(key).limit(1))?.next().transpose()
    }

    /// Estimates how many rows of a table are in a range.
    ///
    /// The call goes down the index twice, however long the range is. Rows that were deleted a
    /// moment ago may count, and so may rows of running transactions. For the whole table, it
    /// returns the number of rows that a transaction that begins now sees, unless this transaction
    /// has written much beside that.
    ///
    /// # Errors
    /// As [`Transaction::scan`].
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).primary_key(["id"]))?;
    /// # let mut txn = db.begin()?;
    /// for id in 0..1000u64 {
    ///     txn.insert(&t, &[id.into()])?;
    /// }
    /// let about = txn.estimate(&t, Range::all().from(std::ops::Bound::Included(&[500u64.into()])))?;
    /// assert!((250..1000).contains(&about));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn estimate(&self, table: &Table, range: Range<'_>) -> Result<u64> {
        self.estimate_tree(&table.inner, None, range)
    }

    /// Estimates how many rows are in a range of keys of a secondary index, as
    /// [`Transaction::estimate`].
    ///
    /// # Errors
    /// As [`Transaction::scan_index`].
    pub fn estimate_index(&self, index: &Index, range: Range<'_>) -> Result<u64> {
        self.estimate_tree(&index.table.inner, Some(&index.inner), range)
    }

    fn estimate_tree(&self, table: &TableInner, index: Option<&IndexInner>, range: Range<'_>) -> Result<u64> {
        self.check_table(table)?;
        check_index(table, index)?;
        let part = |rows: u64| rows.saturating_sub(range.skip as u64).min(range.limit as u64);
        let is_whole =
            matches!((range.lower, range.upper, range.behind), (Bound::Unbounded, Bound::Unbounded, None));
        if is_whole {
            let rows = table.rows.get();
            // What others do not see of this transaction yet is little beside that.
            if self.buffers.writes.len() as u64 <= rows / 16 {
                return Ok(part(rows));
            }
        }
        self.core.ready(table)?;
        let walk = walk(table, index, range)?;
        Ok(part(tree_of(table, index).estimate(walk.lower(), walk.upper())))
    }

    fn scan_tree<'t>(
        &'t self,
        table: &'t Table,
        index: Option<&'t IndexInner>,
        range: Range<'_>,
    ) -> Result<Scan<'t>> {
        let batch = range.limit.saturating_add(range.skip).min(WHOLE_BATCH);
        let steps = self.steps(&table.inner, index, range, batch)?;
        Ok(Scan { txn: self, table, index, steps })
    }
}

impl<'t> Iterator for Scan<'t> {
    type Item = Result<Row<'t>>;

    // Handing a row on through memory takes longer than finding it.
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        while let Some(tuple) = self.steps.advance(self.txn, &self.table.inner, self.index) {
            match self.steps.visit(self.txn, &self.table.inner, self.index, tuple) {
                Ok(Some(row)) if !self.steps.skip_row() => {
                    self.steps.count_row();
                    return Some(Ok(self.txn.row(self.table, row, self.steps.at())));
                }
                Ok(_) => {}
                Err(error) => {
                    self.steps.count_row();
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

impl std::fmt::Debug for Scan<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scan").field("table", &self.table.name()).finish_non_exhaustive()
    }
}
