//! When those that wait for a row go on.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pantile::{Collector, ConflictPolicy, MediumKind, Options, TableDef, Type, Value};
use pantile_base::{TableId, Timestamp};
use pantile_reclaim::{CollectorStats, Context, Description, OldVersion, Reclaimer};
use pantile_store::{Store, StoreError};
use pantile_testkit::await_that;

/// The next step of the collector goes on until the flag is down again.
static IS_LONG: AtomicBool = AtomicBool::new(false);

const WAITER: &str = "waits-for-row";

struct WithALongStep;

impl Reclaimer for WithALongStep {
    fn superseded(&self, _: &Context<'_>, _: &OldVersion, _: Timestamp) -> Result<(), StoreError> {
        Ok(())
    }

    fn step(&self, _: &Context<'_>) -> Result<(), StoreError> {
        await_that("the waiter goes on", || !IS_LONG.load(Ordering::SeqCst));
        Ok(())
    }

    fn make_room(&self, _: &Context<'_>) -> Result<(), StoreError> {
        Ok(())
    }

    fn resume(&self, _: &Store) {}

    fn forget(&self, _: &Store, _: TableId) {}

    fn stats(&self, _: &Store) -> CollectorStats {
        CollectorStats::default()
    }
}

const LONG_STEP: Collector = Collector::new(&Description {
    name: "long-step",
    about: "a step that takes as long as a test wants",
    build: |_, _| Box::new(WithALongStep),
});

/// A commit wakes those that wait for its rows once they are published, and not
/// after its share of the collector's work.
#[test]
fn waiters_do_not_wait_for_the_collector() {
    let options = Options::new().medium(MediumKind::Dram).collector(LONG_STEP).worker(false);
    let conflict = ConflictPolicy::Wait(Duration::from_secs(3600));
    let db = options.conflict(conflict).open("unused").expect("a database");
    let table = db
        .create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::U64).primary_key(["id"]))
        .expect("a table");
    let row = |n: u64| [Value::UInt(1), Value::UInt(n)];
    db.run(|txn| txn.insert(&table, &row(0))).expect("a free key");

    let mut first = db.begin().expect("a transaction");
    first.upsert(&table, &row(1)).expect("upserted");
    thread::scope(|scope| {
        let second = thread::Builder::new().name(WAITER.into()).spawn_scoped(scope, || {
            let mut second = db.begin().expect("a transaction");
            let got = second.upsert(&table, &row(2)).map(drop);
            IS_LONG.store(false, Ordering::SeqCst);
            got.and_then(|()| second.commit().map(drop))
        });
        let second = second.expect("a thread");
        // It sleeps, which is for the row.
        await_that("the second transaction waits", || sleeps(WAITER));
        IS_LONG.store(true, Ordering::SeqCst);
        first.commit().expect("committed");
        second.join().expect("no panic").expect("the row is free");
    });
}

/// Whether the thread of that name sleeps. Where the system does not tell, it may
/// not have come to that, and the test shows nothing.
pub(crate) fn sleeps(name: &str) -> bool {
    sleeping(name) > 0
}

/// How many threads of that name sleep. The system keeps fifteen bytes of it.
pub(crate) fn sleeping(name: &str) -> usize {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return usize::MAX };
    let sleeps = |thread: &fs::DirEntry| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.contains(&format!("({name}) S"))
    };
    threads.flatten().filter(sleeps).count()
}
