//! What a backup holds: everything, of every kind, from every medium.

use pantile::{Database, Decimal, Durability, IndexDef, MediumKind, Options, TableDef, Type, Value};
use pantile_testkit::{Bed, Home, Random, ScratchDir, SeedNote, seeds};

use super::{back_up, check_same, everything, is_sound, open};
use crate::support::in_memory;

fn all_types() -> TableDef {
    TableDef::new("all types")
        .column("id", Type::U64)
        .column("bool", Type::Bool)
        .nullable("i8", Type::I8)
        .column("i16", Type::I16)
        .column("i32", Type::I32)
        .column("i64", Type::I64)
        .column("u8", Type::U8)
        .column("u16", Type::U16)
        .nullable("u32", Type::U32)
        .column("f32", Type::F32)
        .column("f64", Type::F64)
        .column("time", Type::Timestamp)
        .column("decimal", Type::Decimal { precision: 20, scale: 3 })
        .column("fixed", Type::FixedString(9))
        .column("raw", Type::FixedBytes(5))
        .nullable("text", Type::String(300_000))
        .nullable("bytes", Type::Bytes(300_000))
        .primary_key(["id"])
        .index(IndexDef::new("by_text", ["u8", "i64"]))
        .index(IndexDef::unique("by_time", ["time", "id"]))
}

fn put(db: &Database, random: &mut Random, id: u64) {
    let table = db.table("all types").expect("the table");
    let long = *random.pick(&[10, 500, 70_000, 250_000]);
    let text = "é".repeat(random.index(long / 2));
    let bytes = vec![random.below(256) as u8; random.index(long)];
    let null = random.one_in(5);
    let row = [
        id.into(),
        random.one_in(2).into(),
        if null { Value::Null } else { Value::Int(-7) },
        Value::Int(i64::from(i16::MIN)),
        Value::Int(random.below(1 << 30) as i64),
        Value::Int(random.word() as i64),
        Value::UInt(random.below(256)),
        Value::UInt(9),
        if null { Value::Null } else { Value::UInt(random.below(1 << 32)) },
        Value::Float(0.5),
        Value::Float(random.fraction()),
        Value::Timestamp(random.word() as i64),
        Value::Decimal(Decimal::new(-12_345, 3)),
        "fixed".into(),
        Value::Bytes(b"12345"),
        if null { Value::Null } else { text.as_str().into() },
        Value::Bytes(&bytes),
    ];
    db.run(|txn| txn.upsert(&table, &row)).expect("put");
}

/// Rows of all types, some with values out of line, updated and deleted.
fn fill(db: &Database, random: &mut Random, rows: u64) {
    let table = db.create_table(all_types()).expect("create");
    for _ in 0..rows * 2 {
        let id = random.below(rows);
        match random.one_in(4) {
            true => drop(db.run(|txn| txn.delete(&table, &[id.into()])).expect("delete")),
            false => put(db, random, id),
        }
    }
}

#[test]
fn every_type_from_every_medium() {
    for seed in seeds(0, 4) {
        for bed in [Bed::Dram, Bed::File(Durability::None), Bed::File(Durability::Group), Bed::Nvm] {
            let _note = SeedNote(seed);
            let mut home = Home::new(bed).collect_by_seed(seed).eager(seed);
            let db = home.open();
            fill(&db, &mut Random::new(seed, 0), 60);
            check_same(&db);
        }
    }
}

/// Right after opening, with and without an index image: no index is loaded.
#[test]
fn what_has_just_been_opened() {
    let mut home = Home::new(Bed::File(Durability::None));
    let db = home.open();
    fill(&db, &mut Random::new(1, 1), 50);
    home.close(db);
    for image in [true, false] {
        let db = home.options().index_image(image).open(home.path()).expect("open");
        assert_eq!(db.recovery().from_image, image);
        check_same(&db);
        home.close(db);
    }
}

#[test]
fn an_empty_database() {
    let db = in_memory();
    let report = check_same(&db);
    assert_eq!((report.tables, report.rows, report.bytes), (0, 0, 0));
}

#[test]
fn many_small_tables() {
    let db = in_memory();
    for n in 0..500u64 {
        let def = TableDef::new(format!("t{n}")).column("id", Type::U64).column("text", Type::String(500));
        let def = def.primary_key(["id"]).index(IndexDef::new("by_text", ["text"]));
        let table = db.create_table(def).expect("create");
        let text = "x".repeat(n as usize);
        db.run(|txn| (0..n % 7).try_for_each(|id| txn.insert(&table, &[id.into(), text.as_str().into()])))
            .expect("fill");
    }
    (0..500).step_by(9).for_each(|n| db.drop_table(&format!("t{n}")).expect("drop"));
    check_same(&db);
}

/// Rows of many sizes fill blocks of all classes, many of them only partly.
#[test]
fn rows_of_all_sizes() {
    let db = in_memory();
    let def = TableDef::new("sizes").column("id", Type::U64).column("data", Type::Bytes(1_000_000));
    let table = db.create_table(def.primary_key(["id"])).expect("create");
    for id in 0..700u64 {
        let data = vec![id as u8; (id * id) as usize];
        db.run(|txn| txn.insert(&table, &[id.into(), Value::Bytes(&data)])).expect("insert");
    }
    let report = check_same(&db);
    assert_eq!(report.bytes / 1_000_000, 114);
}

/// Each is a database of its own.
#[test]
fn a_backup_of_a_backup_of_a_backup() {
    let db = in_memory();
    fill(&db, &mut Random::new(3, 3), 60);
    let before = everything(&db, &db.begin_read().expect("begin"));
    let (first, _) = back_up(&db);
    let (second, _) = back_up(&open(first.path()));
    let (third, _) = back_up(&open(second.path()));
    let copy = open(third.path());
    assert!(everything(&copy, &copy.begin_read().expect("begin")) == before);
}

/// A row keeps its versions from being confused with those of the copy: the
/// clock goes on above them.
#[test]
fn timestamps_continue_in_the_copy() {
    let db = in_memory();
    fill(&db, &mut Random::new(4, 4), 20);
    let (place, report) = back_up(&db);
    let copy = open(place.path());
    assert!(copy.begin().expect("begin").timestamp() > report.timestamp);
    put(&copy, &mut Random::new(5, 5), 3);
    copy.close().expect("close");
    is_sound(place.path());
}

/// Written by many transactions, each of which the copy holds a part of: what
/// was superseded is left out.
#[test]
fn a_part_of_a_transaction_is_enough() {
    let place = ScratchDir::new();
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("n", Type::U64).primary_key(["id"]);
    let table = db.create_table(def).expect("create");
    db.run(|txn| (0..100u64).try_for_each(|id| txn.insert(&table, &[id.into(), 0u64.into()]))).expect("fill");
    let change = |id: u64| db.run(|txn| txn.update(&table, &[id.into()], &[(1, 1u64.into())]));
    (0..99).for_each(|id| assert!(change(id).expect("update")));
    let first = place.path().join("first");
    db.backup_to(&first, &Default::default()).expect("back up");
    is_sound(&first);
    // Whole also if nothing says so but the contents: the last state records are lost.
    let salvaged = pantile::salvage(&first, &Default::default()).expect("salvage");
    let (copy, txn) = (salvaged.database(), salvaged.database().begin_read().expect("begin"));
    let rows = txn.scan(&copy.table("t").expect("table"), pantile::Range::all()).expect("scan").count();
    assert_eq!(rows, 100);
}
