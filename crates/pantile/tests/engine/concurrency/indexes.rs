//! At every moment, secondary indexes show the same rows as a scan of the
//! table.

use std::sync::atomic::{AtomicBool, Ordering};

use pantile::{Durability, IndexDef, Isolation, Result, Transaction};
use pantile_testkit::{Bed, Patience, Random, SaysDone, SeedNote, seeds};

use super::table::Things;
use crate::support::{Beside, LEVELS, check_worth, is_conflict, read_for_long};

const IDS: u64 = 60;

fn agree(things: &Things, txn: &Transaction) -> Result<()> {
    let all = things.all(txn)?;
    assert_eq!(things.indexed(txn, &things.index("by_name"))?, all, "{txn:?}");
    assert_eq!(things.indexed(txn, &things.index("by_size"))?, all, "{txn:?}");
    Ok(())
}

fn change(things: &Things, txn: &mut Transaction, rng: &mut Random) -> Result<()> {
    let id = rng.below(IDS);
    match rng.below(4) {
        0 => txn.upsert(&things.table, &[id.into(), rng.below(5).into(), 0i64.into()]).map(|_| ()),
        1 => things.delete(txn, id).map(|_| ()),
        2 => things.rename(txn, id, rng.below(5)).map(|_| ()),
        _ => things.resize(txn, id, rng.below(3) as i64).map(|_| ()),
    }
}

fn run(bed: Bed, beside: Beside, levels: &[Isolation], seed: u64, transactions: u64) {
    let _note = SeedNote(seed);
    let mut home = beside.home(bed, seed);
    let db = home.open();
    let indexes = [IndexDef::new("by_name", ["name"]), IndexDef::new("by_size", ["size", "name"])];
    let things = Things::new(&db, &indexes);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = SaysDone(&done);
        let writers: Vec<_> = (0..3)
            .map(|n| {
                let things = &things;
                let mut rng = Random::new(seed << 8 | n, 0);
                scope.spawn(move || {
                    for _ in 0..transactions {
                        let mut txn = things.begin(*rng.pick(levels));
                        let changed =
                            (0..1 + rng.below(4)).try_for_each(|_| change(things, &mut txn, &mut rng));
                        let ended = changed
                            .and_then(|()| if rng.percent(80) { txn.commit().map(|_| ()) } else { Ok(()) });
                        ended.unwrap_or_else(|error| assert!(is_conflict(&error), "{error}"));
                    }
                })
            })
            .collect();
        let (things, done) = (&things, &done);
        if beside == Beside::Eager {
            scope.spawn(move || read_for_long(&things.db, done, seed));
        }
        scope.spawn(move || {
            // One snapshot stays open for a long time.
            let old = things.db.begin_safe_snapshot().expect("a snapshot");
            while !done.load(Ordering::Relaxed) {
                agree(things, &old).expect("no conflict");
                let safe = things.db.begin_safe_snapshot().expect("a snapshot");
                agree(things, &safe).expect("no conflict");
                let fresh = things.db.begin_read().expect("a transaction");
                agree(things, &fresh).unwrap_or_else(|error| assert!(is_conflict(&error), "{error}"));
            }
        });
        writers.into_iter().for_each(|w| w.join().expect("the writer ends"));
        drop(over);
    });
    beside.note(&db);
    let txn = db.begin().expect("a transaction");
    agree(&things, &txn).expect("no conflict");
    let before = things.all(&txn).expect("no conflict");
    drop(txn);

    // Commits and the worker remove entries that no transaction needs; those of rows with
    // many versions after a second.
    let patience = Patience::new();
    while db.stats().stale_entries > 0 {
        patience.check(|| format!("entries are cleaned: {:#?}", db.stats()));
        db.run(|txn| txn.upsert(&things.table, &[1000u64.into(), 0u64.into(), 0i64.into()]))
            .expect("a commit");
    }
    db.run(|txn| things.delete(txn, 1000)).expect("a commit");
    drop(things);
    home.close(db);
    let db = home.open();
    let things = Things { table: db.table("things").expect("the table"), db };
    let txn = things.db.begin().expect("a transaction");
    agree(&things, &txn).expect("no conflict");
    assert_eq!(things.all(&txn).expect("no conflict"), before, "after reopening");
}

#[test]
fn indexes_agree_with_scans() {
    for seed in seeds(1, 2) {
        run(Bed::Dram, Beside::Any, &[Isolation::Serializable], seed, 2_000);
        run(Bed::Dram, Beside::Any, &LEVELS, seed, 2_000);
        run(Bed::File(Durability::None), Beside::Any, &LEVELS, seed, 500);
        run(Bed::Nvm, Beside::Any, &LEVELS, seed, 300);
    }
}

#[test]
fn indexes_agree_with_scans_beside_an_eager_collector() {
    for seed in seeds(11, 3) {
        run(Bed::Dram, Beside::Eager, &[Isolation::Serializable], seed, 6_000);
        run(Bed::Dram, Beside::Eager, &LEVELS, seed, 6_000);
    }
    for seed in seeds(21, 1) {
        run(Bed::File(Durability::None), Beside::Eager, &LEVELS, seed, 2_000);
    }
    check_worth(|seed| run(Bed::Dram, Beside::Eager, &LEVELS, seed, 6_000));
}
