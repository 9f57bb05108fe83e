//! The attributes `#[record(…)]` of a struct and of its fields.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{Attribute, Expr, Ident, LitInt, LitStr, Result, Token, parenthesized};

/// What is said of the struct.
#[derive(Default)]
pub struct OfStruct {
    pub table: Option<LitStr>,
    pub primary_key: Vec<Ident>,
    pub indexes: Vec<IndexOf>,
}

/// An index over fields.
pub struct IndexOf {
    pub name: String,
    pub span: Span,
    pub fields: Vec<Ident>,
    pub unique: bool,
}

/// What is said of a field.
#[derive(Default)]
pub struct OfField {
    pub name: Option<LitStr>,
    pub primary_key: Option<Span>,
    /// Where an index is asked for, and whether it is unique.
    pub index: Option<(Span, bool)>,
    pub size: Option<Size>,
    pub default: Option<Expr>,
    pub skip: Option<Span>,
}

/// How large the values of a column are.
pub enum Size {
    Max(LitInt),
    Fixed(LitInt),
    Decimal(Span, LitInt, LitInt),
}

impl OfStruct {
    pub fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut of = Self::default();
        for_each(attributes, |meta| match name_of(&meta).as_str() {
            "table" => once(&mut of.table, meta.value()?.parse()?, &meta),
            "primary_key" if !of.primary_key.is_empty() => Err(meta.error("this is said twice")),
            "primary_key" => fields(&meta).map(|fields| of.primary_key = fields),
            "index" => indexes(&meta, false, &mut of.indexes),
            "unique" => indexes(&meta, true, &mut of.indexes),
            _ => Err(meta.error("a struct takes `table`, `primary_key`, `index` and `unique`")),
        })?;
        Ok(of)
    }
}

impl OfField {
    pub fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut of = Self::default();
        for_each(attributes, |meta| {
            let span = meta.path.span();
            match name_of(&meta).as_str() {
                "name" => once(&mut of.name, meta.value()?.parse()?, &meta),
                "primary_key" => once(&mut of.primary_key, span, &meta),
                "index" => once(&mut of.index, (span, false), &meta),
                "unique" => once(&mut of.index, (span, true), &meta),
                "max" => once(&mut of.size, Size::Max(meta.value()?.parse()?), &meta),
                "fixed" => once(&mut of.size, Size::Fixed(meta.value()?.parse()?), &meta),
                "decimal" => once(&mut of.size, decimal(&meta)?, &meta),
                "default" => once(&mut of.default, meta.value()?.parse()?, &meta),
                "skip" => once(&mut of.skip, span, &meta),
                _ => Err(meta.error(
                    "a field takes `primary_key`, `index`, `unique`, `name`, `max`, `fixed`, `decimal`, `default` and `skip`",
                )),
            }
        })?;
        Ok(of)
    }

    /// Whether anything is said that only a column can have.
    pub fn is_column(&self) -> bool {
        let Self { name, primary_key, index, size, default, skip: _ } = self;
        name.is_some() || primary_key.is_some() || index.is_some() || size.is_some() || default.is_some()
    }
}

/// Calls `take` for each part of each `#[record(…)]`.
fn for_each(attributes: &[Attribute], mut take: impl FnMut(ParseNestedMeta<'_>) -> Result<()>) -> Result<()> {
    let mut ours = attributes.iter().filter(|attribute| attribute.path().is_ident("record"));
    ours.try_for_each(|attribute| attribute.parse_nested_meta(&mut take))
}

fn name_of(meta: &ParseNestedMeta<'_>) -> String {
    meta.path.get_ident().map(Ident::to_string).unwrap_or_default()
}

fn once<T>(place: &mut Option<T>, value: T, meta: &ParseNestedMeta<'_>) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(meta.error("this contradicts what was said before, or repeats it")),
    }
}

fn fields(meta: &ParseNestedMeta<'_>) -> Result<Vec<Ident>> {
    let mut fields = Vec::new();
    meta.parse_nested_meta(|field| {
        let name = field.path.get_ident().cloned();
        fields.push(name.ok_or_else(|| field.error("this is no field"))?);
        Ok(())
    })?;
    if fields.is_empty() { Err(meta.error("name at least one field")) } else { Ok(fields) }
}

fn indexes(meta: &ParseNestedMeta<'_>, unique: bool, indexes: &mut Vec<IndexOf>) -> Result<()> {
    meta.parse_nested_meta(|index| {
        let (name, span) = (name_of(&index), index.path.span());
        if !index.input.peek(syn::token::Paren) {
            return Err(index.error("name the fields of the index: `index(by_day(day, number))`"));
        }
        indexes.push(IndexOf { name, span, fields: fields(&index)?, unique });
        Ok(())
    })
}

fn decimal(meta: &ParseNestedMeta<'_>) -> Result<Size> {
    let digits;
    parenthesized!(digits in meta.input);
    let precision = digits.parse()?;
    digits.parse::<Token![,]>()?;
    Ok(Size::Decimal(meta.path.span(), precision, digits.parse()?))
}
