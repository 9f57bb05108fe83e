//! Unique keys, while transactions insert and delete them again and again.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use pantile::{Durability, IndexDef, Isolation, Range, Result, Transaction};
use pantile_testkit::{Bed, Home, Random, SaysDone, SeedNote, seeds};

use super::table::Things;
use crate::support::{Beside, LEVELS, check_worth, is_conflict, is_duplicate, read_for_long, wait_at};

const NAMES: u64 = 4;
const THREADS: u64 = 4;

/// Which key is unique.
#[derive(Clone, Copy, PartialEq)]
enum Key {
    Primary,
    Secondary,
}

/// Adds or removes a name at random, and counts each name.
fn change(things: &Things, key: Key, txn: &mut Transaction, rng: &mut Random) -> Result<Vec<(u64, i64)>> {
    let name = rng.below(NAMES);
    if key == Key::Primary {
        if rng.percent(50) {
            things.insert(txn, name, name, 0)?;
            return Ok(vec![(name, 1)]);
        }
        return Ok(if things.delete(txn, name)? { vec![(name, -1)] } else { vec![] });
    }
    let found = txn.get_by_index(&things.index("by_name"), &[name.into()])?.map(|row| row.get::<u64>(0));
    let Some(id) = found.transpose()? else {
        things.insert(txn, rng.word(), name, 0)?;
        return Ok(vec![(name, 1)]);
    };
    // Beside read-committed transactions, the row may have another name by now.
    let now = txn.get_for_update(&things.table, &[id.into()])?.map(|row| row.get::<u64>(1)).transpose()?;
    let Some(now) = now else { return Ok(vec![]) };
    if rng.percent(60) {
        things.delete(txn, id)?;
        return Ok(vec![(now, -1)]);
    }
    let other = rng.below(NAMES);
    things.rename(txn, id, other)?;
    Ok(vec![(now, -1), (other, 1)])
}

fn is_unique(things: &Things, key: Key, txn: &Transaction) -> Result<()> {
    let mut names: Vec<u64> = things.all(txn)?.iter().map(|t| t.1).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|two| two[0] < two[1]), "{names:?} at {:?}", txn.timestamp());
    if key == Key::Secondary {
        let index = things.index("by_name");
        for name in 0..NAMES {
            let rows = txn.scan_index(&index, Range::prefix(&[name.into()]))?.collect::<Result<Vec<_>>>()?;
            assert_eq!(rows.len(), usize::from(names.contains(&name)), "{name} of {names:?}");
        }
    }
    Ok(())
}

fn run(bed: Bed, beside: Beside, key: Key, levels: &[Isolation], seed: u64, transactions: u64) {
    let _note = SeedNote(seed);
    let mut home = beside.home(bed, seed);
    let db = home.open();
    let indexes = if key == Key::Primary { vec![] } else { vec![IndexDef::unique("by_name", ["name"])] };
    let things = Things::new(&db, &indexes);
    let counts: Vec<AtomicI64> = (0..NAMES).map(|_| AtomicI64::new(0)).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = SaysDone(&done);
        let writers: Vec<_> = (0..THREADS)
            .map(|n| {
                let (things, counts) = (&things, &counts);
                let mut rng = Random::new(seed << 8 | n, 0);
                scope.spawn(move || {
                    for _ in 0..transactions {
                        let level = *rng.pick(levels);
                        let options = wait_at(level, Duration::from_millis(rng.below(20)));
                        let mut txn = things.db.begin_with(options).expect("a transaction");
                        let mut changes = Vec::new();
                        let steps = 1 + rng.below(3);
                        let outcome = (0..steps).try_for_each(|_| {
                            changes.extend(change(things, key, &mut txn, &mut rng)?);
                            if rng.percent(20) {
                                std::thread::yield_now();
                            }
                            is_unique_to(things, key, &txn, level)
                        });
                        match outcome
                            .and_then(|()| if rng.percent(15) { Ok(None) } else { txn.commit().map(Some) })
                        {
                            Ok(None) => {}
                            Ok(Some(_)) => changes.iter().for_each(|(name, by)| {
                                counts[*name as usize].fetch_add(*by, Ordering::Relaxed);
                            }),
                            Err(error) => assert!(is_conflict(&error) || is_duplicate(&error), "{error}"),
                        }
                    }
                })
            })
            .collect();
        let (things, done) = (&things, &done);
        if beside == Beside::Eager {
            scope.spawn(move || read_for_long(&things.db, done, seed));
        }
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                let safe = things.db.begin_safe_snapshot().expect("a snapshot");
                is_unique(things, key, &safe).expect("a safe snapshot meets no conflict");
                let fresh = things.db.begin_read().expect("a transaction");
                is_unique(things, key, &fresh).unwrap_or_else(|e| assert!(is_conflict(&e), "{e}"));
            }
        });
        writers.into_iter().for_each(|w| w.join().expect("the writer ends"));
        drop(over);
    });
    beside.note(&db);
    let txn = db.begin().expect("a transaction");
    is_unique(&things, key, &txn).expect("no conflict");
    let names: Vec<u64> = things.all(&txn).expect("no conflict").iter().map(|t| t.1).collect();
    for (name, count) in counts.iter().enumerate() {
        let there = i64::from(names.contains(&(name as u64)));
        assert_eq!(count.load(Ordering::Relaxed), there, "no key is lost: {name} of {names:?}");
    }
}

/// The keys that a transaction sees at one moment are unique too.
fn is_unique_to(things: &Things, key: Key, txn: &Transaction, level: Isolation) -> Result<()> {
    if level == Isolation::ReadCommitted { Ok(()) } else { is_unique(things, key, txn) }
}

fn all_mixes(bed: Bed, beside: Beside, first_seed: u64, transactions: u64) {
    let mixes = LEVELS.iter().map(std::slice::from_ref).chain([&LEVELS[..]]);
    for (n, mix) in mixes.enumerate() {
        for seed in seeds(first_seed + 100 * n as u64, 1) {
            run(bed, beside, Key::Primary, mix, seed, transactions);
            run(bed, beside, Key::Secondary, mix, seed, transactions);
        }
    }
}

#[test]
fn unique_keys_on_dram() {
    all_mixes(Bed::Dram, Beside::Any, 1, 400);
}

#[test]
fn unique_keys_on_file() {
    all_mixes(Bed::File(Durability::Sync), Beside::Any, 2, 60);
}

#[test]
fn unique_keys_beside_an_eager_collector() {
    all_mixes(Bed::Dram, Beside::Eager, 3, 800);
    check_worth(|seed| all_mixes(Bed::Dram, Beside::Eager, seed, 800));
}

/// A serializable transaction begins while a read-committed one with the same
/// key is on its way to the medium.
#[test]
fn unique_beside_a_commit_on_its_way() {
    let mut home = Home::new(Bed::File(Durability::Sync));
    let db = home.open();
    let things = Things::new(&db, &[IndexDef::unique("by_name", ["name"])]);
    let limit = Duration::from_secs(600);
    for name in 0..150 {
        let mut late = db.begin_with(wait_at(Isolation::ReadCommitted, limit)).expect("a transaction");
        things.insert(&mut late, 2 * name, name, 0).expect("the key is free");
        let strict = std::thread::scope(|scope| {
            let committing = scope.spawn(|| late.commit().expect("no conflict"));
            let mut strict = db.begin_with(wait_at(Isolation::Serializable, limit)).expect("a transaction");
            std::thread::sleep(Duration::from_micros(name % 30));
            let inserted = things.insert(&mut strict, 2 * name + 1, name, 0).and_then(|()| strict.commit());
            committing.join().expect("it commits");
            inserted
        });
        let error = strict.expect_err("the name is taken");
        assert!(is_conflict(&error) || is_duplicate(&error), "{error}");
    }
}
