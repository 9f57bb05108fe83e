//! How long chains grow beside long readers. Collectors that prune chains keep
//! what some transaction sees; the others keep every version since the oldest
//! reader.

use pantile::{Collector, Database, Transaction};

use super::beside::{options, settle};
use crate::collector::rows::{Rows, collect_until, open, seen};

const READERS: u64 = 6;
const ROUNDS: u64 = 60;
const HOT: u64 = 10;

/// Readers that began at different times, with a number of updates of every hot
/// row after each; returns the longest chain.
fn grow(collector: Collector) -> (Database, Rows, Vec<Transaction>, u64) {
    let db = open(options(collector));
    let mut rows = Rows::filled(&db, 0..HOT);
    let (mut readers, mut longest) = (Vec::new(), 0);
    let mut before = Vec::new();
    for _ in 0..READERS {
        readers.push(db.begin_read().expect("begin"));
        before.push(rows.expected.clone());
        for _ in 0..ROUNDS {
            rows.put(0..HOT);
            longest = longest.max(db.chains(1_000_000).max);
        }
    }
    for (reader, before) in readers.iter().zip(&before) {
        assert_eq!(seen(reader, &rows.table).expect("rows"), *before);
    }
    (db, rows, readers, longest)
}

/// One version for each running transaction, the new version and its
/// predecessor (Steam 4.3). The updating transaction and the one that measures
/// run as well.
const BOUND: u64 = READERS + 2 + 2;

#[test]
fn steam_keeps_a_version_for_each_reader() {
    let (db, rows, readers, longest) = grow(pantile_rivals::STEAM);
    assert!(longest <= BOUND, "{longest} versions in a chain");
    assert!(longest > READERS, "each reader sees a version of its own, besides the newest one");
    drop(readers);
    settle(&db);
    rows.check();
}

/// HANA does the same in the background: some time later, chains are as short.
#[test]
fn hana_takes_versions_out_of_the_middle() {
    let (db, rows, readers, _) = grow(pantile_rivals::HANA);
    collect_until(&db, "chains are short", |_| db.chains(1_000_000).max <= BOUND);
    assert!(db.chains(1_000_000).max > READERS);
    drop(readers);
    settle(&db);
    rows.check();
}

/// A collector that knows only a watermark keeps everything younger.
#[test]
fn others_keep_all_since_the_oldest_reader() {
    for collector in [pantile_rivals::STEAM_WATERMARK, pantile_rivals::HYPER, pantile_rivals::N2DB] {
        let (db, rows, readers, longest) = grow(collector);
        assert!(longest > READERS * ROUNDS, "{collector}: {longest} versions in a chain");
        drop(readers);
        settle(&db);
        collect_until(&db, "chains are cut", |_| db.chains(1_000_000).max <= 2);
        rows.check();
    }
}
