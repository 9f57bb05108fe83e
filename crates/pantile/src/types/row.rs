//! Rows as callers read them: typed access without copying.

use pantile_base::Timestamp;

use crate::types::columns::{ColumnRef, Columns};
use crate::types::encoding::{Encoded, Stored};
use crate::types::error::{Error, Result};
use crate::types::fit::wrong_type;
use crate::types::from_value::{FromValue, Misfit};
use crate::types::layout::{Column, ColumnLocation};
use crate::types::owned_value::OwnedValue;
use crate::types::pieces::{OutOfLine, Pieces, Reference};
use crate::types::schema::Type;
use crate::types::value::Value;

/// A row of a table as one transaction sees it.
///
/// It borrows the stored bytes. Reading a value copies it, except for strings
/// and bytes, which are borrowed too.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]))?;
/// db.run(|txn| txn.insert(&t, &[1u64.into(), 5i64.into()]))?;
/// let txn = db.begin_read()?;
/// let row = txn.get(&t, &[1u64.into()])?.expect("a row");
/// assert_eq!(row.values()?, [Value::UInt(1), Value::Int(5)]);
/// assert_eq!(format!("{row:?}"), r#"{"id": UInt(1), "n": Int(5)}"#);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Row<'t> {
    pub(crate) encoded: Encoded<'t>,
    /// Those of the handle through which it was read.
    pub(crate) columns: &'t Columns,
    pub(crate) out_of_line: &'t dyn OutOfLine,
    /// The timestamp at which the statement read the row.
    pub(crate) at: Timestamp,
}

impl<'t> Row<'t> {
    /// The value of a column.
    ///
    /// The type `T` decides whether the value is copied. A `&str`, a `&[u8]` and a [`Value`] borrow
    /// from the row, so they fail for a long value that is stored out of line. A `String`, a
    /// `Vec<u8>` and an [`OwnedValue`] are copies. A `Cow` is a copy only of a value out of line.
    /// An `Option` takes NULL. [`FromValue`] says which types take which numbers.
    ///
    /// # Errors
    /// [`Error::UnknownColumn`]; [`Error::WrongType`] if the column's type, or NULL, does not
    /// convert to `T`; [`Error::ReadOutOfRange`] if `T` cannot hold the value; [`Error::OutOfLine`]
    /// if `T` borrows and the value is out of line; [`Error::ColumnDropped`] if the row was written
    /// after the column was dropped; [`Error::Damaged`] if the device has changed what was stored,
    /// and it shows; errors of [`Transaction::get`](crate::Transaction::get) for a value out of
    /// line.
    ///
    /// ```
    /// # use std::borrow::Cow;
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// let films = db.create_table(
    ///     TableDef::new("films")
    ///         .column("id", Type::U32)
    ///         .nullable("name", Type::String(40))
    ///         .column("film", Type::Bytes(1 << 30))
    ///         .primary_key(["id"]),
    /// )?;
    /// let film = vec![7; 1 << 20];
    /// db.run(|txn| txn.insert(&films, &[300u32.into(), "Rex".into(), film.as_slice().into()]))?;
    /// let txn = db.begin_read()?;
    /// let row = txn.get(&films, &[300u32.into()])?.expect("a film");
    /// assert_eq!(row.get::<u64>(0)?, 300);
    /// let error = row.get::<u8>("id").expect_err("300 is too much");
    /// assert_eq!(error.to_string(), "column \"id\" of table \"films\" has the value 300, and u8 takes 0 to 255");
    /// assert_eq!(row.get::<Option<&str>>("name")?, Some("Rex"));
    /// assert!(matches!(row.get::<&[u8]>("film"), Err(Error::OutOfLine { .. })));
    /// assert_eq!(row.get::<Cow<[u8]>>("film")?.len(), 1 << 20);
    /// # Ok::<(), Error>(())
    /// ```
    #[inline]
    pub fn get<T: FromValue<'t>>(&self, column: impl ColumnRef) -> Result<T> {
        let id = column.resolve(self.columns, &self.encoded.schema.name)?;
        let column = self.column(id)?;
        self.check_body(id)?;
        if self.encoded.is_null(column) {
            return T::from_value(Value::Null).map_err(|why| self.misfit::<T>(id, Value::Null, why));
        }
        if self.encoded.is_out_of_line(column) {
            return self.get_out_of_line(id, column);
        }
        // No value between the bytes and what they are read as: that costs more than both.
        let Some(value) = self.encoded.value(column) else { return Err(self.damaged(id)) };
        T::from_value(value).map_err(|why| self.misfit::<T>(id, value, why))
    }

    /// Fails if the row is too short to look for columns in it.
    #[inline]
    fn check_body(&self, column: usize) -> Result<()> {
        if self.encoded.has_body() { Ok(()) } else { Err(self.damaged(column)) }
    }

    #[cold]
    fn damaged(&self, column: usize) -> Error {
        let schema = self.encoded.schema;
        Error::Damaged {
            place: format!("column {:?} of table {:?}", schema.names[column], schema.name),
            detail: "a value that is not what its column takes".to_owned(),
        }
    }

    /// What is stored in a column, by its number.
    #[cfg(feature = "serde")]
    pub(crate) fn stored_at(&self, column: usize) -> Result<Stored<'t>> {
        let id = column.resolve(self.columns, &self.encoded.schema.name)?;
        let column = self.column(id)?;
        self.encoded.stored_of_any(column).ok_or_else(|| self.damaged(id))
    }

    #[inline]
    fn column(&self, id: usize) -> Result<&'t Column> {
        let column = &self.encoded.schema.columns[id];
        if matches!(column.place, ColumnLocation::Dropped) {
            self.columns.check_not_dropped(self.encoded.schema, id)?;
        }
        Ok(column)
    }

    #[cold]
    fn get_out_of_line<T: FromValue<'t>>(&self, column: usize, place: &Column) -> Result<T> {
        let schema = self.encoded.schema;
        let Some(from_owned) = T::FROM_OWNED else {
            return Err(Error::OutOfLine { column: schema.names[column].clone() });
        };
        let bytes = self.reference(column, place)?.read(self.out_of_line)?;
        let value = match schema.columns[column].stored {
            Type::String(_) => OwnedValue::Str(self.text_out_of_line(column, bytes)?),
            _ => OwnedValue::Bytes(bytes),
        };
        let kind = value.as_value().kind();
        from_owned(value).map_err(|_| wrong_type(schema, column, &format!("{kind} read as {}", name::<T>())))
    }

    fn reference(&self, column: usize, place: &Column) -> Result<Reference> {
        let (id, len) = self.encoded.reference(place).ok_or_else(|| self.damaged(column))?;
        Ok(Reference { table: self.encoded.schema.table, id, len, at: self.at })
    }

    /// The bytes of a string or of bytes, in order and without a copy. `None` for NULL.
    ///
    /// The value may have any length: a value out of line comes in pieces of 60,000 bytes.
    ///
    /// # Errors
    /// [`Error::UnknownColumn`], [`Error::ColumnDropped`]; [`Error::WrongType`] for a column of
    /// another type. Each piece may have errors of [`Transaction::get`](crate::Transaction::get),
    /// and [`Error::Damaged`] if it is not there.
    ///
    /// ```
    /// # use std::io::Write;
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let def = TableDef::new("films").column("id", Type::U32).nullable("film", Type::Bytes(1 << 30)).primary_key(["id"]);
    /// # let films = db.create_table(def)?;
    /// # db.run(|txn| txn.insert(&films, &[300u32.into(), vec![7; 1 << 20].as_slice().into()]))?;
    /// # let mut socket = Vec::new();
    /// let txn = db.begin_read()?;
    /// let row = txn.get(&films, &[300u32.into()])?.expect("a film");
    /// if let Some(pieces) = row.pieces("film")? {
    ///     assert_eq!(pieces.bytes_left(), 1 << 20);
    ///     for piece in pieces {
    ///         socket.write_all(piece?)?;
    ///     }
    /// }
    /// # assert_eq!(socket, vec![7; 1 << 20]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pieces(&self, column: impl ColumnRef) -> Result<Option<Pieces<'t>>> {
        let id = column.resolve(self.columns, &self.encoded.schema.name)?;
        let place = self.column(id)?;
        self.check_body(id)?;
        if self.encoded.is_null(place) {
            return Ok(None);
        }
        if self.encoded.is_out_of_line(place) {
            return Ok(Some(Pieces::out_of_line(self.reference(id, place)?, self.out_of_line)));
        }
        match self.encoded.value(place).ok_or_else(|| self.damaged(id))? {
            Value::Bytes(bytes) => Ok(Some(Pieces::in_line(bytes))),
            Value::Str(text) => Ok(Some(Pieces::in_line(text.as_bytes()))),
            _ => Err(wrong_type(self.encoded.schema, id, "bytes")),
        }
    }

    /// Nothing has checked what is out of line since it was written.
    fn text_out_of_line(&self, column: usize, bytes: Vec<u8>) -> Result<String> {
        let schema = self.encoded.schema;
        String::from_utf8(bytes).map_err(|error| Error::Damaged {
            place: format!("column {:?} of table {:?}", schema.names[column], schema.name),
            detail: format!("a string out of line: {}", error.utf8_error()),
        })
    }

    #[cold]
    fn misfit<T>(&self, id: usize, value: Value<'_>, why: Misfit) -> Error {
        let (schema, wanted) = (self.encoded.schema, name::<T>());
        match why {
            Misfit::Kind if matches!(value, Value::Null) => {
                wrong_type(schema, id, &format!("NULL read as {wanted}"))
            }
            Misfit::Kind => wrong_type(schema, id, wanted),
            Misfit::Range(range) => Error::ReadOutOfRange {
                table: schema.name.clone(),
                column: schema.names[id].clone(),
                value: value.to_string(),
                takes: format!("{wanted} takes {range}"),
            },
        }
    }

    /// Number of columns.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there are no columns; never true.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies of all values in order, whatever their length. They can outlive the transaction.
    ///
    /// # Errors
    /// As [`Row::get`].
    pub fn to_values(&self) -> Result<Vec<OwnedValue>> {
        (0..self.len()).map(|n| self.get(n)).collect()
    }

    /// All values in order.
    ///
    /// # Errors
    /// [`Error::OutOfLine`] if one is stored out of line.
    pub fn values(&self) -> Result<Vec<Value<'t>>> {
        (0..self.len()).map(|n| self.get(n)).collect()
    }
}

impl std::fmt::Debug for Row<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut map = f.debug_map();
        for (name, id) in self.columns.names_and_ids() {
            if matches!(self.encoded.schema.columns[id].place, ColumnLocation::Dropped) {
                map.entry(&name, &format_args!("<dropped>"));
                continue;
            }
            let column = &self.encoded.schema.columns[id];
            match self.encoded.stored_of_any(column) {
                Some(Stored::Null) => map.entry(&name, &Value::Null),
                Some(Stored::Value(value)) => map.entry(&name, &value),
                Some(Stored::OutOfLine { len, .. }) => {
                    map.entry(&name, &format_args!("<{len} bytes out of line>"))
                }
                None => map.entry(&name, &format_args!("<damaged>")),
            };
        }
        map.finish()
    }
}

/// The name of a type without the modules in which it is.
fn name<T>() -> &'static str {
    let name = std::any::type_name::<T>();
    if name.contains('<') { name } else { name.rsplit("::").next().unwrap_or(name) }
}
