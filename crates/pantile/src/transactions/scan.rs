//! Range scans.

use std::ops::Bound;

use pantile_base::{Timestamp, TupleId};
use pantile_index::{Batch, Direction, Index as Tree, Insert, Scan as Cursor};

use crate::engine::anchor::{Anchor, Owner};
use crate::engine::table::{Index, IndexInner, Table, TableInner};
use crate::transactions::transaction::{Buffers, Pending, Seen, Transaction, conflict};
use crate::transactions::write::{duplicate, stale};
use crate::types::error::{Conflict, Error, Result};
use crate::types::key::Key;
use crate::types::options::Isolation;
use crate::types::row::{Encoded, Row};
use crate::types::value::Value;

/// Which rows to scan, and in which order.
///
/// Bounds are keys or first parts of keys; a bound that is a first part
/// includes or excludes all keys that begin with it.
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

    /// Only keys from this bound on.
    #[must_use]
    pub fn from(mut self, lower: Bound<&'r [Value<'r>]>) -> Self {
        self.lower = lower;
        self
    }

    /// Only keys up to this bound.
    #[must_use]
    pub fn to(mut self, upper: Bound<&'r [Value<'r>]>) -> Self {
        self.upper = upper;
        self
    }

    /// In descending key order.
    #[must_use]
    pub fn reverse(mut self) -> Self {
        self.reverse = true;
        self
    }

    /// At most this many rows.
    #[must_use]
    pub fn limit(mut self, rows: usize) -> Self {
        self.limit = rows;
        self
    }
}

/// Iterates over the rows of a range as its transaction sees them.
pub struct Scan<'t> {
    txn: &'t Transaction,
    table: &'t TableInner,
    index: Option<&'t IndexInner>,
    cursor: Cursor,
    batch: Batch,
    next: usize,
    left: usize,
    at: Timestamp,
}

/// Entries that a scan without a limit takes from the index at a time.
const BATCH: usize = 256;
/// Entries that even a scan for one row takes: the first ones may be of rows
/// that have been deleted.
const LEAST_BATCH: usize = 8;

impl Transaction {
    /// The rows of a range of primary keys.
    ///
    /// # Errors
    /// For keys that do not fit, and [`crate::Error::TableDropped`]. Each row
    /// may be an error as [`Transaction::get`] has them.
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

    /// The first row with this key of a secondary index; with a unique index,
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
        Ok(Scan { txn: self, table, index, cursor, batch, next: 0, left: range.limit, at: self.statement() })
    }

    /// Own rows that were written before the index was made are entered into
    /// it when the transaction first looks for them, and not only at commit.
    fn enter_own_rows(&self, table: &TableInner, index: &IndexInner) -> Result<()> {
        let Buffers { tables, writes, rows, .. } = &*self.buffers;
        let Some(at) = tables.iter().position(|used| used.table.id == table.id) else { return Ok(()) };
        if tables[at].indexes.iter().any(|known| known.number == index.number) {
            return Ok(());
        }
        for write in writes.iter().filter(|w| w.table as usize == at) {
            let Pending::Row { start, len } = write.pending else { continue };
            let mut entry = Key::default();
            let row = Encoded { schema: &table.schema, bytes: &rows[start..start + len] };
            entry.set_row(&row, &index.columns);
            entry.push_tuple(write.tuple.0);
            match index.tree.insert(entry.words(), write.tuple.0, self.insert_ts()) {
                // Kept if the row commits with this key.
                Insert::Inserted => {
                    let entry = stale(table, index.number, write.tuple, &entry);
                    self.core.cleanup.push(self.slot, self.core.registry.now(), entry);
                }
                Insert::Exists(_) => {}
                Insert::Forbidden(_) => return Err(conflict(table, Conflict::ReadByLater)),
            }
        }
        Ok(())
    }

    /// Fails if another tuple has the key in a unique index, now or as far as
    /// this transaction can know.
    pub(crate) fn check_unique(
        &self,
        table: &TableInner,
        index: &IndexInner,
        own: TupleId,
        key: &Key,
    ) -> Result<()> {
        let late = self.isolation != Isolation::Serializable;
        // Late writers commit after now, whoever enters the key from here on
        // is later still or is refused.
        let at = if late { self.core.registry.now() } else { self.ts };
        let upper = key.prefix_end();
        let upper = upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut cursor = Cursor::new(Bound::Included(key.words()), upper, Direction::Forward);
        let mut batch = Batch::new();
        while cursor.next_batch(&index.tree, Some(at.get()), &mut batch) {
            for (_, tuple) in batch.iter().filter(|(_, tuple)| *tuple != own.0) {
                if self.holds_key(table, index, TupleId(tuple), key, at)? {
                    return Err(duplicate(table, &index.def.name));
                }
            }
        }
        Ok(())
    }

    /// Whether a tuple has a key that this transaction wants for another. The
    /// mark keeps writers below `at` from giving it the key afterwards.
    fn holds_key(
        &self,
        table: &TableInner,
        index: &IndexInner,
        tuple: TupleId,
        key: &Key,
        at: Timestamp,
    ) -> Result<bool> {
        let serializable = self.isolation == Isolation::Serializable;
        let cell = table.anchor(tuple);
        self.core.marks.raise(table.id, tuple, at);
        loop {
            // The newest version may be too new for our timestamp to protect it.
            let pin = self.core.registry.pin(self.slot);
            let anchor = Anchor::load(cell);
            if anchor.is_dead() {
                return Ok(false);
            }
            if anchor.is_owned_by(self.slot) {
                let own = self.own_version(table, tuple);
                let own = own.unwrap_or_else(|| self.version_at(anchor.newest(), Timestamp::MAX));
                return Ok(matches!(own, Seen::Row(bytes) if has_key(table, index, bytes, key)));
            }
            match anchor.owner() {
                Owner::Transaction(holder) if holder != self.slot => {
                    let bound = self.core.registry.pending(holder);
                    let late = self.core.registry.writes_late(holder);
                    if Anchor::load(cell) != anchor {
                        continue;
                    }
                    // A later serializable writer has looked, or will look, at
                    // our entry. Late writers have looked before they drew the
                    // timestamp of their commit: with everyone else we must
                    // wait and see.
                    if !serializable || bound < self.ts || late {
                        drop(pin);
                        self.wait_for(table, holder, bound, || Anchor::load(cell) != anchor)?;
                        continue;
                    }
                }
                Owner::Cleaner => continue,
                Owner::Transaction(_) => return Ok(false),
                Owner::Nobody => {}
            }
            let newest = anchor.newest();
            if serializable && !newest.is_none() && self.core.store.content(newest).txn_id() > self.ts {
                return Err(conflict(table, Conflict::WrittenByLater));
            }
            let has = |seen| matches!(seen, Seen::Row(bytes) if has_key(table, index, bytes, key));
            let holds = has(self.version_at(newest, Timestamp::MAX));
            if !holds && self.isolation == Isolation::Snapshot && has(self.version_at(newest, self.ts)) {
                // The snapshot would show two rows with the key.
                return Err(conflict(table, Conflict::ChangedSinceSnapshot));
            }
            return Ok(holds);
        }
    }
}

fn has_key(table: &TableInner, index: &IndexInner, bytes: &[u8], key: &Key) -> bool {
    let mut has = Key::default();
    has.set_row(&Encoded { schema: &table.schema, bytes }, &index.columns);
    has.words() == key.words()
}

impl<'t> Scan<'t> {
    #[inline]
    fn tree(&self) -> &'t Tree {
        self.index.map_or(&self.table.primary, |i| &i.tree)
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

type Words = smallvec::SmallVec<[u64; 8]>;

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
            // Beyond the last of all keys there is nothing.
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
