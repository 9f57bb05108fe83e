//! A process is killed, another one opens what it has left, and then the power is cut.
//! What is in the page cache only can be seen by the second process, and be gone for the
//! third.

use pantile::lab::SimulatedTime;
use pantile_testkit::cut::{CutKind, CutMedium, Image, Keep, Replay};

use super::script::{State, Step, open, reopened};

/// The last steps, in which the first process is killed.
const LAST: usize = 3;

fn steps() -> Vec<Step> {
    let rows = |n: u8| Step::Put("t", vec![(u32::from(n % 3), n, 20)]);
    let mut steps = vec![Step::Create("t"), Step::Put("t", (0..4).map(|id| (id, 0, 20)).collect())];
    steps.push(Step::Index("t"));
    steps.extend((1..20).map(rows));
    steps.push(Step::Idle(100));
    steps.extend([Step::Delete("t", vec![3]), rows(21)]);
    steps
}

/// Opens what was left after `events` events, in one of these states, and commits. Then
/// cuts the power at every moment since the kill. Returns how often.
fn opened_and_cut(first: &CutMedium, events: usize, time: &SimulatedTime, left: &[&State]) -> u64 {
    let medium = first.after_kill(events);
    let db = open(medium.clone(), time).expect("what a killed process has left opens");
    let (found, opened) = (State::of(&db).expect("readable"), medium.events());
    assert!(left.contains(&&found), "found {found:?}, not one of {left:?}");
    let step = Step::Put("t", vec![(0, 99, 30)]);
    found.perform(&db, &step, time).expect("a commit");
    let (after, ended) = (found.after(&step), medium.events());
    let persists = medium.persists();
    let log = medium.take_log();
    let mut replay = Replay::new(&Image::default(), &log, CutKind::File);
    let mut cuts = 0;
    for boundary in events..=ended {
        if boundary < ended && !persists.contains(&boundary) && !boundary.is_multiple_of(5) {
            continue;
        }
        replay.advance_to(boundary);
        let mut allowed = vec![&after];
        if boundary < ended {
            allowed.push(&found);
        }
        if boundary < opened {
            allowed.extend(left);
        }
        for &keep in Keep::of(CutKind::File) {
            let choice = (events * 1_000 + boundary) as u64;
            reopened(&replay.image(keep, choice), time, &allowed);
            cuts += 1;
        }
    }
    cuts
}

#[test]
fn what_a_killed_process_has_left_is_durable_before_it_is_relied_on() {
    let (medium, time) = (CutMedium::new(&Image::default(), CutKind::File, None), SimulatedTime::default());
    let db = open(medium.clone(), &time).expect("open");
    let mut states = vec![(medium.events(), State::default())];
    for step in steps() {
        let state = &states[states.len() - 1].1;
        state.perform(&db, &step, &time).expect("no faults");
        let after = state.after(&step);
        states.push((medium.events(), after));
    }
    db.close().expect("close");
    let from = states[states.len() - 1 - LAST].0;
    let mut cuts = 0;
    for events in medium.persists().into_iter().filter(|events| *events >= from) {
        // What was acknowledged, and perhaps what was being done.
        let done = states.iter().rposition(|(at, _)| *at <= events).expect("the first state");
        let left: Vec<_> = states[done..].iter().take(2).map(|(_, state)| state).collect();
        cuts += opened_and_cut(&medium, events, &time, &left);
    }
    println!("{cuts} cuts");
    assert!(cuts > 100);
}
