//! Rows as JSON: arrays in a dump, objects elsewhere.

use std::borrow::Cow;

use pantile::{ColumnDef, Type, Value};
use serde::Deserializer;
use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::batch::{Batch, Cell, Lines};
use crate::error::{Error, Place};
use crate::target::Target;
use crate::text;
use crate::timestamp;

/// Appends a value.
pub fn write_value(ty: Type, value: &Value<'_>, out: &mut Vec<u8>) {
    match *value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Str(text) => write_string(text, out),
        _ if is_bare(value) => text::write(ty, value, out),
        _ => {
            out.push(b'"');
            text::write(ty, value, out);
            out.push(b'"');
        }
    }
}

/// Appends a string in quotes.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    // Writing to a vector does not fail.
    let _ = serde_json::to_writer(out, text);
}

/// Whether the text of the value is JSON without quotes.
fn is_bare(value: &Value<'_>) -> bool {
    match *value {
        Value::Bool(_) | Value::Int(_) | Value::UInt(_) => true,
        Value::Float(value) => value.is_finite(),
        Value::Timestamp(value) => !timestamp::is_date(value),
        _ => false,
    }
}

/// Reads a row that is an array with all values in order.
pub fn read_array(line: &str, at: u64, target: &Target, batch: &mut Batch) -> Result<(), Error> {
    let start = batch.add_row(Lines::one(at));
    let mut reader = Reader { target, batch, start, failed: None };
    let mut json = serde_json::Deserializer::from_str(line);
    let read = json.deserialize_seq(Array(&mut reader)).and_then(|()| json.end());
    reader.finish(read, at)
}

/// Reads a row that is an object with values by their columns' names.
pub fn read_object(line: &str, at: u64, target: &Target, batch: &mut Batch) -> Result<(), Error> {
    let start = batch.add_row(Lines::one(at));
    let mut reader = Reader { target, batch, start, failed: None };
    let mut json = serde_json::Deserializer::from_str(line);
    let read = json.deserialize_map(Object(&mut reader)).and_then(|()| json.end());
    reader.finish(read, at)
}

struct Reader<'r> {
    target: &'r Target,
    batch: &'r mut Batch,
    start: usize,
    /// Why reading was given up, if not because of the JSON.
    failed: Option<Error>,
}

impl Reader<'_> {
    fn place(&self) -> Place {
        self.batch.last()
    }

    fn finish(self, read: serde_json::Result<()>, line: u64) -> Result<(), Error> {
        let file = self.batch.file.clone();
        read.map(|()| self.batch.end_row()).map_err(|error| {
            self.failed.unwrap_or_else(|| {
                // The parser counts lines too, and has seen one.
                let text = error.to_string();
                let what = text.split(" at line ").next().unwrap_or_default();
                Error::Damaged {
                    at: Place { file, line },
                    detail: format!("this is not a row: {what} at column {}", error.column()),
                }
            })
        })
    }

    fn set(&mut self, n: usize, raw: &RawValue) -> Result<(), Error> {
        let ColumnDef { name, ty, nullable, .. } = &self.target.def.columns[n];
        let raw = raw.get();
        let cell = match raw.as_bytes() {
            b"null" if *nullable => Some(Cell::Null),
            b"null" => None,
            [b'"', ..] => unquoted(raw).and_then(|text| text::parse(*ty, &text, self.batch)),
            _ if is_quoted(*ty) => None,
            _ => text::parse(*ty, raw, self.batch),
        };
        let cell = cell.ok_or_else(|| Error::WrongValue {
            at: self.place(),
            column: name.clone(),
            expected: text::expected(*ty, *nullable),
            got: text::excerpt(raw.as_bytes()),
        })?;
        self.batch.set(self.start + n, cell);
        Ok(())
    }

    fn give_up<E: de::Error>(&mut self, error: Error) -> E {
        self.failed = Some(error);
        E::custom("given up")
    }

    fn damaged(&self, detail: String) -> Error {
        Error::Damaged { at: self.place(), detail }
    }
}

/// Whether only strings can be values of the type.
fn is_quoted(ty: Type) -> bool {
    matches!(ty, Type::String(_) | Type::FixedString(_) | Type::Bytes(_) | Type::FixedBytes(_))
}

/// What a JSON string stands for.
fn unquoted(raw: &str) -> Option<Cow<'_, str>> {
    let inner = &raw[1..raw.len() - 1];
    if inner.contains('\\') {
        serde_json::from_str(raw).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

struct Array<'a, 'r>(&'a mut Reader<'r>);

impl<'de> Visitor<'de> for Array<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array of values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        let width = self.0.target.def.columns.len();
        for n in 0..width {
            let Some(raw) = values.next_element::<&RawValue>()? else {
                let error = self.0.damaged(format!("the row has {n} values, and the table {width} columns"));
                return Err(self.0.give_up(error));
            };
            self.0.set(n, raw).map_err(|error| self.0.give_up(error))?;
        }
        if values.next_element::<IgnoredAny>()?.is_some() {
            let error = self.0.damaged(format!("the row has more values than the table columns, {width}"));
            return Err(self.0.give_up(error));
        }
        Ok(())
    }
}

struct Object<'a, 'r>(&'a mut Reader<'r>);

impl<'de> Visitor<'de> for Object<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object with the values of a row")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        let columns = &self.0.target.def.columns;
        let mut seen = vec![false; columns.len()];
        // Rows usually name the columns in the order of the table.
        let mut next = 0;
        while let Some(name) = values.next_key::<Name<'_>>()? {
            let name = name.0;
            let n = match columns.get(next) {
                Some(column) if column.name == name => next,
                _ => match columns.iter().position(|column| column.name == name) {
                    Some(n) => n,
                    None => {
                        let error = self.0.target.unknown_column(self.0.place(), &name, "does not exist");
                        return Err(self.0.give_up(error));
                    }
                },
            };
            if std::mem::replace(&mut seen[n], true) {
                let error = self.0.target.unknown_column(self.0.place(), &name, "is named twice");
                return Err(self.0.give_up(error));
            }
            let raw = values.next_value::<&RawValue>()?;
            self.0.set(n, raw).map_err(|error| self.0.give_up(error))?;
            next = n + 1;
        }
        self.0.target.check_columns(self.0.place(), |n| seen[n]).map_err(|error| self.0.give_up(error))
    }
}

/// A key, borrowed where it has no escapes.
struct Name<'n>(Cow<'n, str>);

impl<'de> de::Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the name of a column")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        from.deserialize_str(Text)
    }
}
