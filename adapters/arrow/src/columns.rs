//! Columns of Arrow, made of rows.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, FixedSizeBinaryBuilder, GenericBinaryBuilder, GenericStringBuilder,
    PrimitiveBuilder,
};
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, OffsetSizeTrait};
use arrow_schema::{DataType, TimeUnit};
use pantile::{Decimal, FromValue, Micros, Result, Row, Type};

/// Columns whose values may be longer have 64-bit offsets: with those of 32 bits, a
/// batch could not hold the value that ends it.
const LONGEST_WITH_32_BITS: u32 = 1 << 30;

/// The Arrow type of a column, if there is one. Strings and bytes that may be longer than a gigabyte are `LargeUtf8` and
/// `LargeBinary`.
pub fn data_type(ty: Type) -> Option<DataType> {
    Some(match ty {
        Type::Bool => DataType::Boolean,
        Type::I8 => DataType::Int8,
        Type::I16 => DataType::Int16,
        Type::I32 => DataType::Int32,
        Type::I64 => DataType::Int64,
        Type::U8 => DataType::UInt8,
        Type::U16 => DataType::UInt16,
        Type::U32 => DataType::UInt32,
        Type::U64 => DataType::UInt64,
        Type::F32 => DataType::Float32,
        Type::F64 => DataType::Float64,
        Type::Decimal { precision, scale } => DataType::Decimal128(precision, scale as i8),
        Type::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Type::FixedBytes(len) => DataType::FixedSizeBinary(i32::from(len)),
        Type::FixedString(_) => DataType::Utf8,
        Type::Bytes(max) if max > LONGEST_WITH_32_BITS => DataType::LargeBinary,
        Type::Bytes(_) => DataType::Binary,
        Type::String(max) if max > LONGEST_WITH_32_BITS => DataType::LargeUtf8,
        Type::String(_) => DataType::Utf8,
        _ => return None,
    })
}

/// The values of one column, until the batch is full.
pub trait Cells: Send {
    /// Adds the row's value. Returns its bytes, if its length is its own.
    fn push(&mut self, row: &Row<'_>, column: usize) -> Result<usize>;

    /// The column. What comes next begins another one.
    fn finish(&mut self) -> ArrayRef;
}

/// An empty column of a type, which is this one in Arrow.
pub fn cells(ty: Type, to: &DataType) -> Box<dyn Cells> {
    match (ty, to) {
        (_, DataType::Boolean) => Box::new(BooleanBuilder::new()),
        (_, DataType::Int8) => number::<Int8Type, _>(|n: i8| n),
        (_, DataType::Int16) => number::<Int16Type, _>(|n: i16| n),
        (_, DataType::Int32) => number::<Int32Type, _>(|n: i32| n),
        (_, DataType::Int64) => number::<Int64Type, _>(|n: i64| n),
        (_, DataType::UInt8) => number::<UInt8Type, _>(|n: u8| n),
        (_, DataType::UInt16) => number::<UInt16Type, _>(|n: u16| n),
        (_, DataType::UInt32) => number::<UInt32Type, _>(|n: u32| n),
        (_, DataType::UInt64) => number::<UInt64Type, _>(|n: u64| n),
        (_, DataType::Float32) => number::<Float32Type, _>(|n: f32| n),
        (_, DataType::Float64) => number::<Float64Type, _>(|n: f64| n),
        (_, DataType::LargeUtf8) => Box::new(GenericStringBuilder::<i64>::new()),
        (_, DataType::Utf8) => Box::new(GenericStringBuilder::<i32>::new()),
        (_, DataType::LargeBinary) => Box::new(GenericBinaryBuilder::<i64>::new()),
        (Type::FixedBytes(len), _) => Box::new(FixedSizeBinaryBuilder::new(i32::from(len))),
        (Type::Decimal { .. }, _) => typed::<Decimal128Type, _>(|n: Decimal| n.units, to.clone()),
        (Type::Timestamp, _) => typed::<TimestampMicrosecondType, _>(|at: Micros| at.0, to.clone()),
        _ => Box::new(GenericBinaryBuilder::<i32>::new()),
    }
}

/// Numbers, and how they are read from rows.
struct Numbers<T: ArrowPrimitiveType, V> {
    builder: PrimitiveBuilder<T>,
    native: fn(V) -> T::Native,
}

fn number<T: ArrowPrimitiveType, V: for<'t> FromValue<'t> + 'static>(
    native: fn(V) -> T::Native,
) -> Box<dyn Cells> {
    typed::<T, V>(native, T::DATA_TYPE)
}

fn typed<T: ArrowPrimitiveType, V: for<'t> FromValue<'t> + 'static>(
    native: fn(V) -> T::Native,
    ty: DataType,
) -> Box<dyn Cells> {
    Box::new(Numbers { builder: PrimitiveBuilder::<T>::new().with_data_type(ty), native })
}

impl<T: ArrowPrimitiveType, V: for<'t> FromValue<'t>> Cells for Numbers<T, V> {
    fn push(&mut self, row: &Row<'_>, column: usize) -> Result<usize> {
        self.builder.append_option(row.get::<Option<V>>(column)?.map(self.native));
        Ok(0)
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.builder.finish())
    }
}

impl Cells for BooleanBuilder {
    fn push(&mut self, row: &Row<'_>, column: usize) -> Result<usize> {
        self.append_option(row.get(column)?);
        Ok(0)
    }

    fn finish(&mut self) -> ArrayRef {
        ArrayBuilder::finish(self)
    }
}

impl<O: OffsetSizeTrait> Cells for GenericStringBuilder<O> {
    fn push(&mut self, row: &Row<'_>, column: usize) -> Result<usize> {
        let text = row.get::<Option<Cow<'_, str>>>(column)?;
        self.append_option(text.as_deref());
        Ok(text.map_or(0, |text| text.len()))
    }

    fn finish(&mut self) -> ArrayRef {
        ArrayBuilder::finish(self)
    }
}

impl<O: OffsetSizeTrait> Cells for GenericBinaryBuilder<O> {
    fn push(&mut self, row: &Row<'_>, column: usize) -> Result<usize> {
        let bytes = row.get::<Option<Cow<'_, [u8]>>>(column)?;
        self.append_option(bytes.as_deref());
        Ok(bytes.map_or(0, |bytes| bytes.len()))
    }

    fn finish(&mut self) -> ArrayRef {
        ArrayBuilder::finish(self)
    }
}

impl Cells for FixedSizeBinaryBuilder {
    fn push(&mut self, row: &Row<'_>, column: usize) -> Result<usize> {
        match row.get::<Option<Cow<'_, [u8]>>>(column)? {
            // The engine has padded it to the length of the type.
            Some(bytes) => {
                self.append_value(&bytes).expect("the length of the type");
                return Ok(bytes.len());
            }
            None => self.append_null(),
        }
        Ok(0)
    }

    fn finish(&mut self) -> ArrayRef {
        ArrayBuilder::finish(self)
    }
}
