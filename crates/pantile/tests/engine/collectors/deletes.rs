//! T3: what is deleted stays deleted, with any collector now and any collector
//! before.

use pantile::{CheckOptions, Collector, Durability, MediumKind, Options, check};
use pantile_testkit::{Random, ScratchDir, copy_all};

use super::beside::{collectors, options, settle};
use crate::collector::rows::{Rows, collect_until, open};

/// Rows are deleted, and versions of others take their space. After that their
/// tombstones have nothing left to hide.
#[test]
fn tombstones_go_in_the_end() {
    for collector in collectors() {
        let db = open(options(collector));
        let mut rows = Rows::filled(&db, 0..1_000);
        rows.delete((0..1_000).filter(|key| key % 10 != 0));
        rows.check_after_crash(options(collector));
        settle(&db);
        rows.check_after_crash(options(collector));
        // Each reader keeps a version of each row, even if the collector
        // prunes.
        let mut readers = Vec::new();
        for _ in 0..10 {
            readers.push(db.begin_read().expect("begin"));
            rows.put((0..1_000).filter(|key| key % 10 == 0));
        }
        drop(readers);
        // As long as enough of them are left to be worth a sweep.
        let are_few = |s: &pantile::Stats| s.collector.waiting_tombstones < 256;
        collect_until(&db, "tombstones are gone", |s| s.collector.tombstones_dropped > 256 || are_few(s));
        rows.check();
        rows.check_after_crash(options(collector));
        // Their ids are reused.
        rows.put(0..1_000);
        settle(&db);
        rows.check_after_crash(options(collector));
    }
}

fn on_file(collector: Collector) -> Options {
    options(collector).medium(MediumKind::File).durability(Durability::None)
}

/// The same database with one collector after another, closed, dropped or
/// killed in between.
#[test]
fn collectors_take_over_from_each_other() {
    for seed in 1..=2 {
        println!("seed {seed}");
        let mut random = Random::new(seed, 0);
        let dir = ScratchDir::new();
        let mut path = dir.path().join("0");
        let mut expected = None;
        let mut order: Vec<_> = pantile_rivals::all().iter().flat_map(|collector| [*collector; 2]).collect();
        for n in (1..order.len()).rev() {
            order.swap(n, random.below(n as u64 + 1) as usize);
        }
        for (life, collector) in order.into_iter().enumerate() {
            let db = on_file(collector).open(&path).expect("open");
            crate::collector::rows::prepare(&db);
            let mut rows = Rows::new(&db);
            if let Some(expected) = &expected {
                assert_eq!(rows.expected, *expected, "life {life}, {collector}");
            }
            for _ in 0..4 {
                let keys: Vec<u64> = (0..400).filter(|_| random.below(3) == 0).collect();
                rows.put(keys);
                rows.delete((0..400).filter(|key| key % 7 == random.below(7)));
                rows.put((0..50).map(|n| 1_000 + n));
                rows.delete((0..50).map(|n| 1_000 + n));
                let steps = db.stats().collector.steps;
                collect_until(&db, "a moment", |s| collector == Collector::NONE || s.collector.steps > steps);
            }
            expected = Some(rows.expected.clone());
            drop(rows);
            match random.below(3) {
                0 => db.close().expect("close"),
                1 => drop(db),
                _ => {
                    let next = dir.path().join((life + 1).to_string());
                    copy_all(&path, &next);
                    drop(db);
                    path = next;
                }
            }
            let report = check(&path, &CheckOptions::new()).expect("check");
            assert!(report.findings.is_empty(), "life {life}, {collector}: {:#?}", report.findings);
        }
    }
}
