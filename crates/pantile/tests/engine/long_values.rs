//! Values out of line end when their rows end, in whichever way that happens
//! (I-18): their space is given back, and `check` finds no piece without a row.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pantile::lab::medium_of;
use pantile::tools::{CheckOptions, check};
use pantile::{
    Database, Durability, Error, GcOptions, IndexDef, Isolation, Medium, MediumKind, Options, Pacing, Range,
    Result, Table, TableDef, TransactionOptions, Type, Value,
};
use pantile_media::unshared::Unshared;
use pantile_testkit::cut::{CutKind, CutMedium, Image, Keep};
use pantile_testkit::{Patience, ScratchDir, copy_of};

/// Bytes of a value, in several pieces.
const LONG: usize = 200_000;

fn options() -> Options {
    let gc = GcOptions {
        theta: 0.5,
        queue_share: 0.0,
        epoch: Duration::from_millis(1),
        pacing: Pacing::Fixed,
        ..GcOptions::default()
    };
    // The tests copy media, which nobody may change meanwhile.
    Options::new().gc(gc).block_slots(16).streams(1).worker(false)
}

fn definition(name: &str) -> TableDef {
    let def = TableDef::new(name).column("id", Type::U64).column("code", Type::U64);
    def.column("data", Type::Bytes(400_000)).primary_key(["id"]).index(IndexDef::unique("by_code", ["code"]))
}

fn row(id: u64, code: u64, data: &[u8]) -> [Value<'_>; 3] {
    [id.into(), code.into(), Value::Bytes(data)]
}

fn data(n: u64) -> Vec<u8> {
    vec![n as u8; LONG]
}

fn put(db: &Database, table: &Table, id: u64, n: u64) {
    db.run(|txn| txn.upsert(table, &row(id, id, &data(n)))).expect("a commit");
}

fn used(db: &Database) -> u64 {
    db.space_by_table().iter().map(|space| space.bytes).sum()
}

fn pulse(db: &Database) {
    let def = TableDef::new("pulse").column("id", Type::U64).primary_key(["id"]);
    let pulse = db.table("pulse").or_else(|_| db.create_table(def)).expect("a table");
    (0..64u64).for_each(|n| _ = db.run(|txn| txn.upsert(&pulse, &[(n % 3).into()])).expect("a commit"));
}

/// Commits that let the collector work until no more than `most` bytes are in
/// use.
fn await_used(db: &Database, what: &str, most: u64) {
    let patience = Patience::new();
    while used(db) > most {
        pulse(db);
        patience.check(|| format!("{what}: {} of {most} bytes in use\n{:#?}", used(db), db.space_by_table()));
    }
}

fn assert_sound(path: &Path, what: &str) {
    let report = check(path, &CheckOptions::new()).expect("a database");
    let findings: Vec<_> = report.findings.iter().map(|finding| format!("{finding:?}")).collect();
    let orphans = findings.iter().filter(|finding| finding.contains("belong to no row")).count();
    assert!(report.is_sound() && orphans == 0, "{what}: {findings:#?}");
}

/// How many values end in each way. Their pieces would take twice `ROOM`.
const ROUNDS: u64 = 60;
const ROOM: u64 = ROUNDS * LONG as u64 / 2;

type Way = fn(&Database, &Table, u64);

/// How the life of a value ends. Row 0 stays.
const WAYS: [(&str, Way); 9] = [
    ("update", |db, table, n| put(db, table, 1, n)),
    ("update to a short value", |db, table, n| {
        put(db, table, 1, n);
        let short = [(2, Value::Bytes(b"short"))];
        assert!(db.run(|txn| txn.update(table, &[1u64.into()], &short)).expect("a commit"));
    }),
    ("delete", |db, table, n| {
        put(db, table, 1, n);
        assert!(db.run(|txn| txn.delete(table, &[1u64.into()])).expect("a commit"));
    }),
    ("update twice in one transaction", |db, table, n| {
        let twice = db.run(|txn| {
            txn.upsert(table, &row(1, 1, &data(n)))?;
            txn.update(table, &[1u64.into()], &[(2, Value::Bytes(&data(n + 1)))])
        });
        assert!(twice.expect("a commit"));
    }),
    ("insert and delete in one transaction", |db, table, n| {
        let deleted = db.run(|txn| {
            txn.insert(table, &row(2, 2, &data(n)))?;
            txn.delete(table, &[2u64.into()])
        });
        assert!(deleted.expect("a commit"));
    }),
    ("rollback", |db, table, n| {
        let mut txn = db.begin().expect("begin");
        txn.upsert(table, &row(1, 1, &data(n))).expect("a write");
        txn.insert(table, &row(2, 2, &data(n))).expect("a write");
        txn.rollback();
    }),
    ("rollback to a savepoint", |db, table, n| {
        let undone: Result<()> = db.run(|txn| {
            let savepoint = txn.savepoint();
            txn.upsert(table, &row(1, 1, &data(n)))?;
            txn.insert(table, &row(2, 2, &data(n)))?;
            txn.rollback_to(savepoint)?;
            txn.upsert(table, &row(3, n + 3, b"short")).map(|_| ())
        });
        undone.expect("a commit");
    }),
    ("a statement that fails", |db, table, n| {
        let mut txn = db.begin().expect("begin");
        let refused = txn.insert(table, &row(2, 0, &data(n)));
        assert!(matches!(refused, Err(Error::DuplicateKey { .. })), "{refused:?}");
        txn.commit().expect("a commit");
    }),
    ("drop_table", |db, _, n| {
        let other = db.create_table(definition("other")).expect("create");
        put(db, &other, 1, n);
        db.drop_table("other").expect("drop");
    }),
];

#[test]
fn values_end_with_their_rows() {
    for (what, way) in WAYS {
        let dir = ScratchDir::new();
        let path = dir.path().join("db");
        let file = options().medium(MediumKind::File).durability(Durability::None);
        let db = file.clone().open(&path).expect("open");
        let table = db.create_table(definition("t")).expect("create");
        put(&db, &table, 0, 77);
        way(&db, &table, 0);
        pulse(&db);
        let most = used(&db) + ROOM;
        (1..=ROUNDS).for_each(|n| way(&db, &table, n));
        await_used(&db, what, most);
        let kept = |table: &Table, db: &Database| {
            let txn = db.begin_read().expect("begin");
            let row = txn.get(table, &[0u64.into()]).expect("get").expect("row 0");
            row.get::<Option<Vec<u8>>>(2).expect("read").as_deref() == Some(&data(77)[..])
        };
        assert!(kept(&table, &db), "{what}");
        drop(table);
        db.close().expect("close");
        assert_sound(&path, what);
        let db = file.open(&path).expect("open");
        await_used(&db, what, most);
        assert!(kept(&db.table("t").expect("table"), &db), "{what}");
    }
}

/// A killed process leaves the table dropped and its space taken.
#[test]
fn recovery_frees_the_values_of_dropped_tables() {
    let dram = || options().medium(MediumKind::Dram);
    let db = dram().open("unused").expect("open");
    let table = db.create_table(definition("t")).expect("create");
    pulse(&db);
    let most = used(&db) + ROOM;
    // It keeps the space from being given back before the kill.
    let reader = db.begin_read().expect("begin");
    (0..ROUNDS).for_each(|id| put(&db, &table, id, id));
    db.drop_table("t").expect("drop");
    assert!(used(&db) > most);
    let left = copy_of(&*medium_of(&db));
    drop(reader);
    await_used(&db, "without a kill", most);
    let db = dram().on_medium(left).open("unused").expect("open");
    await_used(&db, "after recovery", most);
    db.create_table(definition("t")).expect("the name is free");
}

/// A row that was read before its table was dropped stays whole for its
/// transaction, long values included.
#[test]
fn a_row_of_a_dropped_table_keeps_its_long_value() {
    let db = options().medium(MediumKind::Dram).open("unused").expect("open");
    let table = db.create_table(definition("t")).expect("create");
    put(&db, &table, 1, 5);
    let mut writer = db.begin().expect("begin");
    let reader = db.begin_read().expect("begin");
    let read = reader.get(&table, &[1u64.into()]).expect("get").expect("a row");
    db.drop_table("t").expect("drop");
    for _ in 0..200 {
        db.create_table(definition("t")).map(|t| put(&db, &t, 1, 6)).expect("create");
        db.drop_table("t").expect("drop");
    }
    assert_eq!(read.get::<Option<Vec<u8>>>(2).expect("read").as_deref(), Some(&data(5)[..]));
    assert!(matches!(writer.upsert(&table, &row(2, 2, &data(1))), Err(Error::TableDropped(_))));
}

/// Whatever a power cut leaves, no piece is without its row.
#[test]
fn no_cut_leaves_pieces_without_rows() {
    let medium = CutMedium::new(&Image::default(), CutKind::ALL[0], None);
    let open = |medium: &Arc<CutMedium>| {
        let medium = Arc::clone(medium) as Arc<dyn Medium>;
        options().on_medium(medium).recovery_threads(1).open("unused").expect("open")
    };
    let db = open(&medium);
    for n in 0..2 {
        let table = db.create_table(definition("t")).expect("create");
        for way in [WAYS[0].1, WAYS[2].1, WAYS[3].1] {
            way(&db, &table, n);
        }
        put(&db, &table, 1, n);
        db.drop_table("t").expect("drop");
    }
    let (fences, random) = (medium.persists(), medium.events() / 12);
    let at_fences = fences.iter().copied().step_by(fences.len() / 12);
    for cut in at_fences.chain((0..=medium.events()).step_by(random)) {
        let (keep, dir) = (Keep::ALL[2 + cut % 3], ScratchDir::new());
        let left = medium.after_cut(cut, keep, cut as u64);
        // What recovery has made of it.
        open(&left).close().expect("close");
        let mut bytes = vec![0; left.len() as usize];
        left.get(0, &mut bytes).expect("read");
        std::fs::write(dir.path().join("pantile.data"), &bytes).expect("write");
        assert_sound(dir.path(), &format!("cut at {cut}, {keep:?}"));
    }
}

/// A value comes in the same pieces whether it lies in the row or out of it, from several tables in
/// one transaction, committed and not.
#[test]
fn values_are_read_in_pieces() {
    let db = options().medium(MediumKind::Dram).open("unused").expect("a new database");
    let def = |name: &str| {
        let def = TableDef::new(name).column("id", Type::U64).nullable("text", Type::String(1 << 20));
        def.column("data", Type::Bytes(1 << 20)).primary_key(["id"])
    };
    let tables = ["a", "b", "c"].map(|name| db.create_table(def(name)).expect("a table"));
    let lengths = [0, 1, 59_999, 60_000, 60_001, 65_000, 120_000, 120_001, 700_000];
    let data = |len: usize, table: usize| -> Vec<u8> { (0..len).map(|n| (n / 7 + table) as u8).collect() };
    let check = |txn: &pantile::Transaction| {
        // All tables for each length, so that each is looked for again after the others.
        for (id, len) in (0u64..).zip(lengths) {
            for (n, table) in tables.iter().enumerate() {
                let row = txn.get(table, &[id.into()]).expect("read").expect("a row");
                let pieces = row.pieces("data").expect("bytes").expect("not NULL");
                assert_eq!(pieces.bytes_left(), len as u64);
                let pieces: Vec<&[u8]> = pieces.collect::<Result<_>>().expect("pieces");
                assert_eq!(pieces.concat(), data(len, n));
                assert!(pieces.iter().all(|piece| !piece.is_empty()));
                assert_eq!(row.get::<Vec<u8>>("data").expect("a copy"), data(len, n));
                let text = row.pieces("text").expect("a string");
                match id % 2 {
                    0 => assert!(text.is_none()),
                    _ => assert_eq!(
                        text.expect("not NULL").collect::<Result<Vec<_>>>().expect("text").concat(),
                        vec![b'x'; len]
                    ),
                }
                assert!(matches!(row.pieces("id"), Err(Error::WrongType { .. })));
                assert!(matches!(row.pieces("none"), Err(Error::UnknownColumn { .. })));
            }
        }
    };
    let mut txn = db.begin().expect("begin");
    for (n, table) in tables.iter().enumerate() {
        for (id, len) in (0u64..).zip(lengths) {
            let (text, data) = ("x".repeat(len), data(len, n));
            let text = if id % 2 == 0 { Value::Null } else { Value::Str(&text) };
            txn.insert(table, &[id.into(), text, Value::Bytes(&data)]).expect("insert");
        }
    }
    check(&txn);
    txn.commit().expect("commit");
    let txn = db.begin_read().expect("begin");
    // What is written afterwards is not seen, piece by piece either.
    for table in &tables {
        db.run(|txn| txn.update(table, &[8u64.into()], &[("data", Value::Bytes(&[9; 200_000]))]))
            .expect("update");
    }
    check(&txn);
}

/// At read committed, a row that the transaction has changed has the newest value, which may be newer than its statement.
#[test]
fn a_changed_row_has_a_value_that_is_newer_than_the_statement() {
    let db = crate::support::in_memory();
    let def = TableDef::new("new").column("id", Type::U64).column("n", Type::U64);
    let table =
        db.create_table(def.column("data", Type::Bytes(400_000)).primary_key(["id"])).expect("a table");
    let long = |byte: u8| vec![byte; 100_000];
    db.run(|txn| txn.insert(&table, &[1u64.into(), 1u64.into(), Value::Bytes(&long(1))])).expect("a row");
    let mut txn =
        db.begin_with(TransactionOptions::new().isolation(Isolation::ReadCommitted)).expect("a transaction");
    txn.begin_statement();
    db.run(|txn| txn.update(&table, &[1u64.into()], &[("data", Value::Bytes(&long(2)))])).expect("a value");
    assert!(txn.update(&table, &[1u64.into()], &[("n", 2u64.into())]).expect("the newest row"));
    let row = txn.get(&table, &[1u64.into()]).expect("a look-up").expect("the row");
    assert_eq!(row.get::<u64>("n").expect("a number"), 2);
    assert_eq!(row.get::<Vec<u8>>("data").expect("the value"), long(2));
    let row = txn.scan(&table, Range::all()).expect("a scan").next().expect("a row").expect("the row");
    assert_eq!(row.get::<Vec<u8>>("data").expect("the value"), long(2));
    txn.commit().expect("a commit");
}
