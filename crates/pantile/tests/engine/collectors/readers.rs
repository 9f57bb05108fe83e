//! Long readers of every kind keep seeing what they saw, and delay nothing
//! forever.

use std::collections::BTreeMap;

use pantile::{Database, Isolation, Transaction, TransactionOptions};

use super::beside::{collectors, options, settle};
use crate::collector::rows::{Rows, open, seen};

/// Rows that are rewritten all the time, and the number of all rows.
const HOT: u64 = 20;
const ALL: u64 = 100;

fn readers(db: &Database) -> Vec<Transaction> {
    let kinds = [
        TransactionOptions::new().isolation(Isolation::Serializable).read_only(true),
        TransactionOptions::new().safe_snapshot(),
        TransactionOptions::new().isolation(Isolation::Snapshot),
    ];
    kinds.map(|kind| db.begin_with(kind).expect("begin")).into()
}

fn check(readers: &[(Vec<Transaction>, BTreeMap<u64, u64>)], rows: &Rows) {
    for (reader, expected) in readers.iter().flat_map(|(of, expected)| of.iter().map(move |r| (r, expected)))
    {
        assert_eq!(seen(reader, &rows.table).expect("rows"), *expected, "{reader:?}");
    }
}

/// Beside readers of four ages, thousands of versions are written and freed.
#[test]
fn long_readers_see_what_they_saw() {
    for collector in collectors() {
        let db = open(options(collector));
        let mut rows = Rows::filled(&db, 0..ALL);
        let mut all = Vec::new();
        for age in 0..4u64 {
            // A safe snapshot is older than every running writer. No
            // transaction writes now.
            all.push((readers(&db), rows.expected.clone()));
            for round in 0..30 {
                rows.put(0..HOT);
                rows.put((HOT..ALL).filter(|key| key % 40 == (age * 30 + round) % 40));
            }
            rows.delete((HOT..ALL).filter(|key| key % 11 == age));
            rows.put((0..5).map(|n| 1000 * (age + 1) + n));
            check(&all, &rows);
        }
        let before = db.stats().collector;
        // The readers in the middle end first.
        for at in [1, 2, 0, 0] {
            drop(all.remove(at));
            for _ in 0..10 {
                rows.put(0..HOT);
            }
            check(&all, &rows);
        }
        let stats = settle(&db).collector;
        assert!(stats.versions_reclaimed > before.versions_reclaimed, "{before:#?} {stats:#?}");
        assert!(stats.versions_reclaimed > 2_000, "{stats:#?}");
        rows.check();
        rows.check_after_crash(options(collector));
    }
}
