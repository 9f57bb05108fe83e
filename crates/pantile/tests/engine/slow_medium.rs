//! A medium whose fences take long, and then fail: only those who wait for
//! one are held up, and nobody for ever.

use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pantile::{Conflict, ConflictPolicy, Database, Error, Medium, Options, Result, Table};
use pantile::{TableDef, TransactionOptions, Type};
use pantile_media::{DramMedium, Facts, MapOptions, MediumError, MediumStatus, SyncPoint};
use pantile_testkit::fails;

#[derive(Debug, Default)]
struct Gate {
    closed: bool,
    /// Fences that wait at the gate.
    waiting: usize,
    failed: bool,
}

/// Memory whose fences wait as long as a gate is closed.
#[derive(Debug)]
struct Gated {
    memory: Arc<DramMedium>,
    gate: Mutex<Gate>,
    changed: Condvar,
}

impl Gated {
    fn new() -> Arc<Self> {
        let memory = DramMedium::new(MapOptions::default()).expect("memory");
        Arc::new(Self { memory, gate: Mutex::default(), changed: Condvar::new() })
    }

    fn set(&self, change: impl FnOnce(&mut Gate)) {
        change(&mut self.gate.lock().expect("gate"));
        self.changed.notify_all();
    }

    fn check(&self) -> Result<(), MediumError> {
        match self.status().failure {
            Some(cause) => Err(MediumError::Failed { cause }),
            None => Ok(()),
        }
    }

    /// Waits until so many fences wait at the gate.
    fn await_waiting(&self, count: usize) {
        until("fences at the gate", || self.gate.lock().expect("gate").waiting == count);
    }
}

impl Medium for Gated {
    fn facts(&self) -> &Facts {
        self.memory.facts()
    }
    fn len(&self) -> u64 {
        self.memory.len()
    }
    fn grow(&self, len: u64) -> Result<(), MediumError> {
        self.check().and_then(|()| self.memory.grow(len))
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.check().and_then(|()| self.memory.write(offset, bytes))
    }
    fn flush(&self, offset: u64, len: u64) {
        self.memory.flush(offset, len);
    }
    fn fence(&self) -> Result<(), MediumError> {
        let mut gate = self.gate.lock().expect("gate");
        gate.waiting += 1;
        gate = self.changed.wait_while(gate, |gate| gate.closed).expect("gate");
        gate.waiting -= 1;
        drop(gate);
        self.check()
    }
    fn sync_all(&self) -> Result<(), MediumError> {
        self.check()
    }
    fn sync_point(&self) -> SyncPoint {
        SyncPoint::new(u64::from(self.check().is_err()))
    }
    fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.check().and_then(|()| self.memory.discard(offset, len))
    }
    fn restore(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.check().and_then(|()| self.memory.restore(offset, len))
    }
    fn status(&self) -> MediumStatus {
        let failure = self.gate.lock().expect("gate").failed.then(|| "the device is gone".into());
        MediumStatus { failure, ..self.memory.status() }
    }
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

fn write(db: &Database, table: &Table, id: u32, value: u32) -> JoinHandle<Result<()>> {
    let (db, table) = (db.clone(), table.clone());
    thread::spawn(move || db.run(|txn| txn.upsert(&table, &[id.into(), value.into()]).map(|_| ())))
}

fn value(txn: &pantile::Transaction, table: &Table, id: u32) -> Result<u32> {
    txn.get(table, &[id.into()])?.expect("a row").get(1)
}

fn joined(threads: Vec<JoinHandle<Result<()>>>) -> Vec<Result<()>> {
    until("the writers to end", || threads.iter().all(JoinHandle::is_finished));
    threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
}

#[test]
fn a_slow_and_then_failing_medium_holds_up_only_those_who_wait_for_it() {
    let medium = Gated::new();
    let open = || Options::new().streams(8).on_medium(Arc::clone(&medium) as Arc<dyn Medium>).open("unused");
    let db = open().expect("open");
    let def = TableDef::new("t").column("id", Type::U32).column("value", Type::U32);
    let table = db.create_table(def.primary_key(["id"])).expect("create");
    joined((0..8).map(|id| write(&db, &table, id, 0)).collect()).into_iter().for_each(|r| r.expect("insert"));
    for (round, fails) in [(1, false), (2, true)] {
        let before = round - 1;
        medium.set(|gate| gate.closed = true);
        let writers: Vec<_> = (0..4).map(|id| write(&db, &table, id, round)).collect();
        medium.await_waiting(4);
        // Whoever reads something else, or an older state, does not notice.
        let fresh = db.begin_read().expect("begin");
        assert_eq!(value(&fresh, &table, 6).expect("read"), before * 10);
        let safe = db.begin_safe_snapshot().expect("begin");
        assert_eq!(value(&safe, &table, 0).expect("read"), before);
        // Whoever wants what is on its way is told so when it does not want to wait.
        let at_once = TransactionOptions::new().read_only(true).conflict(ConflictPolicy::Abort);
        let reader = db.begin_with(at_once).expect("begin");
        fails!(value(&reader, &table, 0), Error::Conflict { conflict: Conflict::Locked, .. }, "run it again");
        drop((fresh, safe, reader));
        assert!(writers.iter().all(|writer| !writer.is_finished()));
        medium.set(|gate| *gate = Gate { closed: false, failed: fails, waiting: gate.waiting });
        for outcome in joined(writers) {
            match fails {
                false => outcome.expect("commit"),
                true => fails!(outcome, Error::MediumFailed { .. }, "the device is gone", "reads go on"),
            }
        }
        let outcome = joined(vec![write(&db, &table, 6, round * 10)]).remove(0);
        assert_eq!(outcome.is_err(), fails, "{outcome:?}");
    }
    let txn = db.begin_read().expect("reads go on");
    for id in 0..4 {
        assert_eq!(value(&txn, &table, id).expect("read"), 1, "what was acknowledged, and nothing else");
    }
    assert_eq!(value(&txn, &table, 6).expect("read"), 10);
    drop(txn);
    fails!(db.close(), Error::MediumFailed { .. }, "the device is gone");
}
