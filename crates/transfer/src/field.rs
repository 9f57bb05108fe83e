//! Values and rows in the text forms of dumps, for programs that show and read single ones.

use pantile::{ColumnDef, OwnedValue, TableDef, Type, Value};

use crate::batch::Batch;
use crate::block::{self, NULL, is_like_null};
use crate::schema::TableLine;
use crate::{json, text};

/// Returns the text of a value as a field of CSV, without quotes.
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
/// A message that says what the column takes, and shows the beginning of the text.
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
        let got = block::got(field.as_bytes());
        format!("column {:?}: {expected} is expected, not {got}", column.name)
    })?;
    Ok(batch.value(0, cell).into())
}

/// Appends a record of CSV, with the quotes that it needs and the end of the line.
///
/// ```
/// let mut csv = Vec::new();
/// pantile_transfer::field::append_record(["1", "a,b"].iter().map(|field| field.as_bytes()), &mut csv);
/// assert_eq!(csv, b"1,\"a,b\"\n");
/// ```
pub fn append_record<'f>(fields: impl Iterator<Item = &'f [u8]>, out: &mut Vec<u8>) {
    let start = out.len();
    for (n, field) in fields.enumerate() {
        if n > 0 {
            out.push(b',');
        }
        append_quoted(field, out);
    }
    // An empty line is no record.
    if out.len() == start {
        out.extend_from_slice(b"\"\"");
    }
    out.push(b'\n');
}

fn append_quoted(field: &[u8], out: &mut Vec<u8>) {
    // At the beginning of a file it would be taken for a byte order mark.
    let is_marked = field.starts_with("\u{feff}".as_bytes());
    if !is_marked && !field.iter().any(|c| matches!(c, b'"' | b',' | b'\n' | b'\r')) {
        return out.extend_from_slice(field);
    }
    out.push(b'"');
    for (n, part) in field.split(|c| *c == b'"').enumerate() {
        if n > 0 {
            out.extend_from_slice(b"\"\"");
        }
        out.extend_from_slice(part);
    }
    out.push(b'"');
}

/// Appends a row as an object of JSON, with the end of the line.
///
/// ```
/// use pantile::{ColumnDef, Type, Value};
/// let columns = [ColumnDef::new("id", Type::U8), ColumnDef::new("name", Type::String(9))];
/// let mut json = Vec::new();
/// pantile_transfer::field::append_object(&columns, &[Value::UInt(7), Value::Str("Rex")], &mut json);
/// assert_eq!(json, b"{\"id\":7,\"name\":\"Rex\"}\n");
/// ```
pub fn append_object(columns: &[ColumnDef], values: &[Value<'_>], out: &mut Vec<u8>) {
    for (n, (column, value)) in columns.iter().zip(values).enumerate() {
        out.push(if n == 0 { b'{' } else { b',' });
        json::write_string(&column.name, out);
        out.push(b':');
        json::write_value(column.ty, value, out);
    }
    out.extend_from_slice(b"}\n");
}

/// Returns the definition of a table as in a dump: a line of JSON, without the end of the line.
///
/// ```
/// use pantile::{TableDef, Type};
/// use pantile_transfer::field;
/// let pets = TableDef::new("pets").column("id", Type::U8).primary_key(["id"]);
/// let line = field::definition(&pets);
/// assert_eq!(line, r#"{"table":"pets","columns":[{"name":"id","type":"u8"}],"primary_key":["id"]}"#);
/// assert_eq!(field::parse_definition(&line), Ok(pets));
/// ```
pub fn definition(def: &TableDef) -> String {
    serde_json::to_string(&TableLine::new(def)).expect("definitions are written as JSON")
}

/// Reads what [`definition`] has written.
///
/// # Errors
/// A message that says what is wrong with the line.
pub fn parse_definition(line: &str) -> Result<TableDef, String> {
    serde_json::from_str::<TableLine>(line).map_err(|error| error.to_string())?.definition()
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
