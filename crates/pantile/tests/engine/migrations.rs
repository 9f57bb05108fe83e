//! Numbered changes of the schema are made once, whenever a process ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use pantile::{
    ColumnDef, Conflict, ConflictPolicy, Database, Durability, Error, IndexDef, Isolation, MediumKind,
    Migration, Migrations, Options, Range, TableChange, TableDef, TransactionOptions, Type,
};
use pantile_testkit::{Bed, Home};

use crate::support::in_memory;

fn pets() -> TableDef {
    TableDef::new("pets").column("id", Type::U64).column("name", Type::String(40)).primary_key(["id"])
}

fn add_legs() -> TableChange {
    TableChange::new().add_column(ColumnDef::new("legs", Type::U8).default(4u8)).rename_table("animals")
}

fn count(db: &Database, table: &str) -> u64 {
    let table = db.table(table).expect("the table");
    db.begin_read().expect("a transaction").count(&table, Range::all()).expect("a count")
}

/// A migration with a step of every kind.
fn all_kinds() -> Migration {
    Migration::new(1, "all kinds")
        .create_table(pets())
        .run(|db, txn| txn.insert(&db.table("pets")?, &[1u64.into(), "Rex".into()]))
        .alter_table("pets", add_legs())
        .create_index("animals", IndexDef::new("by_legs", ["legs"]))
        .drop_index("animals", "by_legs")
        .create_table(TableDef::new("old").column("id", Type::U64).primary_key(["id"]))
        .drop_table("old")
}

#[test]
fn each_is_made_once() {
    let mut home = Home::new(Bed::File(Durability::Sync));
    let mut db = home.open();
    let first = || Migrations::new().then(all_kinds());
    assert_eq!(first().apply(&db).expect("a migration"), [1]);
    home.kill(db, vec![]);
    db = home.open();
    let both = || {
        let rename = TableChange::new().rename_column("name", "called");
        first().then(Migration::new(5, "names").alter_table("animals", rename))
    };
    assert_eq!(both().apply(&db).expect("a migration"), [5]);
    assert!(both().apply(&db).expect("nothing").is_empty());
    assert_eq!((db.tables(), count(&db, "animals")), (vec!["#migrations".into(), "animals".into()], 1));
    // An older program.
    let error = first().apply(&db).expect_err("it does not know the fifth");
    assert!(matches!(&error, Error::InvalidMigrations(why) if why.contains('5')), "{error}");
    let renamed = first().then(Migration::new(5, "other names"));
    assert!(matches!(renamed.apply(&db), Err(Error::InvalidMigrations(_))));
    let unordered = first().then(Migration::new(1, "once more"));
    assert!(matches!(unordered.apply(&db), Err(Error::InvalidMigrations(_))));
}

#[test]
fn one_that_fails_goes_on_from_there() {
    let db = in_memory();
    let is_well = Arc::new(AtomicBool::new(false));
    let runs = Arc::new(AtomicU64::new(0));
    let all = || {
        let (is_well, runs) = (Arc::clone(&is_well), Arc::clone(&runs));
        Migrations::new().then(
            Migration::new(3, "rows")
                .create_table(pets())
                .run(move |db, txn| {
                    runs.fetch_add(1, Ordering::Relaxed);
                    let pets = db.table("pets")?;
                    txn.insert(&pets, &[1u64.into(), "Rex".into()])?;
                    let second = if is_well.load(Ordering::Relaxed) { 2u64 } else { 1 };
                    txn.insert(&pets, &[second.into(), "Tib".into()])
                })
                .alter_table("pets", add_legs()),
        )
    };
    for _ in 0..2 {
        match all().apply(&db).expect_err("a key twice") {
            Error::MigrationFailed { number: 3, step: 2, error, .. } => {
                let cause = Error::in_chain(error.as_ref());
                assert!(matches!(cause, Some(Error::DuplicateKey { .. })), "{error}");
            }
            other => panic!("{other}"),
        }
        assert_eq!(count(&db, "pets"), 0);
    }
    is_well.store(true, Ordering::Relaxed);
    assert_eq!(all().apply(&db).expect("it goes on"), [3]);
    assert_eq!((count(&db, "animals"), runs.load(Ordering::Relaxed)), (2, 3));
    // A step that fails without having begun is tried again, too.
    let no_such =
        || all().then(Migration::new(4, "nothing").drop_index("animals", "none").drop_table("none"));
    for _ in 0..2 {
        let error = no_such().apply(&db).expect_err("no such index");
        assert!(matches!(error, Error::MigrationFailed { number: 4, step: 1, .. }), "{error}");
    }
    // It has done nothing, so a program without it goes on.
    assert!(all().apply(&db).expect("nothing is to be done").is_empty());
}

#[test]
fn a_step_fails_with_an_error_of_the_program() {
    let db = in_memory();
    let tries = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&tries);
    let all = Migrations::new().then(Migration::new(1, "rows").create_table(pets()).run(move |db, txn| {
        txn.insert(&db.table("pets")?, &[1u64.into(), "Rex".into()])?;
        match counted.fetch_add(1, Ordering::Relaxed) {
            // Conflicts in it are tried again.
            0 => Err(Error::Conflict { conflict: Conflict::Locked, table: "pets".into() }.into()),
            1 => Err::<(), Box<dyn std::error::Error + Send + Sync>>("no more cages".into()),
            _ => Ok(()),
        }
    }));
    let failed = all.apply(&db).expect_err("no more cages");
    assert!(matches!(failed, Error::MigrationFailed { number: 1, step: 2, .. }), "{failed}");
    assert!(failed.to_string().contains("no more cages"), "{failed}");
    assert_eq!((count(&db, "pets"), tries.load(Ordering::Relaxed)), (0, 2));
    assert_eq!(all.apply(&db).expect("it goes on"), [1]);
    assert_eq!(count(&db, "pets"), 1);
}

/// A step that has been made, and of which only that is not noted, is not made again.
#[test]
fn a_kill_after_a_step_and_before_its_note() {
    let kinds = [
        Migration::new(1, "m").create_table(pets()),
        Migration::new(1, "m").create_index("pets", IndexDef::new("by_name", ["name"])),
        Migration::new(1, "m").drop_index("pets", "by_id"),
        Migration::new(1, "m").drop_table("pets"),
    ];
    for (n, migration) in kinds.into_iter().enumerate() {
        let db = in_memory();
        if n > 0 {
            db.create_table(pets().index(IndexDef::new("by_id", ["id"]))).expect("a table");
        }
        let all = Migrations::new().then(migration);
        assert_eq!(all.apply(&db).expect("a migration"), [1]);
        let after = (db.tables(), db.table("pets").ok().map(|table| table.definition()));
        let record = db.table("#migrations").expect("the record");
        let as_before = [1u64.into(), "m".into(), 0u64.into(), true.into(), false.into()];
        db.run(|txn| txn.upsert(&record, &as_before)).expect("another state");
        assert_eq!(all.apply(&db).expect("nothing is left"), [1], "{n}");
        assert_eq!((db.tables(), db.table("pets").ok().map(|table| table.definition())), after);
    }
}

/// A migration that has been applied, so that there is a record.
fn nothing() -> Migrations {
    Migrations::new().then(Migration::new(1, "first").run(|_, _| Ok::<(), Error>(())))
}

/// Whether a table has had a change cannot be seen: others may change it, too. So the change and its note are one
/// commit, and without the note there is no change.
#[test]
fn a_changed_table_and_its_note_are_one_commit() {
    let options = Options::new().medium(MediumKind::Dram).conflict(ConflictPolicy::Abort);
    let db = options.retry_for(Duration::from_millis(50)).open("unused").expect("a database");
    db.create_table(pets()).expect("a table");
    nothing().apply(&db).expect("a migration");
    let record = db.table("#migrations").expect("the record");
    let snapshot = TransactionOptions::new().isolation(Isolation::Snapshot);
    let mut txn = db.begin_with(snapshot).expect("a transaction");
    let in_its_way = [2u64.into(), "m".into(), 0u64.into(), false.into(), false.into()];
    txn.insert(&record, &in_its_way).expect("a row");
    let prepared = db.prepare(txn, b"x").expect("prepared");
    let all = || nothing().then(Migration::new(2, "m").alter_table("pets", add_legs()));
    let failed = all().apply(&db).expect_err("it cannot be noted");
    assert!(matches!(failed, Error::MigrationFailed { number: 2, step: 1, .. }), "{failed}");
    assert_eq!(db.table("pets").expect("the table as it was").version(), 0);
    prepared.rollback().expect("nothing is in its way");
    assert_eq!(all().apply(&db).expect("it is made"), [2]);
    assert_eq!(count(&db, "animals"), 0);
    assert!(all().apply(&db).expect("nothing is left").is_empty());
}

/// What somebody else has changed is not taken for the step, whatever the record says of it.
#[test]
fn a_change_by_hand_is_not_the_step() {
    let db = in_memory();
    let table = db.create_table(pets()).expect("a table");
    nothing().apply(&db).expect("a migration");
    let record = db.table("#migrations").expect("the record");
    let begun = [2u64.into(), "m".into(), 0u64.into(), true.into(), false.into()];
    db.run(|txn| txn.upsert(&record, &begun)).expect("begun");
    let tail = TableChange::new().add_column(ColumnDef::new("tail", Type::U8).nullable());
    db.alter_table(&table, &tail).expect("a change by hand");
    let all = nothing().then(Migration::new(2, "m").alter_table("pets", add_legs()));
    assert_eq!(all.apply(&db).expect("it is made"), [2]);
    let columns = db.table("animals").expect("its new name").definition().columns;
    let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["id", "name", "tail", "legs"]);
}

/// A table that has the new name already is not the one that was to get it.
#[test]
fn a_rename_that_is_refused() {
    let db = in_memory();
    let table = db.create_table(pets()).expect("a table");
    db.create_table(TableDef { name: "animals".into(), ..pets() }).expect("a table");
    let all = nothing().then(Migration::new(2, "m").alter_table("pets", add_legs()));
    let failed = all.apply(&db).expect_err("the name is taken");
    assert!(matches!(failed, Error::MigrationFailed { number: 2, step: 1, .. }), "{failed}");
    assert_eq!(db.table("pets").expect("it").version(), table.version());
}

/// A step that failed has not happened, whatever others change then.
#[test]
fn a_step_that_failed_is_made_later() {
    let db = in_memory();
    let table = db.create_table(pets()).expect("a table");
    let column = |name| TableChange::new().add_column(ColumnDef::new(name, Type::U8).default(1u8));
    let mut txn = db.begin().expect("a transaction");
    txn.insert(&table, &[1u64.into(), "Rex".into()]).expect("a row");
    let prepared = db.prepare(txn, b"x").expect("prepared");
    let all = || nothing().then(Migration::new(2, "m").alter_table("pets", column("legs")));
    let failed = all().apply(&db).expect_err("it would change a row that is prepared");
    assert!(matches!(failed, Error::MigrationFailed { number: 2, step: 1, .. }), "{failed}");
    prepared.rollback().expect("nothing is in its way");
    db.alter_table(&table, &column("tail")).expect("a change by hand");
    assert_eq!(all().apply(&db).expect("it is made"), [2]);
    let names: Vec<_> =
        db.table("pets").expect("it").definition().columns.into_iter().map(|c| c.name).collect();
    assert_eq!(names, ["id", "name", "tail", "legs"]);
}

#[test]
fn several_callers_make_each_once() {
    let db = in_memory();
    let made: usize = thread::scope(|scope| {
        let apply = || Migrations::new().then(all_kinds()).apply(&db).expect("migrations").len();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(apply)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    assert_eq!((made, count(&db, "animals")), (1, 1));
}

#[test]
fn a_table_that_is_there_is_compared() {
    let db = in_memory();
    let def = pets().index(IndexDef::new("by_name", ["name"]));
    db.open_or_create(def.clone()).expect("a table");
    db.open_or_create(def.clone()).expect("the same table");
    let others = [
        (pets(), "index \"by_name\" is one too many"),
        (def.clone().index(IndexDef::new("more", ["id"])), "index \"more\" is missing"),
        (
            pets().index(IndexDef::unique("by_name", ["name"])),
            "index \"by_name\" is on [\"name\"], not unique on",
        ),
        (def.clone().column("age", Type::U8), "column \"age\" is missing"),
        (def.clone().primary_key(["name"]), "the primary key is [\"id\"], not [\"name\"]"),
    ];
    for (other, says) in others {
        let error = db.open_or_create(other).expect_err("it differs");
        assert!(error.to_string().contains(says), "{error}");
    }
    // As it is.
    db.create_table_if_absent(pets().column("age", Type::U8)).expect("the table");
    assert_eq!(count(&db, "pets"), 0);
}

/// It would wait for itself.
#[test]
fn a_step_makes_no_migrations() {
    let db = in_memory();
    let inner = |db: &Database| Migrations::new().then(Migration::new(1, "inner")).apply(db);
    let outer = Migration::new(1, "outer").run(move |db, _| inner(db).map(drop));
    let error = Migrations::new().then(outer).apply(&db).expect_err("it is refused");
    let Error::MigrationFailed { number: 1, step: 1, error, .. } = error else { panic!("{error}") };
    assert!(matches!(Error::in_chain(error.as_ref()), Some(Error::InvalidMigrations(_))), "{error}");
    assert_eq!(inner(&in_memory()).expect("of another database"), [1]);
}
