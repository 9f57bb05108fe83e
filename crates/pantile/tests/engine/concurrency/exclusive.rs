//! The exclusive stage: which transactions get it, and who waits for them.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use pantile::lab::SimulatedTime;
use pantile::{Database, Error, ExclusiveStage, IndexDef, MediumKind, Options, Transaction};
use pantile_testkit::await_that;

use super::table::Things;
use crate::waiting::sleeps;

const ROWS: u64 = 100;
/// Longer than anything in these tests takes.
const LONG: Duration = Duration::from_secs(600);

fn things(when: ExclusiveStage) -> Things {
    let options = Options::new().medium(MediumKind::Dram).begin_wait(LONG).exclusive_stage(when);
    let things = Things::new(&options.open("unused").unwrap(), &[IndexDef::unique("by_name", ["name"])]);
    things.fill((0..ROWS).map(|n| (n, n, 0)));
    things
}

/// Lets another thread begin a transaction while `alone` has the stage. The
/// thread must have waited until `alone` has ended; readers need not wait.
fn nobody_begins_during(db: &Database, alone: impl FnOnce(&dyn Fn())) {
    static OTHERS: AtomicU32 = AtomicU32::new(0);
    let name = format!("other {}", OTHERS.fetch_add(1, Ordering::SeqCst));
    let [has_stage, has_begun, has_left] = [false; 3].map(AtomicBool::new);
    std::thread::scope(|scope| {
        let other = std::thread::Builder::new().name(name.clone()).spawn_scoped(scope, || {
            while !has_stage.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            drop(db.begin_read().unwrap());
            let txn = db.begin().unwrap();
            let is_late = has_left.load(Ordering::SeqCst);
            has_begun.store(true, Ordering::SeqCst);
            assert!(is_late, "a transaction has begun beside one that is to be alone");
            drop(txn);
        });
        other.unwrap();
        alone(&|| {
            has_stage.store(true, Ordering::SeqCst);
            await_that("the other one waits", || sleeps(&name) || has_begun.load(Ordering::SeqCst));
            // Longer than it waits for a turn.
            std::thread::sleep(Duration::from_millis(300));
            has_left.store(true, Ordering::SeqCst);
        });
    });
}

/// What was written is work beside what was read for it, also once it has been undone.
#[test]
fn writes_in_vain_earn_the_stage() {
    let things = things(ExclusiveStage { wasted: 4 * ROWS, tries: u32::MAX, ..ExclusiveStage::default() });
    let db = &things.db;
    let mut retry = db.retry();
    let attempt = |is_late: bool| {
        let mut txn = db.begin().unwrap();
        for id in 1..ROWS {
            txn.upsert(&things.table, &[id.into(), id.into(), 7i64.into()])?;
        }
        if is_late {
            let late = db.begin().and_then(|mut other| {
                things.resize(&mut other, 0, 8)?;
                other.commit()
            });
            late.unwrap();
        }
        things.resize(&mut txn, 0, 7).and_then(|_| txn.commit()).map(drop)
    };
    for _ in 0..3 {
        let error = attempt(true).unwrap_err();
        assert!(retry.again(&error), "{error}");
    }
    nobody_begins_during(db, |has_stage| {
        attempt(false).unwrap();
        has_stage();
        drop(retry);
    });
}

/// γ: what was read and written in vain counts, over all attempts.
#[test]
fn work_in_vain_earns_the_stage() {
    let things = things(ExclusiveStage { wasted: 3 * ROWS, tries: u32::MAX, ..ExclusiveStage::default() });
    let db = &things.db;
    let mut retry = db.retry();
    let mut attempts = 0;
    let mut attempt = || {
        attempts += 1;
        let mut txn = db.begin().unwrap();
        for id in 0..ROWS {
            things.size(&txn, id).unwrap();
        }
        // Somebody writes what it has read, as long as others begin.
        if attempts < 4 {
            db.begin()
                .and_then(|mut other| {
                    things.resize(&mut other, 1, attempts)?;
                    other.commit()
                })
                .unwrap();
        }
        things.resize(&mut txn, 0, 7)?;
        let fails = things.resize(&mut txn, 1, 7).and_then(|_| txn.commit());
        fails.map(drop)
    };
    let error = attempt().unwrap_err();
    assert!(retry.again(&error), "{error}");
    let error = attempt().unwrap_err();
    assert!(retry.again(&error), "{error}");
    // Not yet: two attempts have accessed 200 rows and a few.
    std::thread::scope(|scope| {
        scope.spawn(|| drop(db.begin().unwrap()));
    });
    let error = attempt().unwrap_err();
    assert!(retry.again(&error), "{error}");
    nobody_begins_during(db, |has_stage| {
        attempt().unwrap();
        has_stage();
        drop(retry);
    });
}

/// γ: so does time.
#[test]
fn time_in_vain_earns_the_stage() {
    let things = things(ExclusiveStage { spent: Duration::ZERO, ..ExclusiveStage::default() });
    nobody_begins_during(&things.db, |has_stage| {
        let mut attempts = 0;
        let ran = things.db.run(|txn| {
            attempts += 1;
            if attempts == 1 {
                return fail(&things, txn);
            }
            has_stage();
            things.resize(txn, 1, 7).map(drop)
        });
        ran.unwrap();
    });
}

/// A long transaction has attempts on the stage even if the time of `run` is over before:
/// three in all, and others have none.
#[test]
fn attempts_on_the_stage_are_the_last() {
    for (seconds, limit, tried) in [(60, 30, 4), (16, 30, 4), (6, 30, 5), (4, 30, 8), (2, 5, 3), (60, 0, 1)] {
        let time = SimulatedTime::default();
        let options = Options::new().medium(MediumKind::Dram).retry_for(Duration::from_secs(limit));
        let things = Things::new(&options.simulated_time(time.clone()).open("unused").unwrap(), &[]);
        things.fill([(1, 1, 0)].into_iter());
        let mut attempts = 0;
        let outcome = things.db.run(|txn| {
            attempts += 1;
            time.advance(Duration::from_secs(seconds));
            fail(&things, txn)
        });
        assert!(outcome.unwrap_err().is_retryable());
        assert_eq!(attempts, tried, "of {seconds} s each, in {limit} s");
    }
}

/// Somebody writes what `txn` writes, and began later.
fn fail(things: &Things, txn: &mut Transaction) -> Result<(), Error> {
    things.size(txn, 1)?;
    let mut other = things.db.begin()?;
    things.resize(&mut other, 1, 3)?;
    other.commit()?;
    things.resize(txn, 1, 4).map(drop)
}

/// α: from a number of rows on, until it ends.
#[test]
fn a_large_writer_is_left_alone() {
    let things = things(ExclusiveStage { accessed: 100, ..ExclusiveStage::default() });
    let db = &things.db;
    for commits in [true, false] {
        let mut txn = db.begin().unwrap();
        for id in 0..10 {
            things.resize(&mut txn, id, 1).unwrap();
        }
        std::thread::scope(|scope| {
            scope.spawn(|| drop(db.begin().unwrap()));
        });
        for id in 10..ROWS {
            things.resize(&mut txn, id, 1).unwrap();
        }
        nobody_begins_during(db, |has_stage| {
            has_stage();
            match commits {
                true => _ = txn.commit().unwrap(),
                false => txn.rollback(),
            }
        });
    }
    // One that only reads never has it.
    let reader = db.begin_read().unwrap();
    for id in 0..ROWS {
        things.size(&reader, id).unwrap();
    }
    std::thread::scope(|scope| {
        scope.spawn(|| drop(db.begin().unwrap()));
    });
}

#[test]
fn thresholds_that_make_no_sense_are_named() {
    for when in [
        ExclusiveStage { space_left: f64::NAN, ..ExclusiveStage::default() },
        ExclusiveStage { space_left: 1.5, ..ExclusiveStage::default() },
        ExclusiveStage { tries: 0, ..ExclusiveStage::default() },
    ] {
        let options = Options::new().medium(MediumKind::Dram).exclusive_stage(when);
        let error = options.open("unused").unwrap_err();
        assert!(error.to_string().contains("exclusive_stage"), "{error}");
    }
}
