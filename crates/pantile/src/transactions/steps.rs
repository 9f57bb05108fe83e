//! Steps over the entries of an index, one row after the other, apart from the
//! transaction for which they are made.

use std::cmp::Ordering;
use std::ops::Bound;

use pantile_base::{Timestamp, TupleId};
use pantile_index::{Batch, Direction, Index as Tree, Scan as Walk};
use smallvec::SmallVec;
use twox_hash::XxHash3_64;

use crate::engine::index::IndexInner;
use crate::engine::read_set::RangeNote;
use crate::engine::table::{PRIMARY, TableInner};
use crate::transactions::read::Seen;
use crate::transactions::transaction::Transaction;
use crate::types::encoding::Encoded;
use crate::types::error::{Error, Result};
use crate::types::key::{Key, KeyColumn};
use crate::types::range::Range;
use crate::types::value::Value;

/// Entries that a scan without a limit takes from the index at a time.
pub(super) const WHOLE_BATCH: usize = 256;
/// Entries that even a scan for one row takes. The first ones may be those of
/// deleted rows.
const LEAST_BATCH: usize = 8;
/// The first batch of a cursor. Many are for one row.
pub(super) const FIRST_BATCH: usize = 8;

/// Fewer rows, as in the first batch of a cursor, are read sooner than it is found out whether they need marks.
const FEW_ROWS: usize = 16;

/// How many rows ahead contents are prefetched.
const AHEAD: usize = 8;

/// Anchors, and marks, of tuples with ids in sequence that lie in one cache line.
const LINE: u64 = 8;

/// How often a scan that follows changes goes back between two rows, at most.
const MOST_TIMES_BACK: u32 = 64;

/// Where a scan is in its index.
pub(super) struct Steps {
    walk: Walk,
    batch: Batch,
    next: usize,
    /// Entries of the batch whose contents are brought in before they are read.
    soon: usize,
    /// Rows to be left out before the first one.
    skip: usize,
    left: usize,
    at: Timestamp,
    /// Of what was committed up to this moment, it comes to the entries that lie in its way. At first, where it reads.
    seen: Timestamp,
    /// If it follows changes: the entry that it has passed last, and how often it has gone back since a row was kept.
    passed: Words,
    went_back: u32,
    /// Where it is noted what has been read, if the transaction may have to read it again.
    note: Option<RangeNote>,
    /// The entry of the row from which it may be continued, and that of the row before.
    row_key: Words,
    key_before: Words,
}

impl Transaction {
    /// The way over a range, which begins with batches of this size.
    pub(super) fn steps(
        &self,
        table: &TableInner,
        index: Option<&IndexInner>,
        range: Range<'_>,
        batch: usize,
    ) -> Result<Steps> {
        // First: a table of another database, or one that was dropped, has no trees to be loaded here.
        self.check_table(table)?;
        self.core.ready(table)?;
        let walk = walk(table, index, range)?;
        let steps = self.steps_along(table, index, walk, range.limit, batch)?;
        Ok(Steps { skip: range.skip, ..steps })
    }

    /// The table has been checked, and its indexes are there.
    fn steps_along(
        &self,
        table: &TableInner,
        index: Option<&IndexInner>,
        walk: Walk,
        limit: usize,
        batch: usize,
    ) -> Result<Steps> {
        // Before the look at the index: if that is dropped meanwhile, writers
        // below this time go on maintaining it (I-16).
        let at = self.statement();
        check_index(table, index)?;
        if let Some(index) = index.filter(|_| !self.buffers.writes.is_empty()) {
            self.enter_own_rows(table, index)?;
        }
        if self.under.is_some() {
            self.ask_keys(table, number_of(index), at)?;
        }
        self.make_room_for_range()?;
        let batch = Batch::with_limit(batch.max(LEAST_BATCH));
        Ok(Steps {
            walk,
            batch,
            next: 0,
            soon: 0,
            skip: 0,
            left: limit,
            at,
            seen: at,
            passed: Words::new(),
            went_back: 0,
            note: None,
            row_key: Words::new(),
            key_before: Words::new(),
        })
    }
}

pub(super) fn check_index(table: &TableInner, index: Option<&IndexInner>) -> Result<()> {
    match index.filter(|i| !i.is_ready()) {
        None => Ok(()),
        Some(dropped) => {
            let (table, index) = (table.name(), dropped.name().to_string());
            Err(Error::UnknownIndex { table, index })
        }
    }
}

/// The entries of a range. The caller has seen to it that the table's indexes
/// are loaded.
pub(super) fn walk(table: &TableInner, index: Option<&IndexInner>, range: Range<'_>) -> Result<Walk> {
    let walk = walk_over(table, index, range);
    // After the bounds were made by what its columns are now: that is what they were
    // as long as it is open.
    check_index(table, index)?;
    walk
}

fn walk_over(table: &TableInner, index: Option<&IndexInner>, range: Range<'_>) -> Result<Walk> {
    let columns = index.map_or(&table.schema().primary_key, |i| &i.columns);
    let direction = if range.reverse { Direction::Backward } else { Direction::Forward };
    let (mut lower, mut upper) = (Key::default(), Key::default());
    let mut lower = lower_bound(table, columns, range.lower, &mut lower)?;
    let mut upper = upper_bound(table, columns, range.upper, &mut upper)?;
    if let Some(position) = range.behind {
        if position.order != order_of(table, index) {
            return Err(Error::UnknownPosition { table: table.name() });
        }
        match range.reverse {
            true => tighten(&mut upper, &position.key, Ordering::Less),
            false => tighten(&mut lower, &position.key, Ordering::Greater),
        }
    }
    Ok(Walk::new(as_bound(&lower), as_bound(&upper), direction))
}

/// Excludes a key and what is before it, unless the bound is `further` on anyway.
fn tighten(bound: &mut Bound<Words>, key: &[u64], further: Ordering) {
    let is_further = match &*bound {
        Bound::Unbounded => false,
        Bound::Included(words) | Bound::Excluded(words) => words[..].cmp(key) == further,
    };
    if !is_further {
        *bound = Bound::Excluded(Words::from_slice(key));
    }
}

/// Identifies the order of the entries of an index, in this process and later ones:
/// by the table and the columns of the key, with their names, their types and whether
/// they take NULL. Numbers alone would not do. Those of indexes are given anew at each
/// opening, and the number of a dropped table can be given to another.
pub(super) fn order_of(table: &TableInner, index: Option<&IndexInner>) -> u64 {
    let schema = table.schema();
    let column = |column: &KeyColumn| {
        let KeyColumn { id, ty, nullable } = *column;
        format!("{:?} {ty:?} {id}{};", schema.names[id], if nullable { " or NULL" } else { "" })
    };
    let columns: String = match index {
        Some(index) => index.key_columns().iter().map(column).collect(),
        None => schema.primary_key.iter().map(|id| column(&KeyColumn::new(schema, *id))).collect(),
    };
    let text = format!("{} {:?} {} {columns}", table.id.0, schema.name, index.is_some());
    XxHash3_64::oneshot(text.as_bytes())
}

/// The number under which transactions note what they have read.
pub(super) fn number_of(index: Option<&IndexInner>) -> u32 {
    index.map_or(PRIMARY, |index| index.number)
}

pub(super) fn tree_of<'t>(table: &'t TableInner, index: Option<&'t IndexInner>) -> &'t Tree {
    index.map_or_else(|| table.tree(), |i| i.tree())
}

impl Steps {
    /// Where the scan reads.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// Until when what was committed has its entries in the way.
    pub fn seen(&self) -> Timestamp {
        self.seen
    }

    /// Where the rest of its range begins.
    pub fn near(&self) -> Bound<Words> {
        let near = if self.is_reverse() { self.walk.upper() } else { self.walk.lower() };
        near.map(Words::from_slice)
    }

    /// The tuple of the next entry.
    #[inline]
    pub fn advance(
        &mut self,
        txn: &Transaction,
        table: &TableInner,
        index: Option<&IndexInner>,
    ) -> Option<TupleId> {
        if self.left == 0 {
            return None;
        }
        if self.next == self.batch.len() && !self.refill(txn, table, index) {
            return None;
        }
        let ahead = self.next + AHEAD;
        if ahead < self.soon {
            txn.prefetch_version(table, TupleId(self.batch.value(ahead)));
        }
        self.next += 1;
        Some(TupleId(self.batch.value(self.next - 1)))
    }

    /// Takes the next entries, once all have been come to. Returns whether there are any.
    #[inline(never)]
    fn refill(&mut self, txn: &Transaction, table: &TableInner, index: Option<&IndexInner>) -> bool {
        if self.batch.limit() > FEW_ROWS {
            txn.look_past_writers();
        }
        while self.next == self.batch.len() {
            self.next = 0;
            if !self.read_batch(txn, table, index) {
                self.left = 0;
                return false;
            }
            self.look_ahead(txn, table);
        }
        true
    }

    /// Reads the next entries, and notes that it has.
    #[inline]
    fn read_batch(&mut self, txn: &Transaction, table: &TableInner, index: Option<&IndexInner>) -> bool {
        let tree = tree_of(table, index);
        if !txn.notes_ranges || self.walk.is_finished() {
            return self.walk.next_batch(tree, txn.gap_mark(self.seen), &mut self.batch);
        }
        let reads = &txn.buffers.reads;
        let note = reads.note_scan(self.note, table.id, number_of(index), &self.walk);
        let more = self.walk.next_batch(tree, txn.gap_mark(self.at), &mut self.batch);
        reads.note_progress(note, &self.walk);
        self.note = Some(note);
        more
    }

    /// Brings in what the entries of the batch lead to, as far as the scan will go:
    /// from the device if that may be needed, else what is looked at first.
    fn look_ahead(&mut self, txn: &Transaction, table: &TableInner) {
        let tuples = |end: usize| (0..end).map(|n| self.batch.value(n));
        self.soon = 0;
        if txn.core.store.may_wait() {
            txn.fetch(table, tuples(self.batch.len()));
            return;
        }
        let rows = self.left.saturating_add(self.skip);
        self.soon = self.batch.len().min(rows);
        if self.soon > 1 {
            let mut line = u64::MAX;
            for tuple in
                tuples(self.soon).filter(|tuple| *tuple / LINE != std::mem::replace(&mut line, *tuple / LINE))
            {
                txn.prefetch_tuple(table, TupleId(tuple), self.at);
            }
            tuples(self.soon.min(AHEAD)).for_each(|tuple| txn.prefetch_version(table, TupleId(tuple)));
        }
    }

    /// Takes more entries at a time from here on.
    pub fn take_more(&mut self) {
        self.batch.set_limit((self.batch.limit() * 2).min(WHOLE_BATCH));
    }

    /// The entry that was come to last is the next one again.
    pub fn step_back(&mut self) {
        self.next -= 1;
    }

    /// Whether the next row is to be left out.
    #[inline]
    pub fn skips(&self) -> bool {
        self.skip > 0
    }

    /// Leaves out a row that has been found. Returns whether it is one to be left
    /// out.
    #[inline]
    pub fn skip_row(&mut self) -> bool {
        let skips = self.skips();
        self.skip -= usize::from(skips);
        skips
    }

    /// One of the rows that the scan is for has been found.
    #[inline]
    pub fn count_row(&mut self) {
        self.left -= 1;
    }

    /// The row that was counted last is the next one again.
    pub fn uncount_row(&mut self) {
        self.left += 1;
        self.row_key = std::mem::take(&mut self.key_before);
        self.step_back();
    }

    /// One of the rows has been found of a scan that may be continued from it.
    #[inline]
    pub fn count_row_and_keep(&mut self) {
        self.count_row();
        self.went_back = 0;
        std::mem::swap(&mut self.row_key, &mut self.key_before);
        self.row_key.clear();
        self.row_key.extend_from_slice(self.batch.key(self.next - 1));
    }

    /// The entry of the row that was kept last. Empty if there was none.
    pub fn row_key(&self) -> &[u64] {
        &self.row_key
    }

    /// Whether it goes from the last key to the first.
    pub fn is_reverse(&self) -> bool {
        self.walk.direction() == Direction::Backward
    }

    /// Whether the scan has come by an entry: it lies before the row that was kept last, or is that row's.
    pub fn has_passed(&self, entry: &[u64]) -> bool {
        let row = &self.row_key[..];
        !row.is_empty()
            && match self.walk.direction() {
                Direction::Forward => entry <= row,
                Direction::Backward => entry >= row,
            }
    }

    /// Begins anew behind the row that was kept last, without a bound on the other
    /// side.
    pub fn restart(
        &mut self,
        txn: &Transaction,
        table: &TableInner,
        index: Option<&IndexInner>,
        reverse: bool,
    ) -> Result<()> {
        let key = Bound::Excluded(&self.row_key[..]);
        let walk = match reverse {
            true => Walk::new(Bound::Unbounded, key, Direction::Backward),
            false => Walk::new(key, Bound::Unbounded, Direction::Forward),
        };
        txn.check_table(table)?;
        txn.core.ready(table)?;
        let steps = txn.steps_along(table, index, walk, usize::MAX, FIRST_BATCH)?;
        let row_key = std::mem::take(&mut self.row_key);
        *self = Self { row_key, ..steps };
        Ok(())
    }

    /// The tuple of the next entry that is in the index now, and not when entries were copied last. `near` is where the
    /// range begins.
    pub fn advance_live(
        &mut self,
        txn: &Transaction,
        table: &TableInner,
        index: Option<&IndexInner>,
        near: &Bound<Words>,
    ) -> Option<TupleId> {
        if !self.batch.is_current(tree_of(table, index)) {
            self.walk_from(near);
        }
        self.advance(txn, table, index)
    }

    /// The entry that was come to last does not come again.
    pub fn pass(&mut self) {
        self.passed.clear();
        self.passed.extend_from_slice(self.batch.key(self.next - 1));
    }

    /// The entry that was passed last.
    pub fn passed(&self) -> &Words {
        &self.passed
    }

    /// Goes back to the row that was kept last, or to where the range begins: what has been entered since may lie before
    /// the entry that was come to last. Returns whether it does: beside a row that changes all the time it would have no end.
    #[cold]
    pub fn go_back(&mut self, txn: &Transaction, near: &Bound<Words>) -> bool {
        if self.went_back == MOST_TIMES_BACK {
            return false;
        }
        self.went_back += 1;
        self.passed.clear();
        self.seen = txn.core.registry.now();
        self.walk_from(near);
        true
    }

    /// Begins to read where the range does, behind the row that was kept last, and behind the entry that was passed last.
    #[cold]
    fn walk_from(&mut self, near: &Bound<Words>) {
        let is_reverse = self.is_reverse();
        let from = further(as_bound(near), behind(&self.row_key), is_reverse);
        let from = further(from, behind(&self.passed), is_reverse);
        self.walk = match is_reverse {
            true => Walk::new(self.walk.lower(), from, Direction::Backward),
            false => Walk::new(from, self.walk.upper(), Direction::Forward),
        };
        self.next = self.batch.len();
        // It may come to that at each entry.
        self.batch.set_limit(LEAST_BATCH);
    }

    /// The row of the entry that was come to last, if it is visible and has the
    /// entry's key.
    // Beside the look at the request to end, compilers take it for too long otherwise.
    #[inline(always)]
    pub fn visit<'t>(
        &self,
        txn: &'t Transaction,
        table: &'t TableInner,
        index: Option<&IndexInner>,
        tuple: TupleId,
    ) -> Result<Option<Encoded<'t>>> {
        txn.check_ended()?;
        Ok(match txn.read_tuple(table, tuple, self.at)? {
            Seen::Row(row) if self.leads_to(index, tuple, &row) => Some(row),
            Seen::Row(_) => txn.verify_other_key(table, tuple, self.at).map(|()| None)?,
            Seen::Absent | Seen::Gone => None,
        })
    }

    /// Whether a row has the key of the entry that was come to last.
    #[inline]
    pub fn leads_to(&self, index: Option<&IndexInner>, tuple: TupleId, row: &Encoded<'_>) -> bool {
        index.is_none_or(|index| self.has_key(index, tuple, row))
    }

    #[inline(never)]
    fn has_key(&self, index: &IndexInner, tuple: TupleId, row: &Encoded<'_>) -> bool {
        let mut key = Key::default();
        let has_key = index.set_key(row, &mut key);
        key.push_tuple(tuple.0);
        has_key && key.words() == self.batch.key(self.next - 1)
    }
}

pub(super) type Words = SmallVec<[u64; 8]>;

/// The bound behind an entry; none if there is no entry.
fn behind(entry: &Words) -> Bound<&[u64]> {
    if entry.is_empty() { Bound::Unbounded } else { Bound::Excluded(entry) }
}

/// The one of two bounds that a walk comes to later.
fn further<'b>(a: Bound<&'b [u64]>, b: Bound<&'b [u64]>, is_reverse: bool) -> Bound<&'b [u64]> {
    let (Bound::Included(first) | Bound::Excluded(first)) = a else { return b };
    let (Bound::Included(second) | Bound::Excluded(second)) = b else { return a };
    let order = if is_reverse { second.cmp(first) } else { first.cmp(second) };
    match order {
        Ordering::Less => b,
        Ordering::Greater => a,
        Ordering::Equal if matches!(a, Bound::Excluded(_)) => a,
        Ordering::Equal => b,
    }
}

fn as_bound(bound: &Bound<Words>) -> Bound<&[u64]> {
    match bound {
        Bound::Included(words) => Bound::Included(words),
        Bound::Excluded(words) => Bound::Excluded(words),
        Bound::Unbounded => Bound::Unbounded,
    }
}

fn words_of(table: &TableInner, columns: &[usize], values: &[Value<'_>], key: &mut Key) -> Result<Words> {
    key.set_values(table.schema(), columns, values)?;
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
