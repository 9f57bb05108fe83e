//! Definitions of tables.

use std::ffi::{c_char, c_int};

use pantile::{ColumnDef, IndexDef, TableDef, Type};

use crate::error::{Failure, PANTILE_OK, call};
use crate::pointer::{Out, free, lent_mut, text, texts};

/// A truth value, 1 byte.
pub const PANTILE_TYPE_BOOL: c_int = 0;
/// A signed integer of `size` bytes: 1, 2, 4 or 8.
pub const PANTILE_TYPE_INT: c_int = 1;
/// An unsigned integer of `size` bytes: 1, 2, 4 or 8.
pub const PANTILE_TYPE_UINT: c_int = 2;
/// An IEEE 754 number of `size` bytes: 4 or 8.
pub const PANTILE_TYPE_FLOAT: c_int = 3;
/// A decimal number of `size` digits, at most 38, of which `scale` are behind the point; 16 bytes.
pub const PANTILE_TYPE_DECIMAL: c_int = 4;
/// Microseconds since 1970-01-01 UTC, 8 bytes.
pub const PANTILE_TYPE_TIMESTAMP: c_int = 5;
/// Exactly `size` bytes; shorter values are padded with zero bytes.
pub const PANTILE_TYPE_FIXED_BYTES: c_int = 6;
/// UTF-8 text in exactly `size` bytes, padded with zero bytes.
pub const PANTILE_TYPE_FIXED_TEXT: c_int = 7;
/// Up to `size` bytes.
pub const PANTILE_TYPE_BYTES: c_int = 8;
/// UTF-8 text of up to `size` bytes.
pub const PANTILE_TYPE_TEXT: c_int = 9;

/// The type of a column.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pantile_type {
    /// `PANTILE_TYPE_BOOL` to `PANTILE_TYPE_TEXT`.
    pub kind: c_int,
    /// Bytes or digits; the kind says which. 0 where it says nothing.
    pub size: u32,
    /// Digits behind the point of a decimal number.
    pub scale: u32,
}

impl pantile_type {
    pub(crate) fn of(ty: Type) -> Self {
        let (kind, size, scale) = match ty {
            Type::Bool => (PANTILE_TYPE_BOOL, 0, 0),
            Type::I8 => (PANTILE_TYPE_INT, 1, 0),
            Type::I16 => (PANTILE_TYPE_INT, 2, 0),
            Type::I32 => (PANTILE_TYPE_INT, 4, 0),
            Type::I64 => (PANTILE_TYPE_INT, 8, 0),
            Type::U8 => (PANTILE_TYPE_UINT, 1, 0),
            Type::U16 => (PANTILE_TYPE_UINT, 2, 0),
            Type::U32 => (PANTILE_TYPE_UINT, 4, 0),
            Type::U64 => (PANTILE_TYPE_UINT, 8, 0),
            Type::F32 => (PANTILE_TYPE_FLOAT, 4, 0),
            Type::F64 => (PANTILE_TYPE_FLOAT, 8, 0),
            Type::Decimal { precision, scale } => (PANTILE_TYPE_DECIMAL, precision.into(), scale.into()),
            Type::Timestamp => (PANTILE_TYPE_TIMESTAMP, 0, 0),
            Type::FixedBytes(len) => (PANTILE_TYPE_FIXED_BYTES, len.into(), 0),
            Type::FixedString(len) => (PANTILE_TYPE_FIXED_TEXT, len.into(), 0),
            Type::Bytes(len) => (PANTILE_TYPE_BYTES, len, 0),
            Type::String(len) => (PANTILE_TYPE_TEXT, len, 0),
            other => unreachable!("{other} has no number in C"),
        };
        Self { kind, size, scale }
    }

    pub(crate) fn to_type(self) -> Result<Type, Failure> {
        let Self { kind, size, scale } = self;
        let wrong = || Failure::misuse(format!("there is no type {kind} of size {size} and scale {scale}"));
        let short = || u16::try_from(size).map_err(|_| wrong());
        Ok(match (kind, size) {
            (PANTILE_TYPE_BOOL, _) => Type::Bool,
            (PANTILE_TYPE_INT, 1) => Type::I8,
            (PANTILE_TYPE_INT, 2) => Type::I16,
            (PANTILE_TYPE_INT, 4) => Type::I32,
            (PANTILE_TYPE_INT, 8) => Type::I64,
            (PANTILE_TYPE_UINT, 1) => Type::U8,
            (PANTILE_TYPE_UINT, 2) => Type::U16,
            (PANTILE_TYPE_UINT, 4) => Type::U32,
            (PANTILE_TYPE_UINT, 8) => Type::U64,
            (PANTILE_TYPE_FLOAT, 4) => Type::F32,
            (PANTILE_TYPE_FLOAT, 8) => Type::F64,
            (PANTILE_TYPE_DECIMAL, _) => Type::Decimal {
                precision: u8::try_from(size).map_err(|_| wrong())?,
                scale: u8::try_from(scale).map_err(|_| wrong())?,
            },
            (PANTILE_TYPE_TIMESTAMP, _) => Type::Timestamp,
            (PANTILE_TYPE_FIXED_BYTES, _) => Type::FixedBytes(short()?),
            (PANTILE_TYPE_FIXED_TEXT, _) => Type::FixedString(short()?),
            (PANTILE_TYPE_BYTES, _) => Type::Bytes(size),
            (PANTILE_TYPE_TEXT, _) => Type::String(size),
            _ => return Err(wrong()),
        })
    }
}

/// A table to be created.
pub struct pantile_table_def {
    pub(crate) def: TableDef,
}

/// A table of this name that has no columns yet. Freed by `pantile_table_def_free`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_def_new(name: *const c_char, out: *mut *mut pantile_table_def) -> c_int {
    call(|| {
        let out = Out::new(out)?;
        out.give(pantile_table_def { def: TableDef::new(text(name, "the table's name")?) });
        Ok(PANTILE_OK)
    })
}

/// Frees a definition. Tables made from it stay.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_def_free(def: *mut pantile_table_def) {
    free(def);
}

/// Adds a column behind the others.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_def_column(
    def: *mut pantile_table_def,
    name: *const c_char,
    r#type: pantile_type,
    nullable: bool,
) -> c_int {
    call(|| {
        let name = text(name, "the column's name")?.to_owned();
        let column = ColumnDef::new(name, r#type.to_type()?);
        let column = if nullable { column.nullable() } else { column };
        lent_mut(def, "the definition")?.def.columns.push(column);
        Ok(PANTILE_OK)
    })
}

/// Names the `len` columns of the primary key, most significant first.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_def_primary_key(
    def: *mut pantile_table_def,
    columns: *const *const c_char,
    len: usize,
) -> c_int {
    call(|| {
        lent_mut(def, "the definition")?.def.primary_key = texts(columns, len, "a column's name")?;
        Ok(PANTILE_OK)
    })
}

/// Adds an index of `len` columns, most significant first. A unique index takes no second row with the same key, unless
/// the key contains a NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_def_index(
    def: *mut pantile_table_def,
    name: *const c_char,
    columns: *const *const c_char,
    len: usize,
    unique: bool,
) -> c_int {
    call(|| {
        let index = index_def(name, columns, len, unique)?;
        lent_mut(def, "the definition")?.def.indexes.push(index);
        Ok(PANTILE_OK)
    })
}

pub(crate) fn index_def(
    name: *const c_char,
    columns: *const *const c_char,
    len: usize,
    unique: bool,
) -> Result<IndexDef, Failure> {
    let name = text(name, "the index's name")?.to_owned();
    Ok(IndexDef { name, columns: texts(columns, len, "a column's name")?, unique })
}
