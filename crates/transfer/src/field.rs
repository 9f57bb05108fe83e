//! Values as fields of CSV, for programs that show and read single values.

use pantile::{ColumnDef, OwnedValue, Type, Value};

use crate::batch::Batch;
use crate::block::{self, NULL, is_like_null};
use crate::text;

/// The text of a value as a field of CSV has it, without quotes.
///
/// ```
/// use pantile::{Type, Value};
/// use pantile_transfer::field;
/// assert_eq!(field::text(Type::Timestamp, &Value::Timestamp(0)), "1970-01-01T00:00:00Z");
/// assert_eq!(field::text(Type::U8, &Value::Null), r"\N");
/// ```
pub fn text(ty: Type, value: &Value<'_>) -> String {
    let mut field = Vec::new();
    append(ty, value, &mut field);
    String::from_utf8(field).expect("values are written as text")
}

/// Reads a field of CSV for a column; the inverse of [`text`].
///
/// # Errors
/// What the column takes, and the beginning of what is there.
///
/// ```
/// use pantile::{ColumnDef, OwnedValue, Type};
/// use pantile_transfer::field;
/// let age = ColumnDef::new("age", Type::U8);
/// assert_eq!(field::parse(&age, "7"), Ok(OwnedValue::UInt(7)));
/// assert_eq!(
///     field::parse(&age, "old").unwrap_err(),
///     "column \"age\": u8 (a whole number from 0 to 255) is expected, not \"old\""
/// );
/// ```
pub fn parse(column: &ColumnDef, field: &str) -> Result<OwnedValue, String> {
    let mut batch = Batch::new(vec![OwnedValue::Null], None);
    let cell = block::cell(column, field.as_bytes(), None, &mut batch).ok_or_else(|| {
        let expected = text::expected(column.ty, column.nullable);
        let got = text::excerpt(field.as_bytes());
        format!("column {:?}: {expected} is expected, not \"{got}\"", column.name)
    })?;
    Ok(batch.value(0, cell).into())
}

/// Appends a value as a field of CSV.
pub(crate) fn append(ty: Type, value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(NULL.as_bytes()),
        Value::Str(text) if is_like_null(text.as_bytes()) => {
            out.push(b'\\');
            text::write(ty, value, out);
        }
        value => text::write(ty, value, out),
    }
}
