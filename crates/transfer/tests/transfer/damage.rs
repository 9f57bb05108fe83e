//! Dumps that are truncated, damaged, or of something else.

use pantile::{IndexDef, TableDef, Type};
use pantile_testkit::Random;
use pantile_transfer::{Error, Load};

use crate::home::{self, refuses};

/// A dump with three tables.
fn text() -> String {
    let db = home::pets();
    db.create_table(TableDef::new("empty").column("id", Type::U8).primary_key(["id"])).expect("a table");
    let def = TableDef::new("words")
        .column("word", Type::String(20))
        .primary_key(["word"])
        .index(IndexDef::unique("once", ["word"]));
    let words = db.create_table(def).expect("a table");
    let all = ["a\nb", "c\"", "ö"];
    db.run(|txn| all.iter().try_for_each(|word| txn.insert(&words, &[(*word).into()]))).expect("rows");
    home::dump(&db)
}

#[test]
fn a_dump_that_ends_early_is_refused_and_leaves_nothing() {
    let text = text();
    let (new, old) = (home::new(), home::pets());
    let rest = old.table("pets").expect("the table");
    old.run(|txn| txn.delete(&rest, &[1u32.into()]).and(txn.delete(&rest, &[2u32.into()]))).expect("deleted");
    old.run(|txn| txn.insert(&rest, &[9u32.into(), "Nine".into(), 9i8.into()])).expect("a row");
    // The last line may lack its end.
    for end in 0..text.len() - 1 {
        for db in [&new, &old] {
            let before = home::contents(db);
            let failed = Load::new(db).dump(&text.as_bytes()[..end]).expect_err("a part of a dump");
            let is_told = match &*failed.cause {
                Error::NotADump { .. } => end <= 18,
                Error::Damaged { detail, .. } => detail.ends_with("it is truncated"),
                _ => false,
            };
            assert!(is_told, "{end}: {failed}");
            assert!(failed.to_string().ends_with("; nothing was loaded"), "{failed}");
            assert_eq!(home::contents(db), before, "{end}");
        }
    }
    for db in [&new, &old] {
        let loaded = Load::new(db).dump(&text.as_bytes()[..text.len() - 1]).expect("a whole dump");
        assert_eq!(loaded.rows, 5);
    }
    assert_eq!(home::rows(&old, "pets").len(), 3);
}

#[test]
fn lines_that_are_missing_or_there_twice_are_noticed() {
    let text = text();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let db = home::new();
    for n in 0..lines.len() {
        let without: String =
            lines.iter().enumerate().filter(|(m, _)| *m != n).map(|(_, line)| *line).collect();
        let twice: String =
            lines.iter().enumerate().map(|(m, line)| line.repeat(1 + usize::from(m == n))).collect();
        for text in [without, twice] {
            let failed = Load::new(&db).dump(text.as_bytes()).expect_err(&text);
            assert!(failed.to_string().ends_with("; nothing was loaded"), "{failed}");
            assert!(db.tables().is_empty(), "{text}");
        }
    }
}

#[test]
fn what_is_wrong_is_named() {
    const END: &str = "{\"end_of_table\":\"pets\",\"rows\":1}\n";
    const HEAD: &str = "{\"pantile_dump\":1}\n";
    const PETS: &str =
        "{\"table\":\"pets\",\"columns\":[{\"name\":\"id\",\"type\":\"u32\"}],\"primary_key\":[\"id\"]}\n";
    let db = home::new();
    for (text, message) in [
        (
            String::new(),
            "this is not a dump (it is empty); to load the rows of one table, name the table and the format",
        ),
        (
            "id,name\n".into(),
            "this is not a dump (its first line is \"id,name\"); to load the rows of one table, name the table and the format",
        ),
        ("{\"pantile_dump\":2}\n".into(), "the dump has format version 2, and this build reads version 1"),
        (format!("{HEAD}[1]\n"), "line 2: there is a row without a table"),
        (
            format!("{HEAD}{{\"end_of_table\":\"pets\",\"rows\":0}}\n"),
            "line 2: there is an end without a table",
        ),
        (format!("{HEAD}{PETS}{PETS}"), "line 3: the rows of table \"pets\" have no end"),
        (
            format!("{HEAD}{PETS}[1]\n{{\"end_of_table\":\"cats\",\"rows\":1}}\n"),
            "line 4: this is the end of table \"cats\", not of \"pets\"",
        ),
        (
            format!("{HEAD}{PETS}[1]\n{{\"end_of_table\":\"pets\",\"rows\":2}}\n"),
            "line 4: table \"pets\" has 1 rows here, and 2 were written: the dump is damaged",
        ),
        (
            format!("{HEAD}{{\"end_of_dump\":true,\"tables\":1,\"rows\":0}}\n"),
            "line 2: there are 0 tables and 0 rows, and 1 tables and 0 rows were written: the dump is damaged",
        ),
        (
            format!("{HEAD}{{\"end_of_dump\":true,\"tables\":0,\"rows\":0}}\n\nx\n"),
            "line 4: there is more after the end of the dump",
        ),
        (format!("{HEAD}x\n"), "line 2: this is not a line of a dump: \"x\""),
        (format!("{HEAD}{{}}\n"), "line 2: this is not a line of a dump: missing field `end_of_dump`"),
        (format!("{HEAD}{PETS}[1,2]\n{END}"), "line 3: the row has more values than the table columns, 1"),
        (format!("{HEAD}{PETS}[1]\n[]\n{END}"), "line 4: the row has 0 values, and the table 1 columns"),
        (format!("{HEAD}{PETS}[x]\n{END}"), "line 3: this is not a row: expected value at column 2"),
        (
            format!("{HEAD}{}", PETS.replace("u32", "u31")),
            "line 2: column \"id\" has the unknown type \"u31\"",
        ),
        (
            format!("{HEAD}{}", PETS.replace("[\"id\"]", "[]")),
            "invalid definition: \"pets\": a table needs a primary key",
        ),
    ] {
        refuses(&db, || Load::new(&db).dump(text.as_bytes()), message);
    }
}

#[test]
fn rows_that_are_there_twice_are_refused() {
    let db = home::pets();
    let text = home::dump(&db);
    refuses(
        &db,
        || Load::new(&db).dump(text.as_bytes()),
        "line 3: table \"pets\" already has a row with this key of index \"primary\"",
    );
    let mut rows = String::new();
    for id in 0..50_000 {
        rows += &format!("[{},\"a name of some length\",null]\n", if id == 40_000 { 10_000 } else { id });
    }
    let line = text.lines().nth(1).expect("the definition");
    let text = format!("{{\"pantile_dump\":1}}\n{line}\n{rows}");
    let new = home::new();
    let failed = Load::new(&new).dump(text.as_bytes()).expect_err("a row twice");
    // Threads load at once, so either row may come first.
    let is_there = |line: u64| line == 10_003 || line == 40_003;
    assert!(matches!(&*failed.cause, Error::Row { at, .. } if is_there(at.line)), "{failed}");
    assert!(new.tables().is_empty());
}

#[test]
fn unique_keys_that_are_there_twice_are_refused() {
    let db = home::new();
    let def = TableDef::new("t")
        .column("id", Type::U32)
        .column("n", Type::U32)
        .primary_key(["id"])
        .index(IndexDef::unique("once", ["n"]));
    let t = db.create_table(def).expect("a table");
    db.run(|txn| (0..5u32).try_for_each(|id| txn.insert(&t, &[id.into(), (id * 7).into()]))).expect("rows");
    let text = home::dump(&db).replace("[3,21]", "\n\r\n[3,7]");
    let new = home::new();
    let message = "line 8: table \"t\" already has a row with this key of index \"once\"";
    refuses(&new, || Load::new(&new).dump(text.as_bytes()), message);
}

/// Changed dumps are loaded or refused, and leave nothing if they are refused.
#[test]
fn changed_bytes_are_no_worse_than_errors() {
    let (text, db) = (text(), home::new());
    let mut random = Random::new(7, 0);
    for _ in 0..3000 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..random.between(1, 3) {
            let at = random.index(bytes.len());
            bytes[at] = match random.one_in(2) {
                true => *random.pick(b"{}[]\",:\\\n\r 0-.enul"),
                false => random.word() as u8,
            };
        }
        if let Err(failed) = Load::new(&db).dump(&bytes[..]) {
            assert!(failed.to_string().ends_with("; nothing was loaded"), "{failed}");
            assert!(db.tables().is_empty());
        }
        db.tables().iter().for_each(|table| db.drop_table(table).expect("dropped"));
    }
}

#[test]
fn a_table_of_another_form_is_refused() {
    let db = home::new();
    db.create_table(TableDef::new("words").column("word", Type::String(19)).primary_key(["word"]))
        .expect("a table");
    refuses(
        &db,
        || Load::new(&db).dump(text().as_bytes()),
        "table \"words\" of the dump: its column 1 is \"word\" string(20), and in the database it is \"word\" string(19)",
    );
}

#[test]
fn one_table_of_a_dump_is_loaded() {
    let (db, text) = (home::new(), text());
    assert_eq!(Load::new(&db).tables(["words"]).dump(text.as_bytes()).expect("a table").rows, 3);
    assert_eq!(db.tables(), ["words"]);
    refuses(
        &db,
        || Load::new(&db).tables(["pets", "cats"]).dump(text.as_bytes()),
        "the dump has no table \"cats\"",
    );
}

#[test]
fn a_schema_makes_tables_that_are_not_there() {
    let db = home::pets();
    let mut schema = Vec::new();
    pantile_transfer::Dump::new(&db).and_then(|dump| dump.write_schema(&mut schema)).expect("a schema");
    refuses(&db, || Load::new(&db).dump(&schema[..]), "there is already a table \"pets\"");
    for end in 0..schema.len() - 1 {
        let new = home::new();
        Load::new(&new).dump(&schema[..end]).expect_err("a part of a schema");
        assert!(new.tables().is_empty());
    }
}
