//! Whole blocks beside a long reader that walks through a hash index.

use super::beside::{options, settle};
use crate::collector::rows::{Rows, collect_until, let_epochs_pass, open, seen};
use pantile_testkit::Patience;

/// OneShotGC frees partitions without looking at any version.
#[test]
fn partitions_are_freed_whole() {
    let db = open(options(pantile_rivals::ONE_SHOT));
    let mut rows = Rows::filled(&db, 0..200);
    let mut last = 0;
    for _ in 0..5 {
        for _ in 0..4 {
            rows.put(0..200);
        }
        let more = last + 20;
        collect_until(&db, "partitions are freed", |s| s.collector.blocks_reclaimed > more);
        last = db.stats().collector.blocks_reclaimed;
    }
    let stats = settle(&db).collector;
    assert_eq!((stats.versions_traversed, stats.blocks_bypassed), (0, 0), "{stats:#?}");
    rows.check();
    rows.check_after_crash(options(pantile_rivals::ONE_SHOT));
}

#[test]
fn a_long_reader_finds_its_versions_through_the_index() {
    for collector in [pantile_rivals::ONE_SHOT, pantile_rivals::TB_COLLECT_HASH] {
        println!("{collector}");
        let db = open(options(collector));
        let mut rows = Rows::filled(&db, 0..200);
        rows.put(0..200);
        let reader = db.begin_read().expect("begin");
        let before = rows.expected.clone();
        // In the reader's own epoch nothing is bypassed.
        let_epochs_pass(&db);
        let patience = Patience::new();
        while db.stats().collector.blocks_bypassed < 100 {
            patience.check(|| format!("{collector} hardly bypasses anything: {:#?}", db.stats()));
            for _ in 0..4 {
                rows.put(0..200);
                let_epochs_pass(&db);
            }
            assert_eq!(seen(&reader, &rows.table).expect("rows"), before);
        }
        let stats = db.stats().collector;
        assert!(stats.kept_tiles > 0, "{stats:#?}");
        assert_eq!(stats.versions_traversed, 0);
        drop(reader);
        rows.put(0..200);
        collect_until(&db, "links are dropped", |s| s.collector.kept_tiles == 0);
        settle(&db);
        rows.check();
        rows.check_after_crash(options(collector));
    }
}
