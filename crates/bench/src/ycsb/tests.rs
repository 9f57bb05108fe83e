use std::sync::atomic::{AtomicBool, Ordering};

use pantile::{MediumKind, Options, Range};

use super::*;
use crate::load::Silent;
use crate::partition::Assign;
use crate::runner::tests::side_by_side;
use crate::runner::{Client as _, Outcome};
use client::{KINDS, Op};
use data::{FIELD, KEY};

static NEVER: AtomicBool = AtomicBool::new(false);

fn context() -> Context<'static> {
    Context { threads: 2, stop: &NEVER, observer: &Silent }
}

fn ycsb() -> Ycsb {
    Ycsb { tuples: 2500, seed: 7, ..Ycsb::default() }
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
        side_by_side(clients, KINDS.len(), 100);
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

/// One call for many rows does what a call for each does, with changes that read and without.
#[test]
fn operations_together_leave_the_same_tuples() {
    for rmw in [40, 0] {
        let mix = Mix { updates: 40, rmw, ..Mix::default() };
        let after = [false, true].map(|together| {
            let ycsb = Ycsb { mix, tuples: 300, ops: 50, together, ..ycsb() };
            let (db, data) = loaded(&ycsb);
            let mut client = ycsb.clients(&db, &data, 1, Isolation::Serializable).unwrap().remove(0);
            for _ in 0..50 {
                client.draw();
                client.attempt().unwrap();
            }
            let txn = db.begin_read().unwrap();
            let rows = txn.scan(&data.table, Range::all()).unwrap();
            rows.map(|row| row.unwrap().get::<&[u8]>(FIELD).unwrap().to_vec()).collect::<Vec<_>>()
        });
        assert_eq!(after[0], after[1]);
    }
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let wrong = [
        Ycsb { tuples: 0, ..ycsb() },
        Ycsb { ops: 0, ..ycsb() },
        Ycsb { tuple_bytes: 15, ..ycsb() },
        Ycsb { tuple_bytes: 65_001, ..ycsb() },
        Ycsb { long_ops: 0, ..ycsb() },
        Ycsb { long_share: 101, ..ycsb() },
        Ycsb { scan_share: 101, ..ycsb() },
        Ycsb { scan_tuples: Some(0), ..ycsb() },
        Ycsb { theta: 1.01, ..ycsb() },
        Ycsb { theta: -0.1, ..ycsb() },
        Ycsb { mix: Mix { updates: 60, rmw: 41, ..Mix::default() }, ..ycsb() },
    ];
    assert!(wrong.iter().all(|ycsb| ycsb.validate().is_err()));
    assert!(ycsb().validate().is_ok());
    assert!(Ycsb { theta: 1.0, ..ycsb() }.validate().is_ok());
}

#[test]
fn standard_mixes_are_those_of_ycsb() {
    let none = Mix::default();
    let mixes = ['a', 'B', 'C', 'D', 'E', 'F'].map(|letter| Ycsb::standard(letter).unwrap());
    assert_eq!(
        mixes,
        [
            (Mix { updates: 50, ..none }, false),
            (Mix { updates: 5, ..none }, false),
            (none, false),
            (Mix { inserts: 5, ..none }, true),
            (Mix { scans: 95, inserts: 5, ..none }, false),
            (Mix { rmw: 50, ..none }, false),
        ]
    );
}

#[test]
fn long_transactions_and_table_scans_come_in_their_shares() {
    let ycsb = Ycsb { ops: 10, long_share: 10, long_ops: 100, scan_share: 20, ..ycsb() };
    let (db, data) = loaded(&ycsb);
    let mut client = ycsb.clients(&db, &data, 1, Isolation::Serializable).unwrap().remove(0);
    let mut counts = [0i32; 3];
    for _ in 0..10_000 {
        let kind = client.draw();
        assert_eq!(client.ops.len(), [10, 100, 0][kind]);
        counts[kind] += 1;
    }
    for (count, expected) in counts.into_iter().zip([7_200, 800, 2_000]) {
        assert!((count - expected).abs() < 200, "{counts:?}");
    }
}

#[test]
fn a_table_scan_reads_the_table_and_disturbs_no_writer() {
    for (scan_tuples, read) in [(None, 2500), (Some(100), 100), (Some(10_000), 2500)] {
        let ycsb = Ycsb { scan_share: 100, scan_tuples, ..ycsb() };
        let (db, data) = loaded(&ycsb);
        let mut client = ycsb.clients(&db, &data, 1, Isolation::Serializable).unwrap().remove(0);
        let mut writer = db.begin().unwrap();
        let before = db.stats().versions_read;
        assert_eq!((client.draw(), client.attempt().unwrap()), (2, Outcome::Committed));
        assert_eq!(db.stats().versions_read - before, read);
        // A reader with a later timestamp would stand in the way of these.
        for key in 0..2500u64 {
            assert!(writer.update(&data.table, &[key.into()], &[(FIELD, [0u8; 92][..].into())]).unwrap());
        }
        writer.commit().unwrap();
    }
}

#[test]
fn the_most_skewed_updates_of_single_tuples_run_beside_table_scans() {
    let mix = Mix { updates: 100, ..Mix::default() };
    let ycsb = Ycsb { ops: 1, mix, theta: 1.0, scan_share: 10, ..ycsb() };
    let (db, data) = loaded(&ycsb);
    let clients = ycsb.clients(&db, &data, 2, Isolation::Serializable).unwrap();
    let ended = side_by_side(clients, KINDS.len(), 200);
    assert!(ended[0] > 0 && ended[2] > 0, "{ended:?}");
}

#[test]
fn one_client_runs_long_transactions_beside_the_others() {
    for beside in [Beside::Scans(2000), Beside::Updates(1000)] {
        let ycsb = Ycsb { beside: Some(beside), mix: Mix { updates: 100, ..Mix::default() }, ..ycsb() };
        let (db, data) = loaded(&ycsb);
        let fields = |db: &Database| -> Vec<Vec<u8>> {
            let txn = db.begin_read().unwrap();
            let rows = txn.scan(&data.table, Range::all()).unwrap();
            rows.map(|row| row.unwrap().get::<&[u8]>(FIELD).unwrap().to_vec()).collect()
        };
        let before = fields(&db);
        let mut clients = ycsb.clients(&db, &data, 2, Isolation::Serializable).unwrap();
        assert!(!clients[0].is_analytical() && clients[1].is_analytical());
        for _ in 0..200 {
            assert_eq!(KINDS[clients[0].draw()], "transaction");
            clients[0].attempt().unwrap();
        }
        let after_others = fields(&db);
        let changed = |from: &[Vec<u8>], to: &[Vec<u8>]| -> Vec<usize> {
            (0..from.len()).filter(|n| from[*n] != to[*n]).collect()
        };
        // Of the tuples that belong to long updates the others change none.
        let others = changed(&before, &after_others);
        let expected = if matches!(beside, Beside::Updates(_)) { 0..1500 } else { 0..2500 };
        assert!(others.iter().all(|key| expected.contains(key)) && others.len() > 1000, "{}", others.len());
        assert!(matches!(KINDS[clients[1].draw()], "scan_beside" | "update_beside"));
        clients[1].attempt().unwrap();
        let long = changed(&after_others, &fields(&db));
        match beside {
            Beside::Scans(_) => assert!(long.is_empty()),
            Beside::Updates(_) => assert_eq!(long, (1500..2500).collect::<Vec<_>>()),
        }
    }
    for wrong in [Beside::Scans(0), Beside::Updates(0), Beside::Updates(2500)] {
        assert!(Ycsb { beside: Some(wrong), ..ycsb() }.validate().is_err());
    }
}

#[test]
fn what_one_client_draws_another_runs() {
    let mix = Mix { updates: 50, inserts: 0, scans: 20, rmw: 0 };
    let ycsb = Ycsb { mix, ..ycsb() };
    let (db, data) = loaded(&ycsb);
    let mut clients = ycsb.clients(&db, &data, 2, Isolation::Serializable).unwrap();
    let (mut other, mut one) = (clients.remove(1), clients.remove(0));
    for _ in 0..20 {
        one.draw();
        let (mut keys, mut same) = (Vec::new(), Vec::new());
        one.partition_keys(&mut keys);
        other.attempt_next(one.drawn());
        other.partition_keys(&mut same);
        // Where a scan ends is not known.
        let scans = one.ops.iter().filter(|op| matches!(op, Op::Scan(..))).count();
        assert_eq!((keys.len() + scans, &keys), (one.ops.len(), &same));
        assert_eq!(other.attempt().unwrap(), Outcome::Committed);
    }
}
