//! Rows as structs of the caller.

use crate::types::columns::ColumnRef;
use crate::types::error::Result;
use crate::types::from_value::FromValue;
use crate::types::row::Row;
use crate::types::schema::{TableDef, Type};
use crate::types::value::{Decimal, Micros, Value};

/// A struct that is a row of a table. `#[derive(Record)]` implements it, with the
/// feature `derive`; [`TypedTable`](crate::TypedTable) reads and writes it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a row of a table",
    note = "`#[derive(pantile::Record)]` makes a struct one, with pantile's feature `derive`"
)]
pub trait Record: Sized {
    /// Its primary key: the borrowed form of its field ([`Field::Lent`]), or a tuple if there are
    /// several.
    type Key<'k>;
    /// The values of a primary key.
    type KeyValues<'k>: AsRef<[Value<'k>]>;
    /// Its values.
    type Values<'v>: AsRef<[Value<'v>]>
    where
        Self: 'v;

    /// The names of its columns, in order.
    const COLUMNS: &'static [&'static str];

    /// The definition of its table.
    fn table_def() -> TableDef;

    /// Its values, in the order of its columns. They borrow from it, and nothing is
    /// allocated.
    fn values(&self) -> Self::Values<'_>;

    /// Its primary key.
    fn key(&self) -> Self::Key<'_>;

    /// The values of a primary key.
    fn key_values(key: Self::Key<'_>) -> Self::KeyValues<'_>;

    /// Reads the struct from a row. `column` returns the row's column for a place in
    /// [`Record::COLUMNS`].
    ///
    /// # Errors
    /// As [`Row::get`].
    fn read<C: ColumnRef>(row: &Row<'_>, column: impl Fn(usize) -> C) -> Result<Self>;
}

impl Row<'_> {
    /// Reads the row as a struct, with columns by their names. The row may have other columns, too,
    /// and may be of any table.
    ///
    /// # Errors
    /// As [`Row::get`], for example [`Error::UnknownColumn`](crate::Error::UnknownColumn).
    pub fn to<T: Record>(&self) -> Result<T> {
        T::read(self, |n| T::COLUMNS[n])
    }
}

/// A Rust type that a field of a [`Record`] can have. The field is a column.
///
/// ```
/// use pantile::{Field, FromValue, Misfit, Type, Value};
///
/// #[derive(Clone, Copy, PartialEq, Debug)]
/// struct Cents(i64);
///
/// impl FromValue<'_> for Cents {
///     fn from_value(value: Value<'_>) -> Result<Self, Misfit> {
///         i64::from_value(value).map(Cents)
///     }
/// }
///
/// impl Field for Cents {
///     const TYPE: Type = Type::I64;
///     type Lent<'v> = i64;
///     fn lend(&self) -> i64 {
///         self.0
///     }
/// }
///
/// assert_eq!(Value::from(Cents(5).lend()), Value::Int(5));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a column",
    label = "no type of a column",
    note = "numbers, `bool`, `String`, `Vec<u8>`, `[u8; N]`, `Decimal`, `Micros` and `Option`s of these can",
    note = "implement `pantile::Field` for a type of your own, or leave the field out by `#[record(skip)]`"
)]
pub trait Field: for<'t> FromValue<'t> {
    /// The type of its column, unless an attribute gives a length or digits.
    const TYPE: Type;
    /// Whether the column takes NULL.
    const NULLABLE: bool = false;
    /// The borrowed form in which it is written, in a row or a key.
    type Lent<'v>: Into<Value<'v>>
    where
        Self: 'v;

    /// The field as a value.
    fn lend(&self) -> Self::Lent<'_>;
}

macro_rules! field {
    ($($target:ty => $type:expr, $lent:ty, $of:expr;)*) => {
        $(impl Field for $target {
            const TYPE: Type = $type;
            type Lent<'v> = $lent;

            #[inline]
            fn lend(&self) -> Self::Lent<'_> {
                let of: fn(&Self) -> Self::Lent<'_> = $of;
                of(self)
            }
        })*
    };
}

field! {
    bool => Type::Bool, bool, |v| *v;
    i8 => Type::I8, i8, |v| *v;
    i16 => Type::I16, i16, |v| *v;
    i32 => Type::I32, i32, |v| *v;
    i64 => Type::I64, i64, |v| *v;
    u8 => Type::U8, u8, |v| *v;
    u16 => Type::U16, u16, |v| *v;
    u32 => Type::U32, u32, |v| *v;
    u64 => Type::U64, u64, |v| *v;
    f32 => Type::F32, f32, |v| *v;
    f64 => Type::F64, f64, |v| *v;
    Micros => Type::Timestamp, Micros, |v| *v;
    // An attribute says how many digits it has.
    Decimal => Type::Decimal { precision: 0, scale: 0 }, Decimal, |v| *v;
    String => Type::String(u32::MAX), &'v str, |v| v;
    Vec<u8> => Type::Bytes(u32::MAX), &'v [u8], |v| v;
}

impl<const N: usize> Field for [u8; N] {
    const TYPE: Type = {
        assert!(N > 0 && N <= u16::MAX as usize, "a column has 1 to 65535 fixed bytes");
        Type::FixedBytes(N as u16)
    };
    type Lent<'v> = &'v [u8];

    fn lend(&self) -> &[u8] {
        self
    }
}

impl<T: Field> Field for Option<T> {
    const TYPE: Type = T::TYPE;
    const NULLABLE: bool = {
        assert!(!T::NULLABLE, "a column has one NULL, so one `Option` of two would be lost");
        true
    };
    type Lent<'v>
        = Option<T::Lent<'v>>
    where
        Self: 'v;

    #[inline]
    fn lend(&self) -> Self::Lent<'_> {
        self.as_ref().map(|value| value.lend())
    }
}
