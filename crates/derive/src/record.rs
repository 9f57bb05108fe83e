//! A struct, and what is wrong with it.

use syn::{
    Data, DeriveInput, Error, Expr, Field, Fields, GenericArgument, Ident, LitStr, PathArguments, Result,
    Type,
};

use crate::attributes::{IndexOf, OfField, OfStruct, Size};

/// A struct that is a row.
pub struct Record {
    pub ident: Ident,
    pub table: LitStr,
    pub columns: Vec<Column>,
    /// Fields that are no columns, and their types.
    pub skipped: Vec<(Ident, Type)>,
    /// Places among the columns.
    pub primary_key: Vec<usize>,
    pub indexes: Vec<Index>,
}

/// A field that is a column.
pub struct Column {
    pub ident: Ident,
    pub ty: Type,
    pub name: LitStr,
    pub size: Option<Size>,
    pub default: Option<Expr>,
}

impl Column {
    /// What an `Option` may have, if the field is written as one.
    pub fn of_option(&self) -> Option<&Type> {
        let Type::Path(path) = &self.ty else { return None };
        let last = path.path.segments.last().filter(|last| last.ident == "Option")?;
        let PathArguments::AngleBracketed(of) = &last.arguments else { return None };
        match of.args.first() {
            Some(GenericArgument::Type(ty)) => Some(ty),
            _ => None,
        }
    }
}

/// An index.
pub struct Index {
    pub name: LitStr,
    /// Places among the columns.
    pub columns: Vec<usize>,
    pub unique: bool,
}

impl Record {
    pub fn parse(input: &DeriveInput) -> Result<Self> {
        if !input.generics.params.is_empty() {
            return Err(Error::new_spanned(&input.generics, "a row has no parameters"));
        }
        let of = OfStruct::parse(&input.attrs)?;
        let mut record = Self {
            ident: input.ident.clone(),
            table: of.table.unwrap_or_else(|| in_snake_case(&input.ident)),
            columns: Vec::new(),
            skipped: Vec::new(),
            primary_key: Vec::new(),
            indexes: Vec::new(),
        };
        let mut keys = Vec::new();
        let mut indexes = Vec::new();
        for field in fields(input)? {
            record.add(field, &mut keys, &mut indexes)?;
        }
        record.check_names()?;
        record.set_primary_key(&of.primary_key, &keys)?;
        for index in of.indexes.into_iter().chain(indexes) {
            record.add_index(&index)?;
        }
        Ok(record)
    }

    fn add(&mut self, field: &Field, keys: &mut Vec<Ident>, indexes: &mut Vec<IndexOf>) -> Result<()> {
        let ident = field.ident.clone().expect("fields are named");
        let of = OfField::parse(&field.attrs)?;
        if let Some(span) = of.skip {
            if of.is_column() {
                return Err(Error::new(span, "a field that is skipped is no column"));
            }
            self.skipped.push((ident, field.ty.clone()));
            return Ok(());
        }
        let plain = ident.to_string();
        let name = of.name.unwrap_or_else(|| LitStr::new(plain.trim_start_matches("r#"), ident.span()));
        if of.primary_key.is_some() {
            keys.push(ident.clone());
        }
        if let Some((span, unique)) = of.index {
            let by = format!("by_{}", name.value());
            indexes.push(IndexOf { name: by, span, fields: vec![ident.clone()], unique });
        }
        self.columns.push(Column { ident, ty: field.ty.clone(), name, size: of.size, default: of.default });
        Ok(())
    }

    fn check_names(&self) -> Result<()> {
        if self.columns.is_empty() {
            return Err(Error::new(self.ident.span(), "a row has at least one column"));
        }
        for (n, column) in self.columns.iter().enumerate() {
            let name = column.name.value();
            if name.is_empty() || name.len() > 255 {
                return Err(Error::new(column.name.span(), "the name of a column has 1 to 255 bytes"));
            }
            if self.columns[..n].iter().any(|other| other.name.value() == name) {
                let message = format!("another column has the name {name:?}, too");
                return Err(Error::new(column.name.span(), message));
            }
        }
        Ok(())
    }

    fn set_primary_key(&mut self, of_struct: &[Ident], of_fields: &[Ident]) -> Result<()> {
        let key = match (of_struct, of_fields) {
            ([], []) => {
                let message = "which is the primary key? write `#[record(primary_key)]` on a field, or `#[record(primary_key(…))]` with several fields on the struct";
                return Err(Error::new(self.ident.span(), message));
            }
            ([], [one]) => std::slice::from_ref(one),
            ([], [_, other, ..]) => {
                let message = "another field is the primary key; if both are, say in which order on the struct: `#[record(primary_key(first, second))]`";
                return Err(Error::new(other.span(), message));
            }
            (whole, []) => whole,
            (_, [field, ..]) => {
                return Err(Error::new(field.span(), "the struct has `primary_key(…)` already"));
            }
        };
        self.primary_key = self.places(key)?;
        Ok(())
    }

    fn add_index(&mut self, index: &IndexOf) -> Result<()> {
        let is_known = self.indexes.iter().any(|other| other.name.value() == index.name);
        if is_known || index.name == "primary" {
            let message = format!("there is another index {:?}", index.name);
            return Err(Error::new(index.span, message));
        }
        let columns = self.places(&index.fields)?;
        self.indexes.push(Index {
            name: LitStr::new(&index.name, index.span),
            columns,
            unique: index.unique,
        });
        Ok(())
    }

    /// The places of fields among the columns.
    fn places(&self, fields: &[Ident]) -> Result<Vec<usize>> {
        let mut places = Vec::new();
        for field in fields {
            let place = self.columns.iter().position(|column| column.ident == *field);
            let place = place.ok_or_else(|| Error::new(field.span(), self.no_column(field)))?;
            if places.contains(&place) {
                return Err(Error::new(field.span(), format!("`{field}` is named twice")));
            }
            places.push(place);
        }
        Ok(places)
    }

    fn no_column(&self, field: &Ident) -> String {
        if self.skipped.iter().any(|(skipped, _)| skipped == field) {
            return format!("the field `{field}` is skipped, so it is no column");
        }
        match self.columns.iter().find(|column| *field == column.name.value()) {
            Some(column) => format!("`{field}` is a column; here goes the field, `{}`", column.ident),
            None => format!("there is no field `{field}`"),
        }
    }
}

fn fields(input: &DeriveInput) -> Result<impl Iterator<Item = &Field>> {
    match &input.data {
        Data::Struct(of) if matches!(of.fields, Fields::Named(_)) => Ok(of.fields.iter()),
        _ => Err(Error::new(input.ident.span(), "only a struct with named fields can be a row")),
    }
}

fn in_snake_case(ident: &Ident) -> LitStr {
    let mut name = String::new();
    for letter in ident.to_string().trim_start_matches("r#").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    LitStr::new(&name, ident.span())
}
