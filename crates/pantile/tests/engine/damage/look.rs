//! Reading a database, whatever it holds.

use std::ops::ControlFlow;
use std::path::Path;

use pantile::{CheckOptions, Database, Error, Options, Range, Result, Row, check, inspect};
use pantile_media::ViewMedium;

/// Reads the data file in a directory in every possible way: `check`,
/// `inspect`, recovery, and every value by every index. Returns whether the
/// file can be read.
///
/// # Panics
/// If `check` finds nothing and the file cannot be read.
pub fn at_file(dir: &Path) -> bool {
    let options = CheckOptions::new().threads(1);
    let checked = check(dir, &options);
    inspect(dir, &options).expect("anything can be inspected");
    let is_sound = checked.as_ref().is_ok_and(|report| report.is_sound());
    match open(dir).and_then(|db| at_rows(&db)) {
        Ok(()) => true,
        Err(error) => {
            assert!(!is_sound, "check finds nothing, and {error}");
            false
        }
    }
}

/// Opens a copy of what is in a data file; the file stays as it is.
pub fn open(dir: &Path) -> Result<Database> {
    let view = ViewMedium::open(dir, &|_, _| ControlFlow::Continue(())).expect("a view");
    if !view.file_len().is_multiple_of(64 << 10) {
        // As the file medium does.
        return Err(Error::NotADatabase { path: dir.to_owned(), detail: "truncated".into() });
    }
    Options::new().on_medium(view).recovery_threads(1).streams(1).open(dir)
}

/// Reads every value of every row, by every index.
pub fn at_rows(db: &Database) -> Result<()> {
    let txn = db.begin_read()?;
    for name in db.tables() {
        let table = db.table(&name)?;
        txn.scan(&table, Range::all())?.try_for_each(|row| at_row(&row?))?;
        for index in table.definition().indexes {
            let index = table.index(&index.name)?;
            txn.scan_index(&index, Range::all())?.try_for_each(|row| at_row(&row?))?;
        }
    }
    Ok(())
}

fn at_row(row: &Row<'_>) -> Result<()> {
    row.to_values().map(|values| drop(format!("{values:?}")))
}
