//! What `#[derive(Record)]` computes when it is compiled. What it cannot be fails
//! to compile, with these messages.

use crate::types::columns::ColumnRef;
use crate::types::error::Result;
use crate::types::layout::MAX_KEY_BYTES;
use crate::types::record::Field;
use crate::types::row::Row;
use crate::types::schema::Type;

/// The type of a field without attributes.
#[must_use]
pub const fn plain(ty: Type) -> Type {
    if let Type::Decimal { precision: 0, .. } = ty {
        panic!("how many digits? write `#[record(decimal(precision, scale))]`");
    }
    ty
}

/// The type of a field with `max`.
#[must_use]
pub const fn limited(ty: Type, max: u32) -> Type {
    match ty {
        Type::String(_) => Type::String(max),
        Type::Bytes(_) => Type::Bytes(max),
        _ => panic!("`max` is for strings and bytes"),
    }
}

/// The type of a field with `fixed`.
#[must_use]
pub const fn fixed(ty: Type, len: u16) -> Type {
    assert!(len > 0, "a fixed length is at least 1");
    match ty {
        Type::String(_) => Type::FixedString(len),
        Type::Bytes(_) => Type::FixedBytes(len),
        _ => panic!("`fixed` is for strings and bytes"),
    }
}

/// The type of a field with `decimal`.
#[must_use]
pub const fn decimal(ty: Type, precision: u8, scale: u8) -> Type {
    assert!(matches!(ty, Type::Decimal { .. }), "`decimal` is for `Decimal`");
    assert!(
        0 < precision && precision <= 38 && scale <= precision,
        "a decimal has 1 to 38 digits, and no more of them after the point"
    );
    Type::Decimal { precision, scale }
}

/// Checks that a column can be in the primary key.
pub const fn not_null(nullable: bool) {
    assert!(!nullable, "a column of the primary key takes no NULL, so it cannot be an `Option`");
}

/// Checks the length of a key of these columns.
pub const fn key_fits(columns: &[(Type, bool)]) {
    let (mut n, mut bytes) = (0, 0);
    while n < columns.len() {
        let (ty, nullable) = columns[n];
        bytes += ty.max_key_len() as u64 + nullable as u64;
        n += 1;
    }
    assert!(
        bytes <= MAX_KEY_BYTES as u64,
        "a key could take more than 3064 bytes: limit its strings and bytes by `#[record(max = …)]`"
    );
}

/// The value of a field.
///
/// # Errors
/// As [`Row::get`].
#[inline]
pub fn get<T: Field>(row: &Row<'_>, column: impl ColumnRef) -> Result<T> {
    row.get(column)
}
