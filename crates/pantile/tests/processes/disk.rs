//! Space runs out, because of a limit or on a full disk.
//!
//! A limit on file sizes stands in for a full disk. The limit holds for a
//! process, so that test starts a process of its own.

use std::process::Command;

use pantile::{Database, Durability, Error, MediumKind, Options, Range, Table, TableDef, Type, Value};
use pantile_nvm::NvmConfig;
use pantile_testkit::{ScratchDir, fails};

const CHUNK: u64 = 2 << 20;
const LIMITED: &str = "PANTILE_TEST_LIMITED";

fn table(db: &Database) -> Table {
    let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(400_000));
    db.create_table(def.primary_key(["id"])).expect("create")
}

fn ids(db: &Database, table: &Table) -> Vec<u64> {
    let txn = db.begin_read().expect("begin");
    let rows = txn.scan(table, Range::all()).expect("scan");
    rows.map(|row| row.and_then(|row| row.get(0)).expect("row")).collect()
}

/// Fills a database until a commit is refused. Checks that nothing of that
/// commit is left, that reads and small commits still work, and that all rows
/// are there afterwards.
fn fill(open: impl Fn() -> Database) {
    let db = open();
    let table = table(&db);
    let small = |id: u64| db.run(|txn| txn.insert(&table, &[id.into(), Value::Bytes(b"small")]));
    small(0).expect("room");
    // Tombstones have a size class of their own, which needs its own block.
    small(1).expect("room");
    assert!(db.run(|txn| txn.delete(&table, &[1u64.into()])).expect("room"));
    let data = vec![7; 30_000];
    let mut expected = vec![0];
    let refused = (1u64..10_000).step_by(10).find_map(|first| {
        let outcome = db.run(|txn| {
            (first..first + 10).try_for_each(|id| txn.insert(&table, &[id.into(), Value::Bytes(&data)]))
        });
        match outcome {
            Ok(()) => {
                expected.extend(first..first + 10);
                None
            }
            Err(error) => Some(error),
        }
    });
    let error = refused.expect("full at last");
    let limit = if std::env::var_os(LIMITED).is_some() { "pantile.data is full" } else { "are allowed" };
    fails!(Err::<(), _>(error), Error::StorageFull { .. }, "no room", limit, "left no trace", "can be read");
    let before = ids(&db, &table);
    assert_eq!(before, expected, "the refused commit left a trace");
    // Rows, deletions and updates still fit where a block of their size class
    // is open.
    for id in 20_000..20_100 {
        small(id).expect("small commits still work");
        expected.push(id);
    }
    assert!(db.run(|txn| txn.delete(&table, &[20_000u64.into()])).expect("deletions still work"));
    expected.retain(|&id| id != 20_000);
    let mut txn = db.begin().expect("begin");
    // More than the limit, so that it does not fit whatever is freed meanwhile.
    let huge = vec![1; 300_000];
    for id in 50_000u64..50_060 {
        txn.insert(&table, &[id.into(), Value::Bytes(&huge)]).expect("private until the commit");
    }
    fails!(txn.commit(), Error::StorageFull { .. }, "left no trace");
    assert_eq!(ids(&db, &table), expected);
    if db.medium().survives_exit {
        db.close().expect("closing needs no room");
        drop(table);
        let db = open();
        assert_eq!(ids(&db, &db.table("t").expect("table")), expected);
    }
}

#[test]
fn a_limit_that_is_reached() {
    let limit = 6 * CHUNK;
    fill(|| Options::new().medium(MediumKind::Dram).max_bytes(limit).open("unused").expect("open"));
    for options in [
        Options::new(),
        Options::new().durability(Durability::None),
        Options::new().custom_medium(NvmConfig::E),
    ] {
        let place = ScratchDir::new();
        let options = options.max_bytes(limit);
        fill(|| options.clone().open(place.path()).expect("open"));
    }
}

/// Does nothing unless it is started under a limit on file sizes.
#[test]
fn full_disk() {
    if std::env::var_os(LIMITED).is_none() {
        return;
    }
    for durability in [Durability::Sync, Durability::Group, Durability::None] {
        let place = ScratchDir::new();
        let options = Options::new().durability(durability);
        fill(|| options.clone().open(place.path()).expect("open"));
    }
}

#[test]
fn a_disk_that_is_full() {
    // The limit counts blocks of 512 bytes. A write beyond it would end the process.
    let limited = format!("ulimit -f {} && exec \"$0\" --exact disk::full_disk", 8 * CHUNK / 512);
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(limited).arg(std::env::current_exe().expect("this binary")).env(LIMITED, "1");
    let output = shell.output().expect("run");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "{text}");
}
