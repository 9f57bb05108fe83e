//! The commands, for `.help` and for completion.

use std::io::Write;

use crate::error::Error;
use crate::words::Word;

/// A command, its arguments, and what it does.
pub const COMMANDS: [(&str, &str, &str); 29] = [
    ("tables", "", "list the tables"),
    ("schema", "[T...]", "print definitions, as `create table` takes them"),
    ("get", "T KEY...", "print the row with this primary key"),
    ("scan", "T [by INDEX] [RANGE]", "print rows in the order of the key"),
    ("count", "T [by INDEX] [RANGE]", "count rows"),
    ("insert", "T VALUE...", "insert a row, with a value for each column"),
    ("upsert", "T VALUE...", "insert a row, or replace the one with this key"),
    ("update", "T KEY... set COLUMN=VALUE...", "change columns of a row"),
    ("delete", "T KEY...", "delete a row"),
    ("begin", "[read|snapshot]", "open a transaction; without one each command commits"),
    ("commit", "", "commit the open transaction"),
    ("rollback", "", "undo what the open transaction has written"),
    ("prepared", "", "list the prepared transactions, which wait to be decided"),
    ("commit prepared", "NAME", "commit a prepared transaction"),
    ("rollback prepared", "NAME", "roll a prepared transaction back"),
    ("create table", "{DEFINITION}", "create a table"),
    ("create index", "T INDEX COLUMN...", "create an index; `create unique index` too"),
    (
        "alter",
        "T add|drop|rename|name ...",
        "change the columns or the name of a table, or the name of an index",
    ),
    ("drop", "table T | index T INDEX", "drop a table or an index"),
    ("dump", "T FILE", "write the rows of a table to a new .csv or .jsonl file"),
    ("load", "T FILE", "load the rows of such a file, all or none"),
    ("explain space", "", "what each table takes on the medium, and why"),
    ("stats", "", "what the database counts"),
    ("transactions", "", "what is open, and what it keeps from being reclaimed"),
    (".mode", "table|csv|jsonl", "how rows are printed"),
    (".timing", "on|off", "print how long each command takes"),
    (".read", "FILE", "run the commands of a file"),
    (".help", "[COMMAND]", "print this"),
    (".quit", "", "leave; so does Ctrl-D"),
];

const REST: &str = r#"
RANGE: prefix VALUE... | from VALUE... | after VALUE... | to VALUE... | before VALUE..., reverse, limit N
Values are written as in CSV: 7, 19.99, true, 2026-01-31T12:00:00Z, \N for NULL, bytes in base64.
A value with spaces, or one that is a keyword, stands in double quotes, a quote in it twice.
In $"a\nb" a backslash and a letter mean a character: \n, \r, \t, \0, \", \\ and \u{1b}.
"#;

pub fn print(words: &[Word], out: &mut dyn Write) -> Result<(), Error> {
    let wanted = words.first().map_or("", |word| word.text.as_str());
    let shown: Vec<_> = COMMANDS.iter().filter(|(name, _, _)| name.starts_with(wanted)).collect();
    if shown.is_empty() {
        return Err(Error::Command(format!("there is no command {wanted:?}; `.help` lists them")));
    }
    for (name, arguments, what) in shown {
        let usage = format!("{name} {arguments}");
        writeln!(out, "{usage:<42} {what}")?;
    }
    if wanted.is_empty() {
        out.write_all(REST.as_bytes())?;
    }
    Ok(())
}
