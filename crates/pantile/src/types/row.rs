//! Rows as callers read them: typed access without copying.

use std::borrow::Cow;

use pantile_base::{TableId, Timestamp};

use crate::types::columns::Columns;
use crate::types::encoding::{Encoded, Stored};
use crate::types::error::{Error, Result};
use crate::types::fit::wrong_type;
use crate::types::layout::ColumnLocation;
use crate::types::owned_value::OwnedValue;
use crate::types::schema::Type;
use crate::types::value::{Decimal, Value};

/// Reads values stored out of line.
pub(crate) trait OutOfLine {
    fn read_out_of_line(&self, of: TableId, id: u64, len: u64, at: Timestamp) -> Result<Vec<u8>>;
}

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

/// Names a column: by its number, which is fast, or by its name.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]))?;
/// # db.run(|txn| txn.insert(&t, &[1u64.into(), 5i64.into()]))?;
/// let n = t.column("n")?; // once, outside a loop
/// let txn = db.begin_read()?;
/// let row = txn.get(&t, &[1u64.into()])?.expect("a row");
/// assert_eq!(row.get::<i64>(n)?, row.get::<i64>("n")?);
/// # Ok::<(), Error>(())
/// ```
pub trait ColumnRef {
    /// The column's id in the table.
    #[doc(hidden)]
    fn resolve(&self, row: &Row<'_>) -> Result<usize>;
}

impl ColumnRef for usize {
    #[inline]
    fn resolve(&self, row: &Row<'_>) -> Result<usize> {
        row.columns.id(*self, &row.encoded.schema.name)
    }
}

impl ColumnRef for &str {
    fn resolve(&self, row: &Row<'_>) -> Result<usize> {
        let number = row.columns.number(self, &row.encoded.schema.name)?;
        number.resolve(row)
    }
}

/// A Rust type that a column can be read as.
///
/// ```
/// use pantile::{FromValue, Value};
///
/// struct Cents(i64);
///
/// impl FromValue<'_> for Cents {
///     fn from_value(value: Value<'_>) -> Option<Self> {
///         i64::from_value(value).map(Cents)
///     }
/// }
///
/// assert!(matches!(Cents::from_value(Value::Int(250)), Some(Cents(250))));
/// assert!(Cents::from_value(Value::Null).is_none());
/// ```
pub trait FromValue<'t>: Sized {
    /// The value, or `None` if the types do not match.
    fn from_value(value: Value<'t>) -> Option<Self>;
}

impl<'t> Row<'t> {
    /// The value of a column.
    ///
    /// # Errors
    /// [`Error::UnknownColumn`]; [`Error::WrongType`] if the column's type, or
    /// NULL, does not convert to `T`; [`Error::OutOfLine`];
    /// [`Error::ColumnDropped`] if the row is newer than the column's end.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).nullable("name", Type::String(9)).primary_key(["id"]))?;
    /// # let mut txn = db.begin()?;
    /// txn.insert(&t, &[7u64.into(), "seven".into()])?;
    /// let row = txn.get(&t, &[7u64.into()])?.unwrap();
    /// assert_eq!(row.get::<u64>(0)?, 7);
    /// assert_eq!(row.get::<Option<&str>>("name")?, Some("seven"));
    /// # Ok::<(), Error>(())
    /// ```
    #[inline]
    pub fn get<T: FromValue<'t>>(&self, column: impl ColumnRef) -> Result<T> {
        let id = column.resolve(self)?;
        let value = match self.stored(id)? {
            Stored::Null => Value::Null,
            Stored::Value(value) => value,
            Stored::OutOfLine { .. } => {
                return Err(Error::OutOfLine { column: self.encoded.schema.names[id].clone() });
            }
        };
        T::from_value(value).ok_or_else(|| self.mismatch(id, &value, std::any::type_name::<T>()))
    }

    #[inline]
    fn stored(&self, id: usize) -> Result<Stored<'t>> {
        let column = &self.encoded.schema.columns[id];
        if matches!(column.place, ColumnLocation::Dropped) {
            self.columns.check_not_dropped(self.encoded.schema, id)?;
        }
        Ok(self.encoded.stored_in(column))
    }

    #[cold]
    fn mismatch(&self, id: usize, value: &Value<'_>, wanted: &str) -> Error {
        let got =
            if matches!(value, Value::Null) { format!("NULL read as {wanted}") } else { wanted.to_owned() };
        wrong_type(self.encoded.schema, id, &got)
    }

    /// The bytes of a string or bytes column, in line or not; `None` for NULL.
    /// Values in line are borrowed, others are copied.
    ///
    /// # Errors
    /// [`Error::UnknownColumn`], [`Error::WrongType`] for other types.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// let films = db.create_table(
    ///     TableDef::new("films").column("id", Type::U64).column("film", Type::Bytes(1 << 30)).primary_key(["id"]),
    /// )?;
    /// let film = vec![7; 1 << 20];
    /// db.run(|txn| txn.insert(&films, &[1u64.into(), film.as_slice().into()]))?;
    /// let txn = db.begin_read()?;
    /// let row = txn.get(&films, &[1u64.into()])?.expect("a film");
    /// assert!(matches!(row.get::<&[u8]>("film"), Err(Error::OutOfLine { .. })));
    /// assert_eq!(row.read("film")?.expect("not NULL").len(), 1 << 20);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn read(&self, column: impl ColumnRef) -> Result<Option<Cow<'t, [u8]>>> {
        let n = column.resolve(self)?;
        match self.stored(n)? {
            Stored::Null => Ok(None),
            Stored::Value(Value::Str(text)) => Ok(Some(Cow::Borrowed(text.as_bytes()))),
            Stored::Value(Value::Bytes(bytes)) => Ok(Some(Cow::Borrowed(bytes))),
            Stored::Value(value) => Err(self.mismatch(n, &value, "bytes")),
            Stored::OutOfLine { id, len } => {
                let of = self.encoded.schema.table;
                self.out_of_line.read_out_of_line(of, id, len, self.at).map(|v| Some(Cow::Owned(v)))
            }
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

    /// The value of a column, whatever its length.
    ///
    /// # Errors
    /// As [`Row::get`], without [`Error::OutOfLine`].
    pub fn value(&self, column: impl ColumnRef) -> Result<OwnedValue> {
        let id = column.resolve(self)?;
        Ok(match self.stored(id)? {
            Stored::Null => OwnedValue::Null,
            Stored::Value(value) => value.into(),
            Stored::OutOfLine { id: value, len } => {
                let of = self.encoded.schema.table;
                let bytes = self.out_of_line.read_out_of_line(of, value, len, self.at)?;
                match self.encoded.schema.columns[id].stored {
                    Type::String(_) => OwnedValue::Str(self.text_out_of_line(id, bytes)?),
                    _ => OwnedValue::Bytes(bytes),
                }
            }
        })
    }

    /// Nothing has checked what is out of line since it was written.
    fn text_out_of_line(&self, id: usize, bytes: Vec<u8>) -> Result<String> {
        String::from_utf8(bytes).map_err(|error| Error::Damaged {
            place: format!(
                "column {:?} of table {:?}",
                self.encoded.schema.names[id], self.encoded.schema.name
            ),
            detail: format!("a string out of line: {}", error.utf8_error()),
        })
    }

    /// All values in order, whatever their length, apart from the transaction.
    ///
    /// # Errors
    /// As [`Row::value`].
    pub fn to_values(&self) -> Result<Vec<OwnedValue>> {
        (0..self.len()).map(|n| self.value(n)).collect()
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
            match self.encoded.stored(id) {
                Stored::Null => map.entry(&name, &Value::Null),
                Stored::Value(value) => map.entry(&name, &value),
                Stored::OutOfLine { len, .. } => map.entry(&name, &format_args!("<{len} bytes out of line>")),
            };
        }
        map.finish()
    }
}

macro_rules! from_value {
    ($($target:ty: $pattern:pat => $result:expr),* $(,)?) => {
        $(impl<'t> FromValue<'t> for $target {
            #[inline]
            fn from_value(value: Value<'t>) -> Option<Self> {
                match value {
                    $pattern => $result,
                    _ => None,
                }
            }
        })*
    };
}

macro_rules! from_integer {
    ($($target:ty),*) => {
        $(impl<'t> FromValue<'t> for $target {
            #[inline]
            fn from_value(value: Value<'t>) -> Option<Self> {
                match value {
                    Value::Int(v) => v.try_into().ok(),
                    Value::UInt(v) => v.try_into().ok(),
                    _ => None,
                }
            }
        })*
    };
}

from_integer!(i8, i16, i32, i64, u8, u16, u32, u64);

from_value! {
    bool: Value::Bool(v) => Some(v),
    f64: Value::Float(v) => Some(v),
    Decimal: Value::Decimal(v) => Some(v),
    &'t str: Value::Str(v) => Some(v),
    &'t [u8]: Value::Bytes(v) => Some(v),
}

/// Microseconds since 1970-01-01 UTC, as a column of [`Type::Timestamp`] reads.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// let log = db.create_table(TableDef::new("log").column("at", Type::Timestamp).primary_key(["at"]))?;
/// let mut txn = db.begin()?;
/// txn.insert(&log, &[Micros(1_700_000_000_000_000).into()])?;
/// let row = txn.get(&log, &[Micros(1_700_000_000_000_000).into()])?.expect("a row");
/// assert_eq!(row.get::<Micros>("at")?.0, 1_700_000_000_000_000);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Micros(pub i64);

impl FromValue<'_> for Micros {
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Timestamp(v) => Some(Micros(v)),
            _ => None,
        }
    }
}

impl From<Micros> for Value<'_> {
    fn from(value: Micros) -> Self {
        Value::Timestamp(value.0)
    }
}

impl<'t, T: FromValue<'t>> FromValue<'t> for Option<T> {
    #[inline]
    fn from_value(value: Value<'t>) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            other => T::from_value(other).map(Some),
        }
    }
}

impl<'t> FromValue<'t> for Value<'t> {
    #[inline]
    fn from_value(value: Value<'t>) -> Option<Self> {
        Some(value)
    }
}
