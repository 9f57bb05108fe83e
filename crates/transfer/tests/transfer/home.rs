//! Databases to try on, and what is in them by the engine's own account.

use pantile::{Database, MediumKind, Options, Range, Row, TableDef, Type, Value};
use pantile_transfer::{Dump, Format, Load, LoadError, Loaded};

/// A new database in memory.
pub fn new() -> Database {
    Options::new().medium(MediumKind::Dram).open("unused").expect("memory")
}

/// A table with two rows, and its database.
pub fn pets() -> Database {
    let db = new();
    let def = TableDef::new("pets")
        .column("id", Type::U32)
        .nullable("name", Type::String(40))
        .nullable("age", Type::I8)
        .primary_key(["id"]);
    let pets = db.create_table(def).expect("a table");
    let rex: [Value<'_>; 3] = [1u32.into(), "Rex".into(), 7i8.into()];
    let none: [Value<'_>; 3] = [2u32.into(), Value::Null, Value::Null];
    db.run(|txn| [rex, none].iter().try_for_each(|row| txn.insert(&pets, row))).expect("rows");
    db
}

/// A value as text that differs wherever values do.
fn exact(row: &Row<'_>, n: usize) -> String {
    match row.get::<Value<'_>>(n) {
        Ok(Value::Float(value)) => format!("float {:016x}", value.to_bits()),
        Ok(value) => format!("{value:?}"),
        Err(_) => {
            let value = row.get::<Vec<u8>>(n).expect("a value out of line");
            format!("{} bytes out of line: {value:?}", value.len())
        }
    }
}

/// The rows of a table in the order of the primary key.
pub fn rows(db: &Database, table: &str) -> Vec<Vec<String>> {
    let table = db.table(table).expect("the table");
    let txn = db.begin_read().expect("a transaction");
    let rows = txn.scan(&table, Range::all()).expect("a scan");
    rows.map(|row| row.expect("a row")).map(|row| (0..row.len()).map(|n| exact(&row, n)).collect()).collect()
}

/// All definitions and rows.
pub fn contents(db: &Database) -> Vec<(TableDef, Vec<Vec<String>>)> {
    db.tables().iter().map(|name| (db.table(name).expect("a table").definition(), rows(db, name))).collect()
}

/// Everything as text.
pub fn dump(db: &Database) -> String {
    let mut text = Vec::new();
    Dump::new(db).and_then(|dump| dump.write(&mut text)).expect("a dump");
    String::from_utf8(text).expect("UTF-8")
}

/// The rows of a table as text.
pub fn dump_rows(db: &Database, table: &str, format: Format) -> String {
    let mut text = Vec::new();
    Dump::new(db).and_then(|dump| dump.write_rows(table, format, &mut text)).expect("rows");
    String::from_utf8(text).expect("UTF-8")
}

pub fn load_csv(db: &Database, table: &str, text: &str) -> Result<Loaded, LoadError> {
    Load::new(db).rows(table, Format::Csv, text.as_bytes())
}

pub fn load_json(db: &Database, table: &str, text: &str) -> Result<Loaded, LoadError> {
    Load::new(db).rows(table, Format::JsonLines, text.as_bytes())
}

/// Loads into a new database, in all ways, and compares.
pub fn is_the_same_after_all_ways(db: &Database) {
    let wanted = contents(db);
    let (text, copy) = (dump(db), new());
    Load::new(&copy).dump(text.as_bytes()).expect("a dump that was just written");
    assert_eq!(contents(&copy), wanted);
    assert_eq!(dump(&copy), text);
    for format in [Format::Csv, Format::JsonLines] {
        let (mut schema, copy) = (Vec::new(), new());
        Dump::new(db).and_then(|dump| dump.write_schema(&mut schema)).expect("a schema");
        Load::new(&copy).dump(&schema[..]).expect("a schema that was just written");
        for name in db.tables() {
            let text = dump_rows(db, &name, format);
            Load::new(&copy).rows(&name, format, text.as_bytes()).expect("rows that were just written");
        }
        assert_eq!(contents(&copy), wanted, "{format:?}");
        let (dir, copy) = (tempfile::tempdir().expect("a directory"), new());
        let into = dir.path().join("text");
        Dump::new(db).and_then(|dump| dump.write_files(&into, format)).expect("files");
        Load::new(&copy).files(&into).expect("files that were just written");
        assert_eq!(contents(&copy), wanted, "{format:?}");
    }
}

/// Loading fails with this message and leaves the database as it was.
pub fn refuses(db: &Database, load: impl FnOnce() -> Result<Loaded, LoadError>, message: &str) {
    let before = contents(db);
    let failed = load().expect_err(message);
    assert_eq!(failed.to_string(), format!("{message}; nothing was loaded"));
    assert_eq!(contents(db), before);
}
