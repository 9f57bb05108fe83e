//! Statistics, while a collector works and definitions change.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use pantile::{Database, GcOptions, MediumKind, Options, TableDef, Type};
use pantile_testkit::Patience;

fn definition(name: &str) -> TableDef {
    TableDef::new(name).column("id", Type::U64).column("n", Type::U64).primary_key(["id"])
}

fn repeat(done: &Arc<AtomicBool>, mut step: impl FnMut() + Send + 'static) {
    let done = Arc::clone(done);
    thread::spawn(move || {
        while !done.load(Ordering::Relaxed) {
            step();
        }
    });
}

/// A regression: a working collector waited for the lock of the tables. The
/// thread that held the lock was asking for the lengths of the collector's
/// queues, and a new table came between the two (`crashtest --seed 2001` found
/// it).
#[test]
fn statistics_collector_and_definitions_do_not_wait_in_a_circle() {
    let gc =
        GcOptions { theta: 0.5, queue_share: 0.0, epoch: Duration::from_micros(100), ..GcOptions::default() };
    let options = Options::new().medium(MediumKind::Dram).streams(1).block_slots(2).gc(gc);
    let db: Database = options.open("unused").expect("open");
    let table = db.create_table(definition("rows")).expect("create");
    let done = Arc::new(AtomicBool::new(false));
    for client in 0..2u64 {
        let (db, table, mut n) = (db.clone(), table.clone(), 0u64);
        repeat(&done, move || {
            n += 1;
            let row = [(client * 10 + n % 5).into(), n.into()];
            db.run(|txn| txn.upsert(&table, &row)).expect("no conflict");
        });
    }
    let told = db.clone();
    repeat(&done, move || _ = told.stats());
    let (send, made) = channel();
    thread::spawn(move || {
        let patience = Patience::new();
        for n in 0.. {
            if n >= 500 && db.stats().collector.blocks_reclaimed > 0 {
                break;
            }
            patience.check(|| "the collector has nothing to do".into());
            let name = format!("table {n}");
            db.create_table(definition(&name)).and_then(|_| db.drop_table(&name)).expect("a table");
        }
        send.send(()).expect("the test waits for it");
    });
    // Longer than its thread has patience.
    made.recv_timeout(Duration::from_secs(1200)).expect("all threads wait for each other, or see above");
    done.store(true, Ordering::Relaxed);
}
