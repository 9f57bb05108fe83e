//! Rows as C holds them.

use std::borrow::Cow;
use std::ffi::c_int;

use pantile::{Error, Row, Value};

use crate::database::ColumnFacts;
use crate::error::{Failure, PANTILE_NOT_FOUND, PANTILE_OK, call};
use crate::pointer::{Out, array, array_mut, free, lent, lent_mut};
use crate::value::{
    PANTILE_BYTES, PANTILE_TEXT, pantile_null, pantile_span, pantile_value, pantile_value_as,
};

/// A place for the values of a row. It keeps its memory from row to row. The values are copies: they stay as they are
/// when the transaction goes on or ends.
#[derive(Default)]
pub struct pantile_row {
    held: Held,
    /// Where the next one is read, so that a row that cannot be read leaves this one as it was.
    next: Held,
    /// Columns that are not read, in order.
    left_out: Vec<usize>,
}

#[derive(Default)]
struct Held {
    values: Vec<Copied>,
    bytes: Vec<u8>,
}

enum Copied {
    /// Points nowhere.
    Plain(pantile_value),
    Bytes {
        kind: c_int,
        start: usize,
        len: usize,
    },
}

impl pantile_row {
    /// Takes the values of a row, if there is one, and says so.
    pub(crate) fn take(&mut self, row: Option<Row<'_>>, columns: &[ColumnFacts]) -> Result<c_int, Failure> {
        match row {
            Some(row) => self.load(&row, columns).map(|()| PANTILE_OK),
            None => Ok(PANTILE_NOT_FOUND),
        }
    }

    /// Takes the values of a row. If one of them cannot be read, the row stays as it is.
    pub(crate) fn load(&mut self, row: &Row<'_>, columns: &[ColumnFacts]) -> Result<(), Failure> {
        let Held { values, bytes } = &mut self.next;
        values.clear();
        bytes.clear();
        for (n, facts) in columns.iter().enumerate() {
            if self.left_out.binary_search(&n).is_ok() {
                values.push(Copied::Plain(pantile_null()));
                continue;
            }
            values.push(match row.get::<Value<'_>>(n) {
                Err(Error::OutOfLine { .. }) => copied(bytes, facts.is_text(), &row.get::<Cow<'_, [u8]>>(n)?),
                value => match value? {
                    Value::Str(text) => copied(bytes, true, text.as_bytes()),
                    Value::Bytes(found) => copied(bytes, false, found),
                    plain => Copied::Plain(pantile_value::from_value(&plain)),
                },
            });
        }
        std::mem::swap(&mut self.held, &mut self.next);
        Ok(())
    }

    fn value(&self, column: usize) -> Option<pantile_value> {
        Some(match self.held.values.get(column)? {
            Copied::Plain(value) => *value,
            &Copied::Bytes { kind, start, len } => {
                let data = self.held.bytes[start..start + len].as_ptr();
                let bytes = pantile_span { data, len };
                pantile_value { kind, scale: 0, r#as: pantile_value_as { bytes } }
            }
        })
    }
}

fn copied(bytes: &mut Vec<u8>, is_text: bool, value: &[u8]) -> Copied {
    let start = bytes.len();
    bytes.extend_from_slice(value);
    Copied::Bytes { kind: if is_text { PANTILE_TEXT } else { PANTILE_BYTES }, start, len: value.len() }
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
        Ok(PANTILE_OK)
    })
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
        out.set(row.value(column).ok_or_else(|| Failure::misuse(format!("the row has no value {column}")))?);
        Ok(PANTILE_OK)
    })
}

/// The first `len` values of the row, with bytes that are valid as long as those of `pantile_row_get`. Fails if it has
/// fewer.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_row_values(row: *const pantile_row, out: *mut pantile_value, len: usize) -> c_int {
    call(|| {
        let row = lent(row, "the row")?;
        let out = array_mut(out, len, "the place of the values")?;
        let has = row.held.values.len();
        if len > has {
            return Err(Failure::misuse(format!("the row has {has} values and not {len}")));
        }
        for (column, place) in out.iter_mut().enumerate() {
            *place = row.value(column).unwrap_or_else(|| pantile_null());
        }
        Ok(PANTILE_OK)
    })
}
