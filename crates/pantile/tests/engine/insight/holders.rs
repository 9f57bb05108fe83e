//! Every transaction that keeps garbage is listed with what its program called it, and where it began.

use pantile::{
    Database, Error, Isolation, MediumKind, Options, TableDef, Transaction, TransactionOptions, Type, Value,
};
use pantile_testkit::{ScratchDir, fails};

use super::{open, rewrite};

#[test]
fn a_holder_is_named_with_its_place_and_tables() {
    let (db, table) = open(Options::new());
    let def = TableDef::new("quiet").column("id", Type::U64).primary_key(["id"]);
    let quiet = db.create_table(def).expect("create");
    db.run(|txn| txn.insert(&quiet, &[1u64.into()])).expect("insert");
    rewrite(&db, &table, 100, 1);
    let named = TransactionOptions::new().read_only(true).isolation(Isolation::Snapshot).name("report");
    let line = line!() + 1;
    let report = db.begin_with(named).expect("begin");
    rewrite(&db, &table, 100, 3);

    let running = db.transactions();
    let [held] = &running[..] else { panic!("{running:?}") };
    let transaction = &held.transaction;
    assert_eq!(transaction.id, Some(report.id()));
    assert_eq!((transaction.name, transaction.isolation), (Some("report"), Some(Isolation::Snapshot)));
    let place = transaction.place.expect("a place");
    assert_eq!((place.file(), place.line()), (file!(), line));
    assert_eq!(transaction.thread_id, Some(this_thread()), "the thread that began it");

    let [of_table] = &held.tables[..] else { panic!("{:?}", held.tables) };
    assert_eq!(of_table.table, "t", "the table without garbage is not in the list");
    assert_eq!((of_table.bytes, of_table.blocks), (held.held_bytes, held.held_blocks));
    assert!(held.held_bytes >= 100 * 200, "{held:?}");
    assert_eq!(held.freed_bytes, held.held_bytes, "nobody else holds any of it");

    let text = transaction.to_string();
    for part in
        [&format!("transaction {}", report.id()), "\"report\", Snapshot, read-only", "insight/holders.rs"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// The system's number of this thread.
fn this_thread() -> u32 {
    let link = std::fs::read_link("/proc/thread-self").expect("proc");
    link.file_name().and_then(|id| id.to_str()).and_then(|id| id.parse().ok()).expect("a number")
}

#[test]
fn every_way_to_begin_gives_the_place_of_its_caller() {
    let (db, _) = open(Options::new());
    let first = line!() + 1;
    let open = [db.begin(), db.begin_read(), db.begin_safe_snapshot()].map(|txn| txn.expect("begin"));
    db.run(|_| {
        let mut lines: Vec<_> =
            db.transactions().iter().map(|t| t.transaction.place.expect("a place").line()).collect();
        lines.sort_unstable();
        assert_eq!(lines, [first, first, first, first + 1]);
        Ok::<_, Error>(())
    })
    .expect("run");
    drop(open);
}

#[test]
fn ids_are_never_given_twice() {
    let (db, _) = open(Options::new());
    let begin = |_| db.begin_safe_snapshot().expect("begin").id();
    let mut ids: Vec<_> = (0..200).map(begin).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 200);
}

#[test]
fn a_full_medium_names_the_holder() {
    let place = ScratchDir::new();
    let db = Options::new().max_bytes(8 << 20).block_slots(16).open(place.path()).expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(4000));
    let table = db.create_table(def.primary_key(["id"])).expect("create");
    // More than half of the medium.
    let write_all = |db: &Database| {
        (0..1200u64).try_for_each(|n| {
            let row = [Value::UInt(n), Value::Bytes(&[7; 4000])];
            db.run(|txn| txn.upsert(&table, &row)).map(|_| ())
        })
    };
    write_all(&db).expect("there is room for all rows");
    let named = TransactionOptions::new().read_only(true).name("nightly").number(7);
    let report = db.begin_with(named).expect("begin");
    let full = write_all(&db).expect_err("the report keeps every version that it sees");
    let Error::StorageFull { holder: Some(holder), .. } = &full else { panic!("{full:?}") };
    assert_eq!(holder.transaction.id, Some(report.id()));
    assert!(holder.bytes > 1 << 20, "{holder:?}");
    fails!(Err::<(), _>(full), Error::StorageFull { .. }, "no room", "or end what keeps", "\"nightly 7\"");
    drop(report);
    write_all(&db).expect("nothing is held any more");
}

/// What fails is work for the transaction that keeps most, or another one of the same connection: to
/// end it is no advice.
#[test]
fn a_full_medium_does_not_name_who_failed() {
    for prepares in [true, false] {
        let db = Options::new().medium(MediumKind::Dram).max_bytes(8 << 20).block_slots(16);
        let db = db.open("unused").expect("open");
        let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(4000));
        let table = db.create_table(def.primary_key(["id"])).expect("create");
        let put = |txn: &mut Transaction, n: u64| txn.upsert(&table, &[n.into(), Value::Bytes(&[7; 4000])]);
        let write_all = || (0..1200u64).try_for_each(|n| db.run(|txn| put(txn, n)).map(drop));
        let connection = TransactionOptions::new().isolation(Isolation::Snapshot).name("connection");
        let begin = |number| db.begin_with(connection.number(number)).expect("begin");
        // The table of records.
        let mut first = begin(1);
        put(&mut first, 9_999).expect("a row");
        db.prepare(first, b"first").expect("there is room").rollback().expect("rolled back");
        write_all().expect("there is room for all rows");
        let mut holder = begin(7);
        let full = write_all().expect_err("the holder keeps every version that it sees");
        assert!(full.to_string().contains("connection 7"), "{full}");
        (2_000..2_100).try_for_each(|n| put(&mut holder, n).map(drop)).expect("rows");
        let full = if prepares {
            db.prepare(holder, b"x").map(drop).expect_err("no room for its record")
        } else {
            let mut other = begin(7);
            (3_000..3_100).try_for_each(|n| put(&mut other, n).map(drop)).expect("rows");
            let full = other.commit().expect_err("no room");
            drop(holder);
            full
        };
        assert!(matches!(full, Error::StorageFull { holder: None, .. }), "{full:?}");
    }
}

#[test]
fn a_transaction_that_takes_its_snapshot_late_is_listed_as_what_it_is() {
    let (db, _) = open(Options::new());
    let options = TransactionOptions::new().isolation(Isolation::ReadCommitted).name("connection").number(7);
    let mut txn = db.begin_with(options).expect("begin");
    let listed = || db.transactions()[0].transaction.clone();
    assert_eq!(
        (listed().isolation, listed().label()),
        (Some(Isolation::ReadCommitted), Some("connection 7".into()))
    );
    txn.take_snapshot();
    assert_eq!((listed().isolation, listed().id), (Some(Isolation::Snapshot), Some(txn.id())));
}
