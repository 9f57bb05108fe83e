//! Directories with a file for each table.

use std::fs;
use std::ops::ControlFlow;

use pantile::{TableDef, Type};
use pantile_transfer::{Dump, Error, Format, Load};

use crate::home::{self, refuses};

#[test]
fn files_that_are_not_whole_are_refused() {
    let (db, new) = (home::pets(), home::new());
    let dir = tempfile::tempdir().expect("a directory");
    let into = dir.path().join("text");
    let dumped = Dump::new(&db).and_then(|dump| dump.write_files(&into, Format::Csv)).expect("files");
    let (schema, rows) = (into.join("schema.jsonl"), into.join("pets.csv"));
    let sizes = [&schema, &rows].map(|file| fs::metadata(file).expect("a file").len());
    assert_eq!((dumped.tables, dumped.rows, dumped.bytes), (1, 2, sizes.iter().sum()));
    let again = Dump::new(&db).and_then(|dump| dump.write_files(&into, Format::Csv));
    assert!(matches!(again, Err(Error::Exists(path)) if path == into));

    let whole = fs::read_to_string(&rows).expect("text");
    assert_eq!(whole, "id,name,age\n1,Rex,7\n2,\\N,\\N\n");
    fs::write(&rows, "id,name,age\n1,Rex,7\n").expect("written");
    let message = "pets.csv, line 2: pets.csv has 1 rows, and 2 were written: it is truncated or damaged";
    refuses(&new, || Load::new(&new).files(&into), message);
    // Cut within the last value, or before its end.
    fs::write(&rows, "id,name,age\n1,Rex,7\n2,Tom,10\n").expect("written");
    Load::new(&home::new()).files(&into).expect("whole files");
    let message = "pets.csv, line 3: the last line of pets.csv has no end: it is truncated";
    for cut in ["id,name,age\n1,Rex,7\n2,Tom,1", "id,name,age\n1,Rex,7\n2,Tom,10"] {
        fs::write(&rows, cut).expect("written");
        refuses(&new, || Load::new(&new).files(&into), message);
    }
    fs::write(&rows, whole.replace("7", "x")).expect("written");
    let message = "pets.csv, line 2, column \"age\": i8 (a whole number from -128 to 127) or NULL is expected, not \"x\"";
    refuses(&new, || Load::new(&new).files(&into), message);
    fs::remove_file(&rows).expect("removed");
    let message = format!("cannot read {}: No such file or directory (os error 2)", rows.display());
    refuses(&new, || Load::new(&new).files(&into), &message);
    fs::write(&rows, &whole).expect("written");

    let text = fs::read_to_string(&schema).expect("text");
    for end in 0..text.len() - 1 {
        fs::write(&schema, &text[..end]).expect("written");
        Load::new(&new).files(&into).expect_err("a part of the schema");
        assert!(new.tables().is_empty());
    }
    fs::write(&schema, text.replace("pets.csv", "../pets.csv")).expect("written");
    refuses(
        &new,
        || Load::new(&new).files(&into),
        "schema.jsonl, line 2: \"../pets.csv\" is no file of a dump",
    );
    fs::write(&schema, text.replace("\"file\":\"pets.csv\",", "")).expect("written");
    let message = "schema.jsonl, line 2: the line names no file with the rows of the table";
    refuses(&new, || Load::new(&new).files(&into), message);
    fs::write(&schema, &text).expect("written");
    Load::new(&new).files(&into).expect("whole files");
    assert_eq!(home::contents(&new), home::contents(&db));
}

#[test]
fn a_dump_that_is_stopped_leaves_no_directory() {
    let db = home::pets();
    let dir = tempfile::tempdir().expect("a directory");
    let into = dir.path().join("text");
    let stop = |_: &pantile_transfer::Progress<'_>| ControlFlow::Break(());
    let dump = Dump::new(&db).expect("a dump").progress(&stop);
    assert!(matches!(dump.write_files(&into, Format::JsonLines), Err(Error::Interrupted)));
    assert!(!into.exists());
    assert!(matches!(dump.write(std::io::sink()), Err(Error::Interrupted)));
    assert!(matches!(dump.write_rows("cats", Format::Csv, std::io::sink()), Err(Error::NoSuchTable(_))));
}

/// What begins like a byte order mark is part of a name or a value.
#[test]
fn a_byte_order_mark_in_a_name_stays() {
    let (db, new) = (home::new(), home::new());
    let [first, text] = ["\u{feff}c", "\u{feff}a"];
    let def = TableDef::new("t").column(first, Type::String(9)).column("c", Type::U8).primary_key([first]);
    let table = db.create_table(def).expect("create");
    db.run(|txn| txn.insert(&table, &[text.into(), 7u8.into()])).expect("insert");
    let dir = tempfile::tempdir().expect("a directory");
    for (n, format) in [Format::Csv, Format::JsonLines].into_iter().enumerate() {
        let into = dir.path().join(n.to_string());
        Dump::new(&db).and_then(|dump| dump.write_files(&into, format)).expect("files");
        Load::new(&new).files(&into).expect("whole files");
        assert_eq!(home::contents(&new), home::contents(&db), "{format:?}");
        new.drop_table("t").expect("drop");
    }
}
