//! Space is reused: longer runs of the same updates take no more of it.

use pantile::Collector;

use super::beside::{collectors, options, settle};
use crate::collector::rows::{Rows, open};

const ROWS: u64 = 200;
const ROUNDS: u64 = 10;
/// What a medium may grow by between two moments that differ in how far the
/// collector is: two of the pieces that it grows by at this size. The later
/// rounds write more than ten times that.
const PIECES: u64 = 2 << 16;

/// Blocks of the table and bytes of the medium after a number of rounds, and
/// after four times that number.
fn grow(collector: Collector) -> [(u64, u64); 2] {
    let db = open(options(collector));
    let mut rows = Rows::filled(&db, 0..ROWS);
    let sizes = [ROUNDS, 3 * ROUNDS].map(|rounds| {
        for _ in 0..rounds {
            for _ in 0..3 {
                rows.put(0..ROWS);
            }
            if collector != Collector::NONE {
                settle(&db);
            }
        }
        (rows.blocks(), db.stats().medium_bytes)
    });
    rows.check();
    rows.check_after_crash(options(collector));
    sizes
}

#[test]
fn updates_take_no_more_space_for_longer() {
    for collector in collectors() {
        let [(early, medium_early), (late, medium_late)] = grow(collector);
        // The number of blocks that one round writes.
        let round = 3 * ROWS / 16;
        assert!(late <= early + round, "{early} blocks have become {late}");
        assert!(medium_late <= medium_early + PIECES, "{medium_early} bytes have become {medium_late}");
    }
}

#[test]
fn without_a_collector_it_grows() {
    let [(early, _), (late, _)] = grow(Collector::NONE);
    assert!(late > 3 * early, "{early} blocks have become {late}");
}
