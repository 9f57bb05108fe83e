//! Cursors: the rows of a range, one after the other.

use std::ffi::c_int;
use std::ops::Bound;
use std::sync::Arc;

use pantile::{Cursor, Index, Range, Row, Table, Value};

use crate::database::{ColumnFacts, pantile_index, pantile_table};
use crate::error::{Failure, PANTILE_DONE, PANTILE_NOT_FOUND, PANTILE_OK, call};
use crate::pointer::{Out, free, lent, lent_mut};
use crate::row::pantile_row;
use crate::transaction::{about, lock_into, pantile_txn};
use crate::value::{Values, pantile_value, values};

/// There is no bound.
pub const PANTILE_UNBOUNDED: c_int = 0;
/// The range includes keys that are or begin with the bound.
pub const PANTILE_INCLUDED: c_int = 1;
/// The range excludes them.
pub const PANTILE_EXCLUDED: c_int = 2;

/// One end of a range: a key, or the first values of one.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pantile_bound {
    /// `PANTILE_UNBOUNDED`, `PANTILE_INCLUDED` or `PANTILE_EXCLUDED`.
    pub kind: c_int,
    /// The values; NULL if there is no bound.
    pub values: *const pantile_value,
    /// How many there are.
    pub len: usize,
}

/// Which rows to read, and in which order. Zeros are all rows, in ascending order.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pantile_range {
    /// Where it begins.
    pub from: pantile_bound,
    /// Where it ends.
    pub to: pantile_bound,
    /// Whether keys descend.
    pub reverse: bool,
    /// The most rows; 0 for all.
    pub limit: usize,
}

/// A place in a range of rows, as its transaction sees them.
pub struct pantile_cursor {
    cursor: Cursor,
    columns: Arc<[ColumnFacts]>,
}

enum Of<'o> {
    Table(&'o Table),
    Index(&'o Index),
}

fn bound<'v>(bound: &pantile_bound) -> Result<(c_int, Values<'v>), Failure> {
    match bound.kind {
        PANTILE_UNBOUNDED => Ok((PANTILE_UNBOUNDED, Values::new())),
        kind @ (PANTILE_INCLUDED | PANTILE_EXCLUDED) => Ok((kind, values(bound.values, bound.len)?)),
        other => Err(Failure::misuse(format!("there is no bound {other}"))),
    }
}

fn end<'b>((kind, values): &'b (c_int, Values<'_>)) -> Bound<&'b [Value<'b>]> {
    match *kind {
        PANTILE_INCLUDED => Bound::Included(values),
        PANTILE_EXCLUDED => Bound::Excluded(values),
        _ => Bound::Unbounded,
    }
}

/// Runs `body` with the range that C means.
fn with_range<T>(
    range: *const pantile_range,
    body: impl FnOnce(Range<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if range.is_null() {
        return body(Range::all());
    }
    let range = lent(range, "the range")?;
    let (from, to) = (bound(&range.from)?, bound(&range.to)?);
    let mut wanted = Range::all().from(end(&from)).to(end(&to));
    wanted = if range.reverse { wanted.reverse() } else { wanted };
    body(if range.limit > 0 { wanted.limit(range.limit) } else { wanted })
}

fn open(
    txn: &pantile_txn,
    of: &Of<'_>,
    columns: &Arc<[ColumnFacts]>,
    range: *const pantile_range,
) -> Result<pantile_cursor, Failure> {
    let open = txn.open()?;
    let cursor = with_range(range, |range| {
        Ok(match of {
            Of::Table(table) => open.cursor(table, range)?,
            Of::Index(index) => open.index_cursor(index, range)?,
        })
    })?;
    Ok(pantile_cursor { cursor, columns: Arc::clone(columns) })
}

fn estimate(
    txn: &pantile_txn,
    of: &Of<'_>,
    range: *const pantile_range,
    out: Out<'_, u64>,
) -> Result<c_int, Failure> {
    let open = txn.open()?;
    out.set(with_range(range, |range| {
        Ok(match of {
            Of::Table(table) => open.estimate(table, range)?,
            Of::Index(index) => open.estimate_index(index, range)?,
        })
    })?);
    Ok(PANTILE_OK)
}

/// A cursor before the first row of a range of primary keys. `range` may be NULL: all rows. Freed by
/// `pantile_cursor_free`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_scan(
    txn: *mut pantile_txn,
    table: *const pantile_table,
    range: *const pantile_range,
    out: *mut *mut pantile_cursor,
) -> c_int {
    about(txn, |txn| {
        let out = Out::new(out)?;
        let table = lent(table, "the table")?;
        out.give(open(txn, &Of::Table(&table.table), &table.columns, range)?);
        Ok(PANTILE_OK)
    })
}

/// A cursor before the first row of a range of keys of an index, in its order. Freed by `pantile_cursor_free`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_scan_index(
    txn: *mut pantile_txn,
    index: *const pantile_index,
    range: *const pantile_range,
    out: *mut *mut pantile_cursor,
) -> c_int {
    about(txn, |txn| {
        let out = Out::new(out)?;
        let index = lent(index, "the index")?;
        out.give(open(txn, &Of::Index(&index.index), &index.columns, range)?);
        Ok(PANTILE_OK)
    })
}

/// Gives a row that a cursor has found.
fn load(place: &mut pantile_row, found: Option<Row<'_>>, columns: &[ColumnFacts]) -> Result<c_int, Failure> {
    match found {
        Some(row) => place.load(&row, columns).map(|()| PANTILE_OK),
        None => Ok(PANTILE_DONE),
    }
}

impl pantile_cursor {
    /// After `load`. A row that could not be given is the next one again.
    fn loaded(&mut self, place: &mut pantile_row, outcome: Result<c_int, Failure>) -> Result<c_int, Failure> {
        match (&outcome, self.cursor.row_id()) {
            (Ok(PANTILE_OK), Some(at)) => place.set_place(at),
            (Err(_), _) => self.cursor.step_back(),
            _ => {}
        }
        outcome
    }
}

/// Reads the next row into `row`. Returns `PANTILE_DONE`, and leaves `row` as it was, if there is none. `txn` is the
/// transaction that has made the cursor; it may have written meanwhile. After an error the same row is the next one
/// again.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_cursor_next(
    cursor: *mut pantile_cursor,
    txn: *mut pantile_txn,
    row: *mut pantile_row,
) -> c_int {
    about(txn, |txn| {
        let (cursor, place) = (lent_mut(cursor, "the cursor")?, lent_mut(row, "the row")?);
        let found = cursor.cursor.next(txn.open()?)?;
        let outcome = load(place, found, &cursor.columns);
        cursor.loaded(place, outcome)
    })
}

/// The same, and keeps others from writing the row until the transaction has ended. At read committed it is the newest
/// committed row. With `skip_locked`, rows that others have locked are bypassed.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_cursor_next_for_update(
    cursor: *mut pantile_cursor,
    txn: *mut pantile_txn,
    skip_locked: bool,
    row: *mut pantile_row,
) -> c_int {
    about(txn, |txn| {
        let (cursor, place) = (lent_mut(cursor, "the cursor")?, lent_mut(row, "the row")?);
        lock_into(txn, place, |txn, place| {
            let found = cursor.cursor.next_for_update(txn, skip_locked)?;
            let outcome = load(place, found, &cursor.columns);
            cursor.loaded(place, outcome)
        })
    })
}

/// Lets the cursor go on from the row that it has come to last, up or down, as far as the index goes. `txn` may be
/// another transaction than before. Does nothing to a cursor that has come to no row: it stays with the transaction that
/// it has been with.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_cursor_turn(
    cursor: *mut pantile_cursor,
    txn: *mut pantile_txn,
    reverse: bool,
) -> c_int {
    about(txn, |txn| {
        lent_mut(cursor, "the cursor")?.cursor.turn(txn.open()?, reverse)?;
        Ok(PANTILE_OK)
    })
}

/// The place of the row that the cursor has come to last: for `pantile_get_row` and similar calls, as long as the
/// transaction runs. Returns `PANTILE_NOT_FOUND` before the first row.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_cursor_row_id(cursor: *const pantile_cursor, out: *mut u64) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        Ok(match lent(cursor, "the cursor")?.cursor.row_id() {
            Some(id) => {
                out.set(id.get());
                PANTILE_OK
            }
            None => PANTILE_NOT_FOUND,
        })
    })
}

/// About how many rows are in a range of primary keys, however long it is. `range` may be NULL: all rows.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_estimate(
    txn: *mut pantile_txn,
    table: *const pantile_table,
    range: *const pantile_range,
    out: *mut u64,
) -> c_int {
    about(txn, |txn| estimate(txn, &Of::Table(&lent(table, "the table")?.table), range, Out::new(out)?))
}

/// About how many rows are in a range of keys of an index.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_estimate_index(
    txn: *mut pantile_txn,
    index: *const pantile_index,
    range: *const pantile_range,
    out: *mut u64,
) -> c_int {
    about(txn, |txn| estimate(txn, &Of::Index(&lent(index, "the index")?.index), range, Out::new(out)?))
}

/// Frees a cursor.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_cursor_free(cursor: *mut pantile_cursor) {
    free(cursor);
}
