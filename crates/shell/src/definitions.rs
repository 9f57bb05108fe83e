//! Commands about tables and indexes.

use std::io::Write;

use pantile::{ColumnDef, IndexDef, OwnedValue, TableChange, Type};
use pantile_transfer::field;

use crate::error::Error;
use crate::reading::value;
use crate::session::Session;
use crate::words::{self, Word};

/// The definition in `create table {...}`, which is not made of words.
pub fn of_new_table(line: &str) -> Option<&str> {
    let rest = keyword(keyword(line, "create")?, "table")?;
    rest.starts_with('{').then_some(rest)
}

fn keyword<'l>(line: &'l str, keyword: &str) -> Option<&'l str> {
    let (first, rest) = line.split_once(char::is_whitespace)?;
    first.eq_ignore_ascii_case(keyword).then(|| rest.trim_start())
}

pub fn create_table(session: &Session<'_>, definition: &str, out: &mut dyn Write) -> Result<(), Error> {
    let def = field::parse_definition(definition).map_err(Error::Command)?;
    session.db.create_table(def)?;
    Ok(writeln!(out, "created")?)
}

pub fn run(session: &Session<'_>, verb: &str, words: &[Word], out: &mut dyn Write) -> Result<(), Error> {
    match verb {
        "tables" => session.db.tables().into_iter().try_for_each(|name| {
            let name = words::shown(&name).unwrap_or(name);
            Ok(writeln!(out, "{name}")?)
        }),
        "schema" => schema(session, words, out),
        "create" => create_index(session, words, out),
        "alter" => alter(session, words, out),
        _ => drop_one(session, words, out),
    }
}

fn schema(session: &Session<'_>, words: &[Word], out: &mut dyn Write) -> Result<(), Error> {
    let names = match words {
        [] => session.db.tables(),
        words => words.iter().map(|word| word.text.clone()).collect(),
    };
    for name in names {
        let def = session.db.table(&name)?.definition();
        writeln!(out, "create table {}", field::definition(&def))?;
    }
    Ok(())
}

fn create_index(session: &Session<'_>, words: &[Word], out: &mut dyn Write) -> Result<(), Error> {
    let (is_unique, words) = match words {
        [unique, rest @ ..] if unique.is("unique") => (true, rest),
        words => (false, words),
    };
    let [index, table, name, first, more @ ..] = words else { return Err(usage_of_create()) };
    if !index.is("index") {
        return Err(usage_of_create());
    }
    let columns = std::iter::once(first).chain(more).map(|word| word.text.as_str());
    let make = if is_unique { IndexDef::unique } else { IndexDef::new };
    let (table, def) = (session.db.table(&table.text)?, make(name.text.as_str(), columns));
    session.db.create_index_with(&table, def, |_| session.go_on()).map_err(|error| match error {
        pantile::Error::Cancelled => Error::Interrupted,
        error => error.into(),
    })?;
    Ok(writeln!(out, "created")?)
}

fn usage_of_create() -> Error {
    Error::command(
        "`create table {DEFINITION}`, as `schema` prints it, or `create [unique] index T INDEX COLUMN...`",
    )
}

fn drop_one(session: &Session<'_>, words: &[Word], out: &mut dyn Write) -> Result<(), Error> {
    match words {
        [table, name] if table.is("table") => session.db.drop_table(&name.text)?,
        [index, table, name] if index.is("index") => {
            session.db.drop_index(&session.db.table(&table.text)?, &name.text)?;
        }
        _ => return Err(Error::command("`drop table T` or `drop index T INDEX`")),
    }
    Ok(writeln!(out, "dropped")?)
}

fn alter(session: &Session<'_>, words: &[Word], out: &mut dyn Write) -> Result<(), Error> {
    let usage = || {
        Error::command(
            "`alter T add COLUMN TYPE [nullable] [default VALUE]`, `alter T drop COLUMN`, `alter T rename COLUMN TO`, `alter T rename index INDEX TO`, `alter T name TO`",
        )
    };
    let [table, verb, rest @ ..] = words else { return Err(usage()) };
    let table = session.db.table(&table.text)?;
    let change = TableChange::new();
    let change = match rest {
        [name, ty, more @ ..] if verb.is("add") => change.add_column(column(name, ty, more)?),
        [name] if verb.is("drop") => change.drop_column(name.text.as_str()),
        [name, to] if verb.is("rename") => change.rename_column(name.text.as_str(), to.text.as_str()),
        [index, name, to] if verb.is("rename") && index.is("index") => {
            change.rename_index(name.text.as_str(), to.text.as_str())
        }
        [to] if verb.is("name") => change.rename_table(to.text.as_str()),
        _ => return Err(usage()),
    };
    session.db.alter_table(&table, &change)?;
    Ok(writeln!(out, "altered")?)
}

fn column(name: &Word, ty: &Word, more: &[Word]) -> Result<ColumnDef, Error> {
    let known = ty.text.parse::<Type>().ok();
    let ty = known.ok_or_else(|| {
        Error::command(format!(
            "there is no type {:?}; types are like u32, string(40), \"fixed bytes(16)\" and decimal(9,2)",
            ty.text
        ))
    })?;
    let mut column = ColumnDef::new(name.text.as_str(), ty);
    let more = match more {
        [nullable, more @ ..] if nullable.is("nullable") => {
            column = column.nullable();
            more
        }
        more => more,
    };
    match more {
        [] => Ok(column),
        [default, text] if default.is("default") => {
            let default: OwnedValue = value(&column, text)?;
            Ok(ColumnDef { default, ..column })
        }
        _ => Err(Error::command("after the type can stand `nullable`, then `default VALUE`")),
    }
}
