//! Implements `#[derive(Record)]`, which makes a struct a row of a Pantile table. Programs use it as
//! `pantile::Record`, with the feature `derive` of `pantile`.
//!
//! What the struct says of its columns is checked when it is compiled. Error messages point at the field or the
//! attribute.

mod attributes;
mod expand;
mod record;

/// Makes a struct with named fields a row of a table.
///
/// Each field is a column. The type of the column follows from the type of the field (`pantile::Field`).
///
/// On the struct:
///
/// | attribute | says |
/// | --- | --- |
/// | `table = "orders"` | the table's name; by default the struct's, in small letters with underscores |
/// | `primary_key(customer, number)` | the fields of the primary key, in this order |
/// | `index(by_day(day, number))` | an index, its name and its fields |
/// | `unique(by_number(number))` | the same, and no two rows have the same key |
///
/// On a field:
///
/// | attribute | says |
/// | --- | --- |
/// | `primary_key` | it is the primary key |
/// | `index`, `unique` | it has an index, named `by_` and the column |
/// | `name = "orderNo"` | the column's name; by default the field's |
/// | `max = 40` | a string or bytes of at most this many bytes; by default 4 GB |
/// | `fixed = 8` | a string or bytes stored in exactly this many bytes |
/// | `decimal(12, 2)` | a decimal with this many digits in all and after the point |
/// | `default = 0i64` | the column's value in rows that were written without it |
/// | `skip` | it is no column; reading sets the field to `Default::default()` |
#[proc_macro_derive(Record, attributes(record))]
pub fn derive_record(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    let expanded = record::Record::parse(&input).map(|record| expand::expand(&record));
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}
