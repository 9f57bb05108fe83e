//! Commands that read and change rows.

use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::path::Path;

use pantile::{ColumnDef, OwnedValue, Range, Table, Transaction, Value};
use pantile_transfer::{Dump, Format, Load, Progress};

use crate::error::Error;
use crate::print::{Mode, Printer};
use crate::reading::{Reading, key_columns, key_of, value};
use crate::session::Session;
use crate::words::Word;

pub fn run(session: &mut Session<'_>, verb: &str, words: &[Word], out: &mut dyn Write) -> Result<(), Error> {
    match verb {
        "scan" => return scan(session, words, out),
        "count" => return count(session, words, out),
        _ => {}
    }
    let [name, rest @ ..] = words else { return Err(Error::command("which table? See `tables`")) };
    let table = session.db.table(&name.text)?;
    match verb {
        "get" => get(session, &table, rest, out),
        "insert" | "upsert" => insert(session, verb, &table, rest, out),
        "update" => update(session, &table, rest, out),
        _ => delete(session, &table, rest, out),
    }
}

fn get(session: &Session<'_>, table: &Table, words: &[Word], out: &mut dyn Write) -> Result<(), Error> {
    let key = whole_key(table, words)?;
    let columns = table.definition().columns;
    let row = session.reading(|txn| match txn.get(table, &borrowed(&key))? {
        Some(row) => Ok(Some(row.to_values()?)),
        None => Ok(None),
    })?;
    if row.is_none() && session.mode == Mode::Table {
        return Ok(writeln!(out, "no such row")?);
    }
    // Programs get an empty result.
    let mut printer = Printer::new(out, &columns, session.mode);
    row.iter().try_for_each(|row| printer.row(row))?;
    printer.finish()?;
    Ok(())
}

fn scan(session: &Session<'_>, words: &[Word], out: &mut dyn Write) -> Result<(), Error> {
    let reading = Reading::parse(session.db, words)?;
    let columns = reading.table.definition().columns;
    let mut printer = Printer::new(out, &columns, session.mode);
    session.reading(|txn| reading.with(|range| print_rows(session, txn, &reading, range, &mut printer)))?;
    printer.finish()?;
    Ok(())
}

fn print_rows(
    session: &Session<'_>,
    txn: &Transaction,
    reading: &Reading,
    range: Range<'_>,
    printer: &mut Printer<'_>,
) -> Result<(), Error> {
    let rows = match &reading.index {
        Some(index) => txn.scan_index(index, range)?,
        None => txn.scan(&reading.table, range)?,
    };
    for row in rows {
        session.check_stop()?;
        printer.row(&row?.to_values()?)?;
    }
    Ok(())
}

fn count(session: &Session<'_>, words: &[Word], out: &mut dyn Write) -> Result<(), Error> {
    let reading = Reading::parse(session.db, words)?;
    let count = session.reading(|txn| {
        Ok(reading.with(|range| match &reading.index {
            Some(index) => txn.count_index(index, range),
            None => txn.count(&reading.table, range),
        })?)
    })?;
    Ok(writeln!(out, "{count}")?)
}

fn insert(
    session: &mut Session<'_>,
    verb: &str,
    table: &Table,
    words: &[Word],
    out: &mut dyn Write,
) -> Result<(), Error> {
    let columns = table.definition().columns;
    if words.len() != columns.len() {
        let (given, names) = (words.len(), names(&columns));
        return Err(Error::command(format!("{given} values are given where the columns are ({names})")));
    }
    let values = columns.iter().zip(words).map(|(column, word)| value(column, word));
    let values: Vec<OwnedValue> = values.collect::<Result<_, _>>()?;
    let is_new = session.writing(|txn| match verb {
        "insert" => txn.insert(table, &borrowed(&values)).map(|()| true),
        _ => txn.upsert(table, &borrowed(&values)).map(|replaced| !replaced),
    })?;
    Ok(writeln!(out, "{}", if is_new { "inserted" } else { "replaced" })?)
}

fn update(
    session: &mut Session<'_>,
    table: &Table,
    words: &[Word],
    out: &mut dyn Write,
) -> Result<(), Error> {
    let usage = || Error::command("`update T KEY... set COLUMN=VALUE ...`");
    let at = words.iter().position(|word| word.is("set")).ok_or_else(usage)?;
    let key = whole_key(table, &words[..at])?;
    let columns = table.definition().columns;
    let changes = words[at + 1..].iter().map(|word| change(table, &columns, word));
    let changes: Vec<(usize, OwnedValue)> = changes.collect::<Result<_, _>>()?;
    if changes.is_empty() {
        return Err(usage());
    }
    let changes: Vec<(usize, Value<'_>)> = changes.iter().map(|(n, value)| (*n, value.as_value())).collect();
    let was_there = session.writing(|txn| txn.update(table, &borrowed(&key), &changes))?;
    Ok(writeln!(out, "{}", if was_there { "updated" } else { "no such row" })?)
}

/// Reads `COLUMN=VALUE`.
fn change(table: &Table, columns: &[ColumnDef], word: &Word) -> Result<(usize, OwnedValue), Error> {
    let (name, text) = word.text.split_once('=').ok_or_else(|| {
        Error::command(format!("{:?} is not COLUMN=VALUE; quote a value with spaces", word.text))
    })?;
    let n = table.column(name)?;
    let word = Word { text: text.to_owned(), is_quoted: true };
    Ok((n, value(&columns[n], &word)?))
}

fn delete(
    session: &mut Session<'_>,
    table: &Table,
    words: &[Word],
    out: &mut dyn Write,
) -> Result<(), Error> {
    let key = whole_key(table, words)?;
    let was_there = session.writing(|txn| txn.delete(table, &borrowed(&key)))?;
    Ok(writeln!(out, "{}", if was_there { "deleted" } else { "no such row" })?)
}

fn whole_key(table: &Table, words: &[Word]) -> Result<Vec<OwnedValue>, Error> {
    let columns = key_columns(table, None);
    let key = key_of(&columns, words)?;
    if key.len() < columns.len() {
        let (given, names) = (key.len(), names(&columns));
        return Err(Error::command(format!("{given} values are given where the key is ({names})")));
    }
    Ok(key)
}

fn names(columns: &[ColumnDef]) -> String {
    columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn borrowed(values: &[OwnedValue]) -> Vec<Value<'_>> {
    values.iter().map(OwnedValue::as_value).collect()
}

/// `dump T FILE`. The file has its name when it is whole.
pub fn dump(session: &Session<'_>, words: &[Word], out: &mut dyn Write) -> Result<(), Error> {
    let (table, file, format) = transfer(session, words, "dump")?;
    let cannot_write = |source| pantile_transfer::Error::Write { to: file.to_owned(), source };
    if Path::new(file).symlink_metadata().is_ok() {
        let exists = io::Error::new(io::ErrorKind::AlreadyExists, "File exists; name one that does not");
        return Err(cannot_write(exists).into());
    }
    let part = format!("{file}.part");
    let to = File::create_new(&part).map_err(|source| {
        let source = match source.kind() {
            io::ErrorKind::AlreadyExists => {
                io::Error::new(source.kind(), "File exists; if a dump that was killed has left it, remove it")
            }
            _ => source,
        };
        pantile_transfer::Error::Write { to: part.clone(), source }
    })?;
    let go_on = |_: &Progress<'_>| session.go_on();
    let dump = Dump::of_tables(session.db, &[table]);
    let dumped = dump.and_then(|dump| dump.progress(&go_on).write_rows(table, format, &to));
    let dumped = dumped.and_then(|dumped| {
        to.sync_all().and_then(|()| name(&part, file)).map_err(cannot_write)?;
        sync_name(file).map_err(cannot_write)?;
        Ok(dumped)
    });
    // It was given no name, only an output.
    let dumped = dumped.map_err(|error| match error {
        pantile_transfer::Error::Write { source, .. } => cannot_write(source),
        other => other,
    });
    if dumped.is_err() {
        // Best effort: what is there is not the whole table.
        let _ = fs::remove_file(&part);
    }
    Ok(writeln!(out, "{} rows written to {file}", dumped?.rows)?)
}

/// Gives a file another name, which nothing has; where links are not possible, nothing had a moment before.
fn name(part: &str, file: &str) -> io::Result<()> {
    match fs::hard_link(part, file) {
        Ok(()) => fs::remove_file(part),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        Err(_) => fs::rename(part, file),
    }
}

/// Makes the name of a file durable. One may be allowed to make files in a directory, and not to open it, and some file
/// systems cannot sync a directory.
#[cfg(unix)]
fn sync_name(file: &str) -> io::Result<()> {
    let above = Path::new(file).parent().filter(|above| !above.as_os_str().is_empty());
    match File::open(above.unwrap_or(Path::new("."))).and_then(|above| above.sync_all()) {
        Err(error) if !is_refused(error.kind()) => {
            // It would stand in the way of another try.
            let _ = fs::remove_file(file);
            Err(error)
        }
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn is_refused(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

/// The system does that by itself.
#[cfg(not(unix))]
fn sync_name(_: &str) -> io::Result<()> {
    Ok(())
}

/// `load T FILE`.
pub fn load(session: &Session<'_>, words: &[Word], out: &mut dyn Write) -> Result<(), Error> {
    let (table, file, format) = transfer(session, words, "load")?;
    let cannot_read = |source| Error::Read { from: file.to_owned(), source };
    let from = BufReader::new(File::open(file).map_err(cannot_read)?);
    let go_on = |_: &Progress<'_>| session.go_on();
    let loaded = Load::new(session.db).progress(&go_on).rows(table, format, from)?;
    Ok(writeln!(out, "{} rows loaded from {file}", loaded.rows)?)
}

/// Reads `T FILE`, with the format that the file's name says.
fn transfer<'w>(
    session: &Session<'_>,
    words: &'w [Word],
    verb: &str,
) -> Result<(&'w str, &'w str, Format), Error> {
    if session.txn.is_some() {
        return Err(Error::command(format!(
            "`{verb}` has a transaction of its own; end the open one by `commit` or `rollback`"
        )));
    }
    let [table, file] = words else { return Err(Error::Command(format!("`{verb} T FILE`"))) };
    let extension = Path::new(&file.text).extension().and_then(|extension| extension.to_str());
    let format = match extension {
        Some("csv") => Format::Csv,
        Some("jsonl") => Format::JsonLines,
        _ => return Err(Error::command("the file's name ends in .csv or .jsonl, and says the format")),
    };
    Ok((&table.text, &file.text, format))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use pantile::{Database, MediumKind, Options, TableDef, Type};

    use super::*;
    use crate::print::Mode;
    use crate::words::split;

    fn rows(db: &Database) -> u64 {
        let table = db.table("n").expect("the table");
        db.begin_read().expect("a transaction").count(&table, Range::all()).expect("a count")
    }

    /// Ctrl-C while it works.
    #[test]
    fn a_stop_ends_a_transfer_and_leaves_no_file() {
        let db = Options::new().medium(MediumKind::Dram).open("unused").expect("memory");
        let def = TableDef::new("n").column("id", Type::U64).primary_key(["id"]);
        let table = db.create_table(def).expect("a table");
        db.run(|txn| (0..10u64).try_for_each(|id| txn.insert(&table, &[id.into()]))).expect("rows");
        let dir = tempfile::tempdir().expect("a directory");
        let words = split(&format!("n {}", dir.path().join("n.csv").display())).expect("words");
        let stop = AtomicBool::new(true);
        let session = Session { db: &db, txn: None, mode: Mode::Table, stop: &stop };
        let dumped = dump(&session, &words, &mut Vec::new());
        assert!(matches!(dumped, Err(Error::Dump(pantile_transfer::Error::Interrupted))));
        assert_eq!(dir.path().read_dir().expect("a directory").count(), 0);
        dump(&session, &words, &mut Vec::new()).expect("the stop was for the first one");
        assert_eq!(dir.path().read_dir().expect("a directory").count(), 1);
        db.run(|txn| (0..10u64).try_for_each(|id| txn.delete(&table, &[id.into()]).map(drop))).expect("none");
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(load(&session, &words, &mut Vec::new()), Err(Error::Load(_))));
        assert_eq!(rows(&db), 0);
        load(&session, &words, &mut Vec::new()).expect("a load");
        assert_eq!(rows(&db), 10);
    }
}
