//! A medium that fails for good (EIO, a failed sync) at any operation: no
//! commit succeeds after that, reads continue, and nothing that was
//! acknowledged is lost.

use pantile::lab::SimulatedTime;
use pantile::{Database, Error};
use pantile_media::MediumExt;
use pantile_testkit::cut::{Image, Keep};
use pantile_testkit::{Fault, FaultMedium, How, Operation, fails, run_cases};

use super::script::{State, Step, open, reopened, script, seen};

/// The acknowledged state, and the state that would include the transaction in
/// which the medium failed.
struct Progress {
    acknowledged: State,
    perhaps: Option<State>,
}

/// A reader that begins in the middle, with `reads`, and sees the same until
/// the end.
fn work_until_it_fails(db: &Database, medium: &FaultMedium, time: &SimulatedTime, reads: bool) -> Progress {
    let mut progress = Progress { acknowledged: State::default(), perhaps: None };
    let mut reader = None;
    for (n, step) in script().into_iter().enumerate() {
        let had_failed = medium.is_failed();
        if reads
            && n == 20
            && let Ok(table) = db.table("t")
        {
            let txn = db.begin_read().expect("reads still work");
            let before = seen(&txn, &table).expect("reads still work");
            reader = Some((txn, table, before));
        }
        let state = &progress.acknowledged;
        // It needs something that could not be created.
        if had_failed && !state.allows(&step) {
            continue;
        }
        match state.perform(db, &step, time) {
            Ok(()) => {
                // Transactions that write nothing go on, as those that only read.
                assert!(!had_failed || matches!(step, Step::Idle(_)), "{step:?} after the failure");
                progress.acknowledged = state.after(&step);
            }
            Err(error) => {
                fails!(Err::<(), _>(error), Error::MediumFailed { .. }, "does not answer", "is kept");
                assert!(medium.is_failed(), "{step:?} before the failure");
                if !had_failed {
                    progress.perhaps = Some(state.after(&step));
                }
            }
        }
    }
    if let Some((txn, table, before)) = reader {
        assert_eq!(seen(&txn, &table).expect("reads still work"), before);
    }
    progress
}

/// Returns whether the fault has happened.
fn fails_at(operation: Operation, nth: u64, reads: bool) -> bool {
    let medium = FaultMedium::new(&Image::default(), Some(Fault { operation, nth, how: How::ForGood }));
    let time = SimulatedTime::default();
    let mut progress = Progress { acknowledged: State::default(), perhaps: None };
    match open(medium.clone(), &time) {
        Ok(db) => {
            progress = work_until_it_fails(&db, &medium, &time, reads);
            assert_eq!(State::of(&db).expect("reads still work"), progress.acknowledged);
            let safe = db.begin_safe_snapshot().expect("reads still work");
            drop(safe);
            db.stats();
            let outcome = db.close();
            match medium.is_failed() {
                true => fails!(outcome, Error::MediumFailed { .. }, "does not answer"),
                false => outcome.expect("close"),
            }
        }
        Err(error) => {
            fails!(Err::<(), _>(error), Error::MediumFailed { .. }, "does not answer");
        }
    }
    let allowed = [Some(&progress.acknowledged), progress.perhaps.as_ref()];
    let allowed: Vec<&State> = allowed.into_iter().flatten().collect();
    for keep in [Keep::Nothing, Keep::ALL[1 + nth as usize % 4]] {
        reopened(&medium.image(keep, nth), &time, &allowed);
    }
    medium.has_struck()
}

#[test]
fn writes() {
    assert!(run_cases("failing writes", |nth| fails_at(Operation::Write, nth, false)) > 100);
}

#[test]
fn writes_beside_a_reader() {
    let cases = run_cases("failing writes beside a reader", |nth| fails_at(Operation::Write, nth, true));
    assert!(cases > 100);
}

#[test]
fn syncs() {
    assert!(run_cases("failing syncs", |nth| fails_at(Operation::Sync, nth, false)) > 50);
}

#[test]
fn changes_of_size() {
    for operation in [Operation::Grow, Operation::Discard, Operation::Restore] {
        assert!(
            run_cases(&format!("{operation:?} fails for good"), move |nth| fails_at(operation, nth, false))
                > 0
        );
    }
}
