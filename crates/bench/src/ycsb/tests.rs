use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pantile::{MediumKind, Options};

use super::*;
use crate::load::Silent;
use crate::runner::{self, Client as _, Pace};
use client::Op;

static NEVER: AtomicBool = AtomicBool::new(false);

fn context() -> Context<'static> {
    Context { threads: 2, stop: &NEVER, observer: &Silent }
}

fn ycsb() -> Ycsb {
    let mix = Mix { updates: 50, ..Mix::default() };
    Ycsb { tuples: 2500, tuple_bytes: 100, ops: 20, mix, theta: 0.0, latest: false, seed: 7 }
}

fn loaded(ycsb: &Ycsb) -> (Database, Data) {
    let db = Options::new().medium(MediumKind::Dram).open("unused").unwrap();
    let data = ycsb.load(&db, &context()).unwrap();
    (db, data)
}

#[test]
fn every_tuple_is_loaded_in_its_size() {
    let (db, data) = loaded(&ycsb());
    let txn = db.begin_read().unwrap();
    let mut keys = 0;
    for row in txn.scan(&data.table, Range::all()).unwrap() {
        let row = row.unwrap();
        assert_eq!(row.get::<u64>(KEY).unwrap(), keys);
        assert_eq!(row.get::<&[u8]>(FIELD).unwrap().len(), 92);
        keys += 1;
    }
    assert_eq!(keys, 2500);
    assert_eq!(data.next.load(Ordering::Relaxed), 2500);
}

#[test]
fn a_database_is_found_again_only_when_it_is_of_this_size() {
    let (db, _) = loaded(&ycsb());
    assert!(matches!(ycsb().find(&db).unwrap(), Found::Complete(_)));
    let other = Ycsb { tuple_bytes: 1000, ..ycsb() };
    assert!(
        matches!(other.find(&db).unwrap(), Found::Other(what) if what.contains("--tuples 2500 --tuple-bytes 100"))
    );
}

#[test]
fn operations_come_in_their_shares() {
    let mix = Mix { updates: 30, inserts: 10, scans: 5, rmw: 15 };
    let ycsb = Ycsb { mix, ..ycsb() };
    let (db, data) = loaded(&ycsb);
    let mut client = ycsb.clients(&db, &data, 1, Isolation::Serializable).unwrap().remove(0);
    let mut counts = [0; 5];
    for _ in 0..1000 {
        client.draw();
        for op in &client.ops {
            counts[match op {
                Op::Read(_) => 0,
                Op::Update(..) => 1,
                Op::Insert(..) => 2,
                Op::Scan(..) => 3,
                Op::Rmw(..) => 4,
            }] += 1;
        }
    }
    for (count, percent) in counts.into_iter().zip([40, 30, 10, 5, 15]) {
        assert!((count - percent * 200i32).abs() < 400, "{counts:?}");
    }
}

#[test]
fn standard_workloads_run_on_many_clients() {
    for letter in 'A'..='F' {
        let (mix, latest) = Ycsb::standard(letter).unwrap();
        let ycsb = Ycsb { mix, latest, theta: STANDARD_THETA, ..ycsb() };
        let (db, data) = loaded(&ycsb);
        let clients = ycsb.clients(&db, &data, 4, Isolation::Serializable).unwrap();
        let pace = Pace { warmup: Duration::ZERO, measure: Duration::from_millis(500), rate: 0.0 };
        let measured = runner::run(clients, 1, pace, || false, |_| ()).unwrap();
        assert!(measured.transactions() > 0, "{letter}");
    }
    assert!(Ycsb::standard('G').is_none());
}

#[test]
fn an_update_and_a_read_modify_write_change_the_tuple() {
    let mix = Mix { updates: 50, rmw: 50, ..Mix::default() };
    let ycsb = Ycsb { mix, tuples: 20, ..ycsb() };
    let (db, data) = loaded(&ycsb);
    let dump = || {
        let txn = db.begin_read().unwrap();
        let rows = txn.scan(&data.table, Range::all()).unwrap();
        rows.map(|row| row.unwrap().get::<&[u8]>(FIELD).unwrap().to_vec()).collect::<Vec<_>>()
    };
    let before = dump();
    let mut client = ycsb.clients(&db, &data, 1, Isolation::Serializable).unwrap().remove(0);
    for _ in 0..50 {
        client.draw();
        client.attempt().unwrap();
    }
    assert!(before.iter().zip(dump()).all(|(before, after)| *before != after));
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let wrong = [
        Ycsb { tuples: 0, ..ycsb() },
        Ycsb { ops: 0, ..ycsb() },
        Ycsb { tuple_bytes: 15, ..ycsb() },
        Ycsb { tuple_bytes: 65_001, ..ycsb() },
        Ycsb { theta: 1.0, ..ycsb() },
        Ycsb { theta: -0.1, ..ycsb() },
        Ycsb { mix: Mix { updates: 60, rmw: 41, ..Mix::default() }, ..ycsb() },
    ];
    assert!(wrong.iter().all(|ycsb| ycsb.validate().is_err()));
    assert!(ycsb().validate().is_ok());
}
