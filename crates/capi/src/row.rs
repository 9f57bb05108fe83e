//! Rows as C holds them.

use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::c_int;
use std::ops::Range;
use std::ptr;

use pantile::{Error, Row, RowId, Value};

use crate::database::ColumnFacts;
use crate::error::{Failure, PANTILE_NOT_FOUND, PANTILE_OK, call};
use crate::pointer::{Out, array, array_mut, free, lent, lent_mut};
use crate::value::{PANTILE_BYTES, PANTILE_TEXT, pantile_null, pantile_value};

/// A place for the values of a row. It keeps its memory from row to row. The values are copies: they stay as they are
/// when the transaction goes on or ends. After `pantile_row_lend`, they are not.
#[derive(Default)]
pub struct pantile_row {
    held: Held,
    /// Where the next one is read, so that a row that cannot be read leaves this one as it was.
    next: Held,
    /// Columns that are not read, in order and each once.
    left_out: Vec<usize>,
    /// Bytes stay where the engine has them.
    lends: bool,
    is_newly_locked: bool,
    /// Apart from the rest, which calls change, while C may have a pointer to it.
    view: Box<pantile_view>,
}

/// What has been read into a row last.
#[repr(C)]
pub struct pantile_view {
    /// Its values; NULL before a row has been read. They are valid as long as their bytes.
    pub values: Cell<*const pantile_value>,
    /// How many there are.
    pub len: Cell<usize>,
    /// Its place, if it was read by a cursor or by its place, or found by `pantile_find_row` or
    /// `pantile_find_row_for_update`; otherwise `UINT64_MAX`.
    pub id: Cell<u64>,
}

impl Default for pantile_view {
    fn default() -> Self {
        Self { values: Cell::new(ptr::null()), len: Cell::default(), id: Cell::new(u64::MAX) }
    }
}

#[derive(Default)]
struct Held {
    values: Vec<pantile_value>,
    bytes: Vec<u8>,
    /// Which values have copies in `bytes`, and where.
    copied: Vec<(usize, Range<usize>)>,
}

impl Held {
    fn clear(&mut self) {
        self.values.clear();
        self.bytes.clear();
        self.copied.clear();
    }

    fn copy(&mut self, kind: c_int, bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.copied.push((self.values.len(), start..self.bytes.len()));
        self.values.push(pantile_value::of_bytes(kind, bytes));
    }

    /// Once all have been copied, and move no more.
    fn point_to_copies(&mut self) {
        for (value, at) in &self.copied {
            let value = &mut self.values[*value];
            *value = pantile_value::of_bytes(value.kind, &self.bytes[at.clone()]);
        }
    }
}

impl pantile_row {
    /// Takes the values of a row, if there is one, and says so.
    pub(crate) fn take(&mut self, row: Option<Row<'_>>, columns: &[ColumnFacts]) -> Result<c_int, Failure> {
        match row {
            Some(row) => self.load(&row, columns).map(|()| PANTILE_OK),
            None => Ok(PANTILE_NOT_FOUND),
        }
    }

    /// The same of the row at this place.
    pub(crate) fn take_at(
        &mut self,
        place: RowId,
        row: Option<Row<'_>>,
        columns: &[ColumnFacts],
    ) -> Result<c_int, Failure> {
        let code = self.take(row, columns)?;
        if code == PANTILE_OK {
            self.set_place(place);
        }
        Ok(code)
    }

    /// Takes the values of a row. If one of them cannot be read, the row stays as it is.
    pub(crate) fn load(&mut self, row: &Row<'_>, columns: &[ColumnFacts]) -> Result<(), Failure> {
        let next = &mut self.next;
        next.clear();
        let mut left_out = self.left_out.iter().peekable();
        for (n, facts) in columns.iter().enumerate() {
            if left_out.next_if_eq(&&n).is_some() {
                next.values.push(pantile_null());
                continue;
            }
            match row.get::<Value<'_>>(n) {
                Err(Error::OutOfLine { .. }) => {
                    let kind = if facts.is_text() { PANTILE_TEXT } else { PANTILE_BYTES };
                    next.copy(kind, &row.get::<Cow<'_, [u8]>>(n)?);
                }
                value => match value? {
                    Value::Str(text) if !self.lends => next.copy(PANTILE_TEXT, text.as_bytes()),
                    Value::Bytes(bytes) if !self.lends => next.copy(PANTILE_BYTES, bytes),
                    value => next.values.push(pantile_value::from_value(&value)),
                },
            }
        }
        next.point_to_copies();
        self.is_newly_locked = false;
        std::mem::swap(&mut self.held, &mut self.next);
        let values = &self.held.values;
        self.view.values.set(values.as_ptr());
        self.view.len.set(values.len());
        self.view.id.set(u64::MAX);
        Ok(())
    }

    /// Notes the place of the row that has been taken last.
    pub(crate) fn set_place(&mut self, place: RowId) {
        self.view.id.set(place.get());
    }

    fn first_values(&self, len: usize) -> Result<&[pantile_value], Failure> {
        let values = &self.held.values;
        let has = values.len();
        values.get(..len).ok_or_else(|| Failure::misuse(format!("the row has {has} values and not {len}")))
    }

    pub(crate) fn set_newly_locked(&mut self, is_newly_locked: bool) {
        self.is_newly_locked = is_newly_locked;
    }
}

/// A place for rows, with none in it. Freed by `pantile_row_free`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_row_new() -> *mut pantile_row {
    Box::into_raw(Box::default())
}

/// Frees a row and its values.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_row_free(row: *mut pantile_row) {
    free(row);
}

/// From the next read on, these columns are NULL in the row, whatever is in them, and are not read: what is large takes
/// time. With `len` 0 all are read again.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_row_leave_out(row: *mut pantile_row, columns: *const usize, len: usize) -> c_int {
    call(|| {
        let columns = array(columns, len, "the columns")?;
        let row = lent_mut(row, "the row")?;
        row.left_out.clear();
        row.left_out.extend_from_slice(columns);
        row.left_out.sort_unstable();
        row.left_out.dedup();
        Ok(PANTILE_OK)
    })
}

/// From the next read on, bytes of values in this row stay where the engine has them, with `lends`, and are not copied:
/// they are valid until the next call with the row's transaction.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_row_lend(row: *mut pantile_row, lends: bool) -> c_int {
    call(|| {
        lent_mut(row, "the row")?.lends = lends;
        Ok(PANTILE_OK)
    })
}

/// Whether the last read into this row has locked it, and it was not locked before.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_row_is_newly_locked(row: *const pantile_row) -> bool {
    lent(row, "the row").is_ok_and(|row| row.is_newly_locked)
}

/// How many values the row has; 0 for NULL, and before a row has been read into it.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_row_len(row: *const pantile_row) -> usize {
    lent(row, "the row").map_or(0, |row| row.held.values.len())
}

/// A value of the row, by the number of its column. Its bytes are valid until another row is read into this one, or
/// this one is freed.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_row_get(row: *const pantile_row, column: usize, out: *mut pantile_value) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        let row = lent(row, "the row")?;
        let value = row.held.values.get(column);
        out.set(*value.ok_or_else(|| Failure::misuse(format!("the row has no value {column}")))?);
        Ok(PANTILE_OK)
    })
}

/// The first `len` values of the row, with bytes that are valid as long as those of `pantile_row_get`. Fails if it has
/// fewer.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_row_values(row: *const pantile_row, out: *mut pantile_value, len: usize) -> c_int {
    call(|| {
        let values = lent(row, "the row")?.first_values(len)?;
        array_mut(out, len, "the place of the values")?.copy_from_slice(values);
        Ok(PANTILE_OK)
    })
}

/// Where the library shows what is in the row, so that a program that reads many rows needs no other call for that. It stays
/// there until the row is freed, and each read into the row changes it.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_row_view(row: *const pantile_row) -> *const pantile_view {
    lent(row, "the row").map_or(ptr::null(), |row| &raw const *row.view)
}
