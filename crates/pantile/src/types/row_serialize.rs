//! The values of a row from what serde serializes.

use serde::Serialize;
use serde::ser::{self, Impossible, SerializeMap, SerializeSeq, SerializeStruct, SerializeTuple, Serializer};

use crate::types::columns::Columns;
use crate::types::error::Result;
use crate::types::owned_value::OwnedValue;
use crate::types::row_serde::SerdeError;
use crate::types::schema::Type;

type Outcome<T> = Result<T, SerdeError>;

/// The values of columns, in their order. A column without a field gets its default, or
/// NULL if it takes it.
pub(crate) fn serialize<T: Serialize + ?Sized>(columns: &Columns, of: &T) -> Outcome<Vec<OwnedValue>> {
    let values = vec![None; columns.len()];
    let values = of.serialize(Fields { columns, values, key: String::new() })?;
    values
        .into_iter()
        .zip(columns.defs())
        .map(|(value, column)| match value {
            Some(value) => Ok(value),
            None if column.nullable || !column.default.is_null() => Ok(column.default.clone()),
            None => Err(ser::Error::custom(format_args!("there is no field for column {:?}", column.name))),
        })
        .collect()
}

/// The fields of a struct or a map.
struct Fields<'c> {
    columns: &'c Columns,
    values: Vec<Option<OwnedValue>>,
    /// That of a map whose value comes next.
    key: String,
}

impl Fields<'_> {
    fn put<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Outcome<()> {
        let found = self.columns.defs().iter().position(|column| column.name == name);
        let n = found.ok_or_else(|| {
            <SerdeError as ser::Error>::custom(format_args!("field {name:?} has no column"))
        })?;
        let cell = Cell(self.columns.defs()[n].ty);
        self.values[n] = Some(value.serialize(cell).map_err(|error| error.of_field(name))?);
        Ok(())
    }
}

impl SerializeStruct for Fields<'_> {
    type Ok = Vec<Option<OwnedValue>>;
    type Error = SerdeError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Outcome<()> {
        self.put(name, value)
    }

    fn end(self) -> Outcome<Self::Ok> {
        Ok(self.values)
    }
}

impl SerializeMap for Fields<'_> {
    type Ok = Vec<Option<OwnedValue>>;
    type Error = SerdeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Outcome<()> {
        match key.serialize(Cell(Type::String(u32::MAX)))? {
            OwnedValue::Str(key) => self.key = key,
            _ => return Err(ser::Error::custom("the names of columns are strings")),
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Outcome<()> {
        let key = std::mem::take(&mut self.key);
        self.put(&key, value)
    }

    fn end(self) -> Outcome<Self::Ok> {
        Ok(self.values)
    }
}

/// Refuses what is none of the listed kinds.
macro_rules! refuse {
    ($what:literal: $($method:ident($($arg:ty),*))*) => {
        $(fn $method(self $(, _: $arg)*) -> Outcome<Self::Ok> {
            Err(ser::Error::custom($what))
        })*
    };
}

macro_rules! refuse_parts {
    ($what:literal: $($method:ident($($arg:ty),*) -> $part:ident)*) => {
        $(fn $method(self $(, _: $arg)*) -> Outcome<Self::$part> {
            Err(ser::Error::custom($what))
        })*
    };
}

type Never<T> = Impossible<T, SerdeError>;

impl<'c> Serializer for Fields<'c> {
    type Ok = Vec<Option<OwnedValue>>;
    type Error = SerdeError;
    type SerializeSeq = Never<Self::Ok>;
    type SerializeTuple = Never<Self::Ok>;
    type SerializeTupleStruct = Never<Self::Ok>;
    type SerializeTupleVariant = Never<Self::Ok>;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Never<Self::Ok>;

    fn serialize_struct(self, _name: &'static str, _len: usize) -> Outcome<Self> {
        Ok(self)
    }

    fn serialize_map(self, _len: Option<usize>) -> Outcome<Self> {
        Ok(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Outcome<Self::Ok> {
        value.serialize(self)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Outcome<Self::Ok> {
        Err(ser::Error::custom("a row is a struct or a map"))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Outcome<Self::Ok> {
        Err(ser::Error::custom("a row is a struct or a map"))
    }

    refuse! { "a row is a struct or a map":
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64) serialize_f32(f32)
        serialize_f64(f64) serialize_char(char) serialize_str(&str) serialize_bytes(&[u8]) serialize_none()
        serialize_unit() serialize_unit_struct(&'static str)
        serialize_unit_variant(&'static str, u32, &'static str)
    }

    refuse_parts! { "a row is a struct or a map":
        serialize_seq(Option<usize>) -> SerializeSeq
        serialize_tuple(usize) -> SerializeTuple
        serialize_tuple_struct(&'static str, usize) -> SerializeTupleStruct
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> SerializeTupleVariant
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> SerializeStructVariant
    }
}

/// A value for a column of this type. Whether it fits is checked when the row is
/// written.
struct Cell(Type);

impl Cell {
    fn int(self, value: i64) -> Outcome<OwnedValue> {
        Ok(match self.0 {
            Type::Timestamp => OwnedValue::Timestamp(value),
            _ => OwnedValue::Int(value),
        })
    }

    fn uint(self, value: u64) -> Outcome<OwnedValue> {
        Ok(match (self.0, i64::try_from(value)) {
            (Type::Timestamp, Ok(value)) => OwnedValue::Timestamp(value),
            _ => OwnedValue::UInt(value),
        })
    }

    fn text(self, value: &str) -> Outcome<OwnedValue> {
        Ok(match self.0 {
            Type::Decimal { .. } => OwnedValue::Decimal(value.parse().map_err(ser::Error::custom)?),
            _ => OwnedValue::Str(value.to_owned()),
        })
    }
}

/// Bytes that come one by one, as those of a `Vec<u8>` do.
struct Bytes(Vec<u8>);

impl Bytes {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Outcome<()> {
        let byte = match value.serialize(Cell(Type::U8))? {
            OwnedValue::UInt(value) => u8::try_from(value).ok(),
            OwnedValue::Int(value) => u8::try_from(value).ok(),
            _ => None,
        };
        self.0.push(byte.ok_or_else(|| <SerdeError as ser::Error>::custom("a sequence is one of bytes"))?);
        Ok(())
    }
}

impl SerializeSeq for Bytes {
    type Ok = OwnedValue;
    type Error = SerdeError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Outcome<()> {
        self.push(value)
    }

    fn end(self) -> Outcome<OwnedValue> {
        Ok(OwnedValue::Bytes(self.0))
    }
}

impl SerializeTuple for Bytes {
    type Ok = OwnedValue;
    type Error = SerdeError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Outcome<()> {
        self.push(value)
    }

    fn end(self) -> Outcome<OwnedValue> {
        Ok(OwnedValue::Bytes(self.0))
    }
}

macro_rules! numbers {
    ($($method:ident($number:ty) => $kind:ident;)*) => {
        $(fn $method(self, value: $number) -> Outcome<OwnedValue> {
            Ok(OwnedValue::$kind(value.into()))
        })*
    };
}

/// Integers go through the method of [`Cell`] for their kind.
macro_rules! integers {
    ($($method:ident($number:ty) => $kind:ident;)*) => {
        $(fn $method(self, value: $number) -> Outcome<OwnedValue> {
            self.$kind(value.into())
        })*
    };
}

impl Serializer for Cell {
    type Ok = OwnedValue;
    type Error = SerdeError;
    type SerializeSeq = Bytes;
    type SerializeTuple = Bytes;
    type SerializeTupleStruct = Never<OwnedValue>;
    type SerializeTupleVariant = Never<OwnedValue>;
    type SerializeMap = Never<OwnedValue>;
    type SerializeStruct = Never<OwnedValue>;
    type SerializeStructVariant = Never<OwnedValue>;

    numbers! {
        serialize_bool(bool) => Bool;
        serialize_f32(f32) => Float;
        serialize_f64(f64) => Float;
    }

    integers! {
        serialize_u8(u8) => uint;
        serialize_u16(u16) => uint;
        serialize_u32(u32) => uint;
        serialize_u64(u64) => uint;
        serialize_i8(i8) => int;
        serialize_i16(i16) => int;
        serialize_i32(i32) => int;
        serialize_i64(i64) => int;
    }

    fn serialize_char(self, value: char) -> Outcome<OwnedValue> {
        self.text(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Outcome<OwnedValue> {
        self.text(value)
    }

    fn serialize_bytes(self, value: &[u8]) -> Outcome<OwnedValue> {
        Ok(OwnedValue::Bytes(value.to_owned()))
    }

    fn serialize_none(self) -> Outcome<OwnedValue> {
        Ok(OwnedValue::Null)
    }

    fn serialize_unit(self) -> Outcome<OwnedValue> {
        Ok(OwnedValue::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Outcome<OwnedValue> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Outcome<OwnedValue> {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Outcome<OwnedValue> {
        self.text(variant)
    }

    fn serialize_seq(self, len: Option<usize>) -> Outcome<Bytes> {
        Ok(Bytes(Vec::with_capacity(len.unwrap_or_default())))
    }

    fn serialize_tuple(self, len: usize) -> Outcome<Bytes> {
        Ok(Bytes(Vec::with_capacity(len)))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Outcome<OwnedValue> {
        Err(ser::Error::custom("a column holds no structure"))
    }

    refuse! { "a column holds no structure": serialize_unit_struct(&'static str) }

    refuse_parts! { "a column holds no structure":
        serialize_map(Option<usize>) -> SerializeMap
        serialize_struct(&'static str, usize) -> SerializeStruct
        serialize_tuple_struct(&'static str, usize) -> SerializeTupleStruct
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> SerializeTupleVariant
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> SerializeStructVariant
    }
}
