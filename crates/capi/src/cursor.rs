//! Cursors: the rows of a range, one after the other.

use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::ops::Bound;
use std::sync::Arc;

use pantile::{Index, Range, Scan, Table, Value};

use crate::database::{ColumnFacts, pantile_index, pantile_table};
use crate::error::{Failure, PANTILE_DONE, PANTILE_OK, note};
use crate::pointer::{Out, lent, lent_mut, taken};
use crate::row::pantile_row;
use crate::transaction::{about, pantile_txn};
use crate::value::{pantile_value, values};

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

/// The rows of a range, as its transaction sees them. While it is open the transaction only reads.
pub struct pantile_cursor {
    /// Borrows from `of` and from the transaction.
    scan: ManuallyDrop<Scan<'static>>,
    _of: Box<Of>,
    txn: *const pantile_txn,
    columns: Arc<[ColumnFacts]>,
}

enum Of {
    Table(Table),
    Index(Index),
}

impl Drop for pantile_cursor {
    fn drop(&mut self) {
        // SAFETY: once, and what it borrows from is still there: the transaction
        // cannot be ended while a cursor is open.
        unsafe { ManuallyDrop::drop(&mut self.scan) };
        if let Ok(txn) = lent(self.txn, "the transaction") {
            txn.cursors.set(txn.cursors.get() - 1);
            if txn.cursors.get() == 0 && txn.is_left.get() {
                drop(taken(self.txn.cast_mut()));
            }
        }
    }
}

fn bound<'v>(bound: &pantile_bound) -> Result<(c_int, Vec<Value<'v>>), Failure> {
    match bound.kind {
        PANTILE_UNBOUNDED => Ok((PANTILE_UNBOUNDED, Vec::new())),
        kind @ (PANTILE_INCLUDED | PANTILE_EXCLUDED) => Ok((kind, values(bound.values, bound.len)?)),
        other => Err(Failure::misuse(format!("there is no bound {other}"))),
    }
}

fn end<'b>((kind, values): &'b (c_int, Vec<Value<'b>>)) -> Bound<&'b [Value<'b>]> {
    match *kind {
        PANTILE_INCLUDED => Bound::Included(values),
        PANTILE_EXCLUDED => Bound::Excluded(values),
        _ => Bound::Unbounded,
    }
}

fn open(
    txn: &pantile_txn,
    of: Of,
    columns: Arc<[ColumnFacts]>,
    range: *const pantile_range,
) -> Result<pantile_cursor, Failure> {
    let of = Box::new(of);
    let ends = match range.is_null() {
        true => None,
        false => {
            let range = lent(range, "the range")?;
            Some((bound(&range.from)?, bound(&range.to)?, range.reverse, range.limit))
        }
    };
    let mut wanted = Range::all();
    if let Some((from, to, reverse, limit)) = &ends {
        wanted = wanted.from(end(from)).to(end(to));
        wanted = if *reverse { wanted.reverse() } else { wanted };
        wanted = if *limit > 0 { wanted.limit(*limit) } else { wanted };
    }
    let open = txn.open()?;
    let scan = match &*of {
        Of::Table(table) => open.scan(table, wanted)?,
        Of::Index(index) => open.scan_index(index, wanted)?,
    };
    // SAFETY: the scan borrows from the transaction, which stays where it is and is
    // neither written nor ended while a cursor is open, and from the box beside it.
    let scan = unsafe { std::mem::transmute::<Scan<'_>, Scan<'static>>(scan) };
    txn.cursors.set(txn.cursors.get() + 1);
    Ok(pantile_cursor { scan: ManuallyDrop::new(scan), _of: of, txn, columns })
}

/// The rows of a range of primary keys. `range` may be NULL: all rows. Freed by `pantile_cursor_free`, before the
/// transaction ends.
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
        let columns = Arc::clone(&table.columns);
        out.give(open(txn, Of::Table(table.table.clone()), columns, range)?);
        Ok(PANTILE_OK)
    })
}

/// The rows of a range of keys of an index, in its order. Freed by `pantile_cursor_free`, before the transaction ends.
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
        let columns = Arc::clone(&index.columns);
        out.give(open(txn, Of::Index(index.index.clone()), columns, range)?);
        Ok(PANTILE_OK)
    })
}

/// Reads the next row into `row`. Returns `PANTILE_DONE`, and leaves `row` as it was, if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_cursor_next(cursor: *mut pantile_cursor, row: *mut pantile_row) -> c_int {
    let cursor = match lent_mut(cursor, "the cursor") {
        Ok(cursor) => cursor,
        Err(failure) => return note(failure),
    };
    about(cursor.txn, |txn| {
        txn.open()?;
        let place = lent_mut(row, "the row")?;
        match cursor.scan.next().transpose()? {
            Some(row) => place.load(&row, &cursor.columns).map(|()| PANTILE_OK),
            None => Ok(PANTILE_DONE),
        }
    })
}

/// Frees a cursor.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_cursor_free(cursor: *mut pantile_cursor) {
    drop(taken(cursor));
}
