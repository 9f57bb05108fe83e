//! No space, or a system that refuses, at any operation that may meet it:
//! nothing is changed, reads and deletes continue, and later all operations do.

use pantile::lab::SimulatedTime;
use pantile::{Database, Error, Medium};
use pantile_testkit::cut::{Image, Keep};
use pantile_testkit::{Fault, FaultMedium, How, Operation, fails, run_cases};

use super::script::{State, goes_on, open, reopened, script};

fn faulty(operation: Operation, nth: u64, how: How) -> std::sync::Arc<FaultMedium> {
    FaultMedium::new(&Image::default(), Some(Fault { operation, nth, how }))
}

fn is_clear(error: Error, how: How) {
    match how {
        How::Refused => fails!(Err::<(), _>(error), Error::Io { .. }, "the system will not"),
        _ => {
            fails!(Err::<(), _>(error), Error::StorageFull { .. }, "no room", "left no trace", "can be read")
        }
    }
}

/// One operation fails, and succeeds when it is tried again. Returns whether it
/// failed, and the length of the medium in the end.
fn once(operation: Operation, nth: u64, how: How) -> (bool, u64) {
    let (medium, time) = (faulty(operation, nth, how), SimulatedTime::default());
    let db = open(medium.clone(), &time).or_else(|error| {
        is_clear(error, how);
        open(medium.clone(), &time)
    });
    let db = db.expect("the second time");
    let mut state = State::default();
    for step in script() {
        if let Err(error) = state.perform(&db, &step, &time) {
            assert!(medium.has_struck(), "{step:?}: {error}");
            is_clear(error, how);
            assert_eq!(State::of(&db).expect("reads still work"), state, "{step:?}");
            state.perform(&db, &step, &time).expect("the second time");
        }
        state = state.after(&step);
    }
    let len = medium.len();
    finish(db, &medium, &state, &time);
    (medium.has_struck(), len)
}

/// From one operation on there is no space, until some is free again.
fn for_long(operation: Operation, nth: u64) -> bool {
    let how = How::FullForLong;
    let (medium, time) = (faulty(operation, nth, how), SimulatedTime::default());
    let db = open(medium.clone(), &time).or_else(|error| {
        is_clear(error, how);
        medium.relieve();
        open(medium.clone(), &time)
    });
    let db = db.expect("with space");
    let mut state = State::default();
    for step in script() {
        if !state.allows(&step) {
            assert!(medium.has_struck(), "{step:?}");
            continue;
        }
        match state.perform(&db, &step, &time) {
            Ok(()) => state = state.after(&step),
            Err(error) => {
                assert!(medium.has_struck(), "{step:?}: {error}");
                assert!(!step.is_delete(), "{step:?}: {error}");
                is_clear(error, how);
                assert_eq!(State::of(&db).expect("reads still work"), state, "{step:?}");
            }
        }
    }
    if !medium.has_struck() {
        return false;
    }
    medium.relieve();
    let state = goes_on(&db, &state, &time);
    finish(db, &medium, &state, &time);
    true
}

fn finish(db: Database, medium: &FaultMedium, state: &State, time: &SimulatedTime) {
    assert_eq!(&State::of(&db).expect("readable"), state);
    db.close().expect("close");
    reopened(&medium.image(Keep::Nothing, 0), time, &[state]);
}

#[test]
fn no_space_once() {
    assert!(run_cases("a growth finds no space", |nth| once(Operation::Grow, nth, How::Full).0) > 5);
    assert!(run_cases("a chunk is not restored", |nth| once(Operation::Restore, nth, How::Full).0) > 0);
}

#[test]
fn no_space_for_long() {
    assert!(run_cases("a full device", |nth| for_long(Operation::Grow, nth)) > 5);
    assert!(run_cases("a device that others filled", |nth| for_long(Operation::Restore, nth)) > 0);
}

#[test]
fn refused_once() {
    for operation in [Operation::Grow, Operation::Discard, Operation::Restore] {
        let what = format!("{operation:?} is refused");
        assert!(run_cases(&what, move |nth| once(operation, nth, How::Refused).0) > 0);
    }
}

/// Regression: a chunk that the system would not take back was lost until the
/// next opening.
#[test]
fn a_refused_discard_loses_no_space() {
    let lens = [1, u64::MAX].map(|nth| once(Operation::Discard, nth, How::Refused));
    assert_eq!([lens[0].0, lens[1].0], [true, false], "the first run has the fault and the second has none");
    assert_eq!(lens[0].1, lens[1].1);
}
