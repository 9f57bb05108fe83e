//! Bad input gets a clear error and changes nothing.

use std::time::Duration;

use pantile::{
    Conflict, ConflictPolicy, Database, Decimal, Error, IndexDef, Isolation, MediumKind, Options, Range,
    Result, Table, TableDef, TransactionOptions, Type, Value,
};
use pantile_testkit::fails;

fn dram() -> Database {
    Options::new().medium(MediumKind::Dram).open("unused").expect("open")
}

fn definition() -> TableDef {
    TableDef::new("t")
        .column("id", Type::U32)
        .column("small", Type::I8)
        .column("text", Type::String(10))
        .column("code", Type::FixedString(4))
        .column("blob", Type::FixedBytes(4))
        .column("price", Type::Decimal { precision: 4, scale: 2 })
        .column("flag", Type::Bool)
        .nullable("long", Type::Bytes(300_000))
        .primary_key(["id"])
        .index(IndexDef::unique("by_text", ["text"]))
}

fn good(id: u64, text: &str) -> [Value<'_>; 8] {
    let price = Value::Decimal(Decimal::new(995, 2));
    let blob = Value::Bytes(b"blob");
    [id.into(), Value::Int(-5), text.into(), "code".into(), blob, price, true.into(), Value::Null]
}

/// A database with one table of two rows.
fn filled() -> (Database, Table) {
    let db = dram();
    let table = db.create_table(definition()).expect("create");
    db.run(|txn| {
        txn.insert(&table, &good(1, "one"))?;
        txn.insert(&table, &good(2, "two"))
    })
    .expect("fill");
    (db, table)
}

fn rows(db: &Database, table: &Table) -> Vec<String> {
    let txn = db.begin_read().expect("begin");
    let all = txn.scan(table, Range::all()).expect("scan");
    all.map(|row| format!("{:?}", row.expect("row"))).collect()
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let (db, table) = filled();
    let before = rows(&db, &table);
    let mut txn = db.begin().expect("begin");
    let with = |column: usize, value: Value<'static>| {
        let mut row = good(3, "three");
        row[column] = value;
        row
    };
    let nothing = "nothing was changed";
    fails!(
        txn.insert(&table, &with(0, "x".into())),
        Error::WrongType { .. },
        "\"id\"",
        "u32",
        "a string",
        nothing
    );
    fails!(txn.insert(&table, &with(6, Value::Int(1))), Error::WrongType { .. }, "\"flag\"", "bool", nothing);
    fails!(txn.insert(&table, &with(5, Value::Float(1.0))), Error::WrongType { .. }, "decimal(4,2)", nothing);
    fails!(
        txn.insert(&table, &with(0, Value::Int(-1))),
        Error::OutOfRange { .. },
        "-1 does not fit",
        "\"id\"",
        "takes 0 to 4294967295",
        nothing
    );
    fails!(
        txn.insert(&table, &with(0, (1u64 << 32).into())),
        Error::OutOfRange { .. },
        "4294967296",
        nothing
    );
    fails!(
        txn.insert(&table, &with(1, Value::Int(128))),
        Error::OutOfRange { .. },
        "128",
        "\"small\"",
        nothing
    );
    let long = Value::Decimal(Decimal::new(10_000, 2));
    fails!(txn.insert(&table, &with(5, long)), Error::OutOfRange { .. }, "\"price\"", nothing);
    fails!(
        txn.insert(&table, &with(5, Value::Int(100))),
        Error::OutOfRange { .. },
        "2 digits before the point"
    );
    let fine = Value::Decimal(Decimal::new(1, 3));
    fails!(txn.insert(&table, &with(5, fine)), Error::OutOfRange { .. }, "\"price\"", nothing);
    fails!(
        txn.insert(&table, &with(2, "eleven byte".into())),
        Error::TooLong { .. },
        "11 bytes",
        "at most 10"
    );
    fails!(
        txn.insert(&table, &with(3, "fiver".into())),
        Error::TooLong { .. },
        "5 bytes",
        "at most 4",
        nothing
    );
    fails!(txn.insert(&table, &with(4, Value::Bytes(b"12345"))), Error::TooLong { .. }, "\"blob\"", nothing);
    fails!(txn.insert(&table, &with(2, Value::Null)), Error::NotNull { .. }, "\"text\"", "NULL", nothing);
    fails!(
        txn.insert(&table, &good(3, "three")[..5]),
        Error::WrongArity { .. },
        "5 values",
        "takes 8",
        nothing
    );
    fails!(txn.insert(&table, &good(1, "three")), Error::DuplicateKey { .. }, "\"primary\"", nothing);
    fails!(txn.insert(&table, &good(3, "two")), Error::DuplicateKey { .. }, "\"by_text\"", nothing);
    fails!(txn.upsert(&table, &good(1, "two")), Error::DuplicateKey { .. }, "\"by_text\"", nothing);
    // The transaction can continue, and keeps what succeeded.
    txn.insert(&table, &good(4, "four")).expect("insert");
    txn.commit().expect("commit");
    let after = rows(&db, &table);
    assert_eq!((&after[..2], after.len()), (&before[..], 3));
}

#[test]
fn updates_that_do_not_fit_leave_the_row_as_it_was() {
    let (db, table) = filled();
    let before = rows(&db, &table);
    let mut txn = db.begin().expect("begin");
    let key = [1u32.into()];
    let nothing = "nothing was changed";
    fails!(txn.update(&table, &key, &[(8, Value::Null)]), Error::UnknownColumn { .. }, "\"t\"", "column 8");
    fails!(txn.update(&table, &key, &[(1, 7u8.into()), (1, 300u64.into())]), Error::OutOfRange { .. }, "300");
    fails!(txn.update(&table, &key, &[(6, Value::Null)]), Error::NotNull { .. }, "\"flag\"", nothing);
    fails!(txn.update(&table, &key, &[(0, 9u32.into())]), Error::PrimaryKeyChanged { .. }, "delete the row");
    fails!(
        txn.update(&table, &key, &[(2, "two".into())]),
        Error::DuplicateKey { .. },
        "\"by_text\"",
        nothing
    );
    fails!(txn.update::<usize>(&table, &["x".into()], &[]), Error::WrongType { .. }, "\"id\"");
    fails!(txn.update::<usize>(&table, &[], &[]), Error::WrongArity { expected: 1, got: 0, .. }, "0 values");
    fails!(txn.delete(&table, &[1u32.into(), 2u32.into()]), Error::WrongArity { .. }, "2 values");
    let of_edit = txn.modify(&table, &key, |row| {
        row.set(1, 9u8.into())?;
        Err(Error::InvalidOption("changed my mind".into()))
    });
    fails!(of_edit, Error::InvalidOption(_), "changed my mind");
    assert!(!txn.update(&table, &[77u32.into()], &[(1, 1u8.into())]).expect("no such row"));
    assert!(!txn.delete(&table, &[77u32.into()]).expect("no such row"));
    txn.commit().expect("commit");
    assert_eq!(rows(&db, &table), before);
}

#[test]
fn reads_of_what_is_not_there() {
    let (db, table) = filled();
    fails!(db.table("u"), Error::UnknownTable(_), "\"u\"");
    fails!(table.column("nope"), Error::UnknownColumn { .. }, "\"nope\"", "\"t\"");
    fails!(table.index("nope"), Error::UnknownIndex { .. }, "\"nope\"", "\"t\"");
    let txn = db.begin_read().expect("begin");
    let row = txn.get(&table, &[1u32.into()]).expect("get").expect("row");
    fails!(row.get::<u32>(8), Error::UnknownColumn { .. }, "8");
    fails!(row.get::<u32>("nope"), Error::UnknownColumn { .. }, "nope");
    fails!(row.get::<&str>(0), Error::WrongType { .. }, "u32", "str");
    fails!(row.get::<&[u8]>(7), Error::WrongType { .. }, "NULL");
    fails!(row.get::<u8>(1), Error::ReadOutOfRange { .. }, "-5", "u8 takes 0 to 255");
    fails!(row.get::<Vec<u8>>(0), Error::WrongType { .. }, "Vec<u8>");
    assert_eq!(row.get::<Option<&[u8]>>(7).expect("NULL"), None);
    let two = [1u32.into(), 2u32.into()];
    fails!(txn.scan(&table, Range::prefix(&two)), Error::WrongArity { .. }, "2 values");
    fails!(txn.scan(&table, Range::prefix(&["x".into()])), Error::WrongType { .. }, "\"id\"");
    let index = table.index("by_text").expect("index");
    fails!(txn.get_by_index(&index, &[5u32.into()]), Error::WrongType { .. }, "\"text\"");
}

#[test]
fn rows_and_keys_that_are_too_large() {
    let db = dram();
    let mut wide = TableDef::new("wide").column("id", Type::U32);
    for n in 0..44 {
        wide = wide.column(format!("c{n}"), Type::Bytes(1536));
    }
    let wide = db.create_table(wide.primary_key(["id"])).expect("create");
    let full = [7u8; 1536];
    let row: Vec<Value<'_>> =
        std::iter::once(1u32.into()).chain((0..44).map(|_| Value::Bytes(&full))).collect();
    let mut txn = db.begin().expect("begin");
    fails!(txn.insert(&wide, &row), Error::RowTooLarge { .. }, "at most 65535", "nothing was changed");
    let mut less = row.clone();
    less[1] = Value::Bytes(&[]);
    less[2] = Value::Bytes(&[]);
    txn.insert(&wide, &less).expect("fits");
    let both = [(1, row[1]), (2, row[2])];
    fails!(txn.update(&wide, &[1u32.into()], &both), Error::RowTooLarge { .. }, "nothing was changed");
    txn.commit().expect("commit");
    let txn = db.begin_read().expect("begin");
    let found = txn.get(&wide, &[1u32.into()]).expect("get").expect("row");
    assert_eq!(found.values().expect("in line"), less);
    for key in [Type::String(1600), Type::Bytes(70_000), Type::FixedBytes(3100)] {
        let def = TableDef::new("keyed").column("k", key).primary_key(["k"]);
        fails!(
            db.create_table(def),
            Error::InvalidDefinition(_),
            "more than 3064 bytes",
            "nothing was changed"
        );
    }
}

#[test]
fn values_out_of_line_cannot_be_borrowed() {
    let (db, table) = filled();
    let long = vec![1; 70_000];
    db.run(|txn| txn.update(&table, &[1u32.into()], &[(7, Value::Bytes(&long))])).expect("update");
    let txn = db.begin_read().expect("begin");
    let row = txn.get(&table, &[1u32.into()]).expect("get").expect("row");
    fails!(row.get::<&[u8]>(7), Error::OutOfLine { .. }, "\"long\"", "Vec<u8>");
    fails!(row.values(), Error::OutOfLine { .. }, "\"long\"");
    assert_eq!(row.get::<Vec<u8>>(7).expect("read"), long);
}

#[test]
fn definitions_that_make_no_sense() {
    let (db, table) = filled();
    let base = || TableDef::new("u").column("id", Type::U32).nullable("n", Type::U32);
    let invalid = [
        (TableDef::new("").column("id", Type::U32).primary_key(["id"]), "1 to 255 bytes"),
        (TableDef::new("u"), "1 to 4096 columns"),
        (base(), "needs a primary key"),
        (base().primary_key(["n"]), "takes NULL"),
        (base().primary_key(["id", "id"]), "twice"),
        (base().column("id", Type::U8).primary_key(["id"]), "named twice"),
        (base().column("", Type::U8).primary_key(["id"]), "1 to 255 bytes"),
        (base().column("f", Type::FixedBytes(0)).primary_key(["id"]), "at least 1"),
        (base().column("d", Type::Decimal { precision: 39, scale: 0 }).primary_key(["id"]), "38 digits"),
        (
            base().column("d", Type::Decimal { precision: 3, scale: 4 }).primary_key(["id"]),
            "at most its precision",
        ),
        (base().column("a", Type::FixedBytes(65_535)).primary_key(["id"]), "65535 bytes"),
        (base().primary_key(["id"]).index(IndexDef::new("primary", ["n"])), "not \"primary\""),
        (base().primary_key(["id"]).index(IndexDef::new("i", Vec::<String>::new())), "no columns"),
        (
            base().primary_key(["id"]).index(IndexDef::new("i", ["n"])).index(IndexDef::new("i", ["id"])),
            "named twice",
        ),
    ];
    for (def, phrase) in invalid {
        fails!(db.create_table(def), Error::InvalidDefinition(_), phrase, "nothing was changed");
    }
    fails!(db.create_table(base().primary_key(["x"])), Error::UnknownColumn { .. }, "\"x\"");
    fails!(db.create_table(definition()), Error::TableExists(_), "\"t\"", "nothing was changed");
    let names: Vec<_> = (0..4000).map(|n| format!("a column with quite a long name {n}")).collect();
    let huge = names.into_iter().fold(base(), |def, name| def.column(name, Type::U8));
    fails!(db.create_table(huge.primary_key(["id"])), Error::InvalidDefinition(_), "60000");
    let create = |def| db.create_index(&table, def);
    fails!(create(IndexDef::new("by_text", ["id"])), Error::IndexExists { .. }, "\"by_text\"");
    fails!(create(IndexDef::new("i", ["nope"])), Error::UnknownColumn { .. }, "\"nope\"");
    fails!(
        create(IndexDef::unique("i", ["small"])),
        Error::DuplicateKey { .. },
        "\"i\"",
        "nothing was changed"
    );
    fails!(create(IndexDef::new("i", ["long"])), Error::InvalidDefinition(_), "3064");
    fails!(db.drop_index(&table, "i"), Error::UnknownIndex { .. }, "\"i\"");
    fails!(db.drop_table("u"), Error::UnknownTable(_), "\"u\"");
    assert_eq!(db.tables(), ["t"]);
    assert_eq!(table.definition(), definition());
    assert_eq!(rows(&db, &table).len(), 2);
}

#[test]
fn handles_of_another_database_are_refused() {
    let (db, own) = filled();
    let (other, foreign) = filled();
    let mut txn = db.begin().expect("begin");
    let of_other = "the handle of table \"t\" is of another database";
    fails!(txn.get(&foreign, &[1u32.into()]), Error::ForeignTable(_), of_other);
    fails!(txn.insert(&foreign, &good(3, "three")), Error::ForeignTable(_), of_other);
    fails!(txn.scan(&foreign, Range::all()), Error::ForeignTable(_), of_other);
    let index = foreign.index("by_text").expect("index");
    fails!(txn.scan_index(&index, Range::all()), Error::ForeignTable(_), of_other);
    fails!(db.create_index(&foreign, IndexDef::new("i", ["small"])), Error::ForeignTable(_), of_other);
    fails!(db.drop_index(&foreign, "by_text"), Error::ForeignTable(_), of_other);
    txn.commit().expect("commit");
    for (db, table) in [(db, own), (other, foreign)] {
        assert_eq!(table.definition(), definition());
        assert_eq!(rows(&db, &table).len(), 2);
    }
}

#[test]
fn dropped_tables_are_refused() {
    let (db, table) = filled();
    let index = table.index("by_text").expect("index");
    let reader = db.begin_read().expect("begin");
    let mut writer = db.begin().expect("begin");
    writer.insert(&table, &good(3, "three")).expect("insert");
    db.drop_table("t").expect("drop");
    fails!(reader.get(&table, &[1u32.into()]), Error::TableDropped(_), "\"t\"", "can only be rolled back");
    fails!(reader.scan_index(&index, Range::all()), Error::TableDropped(_), "\"t\"");
    fails!(writer.delete(&table, &[3u32.into()]), Error::TableDropped(_), "\"t\"");
    fails!(writer.commit(), Error::TableDropped(_), "\"t\"");
    fails!(db.create_index(&table, IndexDef::new("i", ["id"])), Error::TableDropped(_), "\"t\"");
    fails!(db.drop_index(&table, "by_text"), Error::TableDropped(_), "\"t\"");
    // Its name is free again, and the new table is empty.
    let again = db.create_table(definition()).expect("create");
    assert_eq!(rows(&db, &again), [] as [&str; 0]);
    fails!(db.run(|txn| txn.insert(&table, &good(1, "one"))), Error::TableDropped(_), "\"t\"");
}

#[test]
fn read_only_transactions_refuse_writes() {
    let (db, table) = filled();
    let before = rows(&db, &table);
    let safe = || TransactionOptions::new().safe_snapshot();
    // However they are put together.
    let options = [safe().read_only(false), TransactionOptions::new().read_only(false).safe_snapshot()];
    let [first, second] = options.map(|options| db.begin_with(options).expect("begin"));
    for mut txn in [db.begin_read().expect("begin"), db.begin_safe_snapshot().expect("begin"), first, second]
    {
        assert!(txn.is_read_only());
        let key = [1u32.into()];
        fails!(txn.insert(&table, &good(3, "three")), Error::ReadOnly, "nothing is changed", "is read-only");
        fails!(txn.upsert(&table, &good(1, "three")), Error::ReadOnly, "read-only");
        fails!(txn.update(&table, &key, &[(1, 1u8.into())]), Error::ReadOnly, "read-only");
        fails!(txn.delete(&table, &key), Error::ReadOnly, "read-only");
        fails!(txn.get_for_update(&table, &key), Error::ReadOnly, "read-only");
        txn.commit().expect("commit");
    }
    assert_eq!(rows(&db, &table), before);
}

#[test]
fn savepoints_are_of_their_transaction_and_their_time() {
    let (db, table) = filled();
    let (mut one, mut two) = (db.begin().expect("begin"), db.begin().expect("begin"));
    let first = one.savepoint();
    one.insert(&table, &good(3, "three")).expect("insert");
    let second = one.savepoint();
    one.insert(&table, &good(4, "four")).expect("insert");
    fails!(two.rollback_to(first), Error::UnknownSavepoint, "not of this transaction");
    one.rollback_to(second).expect("known");
    one.rollback_to(second).expect("stays valid");
    one.rollback_to(first).expect("known");
    fails!(one.rollback_to(second), Error::UnknownSavepoint, "nothing was changed");
    // New writes and a new savepoint do not revive the old one.
    one.insert(&table, &good(5, "five")).expect("insert");
    one.insert(&table, &good(6, "six")).expect("insert");
    let third = one.savepoint();
    fails!(one.rollback_to(second), Error::UnknownSavepoint, "has been rolled back");
    one.rollback_to(third).expect("known");
    one.commit().expect("commit");
    let ids: Vec<_> = rows(&db, &table).iter().map(|row| row[..12].to_owned()).collect();
    assert_eq!(ids.len(), 4, "{ids:?}");
}

#[test]
fn conflicts_name_the_table_and_the_reason() {
    let (db, table) = filled();
    let key = [1u32.into()];
    let change = [(1, 9u8.into())];
    let begin = |isolation| {
        let options = TransactionOptions::new().isolation(isolation).conflict(ConflictPolicy::Abort);
        db.begin_with(options).expect("begin")
    };
    let fails_with = |result: Result<bool>, expected: Conflict| {
        let error = result.expect_err("a conflict");
        let message = error.to_string();
        assert!(matches!(error, Error::Conflict { conflict, .. } if conflict == expected), "{message}");
        assert!(error.is_retryable() && message.contains("\"t\"") && message.contains("run it again"));
        assert!(message.contains(&expected.to_string()));
    };
    let mut old = begin(Isolation::Serializable);
    let mut snapshot = begin(Isolation::Snapshot);
    db.begin_read().expect("begin").get(&table, &key).expect("get");
    assert!(old.get(&table, &[2u32.into()]).expect("get").is_some());
    assert!(old.update(&table, &key, &change).expect("it can move behind the reader"));
    db.run(|txn| txn.update(&table, &[2u32.into()], &change)).expect("update");
    fails_with(old.commit().map(|_| true), Conflict::ReadChanged);
    let mut old = begin(Isolation::Serializable);
    let mut fresh = begin(Isolation::Serializable);
    assert!(old.get(&table, &[2u32.into()]).expect("get").is_some());
    db.run(|txn| txn.update(&table, &key, &change)).expect("update");
    assert!(fresh.update(&table, &key, &change).expect("it has read nothing, and begins again"));
    drop(fresh);
    fails_with(old.update(&table, &key, &change), Conflict::WrittenByLater);
    fails_with(snapshot.update(&table, &key, &change), Conflict::ChangedSinceSnapshot);
    let mut holder = begin(Isolation::Serializable);
    holder.update(&table, &key, &change).expect("update");
    fails_with(begin(Isolation::Serializable).update(&table, &key, &change), Conflict::Locked);
    let patience = ConflictPolicy::Wait(Duration::from_millis(20));
    let mut waiter = db.begin_with(TransactionOptions::new().conflict(patience)).expect("begin");
    fails_with(waiter.update(&table, &key, &change), Conflict::TimedOut);
}
