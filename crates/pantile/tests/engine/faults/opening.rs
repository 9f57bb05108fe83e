//! Faults while a database is opened and recovered: a clear error, and the
//! next opening finds everything.

use pantile::Error;
use pantile::lab::SimulatedTime;
use pantile_media::MediumExt;
use pantile_testkit::cut::{Image, Keep};
use pantile_testkit::{Fault, FaultMedium, How, Operation, fails, run_cases};

use super::script::{State, open, reopened, script};

/// What is durable after a power cut that follows this many steps (`None`:
/// there is no database).
fn left_behind(steps: Option<usize>, keep: Keep) -> (Image, State, SimulatedTime) {
    let Some(steps) = steps else { return Default::default() };
    let (medium, time) = (FaultMedium::new(&Image::default(), None), SimulatedTime::default());
    let db = open(medium.clone(), &time).expect("open");
    let mut state = State::default();
    for step in script().into_iter().take(steps) {
        state.perform(&db, &step, &time).expect("no faults yet");
        state = state.after(&step);
    }
    (medium.image(keep, steps as u64), state, time)
}

/// Returns whether the fault has happened.
fn fails_at(operation: Operation, nth: u64, how: How, steps: Option<usize>) -> bool {
    for keep in [Keep::Nothing, Keep::ALL[1 + nth as usize % 4]] {
        let (image, state, time) = left_behind(steps, keep);
        let medium = FaultMedium::new(&image, Some(Fault { operation, nth, how }));
        let opened = open(medium.clone(), &time);
        if !medium.has_struck() {
            opened.expect("without a fault");
            return false;
        }
        match opened {
            Err(error) => match how {
                How::ForGood => fails!(Err::<(), _>(error), Error::MediumFailed { .. }, "does not answer"),
                How::Refused => fails!(Err::<(), _>(error), Error::Io { .. }, "the system will not"),
                _ => fails!(Err::<(), _>(error), Error::StorageFull { .. }, "no room"),
            },
            // Work that is deferred can fail, too.
            Ok(db) => {
                assert_eq!(State::of(&db).expect("reads still work"), state);
                let outcome = db.close();
                assert_eq!(outcome.is_err(), medium.is_failed(), "{outcome:?}");
            }
        }
        for keep in [Keep::Nothing, Keep::ALL[1 + nth as usize % 4]] {
            reopened(&medium.image(keep, nth), &time, &[&state]);
        }
    }
    true
}

fn each(steps: Option<usize>) -> u64 {
    let each = [
        (Operation::Write, How::ForGood),
        (Operation::Sync, How::ForGood),
        (Operation::Grow, How::ForGood),
        (Operation::Grow, How::Full),
        (Operation::Grow, How::Refused),
        (Operation::Restore, How::Full),
        (Operation::Discard, How::ForGood),
    ];
    let cases = |(operation, how)| {
        let what = format!("opening after {steps:?} steps, {operation:?}, {how:?}");
        run_cases(&what, move |nth| fails_at(operation, nth, how, steps))
    };
    each.map(cases).iter().sum()
}

#[test]
fn a_new_database() {
    assert!(each(None) > 5);
}

#[test]
fn after_a_power_cut() {
    let all = script().len();
    // With dropped tables, half-emptied blocks and discarded chunks, and once
    // more at the end.
    for steps in [3, 12, 16, 30, all] {
        assert!(each(Some(steps)) > 2);
    }
}
