//! The code of a struct that is a row.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use crate::attributes::Size;
use crate::record::{Column, Index, Record};

pub fn expand(record: &Record) -> TokenStream {
    let Record { ident, table, columns, skipped, primary_key, .. } = record;
    let (width, key_width) = (columns.len(), primary_key.len());
    let names = columns.iter().map(|column| &column.name);
    let values = columns.iter().map(lent).map(value);
    let definition = definition(record);
    let types = columns.iter().enumerate().map(column_type);
    let checks = checks(record);
    let key_type = alone_or_tuple(primary_key.iter().map(|&n| lent_type(&columns[n])));
    let key_of_row = alone_or_tuple(primary_key.iter().map(|&n| lent(&columns[n])));
    let parts: Vec<_> = primary_key.iter().map(|n| format_ident!("key{n}")).collect();
    let pattern = alone_or_tuple(parts.iter().map(|part| quote!(#part)));
    let key_values = parts.iter().map(|part| value(quote!(#part)));
    let read = columns.iter().enumerate().map(|(n, Column { ident, ty, .. })| {
        quote_spanned!(ty.span()=> #ident: ::pantile::derived::get::<#ty>(row, column(#n))?)
    });
    let made = skipped
        .iter()
        .map(|(ident, ty)| quote_spanned!(ty.span()=> #ident: <#ty as ::core::default::Default>::default()));
    quote! {
        const _: () = {
        #(#types)*
        #(#checks)*

        #[automatically_derived]
        impl ::pantile::Record for #ident {
            type Key<'k> = #key_type;
            type KeyValues<'k> = [::pantile::Value<'k>; #key_width];
            type Values<'v> = [::pantile::Value<'v>; #width];

            const COLUMNS: &'static [&'static str] = &[#(#names),*];

            fn table_def() -> ::pantile::TableDef {
                ::pantile::TableDef::new(#table) #definition
            }

            fn values(&self) -> Self::Values<'_> {
                [#(#values),*]
            }

            fn key(&self) -> Self::Key<'_> {
                #key_of_row
            }

            fn key_values(key: Self::Key<'_>) -> Self::KeyValues<'_> {
                let #pattern = key;
                [#(#key_values),*]
            }

            fn read<__PantileColumn: ::pantile::ColumnRef>(
                row: &::pantile::Row<'_>,
                column: impl ::core::ops::Fn(usize) -> __PantileColumn,
            ) -> ::pantile::Result<Self> {
                ::core::result::Result::Ok(Self {
                    #(#read,)*
                    #(#made,)*
                })
            }
        }
        };
    }
}

/// The calls that build the definition.
fn definition(record: &Record) -> TokenStream {
    let columns = record.columns.iter().enumerate().map(column);
    let primary_key = record.primary_key.iter().map(|&n| &record.columns[n].name);
    let indexes = record.indexes.iter().map(|Index { name, columns, unique }| {
        let kind = if *unique { quote!(unique) } else { quote!(new) };
        let columns = columns.iter().map(|&n| &record.columns[n].name);
        quote!(.index(::pantile::IndexDef::#kind(#name, [#(#columns),*])))
    });
    quote!(#(.with(#columns))* .primary_key([#(#primary_key),*]) #(#indexes)*)
}

fn column((n, column): (usize, &Column)) -> TokenStream {
    let Column { ty, name, default, .. } = column;
    let column_type = type_name(n);
    let default = default.iter();
    quote_spanned! {ty.span()=>
        ::pantile::ColumnDef {
            nullable: <#ty as ::pantile::Field>::NULLABLE,
            ..::pantile::ColumnDef::new(#name, #column_type)
        } #(.default(#default))*
    }
}

/// The constant of a column's type. Constants are computed, and so checked, wherever
/// the struct is compiled.
fn column_type((n, column): (usize, &Column)) -> TokenStream {
    let (ty, constant) = (&column.ty, type_name(n));
    let plain = quote_spanned!(ty.span()=> <#ty as ::pantile::Field>::TYPE);
    let (span, value) = match &column.size {
        None => (ty.span(), quote_spanned!(ty.span()=> plain(#plain))),
        Some(Size::Max(max)) => (max.span(), quote_spanned!(max.span()=> limited(#plain, #max))),
        Some(Size::Fixed(len)) => (len.span(), quote_spanned!(len.span()=> fixed(#plain, #len))),
        Some(Size::Decimal(span, precision, scale)) => {
            (*span, quote_spanned!(*span=> decimal(#plain, #precision, #scale)))
        }
    };
    quote_spanned!(span=> const #constant: ::pantile::Type = ::pantile::derived::#value;)
}

fn type_name(n: usize) -> Ident {
    format_ident!("__PANTILE_TYPE_{n}")
}

/// What is checked when the struct is compiled: `Option`s, and keys.
fn checks(record: &Record) -> Vec<TokenStream> {
    let Record { ident, columns, primary_key, indexes, .. } = record;
    let one_option = columns.iter().filter_map(Column::of_option).map(|ty| {
        quote_spanned! {ty.span()=>
            const _: () = ::core::assert!(
                !<#ty as ::pantile::Field>::NULLABLE,
                "a column has one NULL, so one `Option` of two would be lost",
            );
        }
    });
    // Another name may stand for such a type.
    let named = columns.iter().filter(|column| column.of_option().is_none()).map(
        |Column { ty, .. }| quote_spanned!(ty.span()=> const _: bool = <#ty as ::pantile::Field>::NULLABLE;),
    );
    let not_null = primary_key.iter().map(|&n| {
        let ty = &columns[n].ty;
        quote_spanned! {ty.span()=>
            const _: () = ::pantile::derived::not_null(<#ty as ::pantile::Field>::NULLABLE);
        }
    });
    let fits = |span, key: &[usize]| {
        let parts = key.iter().map(|&n| {
            let (ty, column_type) = (&columns[n].ty, type_name(n));
            quote!((#column_type, <#ty as ::pantile::Field>::NULLABLE))
        });
        quote_spanned!(span=> const _: () = ::pantile::derived::key_fits(&[#(#parts),*]);)
    };
    let of_indexes = indexes.iter().map(|index| fits(index.name.span(), &index.columns));
    one_option
        .chain(named)
        .chain(not_null)
        .chain([fits(ident.span(), primary_key)])
        .chain(of_indexes)
        .collect()
}

fn lent_type(column: &Column) -> TokenStream {
    let ty = &column.ty;
    quote_spanned!(ty.span()=> <#ty as ::pantile::Field>::Lent<'k>)
}

fn lent(column: &Column) -> TokenStream {
    let Column { ident, ty, .. } = column;
    quote_spanned!(ty.span()=> <#ty as ::pantile::Field>::lend(&self.#ident))
}

fn value(of: TokenStream) -> TokenStream {
    quote!(::core::convert::Into::into(#of))
}

/// A tuple of several, or one alone.
fn alone_or_tuple(parts: impl ExactSizeIterator<Item = TokenStream>) -> TokenStream {
    let is_one = parts.len() == 1;
    if is_one { quote!(#(#parts)*) } else { quote!((#(#parts),*)) }
}
