//! The workers of databases end with their database. They are counted in a
//! process of their own: other tests of this program have such threads.

use std::path::Path;
use std::process::Command;

use pantile::{Collector, Durability, MediumKind, Options, Range, TableDef, Type};
use pantile_testkit::{ScratchDir, await_that, run_case};

const CHILD: &str = "PANTILE_TEST_COLLECTOR_THREADS";

/// Threads of this process that are workers.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads");
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim_end() == "pantile-worker").count()
}

/// Waits until there are `n` such threads: a thread gives itself its name, and
/// is listed for a moment after it has ended.
fn await_threads(expected: usize) {
    await_that(&format!("{expected} threads"), || threads() == expected);
}

/// Does nothing unless it is started for it.
#[test]
fn child_that_counts_threads() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    for collector in [pantile_rivals::ZEN, pantile_rivals::HANA, pantile_rivals::HEKATON] {
        let dir = ScratchDir::new();
        let path = dir.path().join("db");
        for n in 0..50u64 {
            let (rows, handle) = live(&path, collector, n);
            assert_eq!(rows, n + 1);
            await_threads(usize::from(handle.is_some()));
            drop(handle);
            await_threads(0);
        }
    }
    println!("all of them have ended");
}

#[test]
fn no_thread_outlives_its_database() {
    let mut child = Command::new(std::env::current_exe().expect("this binary"));
    child.args(["--exact", "collector_threads::child_that_counts_threads", "--nocapture"]).env(CHILD, "1");
    let output = run_case("collector_threads", move || child.output().expect("run"));
    let said = String::from_utf8_lossy(&output.stdout);
    let has_counted = output.status.success() && said.contains("all of them have ended");
    assert!(has_counted, "{said}{}", String::from_utf8_lossy(&output.stderr));
}

/// Opens the database, adds a row, and closes the database, drops it, or keeps
/// one handle; returns the number of rows.
fn live(path: &Path, collector: Collector, n: u64) -> (u64, Option<pantile::Database>) {
    let options = Options::new().medium(MediumKind::File).durability(Durability::None).collector(collector);
    let db = options.open(path).unwrap_or_else(|error| panic!("{collector}, life {n}: {error}"));
    await_threads(1);
    let def = TableDef::new("t").column("id", Type::U64).primary_key(["id"]);
    let table = db.table("t").or_else(|_| db.create_table(def)).expect("a table");
    db.run(|txn| txn.insert(&table, &[n.into()]).map(|_| ())).expect("a commit");
    let txn = db.begin_read().expect("begin");
    let rows = txn.scan(&table, Range::all()).expect("scan").count() as u64;
    drop(txn);
    match n % 3 {
        0 => {
            db.close().expect("close");
            (rows, None)
        }
        1 => (rows, None),
        _ => (rows, Some(db.clone())),
    }
}
