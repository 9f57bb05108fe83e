//! Rows from and to what serde serializes: columns go by the names of fields.

use serde::de::value::{CowStrDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::types::encoding::Stored;
use crate::types::error::{Error, Result};
use crate::types::from_value::FromValue;
use crate::types::owned_value::OwnedValue;
use crate::types::row::Row;
use crate::types::value::{Decimal, Micros, Value};

/// What serde or the database says of a value.
#[derive(Debug)]
pub(crate) enum SerdeError {
    Message(String),
    Database(Error),
}

impl std::fmt::Display for SerdeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SerdeError::Message(message) => f.write_str(message),
            SerdeError::Database(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SerdeError {}

impl de::Error for SerdeError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        SerdeError::Message(message.to_string())
    }
}

impl serde::ser::Error for SerdeError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        SerdeError::Message(message.to_string())
    }
}

impl SerdeError {
    /// The same, and which field it is about.
    pub fn of_field(self, name: &str) -> Self {
        match self {
            SerdeError::Message(message) => SerdeError::Message(format!("field {name:?}: {message}")),
            SerdeError::Database(error) => SerdeError::Database(error),
        }
    }

    pub fn of_table(self, table: &str) -> Error {
        match self {
            SerdeError::Message(message) => Error::Serde { table: table.to_owned(), message },
            SerdeError::Database(error) => error,
        }
    }
}

impl<'t> Row<'t> {
    /// Reads the row as a struct or a map, with fields matched to columns by name.
    ///
    /// Columns without a field are not read. A [`Decimal`] is read as text, a [`Micros`] as a
    /// number, and an enum without fields from the text of its variant.
    ///
    /// # Errors
    /// [`Error::Serde`], which names the field, if a value does not fit it or a
    /// field has no column; errors of [`Row::get`] for values out of line. A field that has no column
    /// is no error if it is an `Option`, which is then `None`, or has `#[serde(default)]`.
    ///
    /// ```
    /// # use pantile::*;
    /// # use serde::{Deserialize, Serialize};
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let t = db.create_table(TableDef::new("pets").column("id", Type::U64).nullable("name", Type::String(40)).primary_key(["id"]))?;
    /// #[derive(Serialize, Deserialize, PartialEq, Debug)]
    /// struct Pet {
    ///     id: u32,
    ///     name: Option<String>,
    /// }
    ///
    /// let rex = Pet { id: 7, name: Some("Rex".into()) };
    /// let values = t.serialize(&rex)?;
    /// db.run(|txn| txn.insert(&t, &OwnedValue::as_values(&values)))?;
    /// let txn = db.begin_read()?;
    /// let row = txn.get(&t, &[7.into()])?.expect("a pet");
    /// assert_eq!(row.deserialize::<Pet>()?, rex);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn deserialize<T: Deserialize<'t>>(&self) -> Result<T> {
        T::deserialize(Columns { row: *self, next: 0 })
            .map_err(|error| error.of_table(&self.encoded.schema.name))
    }
}

/// The columns of a row from one on.
struct Columns<'t> {
    row: Row<'t>,
    next: usize,
}

impl<'t> Deserializer<'t> for Columns<'t> {
    type Error = SerdeError;

    fn deserialize_any<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        visitor.visit_map(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'t>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        <W: Visitor<'t>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'t> MapAccess<'t> for Columns<'t> {
    type Error = SerdeError;

    fn next_key_seed<K: DeserializeSeed<'t>>(&mut self, seed: K) -> Result<Option<K::Value>, SerdeError> {
        let Some(name) = self.row.columns.name(self.next) else { return Ok(None) };
        let name: StrDeserializer<'_, SerdeError> = name.into_deserializer();
        self.next += 1;
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'t>>(&mut self, seed: S) -> Result<S::Value, SerdeError> {
        let (row, number) = (self.row, self.next - 1);
        let name = row.columns.name(number).unwrap_or_default();
        seed.deserialize(Cell { row, number }).map_err(|error| error.of_field(name))
    }
}

/// A value that has not been read yet.
struct Cell<'t> {
    row: Row<'t>,
    number: usize,
}

impl<'t> Cell<'t> {
    fn is_null(&self) -> Result<bool, SerdeError> {
        Ok(matches!(self.row.stored_at(self.number).map_err(SerdeError::Database)?, Stored::Null))
    }

    /// The value as a float, if it is a number. Serde's own floats would take any number, and round it.
    fn number<T: FromValue<'t>>(&self) -> Result<Option<T>, SerdeError> {
        match self.row.get(self.number) {
            Ok(number) => Ok(Some(number)),
            Err(Error::WrongType { .. } | Error::OutOfLine { .. }) => Ok(None),
            Err(error @ Error::ReadOutOfRange { .. }) => Err(de::Error::custom(error)),
            Err(error) => Err(SerdeError::Database(error)),
        }
    }

    /// Borrowed if it is in line.
    fn visit<V: Visitor<'t>>(self, visitor: V, bytes_as_numbers: bool) -> Result<V::Value, SerdeError> {
        let value = match self.row.get::<Value<'t>>(self.number) {
            Err(Error::OutOfLine { .. }) => {
                let owned = self.row.get::<OwnedValue>(self.number).map_err(SerdeError::Database)?;
                return match owned {
                    OwnedValue::Str(text) => visitor.visit_string(text),
                    OwnedValue::Bytes(bytes) if bytes_as_numbers => {
                        visitor.visit_seq(SeqDeserializer::new(bytes.into_iter()))
                    }
                    OwnedValue::Bytes(bytes) => visitor.visit_byte_buf(bytes),
                    other => Err(de::Error::custom(format_args!("{other:?} is out of line"))),
                };
            }
            value => value.map_err(SerdeError::Database)?,
        };
        match value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(v) => visitor.visit_bool(v),
            Value::Int(v) | Value::Timestamp(v) => visitor.visit_i64(v),
            Value::UInt(v) => visitor.visit_u64(v),
            Value::Float(v) => visitor.visit_f64(v),
            Value::Decimal(v) => visitor.visit_string(v.to_string()),
            Value::Str(v) => visitor.visit_borrowed_str(v),
            Value::Bytes(v) if bytes_as_numbers => visitor.visit_seq(SeqDeserializer::new(v.iter().copied())),
            Value::Bytes(v) => visitor.visit_borrowed_bytes(v),
        }
    }
}

impl<'t> Deserializer<'t> for Cell<'t> {
    type Error = SerdeError;

    fn deserialize_any<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        self.visit(visitor, false)
    }

    fn deserialize_seq<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        self.visit(visitor, true)
    }

    fn deserialize_tuple<V: Visitor<'t>>(self, _len: usize, visitor: V) -> Result<V::Value, SerdeError> {
        self.visit(visitor, true)
    }

    fn deserialize_option<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        if self.is_null()? { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'t>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'t>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        let text = self.row.get(self.number).map_err(SerdeError::Database)?;
        CowStrDeserializer::new(text).deserialize_enum(name, variants, visitor)
    }

    fn deserialize_f32<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        match self.number()? {
            Some(number) => visitor.visit_f32(number),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_f64<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        match self.number()? {
            Some(number) => visitor.visit_f64(number),
            None => self.deserialize_any(visitor),
        }
    }

    /// Reads nothing.
    fn deserialize_ignored_any<V: Visitor<'t>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        <W: Visitor<'t>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 char str string bytes byte_buf
        unit unit_struct tuple_struct map struct identifier
    }
}

/// As text, so that no digit is lost on the way.
impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0)
    }
}

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        i64::deserialize(deserializer).map(Micros)
    }
}
