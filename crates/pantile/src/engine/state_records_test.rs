//! A worker that is asked for records and does not come.

use std::time::Duration;

use pantile_cc::SimulatedTime;

use crate::engine::state_records::{LATE, LEAST_STATE_BYTES};
use crate::{Database, MediumKind, Options, Table, TableDef, Type, Value};

/// A database whose commits believe that there is a worker, and a table with rows of this many bytes.
fn without_its_worker(bytes: u16) -> (Database, Table, SimulatedTime) {
    let time = SimulatedTime::default();
    let options = Options::new().medium(MediumKind::Dram).simulated_time(time.clone());
    let db = options.open("unused").expect("open");
    let def = TableDef::new("rows").column("id", Type::U64).column("value", Type::FixedBytes(bytes));
    let table = db.create_table(def.primary_key(["id"])).expect("table");
    db.core.rounds.leave_to_worker();
    (db, table, time)
}

/// Commits rows, with so much time after each, until the durable watermark has moved. Returns
/// how many.
fn commits_to_a_record(db: &Database, table: &Table, bytes: usize, pause: impl Fn()) -> u64 {
    let before = db.core.store.durable_watermark();
    let value = vec![7; bytes];
    for id in 0..100_000 {
        db.run(|txn| txn.upsert(table, &[Value::UInt(id), Value::Bytes(&value)])).expect("commit");
        if db.core.store.durable_watermark() > before {
            return id + 1;
        }
        pause();
    }
    panic!("no record was ever written");
}

#[test]
fn a_commit_sees_to_a_record_that_has_been_due_for_two_seconds() {
    let (db, table, time) = without_its_worker(8);
    let step = Duration::from_millis(10);
    let commits = commits_to_a_record(&db, &table, 8, || time.advance(step));
    let took = step * commits as u32;
    // Half a second until it is due. Each of its two steps waits for two seconds, and for a commit that
    // looks at the clock.
    let [least, most] = [4, 8].map(Duration::from_secs);
    assert!(least < took && took < most, "{took:?}");
}

#[test]
fn a_commit_sees_to_a_record_when_much_has_been_appended() {
    const BYTES: usize = 10_000;
    let (db, table, _) = without_its_worker(BYTES as u16);
    let appended = commits_to_a_record(&db, &table, BYTES, || {}) * BYTES as u64;
    let late = LATE * LEAST_STATE_BYTES;
    assert!((late..3 * late).contains(&appended), "{appended} bytes");
}
