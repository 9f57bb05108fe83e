//! Which rows a command is for: a table, an index, a range of keys.

use std::ops::Bound;

use pantile::{ColumnDef, Database, Index, OwnedValue, Range, Table, Value};
use pantile_transfer::field;

use crate::error::Error;
use crate::words::Word;

/// The end of a range.
#[derive(Default)]
enum End {
    #[default]
    None,
    With(Vec<OwnedValue>),
    Without(Vec<OwnedValue>),
}

/// The rows to read.
pub struct Reading {
    pub table: Table,
    pub index: Option<Index>,
    key: Vec<ColumnDef>,
    from: End,
    to: End,
    reverse: bool,
    limit: usize,
}

const KEYWORDS: [&str; 7] = ["prefix", "from", "after", "to", "before", "reverse", "limit"];

impl Reading {
    /// Reads `T [by INDEX] [prefix|from|after|to|before VALUE...] [reverse] [limit N]`.
    pub fn parse(db: &Database, words: &[Word]) -> Result<Self, Error> {
        let [name, rest @ ..] = words else { return Err(Error::command("which table? See `tables`")) };
        let table = db.table(&name.text)?;
        let (index, rest) = match rest {
            [by, name, rest @ ..] if by.is("by") => (Some(table.index(&name.text)?), rest),
            rest => (None, rest),
        };
        let key = key_columns(&table, index.as_ref());
        let (from, to) = (End::None, End::None);
        let mut reading = Self { table, index, key, from, to, reverse: false, limit: usize::MAX };
        let mut rest = rest;
        while let [keyword, after @ ..] = rest {
            rest = reading.clause(keyword, after)?;
        }
        Ok(reading)
    }

    fn clause<'w>(&mut self, keyword: &Word, after: &'w [Word]) -> Result<&'w [Word], Error> {
        if !is_keyword(keyword) {
            let known = KEYWORDS.join(", ");
            return Err(Error::command(format!(
                "{:?} is not expected here; after the table can stand `by INDEX`, then {known}",
                keyword.text
            )));
        }
        let keyword = keyword.text.to_ascii_lowercase();
        if keyword == "reverse" {
            self.reverse = true;
            return Ok(after);
        }
        let len = after.iter().position(is_keyword).unwrap_or(after.len());
        let (values, rest) = after.split_at(len);
        if keyword == "limit" {
            self.limit = limit(values)?;
            return Ok(rest);
        }
        let key = key_of(&self.key, values)?;
        let (has_from, has_to) = (!matches!(self.from, End::None), !matches!(self.to, End::None));
        let is_second = match keyword.as_str() {
            "from" | "after" => has_from,
            "to" | "before" => has_to,
            _ => has_from || has_to,
        };
        if is_second {
            return Err(Error::command(format!("`{keyword}` gives the range a second beginning or end")));
        }
        match keyword.as_str() {
            "from" => self.from = End::With(key),
            "after" => self.from = End::Without(key),
            "to" => self.to = End::With(key),
            "before" => self.to = End::Without(key),
            _ => (self.from, self.to) = (End::With(key.clone()), End::With(key)),
        }
        Ok(rest)
    }

    /// Hands the range over.
    pub fn with<T>(&self, action: impl FnOnce(Range<'_>) -> T) -> T {
        let values = [&self.from, &self.to].map(|end| -> Vec<Value<'_>> {
            match end {
                End::None => Vec::new(),
                End::With(key) | End::Without(key) => key.iter().map(OwnedValue::as_value).collect(),
            }
        });
        let range = Range::all().from(self.from.bound(&values[0])).to(self.to.bound(&values[1]));
        let range = if self.reverse { range.reverse() } else { range };
        action(range.limit(self.limit))
    }
}

impl End {
    fn bound<'v>(&self, values: &'v [Value<'v>]) -> Bound<&'v [Value<'v>]> {
        match self {
            End::None => Bound::Unbounded,
            End::With(_) => Bound::Included(values),
            End::Without(_) => Bound::Excluded(values),
        }
    }
}

fn is_keyword(word: &Word) -> bool {
    KEYWORDS.iter().any(|keyword| word.is(keyword))
}

fn limit(values: &[Word]) -> Result<usize, Error> {
    match values {
        [n] => n.text.parse().ok(),
        _ => None,
    }
    .ok_or_else(|| Error::command("`limit` is followed by one whole number"))
}

/// The columns of the primary key or of an index.
pub fn key_columns(table: &Table, index: Option<&Index>) -> Vec<ColumnDef> {
    let def = table.definition();
    let of_index = index.and_then(|index| def.indexes.iter().find(|def| def.name == index.name()));
    let names = of_index.map_or(&def.primary_key, |def| &def.columns);
    let column = |name: &String| def.columns.iter().find(|column| column.name == *name).cloned();
    names.iter().filter_map(column).collect()
}

/// Reads the first values of a key.
pub fn key_of(columns: &[ColumnDef], words: &[Word]) -> Result<Vec<OwnedValue>, Error> {
    let names = || columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ");
    if words.is_empty() || words.len() > columns.len() {
        let given = words.len();
        return Err(Error::command(format!("{given} values are given where the key is ({})", names())));
    }
    let values = columns.iter().zip(words).map(|(column, word)| value(column, word));
    values.collect()
}

/// Reads a value as CSV has it.
pub fn value(column: &ColumnDef, word: &Word) -> Result<OwnedValue, Error> {
    field::parse(column, &word.text).map_err(Error::Command)
}
