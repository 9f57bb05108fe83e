//! Rows as C holds them.

use std::borrow::Cow;
use std::ffi::c_int;

use pantile::{Error, Row, Value};

use crate::database::ColumnFacts;
use crate::error::{Failure, PANTILE_NOT_FOUND, PANTILE_OK, call};
use crate::pointer::{Out, lent, taken};
use crate::value::{PANTILE_BYTES, PANTILE_TEXT, pantile_span, pantile_value, pantile_value_as};

/// A place for the values of a row. It keeps its memory from row to row. The values are copies: they stay as they are
/// when the transaction goes on or ends.
pub struct pantile_row {
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

    /// Takes the values of a row. All are read before any is replaced: reading what is
    /// stored out of line may fail.
    pub(crate) fn load(&mut self, row: &Row<'_>, columns: &[ColumnFacts]) -> Result<(), Failure> {
        let read = |(n, facts): (usize, &ColumnFacts)| {
            Ok(match row.get::<Value<'_>>(n) {
                Err(Error::OutOfLine { .. }) => {
                    Read::bytes(facts.is_text(), row.read(n)?.unwrap_or_default())
                }
                value => match value? {
                    Value::Str(text) => Read::bytes(true, text.as_bytes().into()),
                    Value::Bytes(bytes) => Read::bytes(false, bytes.into()),
                    plain => Read::Plain(pantile_value::from_value(&plain)),
                },
            })
        };
        let values = columns.iter().enumerate().map(read).collect::<Result<Vec<_>, Failure>>()?;
        self.values.clear();
        self.bytes.clear();
        for value in values {
            self.values.push(match value {
                Read::Plain(value) => Copied::Plain(value),
                Read::Bytes { kind, bytes } => {
                    let start = self.bytes.len();
                    self.bytes.extend_from_slice(&bytes);
                    Copied::Bytes { kind, start, len: bytes.len() }
                }
            });
        }
        Ok(())
    }
}

/// A value where it was found.
enum Read<'r> {
    Plain(pantile_value),
    Bytes { kind: c_int, bytes: Cow<'r, [u8]> },
}

impl<'r> Read<'r> {
    fn bytes(is_text: bool, bytes: Cow<'r, [u8]>) -> Self {
        Self::Bytes { kind: if is_text { PANTILE_TEXT } else { PANTILE_BYTES }, bytes }
    }
}

/// A place for rows, with none in it. Freed by `pantile_row_free`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_row_new() -> *mut pantile_row {
    Box::into_raw(Box::new(pantile_row { values: Vec::new(), bytes: Vec::new() }))
}

/// Frees a row and its values.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_row_free(row: *mut pantile_row) {
    drop(taken(row));
}

/// How many values the row has; 0 for NULL, and before a row has been read into it.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_row_len(row: *const pantile_row) -> usize {
    lent(row, "the row").map_or(0, |row| row.values.len())
}

/// A value of the row, by the number of its column. Its bytes are valid until another row is read into this one, or
/// this one is freed.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_row_get(row: *const pantile_row, column: usize, out: *mut pantile_value) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        let row = lent(row, "the row")?;
        let found = row.values.get(column);
        out.set(match found.ok_or_else(|| Failure::misuse(format!("the row has no value {column}")))? {
            Copied::Plain(value) => *value,
            &Copied::Bytes { kind, start, len } => {
                let data = row.bytes[start..start + len].as_ptr();
                let bytes = pantile_span { data, len };
                pantile_value { kind, scale: 0, r#as: pantile_value_as { bytes } }
            }
        });
        Ok(PANTILE_OK)
    })
}
