//! T1 and T2: evidence of a commit outlives what it is evidence of, and bytes
//! of a block's earlier generations count for nothing.

use super::rows::{Rows, collect_until, open, options, put, reclaim, settle};

/// The contents of each transaction lie in two tables. Blocks of one table are
/// reclaimed, and the power is cut at that moment.
#[test]
fn t1_the_other_contents_of_a_transaction_count_after_a_block_of_it_is_gone() {
    let db = open(options());
    let mut left = Rows::named(&db, "left");
    let mut right = Rows::named(&db, "right");
    for round in 0..12u64 {
        db.run(|txn| {
            for key in 0..16 {
                put(txn, &left.table, key, 1_000_000 + round)?;
                put(txn, &right.table, 100 * round + key, 1_000_000 + round)?;
            }
            Ok::<_, pantile::Error>(())
        })
        .expect("a commit");
        left.expected.extend((0..16).map(|key| (key, 1_000_000 + round)));
        right.expected.extend((0..16).map(|key| (100 * round + key, 1_000_000 + round)));
        // Nothing of the transaction is left in one of the tables, and its
        // block there is full.
        left.put((0..16).chain(0..16));
        reclaim(&db, 1);
        let crashed = right.check_after_crash(options());
        let found = Rows::named(&crashed.db, "left");
        assert_eq!(found.expected, left.expected, "round {round}");
    }
}

/// Survivors keep the timestamps and counts of their transactions, most of
/// whose contents are gone. They still count as committed.
#[test]
fn t1_survivors_are_committed_whatever_their_transaction_was() {
    let db = open(options());
    let mut rows = Rows::new(&db);
    for round in 0..8 {
        rows.try_put(&(0..64).collect::<Vec<_>>()).expect("a commit");
        // Three of four versions die; the fourth moves as a survivor of a large
        // transaction.
        rows.put((0..64).filter(|key| key % 4 != round % 4));
        let before = db.stats().collector.survivors_relocated;
        collect_until(&db, "survivors moved", |s| s.collector.survivors_relocated > before);
        rows.check_after_crash(options()).check();
    }
    settle(&db);
    rows.check_after_crash(options()).check();
}

/// A small set of rows goes through the same blocks again and again. Two tables
/// take these blocks, of the same size class, from each other.
#[test]
fn t2_recycled_blocks_show_nothing_of_their_earlier_lives() {
    let db = open(options());
    let mut one = Rows::named(&db, "one");
    let mut other = Rows::named(&db, "other");
    for round in 0..30 {
        one.put(0..200);
        settle(&db);
        other.put((0..150).map(|key| key * 8 % 200));
        if round % 3 == 0 {
            // Partly filled blocks lie over bytes of earlier generations.
            let crashed = one.check_after_crash(options());
            assert_eq!(Rows::named(&crashed.db, "other").expected, other.expected);
        }
    }
    let stats = settle(&db);
    assert!(stats.collector.blocks_reclaimed > 200, "{stats:#?}");
    // Every block has been used several times.
    assert!(stats.collector.blocks_reclaimed > 4 * (one.blocks() + other.blocks()));
    one.check();
    other.check();
}
