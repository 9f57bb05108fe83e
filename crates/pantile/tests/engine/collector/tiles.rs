//! T7: tiles are dropped, and reads are still remembered. The DRAM for tiles
//! follows what is being written.

use std::thread::sleep;

use pantile::{Conflict, Error};

use super::rows::{Rows, collect_until, gc, let_epochs_pass, open, options, put};

/// An older writer meets a finished, younger read of a row whose tile is gone.
#[test]
fn t7_reads_are_remembered_when_tiles_are_dropped() {
    let db = open(options().writers_move(false));
    let mut rows = Rows::filled(&db, 0..160);
    rows.put(0..160);
    for key in [3, 50, 159] {
        rows.put((0..160).filter(|other| *other != key));
        let dropped = db.stats().collector.tiles_dropped;
        // The writer begins in a later epoch than the blocks' last versions.
        sleep(gc().epoch * 3);
        let mut writer = db.begin().expect("begin");
        let reader = db.begin_read().expect("begin");
        assert!(reader.timestamp() > writer.timestamp());
        assert!(reader.get(&rows.table, &[key.into()]).expect("get").is_some());
        reader.commit().expect("commit");
        // Other tiles may be dropped while the writer runs, since it began
        // after them.
        collect_until(&db, "tiles are dropped", |s| s.collector.tiles_dropped > dropped);
        let error = put(&mut writer, &rows.table, key, 9999).expect_err("a later transaction has read it");
        let is_read = matches!(error, Error::Conflict { conflict: Conflict::ReadByLater, .. });
        assert!(is_read, "{error}");
        drop(writer);
    }
    rows.check();
}

/// DRAM for tiles while a small part of a table, all of it, or none of it is
/// updated.
#[test]
fn t7_tiles_follow_what_is_written() {
    const ROWS: u64 = 6400;
    /// For one version of every row: what a tile for each block would take.
    const WHOLE: u64 = ROWS * 16;
    let db = open(options().block_slots(64));
    let mut rows = Rows::filled(&db, 0..ROWS);
    let at_rest = |db: &pantile::Database| db.stats().tile_bytes;
    assert_eq!(at_rest(&db), 0, "rows that were only inserted have no predecessors");
    let mut most = 0;
    for _ in 0..60 {
        rows.put(0..100);
        let_epochs_pass(&db);
        most = most.max(at_rest(&db));
    }
    assert!(most < WHOLE / 2, "{most} bytes of tiles for a hundred rows, {WHOLE} for all");
    // Updates the whole table twice. More than half of the tiles exist at a
    // time only if the collector does not work.
    let mut total = 0;
    let mut samples = 0;
    for _ in 0..2 {
        for part in 0..64 {
            rows.put((0..ROWS / 64).map(|n| part * (ROWS / 64) + n));
            let_epochs_pass(&db);
            total += at_rest(&db);
            samples += 1;
        }
    }
    let mean = total / samples;
    assert!(mean < WHOLE / 2, "{mean} bytes of tiles on average, {WHOLE} for all");
    let mut elsewhere = Rows::named(&db, "elsewhere");
    elsewhere.put(0..64);
    // An open block keeps its tile.
    collect_until(&db, "tiles are gone", |s| s.tile_bytes <= 6 * 64 * 16);
    rows.check();
}
