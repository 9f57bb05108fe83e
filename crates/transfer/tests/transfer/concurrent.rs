//! Batches, empty tables, interruptions, and others who use the database meanwhile.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pantile::{Error as DatabaseError, TableDef, Type};
use pantile_transfer::{Dump, Error, Format, Load, Progress};

use crate::home::{self, refuses};

fn many(rows: std::ops::Range<u32>) -> String {
    let rows: String = rows.map(|id| format!("{id},a name of some length\n")).collect();
    format!("id,name\n{rows}")
}

#[test]
fn rows_of_batches_stay_and_are_counted() {
    for wrong in ["x,y\n", "1,Rex\n"] {
        let db = home::pets();
        let text = many(10..40_000) + wrong;
        let failed =
            Load::new(&db).batch(1000).rows("pets", Format::Csv, text.as_bytes()).expect_err("a bad row");
        let committed = &failed.committed[0];
        assert_eq!((committed.rows, committed.table.as_str()), (39_000, "pets"));
        assert_eq!(committed.last.line, committed.rows + 1);
        assert_eq!(home::rows(&db, "pets").len() as u64, committed.rows + 2);
        let told = format!(
            "{} rows of table \"pets\", up to line {}, are committed and stay; nothing else was loaded",
            committed.rows,
            committed.rows + 1
        );
        assert!(failed.to_string().ends_with(&told), "{failed}");
        // The rest can be loaded, without what was wrong.
        let lines = text.lines().skip(committed.last.line as usize).take_while(|line| *line != wrong.trim());
        let rest = lines.fold(String::from("id,name\n"), |text, line| text + line + "\n");
        Load::new(&db).batch(1000).rows("pets", Format::Csv, rest.as_bytes()).expect("the rest");
        assert_eq!(home::rows(&db, "pets").len(), 39_992);
    }
}

/// Without the lines up to the one that is named, what is left begins with a row.
#[test]
fn the_last_line_of_a_batch_is_where_its_last_row_ends() {
    for end in ["\n", "\r\n"] {
        for (note, wrong) in [("a", "x,a"), ("\"a\nb\"", "x,a"), ("\"a\r\nb\r\"", "x,\"a"), ("a", "9")] {
            let db = home::pets();
            let rows: Vec<String> = (11..16).map(|id| format!("{id},{note}")).collect();
            let text = ["id,name", &rows.join(end), wrong, ""].join(end);
            let failed = Load::new(&db).batch(2).rows("pets", Format::Csv, text.as_bytes()).expect_err("x");
            let [committed] = &failed.committed[..] else { panic!("{failed}") };
            assert_eq!(committed.rows, 4, "{failed}");
            let rest: Vec<&str> = text.split_inclusive('\n').skip(committed.last.line as usize).collect();
            let rest = format!("id,name{end}{}", rest.concat().replace(&format!("{wrong}{end}"), ""));
            assert_eq!(home::rows(&db, "pets").len(), 6);
            assert_eq!(Load::new(&db).rows("pets", Format::Csv, rest.as_bytes()).expect("the rest").rows, 1);
        }
    }
}

#[test]
fn a_duplicate_is_refused_where_all_before_it_is_committed() {
    let db = home::pets();
    let text = "id\n10\n11\n12\n11\n13\n";
    let failed = Load::new(&db).batch(1).rows("pets", Format::Csv, text.as_bytes()).expect_err("a duplicate");
    assert_eq!(
        failed.to_string(),
        "line 5: table \"pets\" already has a row with this key of index \"primary\"; 3 rows of table \"pets\", up to line 4, are committed and stay; nothing else was loaded"
    );
    assert_eq!(home::rows(&db, "pets").len(), 5);
}

#[test]
fn an_empty_table_is_empty_again_after_a_failure() {
    let db = home::new();
    let def =
        TableDef::new("pets").column("id", Type::U32).nullable("name", Type::String(40)).primary_key(["id"]);
    db.create_table(def.clone()).expect("a table");
    let text = many(0..30_000) + "x,\n";
    refuses(
        &db,
        || Load::new(&db).alone().rows("pets", Format::Csv, text.as_bytes()),
        "line 30002, column \"id\": u32 (a whole number from 0 to 4294967295) is expected, not \"x\"",
    );
    assert_eq!(db.table("pets").expect("the table").definition(), def);
    Load::new(&db).alone().rows("pets", Format::Csv, many(0..30_000).as_bytes()).expect("rows");
    assert_eq!(home::rows(&db, "pets").len(), 30_000);
    refuses(
        &db,
        || Load::new(&db).alone().rows("pets", Format::Csv, many(29_999..50_000).as_bytes()),
        "line 2: table \"pets\" already has a row with this key of index \"primary\"",
    );
}

#[test]
fn a_load_that_is_stopped_leaves_nothing() {
    let (db, text) = (home::new(), many(10..60_000));
    let pets = home::pets();
    Load::new(&pets).rows("pets", Format::Csv, many(10..60_000).as_bytes()).expect("rows");
    let dump = home::dump(&pets);
    let calls = Cell::new(0);
    let stop = |progress: &Progress<'_>| {
        calls.set(calls.get() + 1);
        assert!(progress.table == "pets" && progress.rows > 0 && progress.bytes > progress.rows);
        if calls.get() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    refuses(&db, || Load::new(&db).progress(&stop).dump(dump.as_bytes()), "interrupted");
    calls.set(0);
    let pets = home::pets();
    refuses(
        &pets,
        || Load::new(&pets).progress(&stop).rows("pets", Format::Csv, text.as_bytes()),
        "interrupted",
    );
}

/// The threads of the load end, and the panic goes on.
#[test]
fn a_panic_in_a_callback_ends_the_load() {
    let (db, text) = (home::pets(), many(10..60_000));
    let before = home::rows(&db, "pets");
    let panics = |_: &Progress<'_>| -> ControlFlow<()> { panic!("a fault of the program") };
    let load = || Load::new(&db).progress(&panics).rows("pets", Format::Csv, text.as_bytes());
    assert!(catch_unwind(AssertUnwindSafe(load)).is_err(), "the panic goes on");
    assert_eq!(home::rows(&db, "pets"), before);
}

#[test]
fn a_dump_shows_the_moment_at_which_it_began() {
    let db = home::pets();
    let before = home::dump(&db);
    let dump = Dump::new(&db).expect("a dump");
    let pets = db.table("pets").expect("the table");
    db.run(|txn| txn.delete(&pets, &[1u32.into()])).expect("deleted");
    db.create_table(TableDef::new("new").column("id", Type::U8).primary_key(["id"])).expect("a table");
    let mut text = Vec::new();
    dump.write(&mut text).expect("text");
    assert_eq!(String::from_utf8(text).expect("UTF-8"), before);
    db.drop_table("pets").expect("dropped");
    let failed = dump.write(std::io::sink());
    assert!(matches!(failed, Err(Error::Database(DatabaseError::TableDropped(_)))), "{failed:?}");
}

#[test]
fn tables_that_exist_share_one_transaction() {
    let old = home::pets();
    old.create_table(TableDef::new("zoo").column("id", Type::U8).primary_key(["id"])).expect("a table");
    let zoo = old.table("zoo").expect("the table");
    old.run(|txn| txn.insert(&zoo, &[1u8.into()])).expect("a row");
    let text = home::dump(&old);
    let pets = old.table("pets").expect("the table");
    old.run(|txn| txn.delete(&pets, &[1u32.into()]).and(txn.delete(&pets, &[2u32.into()]))).expect("deleted");
    refuses(
        &old,
        || Load::new(&old).dump(text.as_bytes()),
        "line 7: table \"zoo\" already has a row with this key of index \"primary\"",
    );
    let failed = Load::new(&old).batch(1).dump(text.as_bytes()).expect_err("a duplicate");
    assert_eq!((failed.committed.len(), failed.committed[0].rows), (1, 2));
    assert_eq!(home::rows(&old, "pets").len(), 2);
}
