//! Range scans.

use std::ops::Bound;

use pantile_base::{Timestamp, TupleId};
use pantile_index::{Batch, Direction, Index as Tree, Scan as Cursor};
use smallvec::SmallVec;

use crate::engine::read_set::RangeNote;
use crate::engine::table::{Index, IndexInner, PRIMARY, Table, TableInner};
use crate::transactions::read::Seen;
use crate::transactions::transaction::Transaction;
use crate::types::error::{Error, Result};
use crate::types::key::Key;
use crate::types::row::{Encoded, Row};
use crate::types::value::Value;

/// Which rows to scan, and in which order.
///
/// A bound is a key or the first values of a key. In the second case it
/// includes or excludes all keys that begin with these values.
///
/// ```
/// use std::ops::Bound;
/// use pantile::{Range, Value};
/// let key = [Value::UInt(3)];
/// let of_three = Range::prefix(&key);
/// let newest_ten_up_to_three = Range::all().to(Bound::Included(&key)).reverse().limit(10);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Range<'r> {
    lower: Bound<&'r [Value<'r>]>,
    upper: Bound<&'r [Value<'r>]>,
    reverse: bool,
    limit: usize,
}

impl<'r> Range<'r> {
    /// All rows, in ascending key order.
    pub fn all() -> Self {
        Self { lower: Bound::Unbounded, upper: Bound::Unbounded, reverse: false, limit: usize::MAX }
    }

    /// The rows whose keys begin with these values.
    pub fn prefix(values: &'r [Value<'r>]) -> Self {
        Self::all().from(Bound::Included(values)).to(Bound::Included(values))
    }

    /// Limits the range to keys from this bound on.
    #[must_use]
    pub fn from(mut self, lower: Bound<&'r [Value<'r>]>) -> Self {
        self.lower = lower;
        self
    }

    /// Limits the range to keys up to this bound.
    #[must_use]
    pub fn to(mut self, upper: Bound<&'r [Value<'r>]>) -> Self {
        self.upper = upper;
        self
    }

    /// Scans in descending key order.
    #[must_use]
    pub fn reverse(mut self) -> Self {
        self.reverse = true;
        self
    }

    /// Limits the scan to this many rows.
    #[must_use]
    pub fn limit(mut self, rows: usize) -> Self {
        self.limit = rows;
        self
    }
}

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
    table: &'t TableInner,
    index: Option<&'t IndexInner>,
    cursor: Cursor,
    batch: Batch,
    next: usize,
    left: usize,
    at: Timestamp,
    /// If the transaction may have to read the range again.
    note: Option<RangeNote>,
}

/// Entries that a scan without a limit takes from the index at a time.
const BATCH: usize = 256;
/// Entries that even a scan for one row takes. The first ones may be those of
/// deleted rows.
const LEAST_BATCH: usize = 8;

impl Transaction {
    /// The rows of a range of primary keys.
    ///
    /// # Errors
    /// If a bound does not fit the key, and [`Error::TableDropped`]. Each row may
    /// be an error that [`Transaction::get`] returns.
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
        self.scan_tree(&table.0, None, range)
    }

    /// The rows of a range of keys of a secondary index, in the index's order.
    ///
    /// # Errors
    /// As [`Transaction::scan`], and [`Error::UnknownIndex`] if the index has
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

    fn scan_tree<'t>(
        &'t self,
        table: &'t TableInner,
        index: Option<&'t IndexInner>,
        range: Range<'_>,
    ) -> Result<Scan<'t>> {
        self.check_table(table)?;
        self.core.ready(table)?;
        // Before the look at the index: if that is dropped meanwhile, writers
        // below this time go on maintaining it (I-16).
        let at = self.statement();
        if let Some(dropped) = index.filter(|i| !i.is_ready()) {
            let (table, index) = (table.schema.name.clone(), dropped.def.name.clone());
            return Err(Error::UnknownIndex { table, index });
        }
        if let Some(index) = index.filter(|_| !self.buffers.writes.is_empty()) {
            self.enter_own_rows(table, index)?;
        }
        let columns = index.map_or(&table.schema.primary_key, |i| &i.columns);
        let direction = if range.reverse { Direction::Backward } else { Direction::Forward };
        let (mut lower, mut upper) = (Key::default(), Key::default());
        let lower = lower_bound(table, columns, range.lower, &mut lower)?;
        let upper = upper_bound(table, columns, range.upper, &mut upper)?;
        let cursor = Cursor::new(as_bound(&lower), as_bound(&upper), direction);
        let batch = Batch::with_limit(range.limit.clamp(LEAST_BATCH, BATCH));
        let note = self.moves.then(|| {
            let number = index.map_or(PRIMARY, |i| i.number);
            self.buffers.reads.note_scan(table.id, number, &cursor)
        });
        Ok(Scan { txn: self, table, index, cursor, batch, next: 0, left: range.limit, at, note })
    }
}

impl<'t> Scan<'t> {
    #[inline]
    fn tree(&self) -> &'t Tree {
        self.index.map_or_else(|| self.table.tree(), |i| i.tree())
    }

    /// The next entry's row, if it is visible and has the entry's key.
    fn visit(&mut self) -> Result<Option<Row<'t>>> {
        let n = self.next;
        self.next += 1;
        let tuple = TupleId(self.batch.value(n));
        let Seen::Row(bytes) = self.txn.read_tuple(self.table, tuple, self.at)? else {
            return Ok(None);
        };
        if let Some(index) = self.index {
            let mut key = Key::default();
            key.set_row(&Encoded { schema: &self.table.schema, bytes }, &index.columns);
            key.push_tuple(tuple.0);
            if key.words() != self.batch.key(n) {
                return Ok(None);
            }
        }
        Ok(Some(self.txn.row(self.table, bytes, self.at)))
    }
}

impl<'t> Iterator for Scan<'t> {
    type Item = Result<Row<'t>>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.left > 0 {
            while self.next < self.batch.len() {
                if let Some(row) = self.visit().transpose() {
                    self.left -= 1;
                    return Some(row);
                }
            }
            self.next = 0;
            if !self.cursor.next_batch(self.tree(), self.txn.mark(self.at), &mut self.batch) {
                self.left = 0;
            } else if self.txn.core.store.may_wait() {
                self.txn.fetch(self.table, (0..self.batch.len()).map(|n| self.batch.value(n)));
            }
            if let Some(note) = self.note {
                self.txn.buffers.reads.note_progress(note, &self.cursor);
            }
        }
        None
    }
}

impl std::fmt::Debug for Scan<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scan").field("table", &self.table.schema.name).finish_non_exhaustive()
    }
}

type Words = SmallVec<[u64; 8]>;

fn as_bound(bound: &Bound<Words>) -> Bound<&[u64]> {
    match bound {
        Bound::Included(words) => Bound::Included(words),
        Bound::Excluded(words) => Bound::Excluded(words),
        Bound::Unbounded => Bound::Unbounded,
    }
}

fn words_of(table: &TableInner, columns: &[usize], values: &[Value<'_>], key: &mut Key) -> Result<Words> {
    key.set_values(&table.schema, columns, values)?;
    Ok(Words::from_slice(key.words()))
}

fn lower_bound(
    table: &TableInner,
    columns: &[usize],
    bound: Bound<&[Value<'_>]>,
    key: &mut Key,
) -> Result<Bound<Words>> {
    Ok(match bound {
        Bound::Included(values) if !values.is_empty() => {
            Bound::Included(words_of(table, columns, values, key)?)
        }
        Bound::Excluded(values) => {
            words_of(table, columns, values, key)?;
            // Beyond the last possible key there is nothing.
            key.prefix_end().map_or(Bound::Excluded(smallvec::smallvec![u64::MAX; 512]), Bound::Included)
        }
        _ => Bound::Unbounded,
    })
}

fn upper_bound(
    table: &TableInner,
    columns: &[usize],
    bound: Bound<&[Value<'_>]>,
    key: &mut Key,
) -> Result<Bound<Words>> {
    Ok(match bound {
        Bound::Included(values) if !values.is_empty() => {
            words_of(table, columns, values, key)?;
            key.prefix_end().map_or(Bound::Unbounded, Bound::Excluded)
        }
        Bound::Excluded(values) => Bound::Excluded(words_of(table, columns, values, key)?),
        _ => Bound::Unbounded,
    })
}
