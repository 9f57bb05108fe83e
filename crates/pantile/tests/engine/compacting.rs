//! What compacting returns where it can do little or nothing.

use std::ops::ControlFlow;

use pantile::lab::SimulatedTime;
use pantile::stats::Compaction;
use pantile::{
    Collector, Database, Error, MediumKind, Options, Range, Table, TableDef, Transaction, Type, Value,
};
use pantile_testkit::cut::Image;
use pantile_testkit::{FaultMedium, exact_memory, fails};

/// A row that was updated a few times.
fn update(db: &Database) {
    let def = TableDef::new("t").column("id", Type::U64).column("n", Type::U64).primary_key(["id"]);
    let table = db.create_table(def).expect("create");
    (0..20u64).for_each(|n| {
        db.run(|txn| txn.upsert(&table, &[1u64.into(), n.into()])).expect("upsert");
    });
}

#[test]
fn a_medium_that_has_failed_is_not_compacted() {
    let medium = FaultMedium::new(&Image::default(), None);
    let options = Options::new().on_medium(medium.clone()).simulated_time(SimulatedTime::default());
    let db = options.open("unused").expect("open");
    update(&db);
    medium.fail("the disk does not answer");
    fails!(db.compact(), Error::MediumFailed { .. }, "does not answer");
}

#[test]
fn a_collector_that_moves_nothing_says_what_it_leaves() {
    let options = Options::new().medium(MediumKind::Dram).simulated_time(SimulatedTime::default());
    let db = options.collector(Collector::NONE).open("unused").expect("open");
    update(&db);
    let left = db.compact().expect("compact");
    assert!(left.is_held && !left.is_done(), "{left:?}");
}

/// What is left of rows that were updated or deleted takes little more than its
/// bytes, and compacting again changes nothing, however far the collector had come.
#[test]
fn one_call_goes_as_low_as_the_layout_allows() {
    let cases = [(20_000, 10, 0), (60_000, 10, 0), (60_000, 1, 0)];
    let half = (0..4).map(|rounds| (20_000, 2, rounds));
    for (rows, one_in, rounds) in cases.into_iter().chain(half) {
        let options = Options::new().on_medium(exact_memory()).streams(1);
        let db = options.simulated_time(SimulatedTime::default()).open("unused").expect("open");
        let def =
            TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(300)).primary_key(["id"]);
        let t = db.create_table(def).expect("create");
        let (old, new) = ([7; 200], [8; 200]);
        let row = |id: u64, data| [Value::UInt(id), Value::Bytes(data)];
        for first in (0..rows).step_by(1000) {
            db.run(|txn| (first..first + 1000).try_for_each(|id| txn.insert(&t, &row(id, &old))))
                .expect("insert");
        }
        let change = |txn: &mut Transaction, id: u64| match id % one_in {
            0 => txn.upsert(&t, &row(id, &new)).map(drop),
            _ => txn.delete(&t, &[id.into()]).map(drop),
        };
        db.run(|txn| (0..rows).try_for_each(|id| change(txn, id))).expect("change");
        (0..rounds).for_each(|_| _ = db.upkeep());
        let taken = || {
            assert!(db.compact().expect("compact").is_done());
            db.stats().medium_bytes
        };
        let (first, live) = (taken(), db.stats().live_bytes);
        assert!(first <= live / 2 * 3 + (1 << 19), "{first} bytes for {live}, one row in {one_in} of {rows}");
        assert_eq!(taken(), first, "compacting again, after {rounds} rounds, one row in {one_in} of {rows}");
    }
}

/// More rounds than compacting this little takes. Of those without progress there are a
/// hundred before it gives up.
const ROUNDS: u32 = 300;

/// Makes the rows over and over, so that each round finds blocks that have just become obsolete,
/// chunks that have just become empty, and a table that has just been dropped. Returns what
/// compacting meanwhile has returned, and after how many rounds.
fn compact_beside_a_writer(db: &Database, table: &Table) -> (Compaction, u32) {
    let (mut rounds, mut made) = (0, 0u64);
    let left = db.compact_with(|_| {
        rounds += 1;
        for _ in 0..20 {
            made += 1;
            let put = |txn: &mut Transaction| {
                let row = |n: u64| [Value::UInt((made * 97 + n) % 2000), Value::Bytes(&[3; 300])];
                (0..50).try_for_each(|n| txn.upsert(table, &row(n)).map(drop))
            };
            db.run(put).expect("upsert");
        }
        let other = TableDef::new("u").column("id", Type::U32).primary_key(["id"]);
        let other = db.create_table(other).expect("create");
        db.run(|txn| txn.insert(&other, &[1u32.into()])).expect("insert");
        db.drop_table("u").expect("drop");
        if rounds < ROUNDS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    (left.expect("compact"), rounds)
}

fn written_over() -> (Database, Table) {
    let options = Options::new().on_medium(exact_memory()).streams(1);
    let db = options.simulated_time(SimulatedTime::default()).open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(300)).primary_key(["id"]);
    let table = db.create_table(def).expect("create");
    for data in [[1; 300], [2; 300]] {
        let row = |id: u64| [Value::UInt(id), Value::Bytes(&data)];
        db.run(|txn| (0..60_000).try_for_each(|id| txn.upsert(&table, &row(id)).map(drop))).expect("upsert");
    }
    (db, table)
}

#[test]
fn compacting_ends_beside_a_writer() {
    let (db, table) = written_over();
    let before = db.stats();
    let (left, rounds) = compact_beside_a_writer(&db, &table);
    assert!(left.is_done() && rounds < ROUNDS, "{left:?} after {rounds} rounds");
    let (after, live) = (db.stats().medium_bytes, db.stats().live_bytes);
    assert!(after < before.medium_bytes / 4 * 3, "{after} bytes for {live}, {} before", before.medium_bytes);
    let (left, rounds) = compact_beside_a_writer(&db, &table);
    assert!(left.is_done() && rounds < ROUNDS, "{left:?} after {rounds} rounds");
}

#[test]
fn compacting_gives_up_beside_a_writer_and_a_reader() {
    let (db, table) = written_over();
    let reader = db.begin_read().expect("begin");
    reader.get(&table, &[1u64.into()]).expect("get");
    let (left, rounds) = compact_beside_a_writer(&db, &table);
    assert!(left.is_held && rounds < ROUNDS, "{left:?} after {rounds} rounds");
    drop(reader);
    let (left, rounds) = compact_beside_a_writer(&db, &table);
    assert!(left.is_done() && rounds < ROUNDS, "{left:?} after {rounds} rounds");
}

/// A life without a collector tells the store of no version that it supersedes. If an image said that those
/// are needed, the next life would take their tombstones for those that hide nothing.
#[test]
fn deleted_rows_stay_deleted_after_a_life_without_a_collector() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = || Options::new().worker(false);
    let db = options().collector(Collector::NONE).open(dir.path()).expect("open");
    let table = db
        .create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::U64).primary_key(["id"]))
        .expect("a table");
    db.run(|txn| (0..100u64).try_for_each(|id| txn.insert(&table, &[id.into(), 1u64.into()]))).expect("rows");
    db.run(|txn| (0..50u64).try_for_each(|id| txn.delete(&table, &[id.into()]).map(drop))).expect("fewer");
    drop(table);
    db.close().expect("close");
    let db = options().open(dir.path()).expect("open");
    db.compact().expect("nothing is in the way");
    db.close().expect("close");
    let db = options().index_image(false).open(dir.path()).expect("open");
    let (table, txn) = (db.table("t").expect("the table"), db.begin_read().expect("begin"));
    assert_eq!(txn.scan(&table, Range::all()).expect("a scan").count(), 50);
}
