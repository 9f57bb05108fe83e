use super::*;

fn running(points: &[u64], open_from: Option<u64>, horizon: u64) -> RunningSet {
    let at = |tick| Timestamp::new(tick, 0);
    RunningSet {
        points: points.iter().map(|&p| at(p)).collect(),
        began: SmallVec::new(),
        open_from: open_from.map_or(Timestamp::MAX, at),
        newer_from: Timestamp::MAX,
        horizon: at(horizon),
    }
}

fn sight(set: &RunningSet, min: u64, max: u64) -> Sight {
    // Epochs of ten ticks.
    set.epochs(EpochManager { ticks: 10 }).sight(Epoch(min), Epoch(max))
}

#[test]
fn the_three_cases() {
    let set = running(&[50, 205, 300, 301], None, 400);
    assert_eq!(set.epochs(EpochManager { ticks: 10 }).min(), Epoch(5));
    assert_eq!(sight(&set, 1, 4), Sight::Obsolete);
    assert_eq!(sight(&set, 6, 19), Sight::Bypassed);
    assert_eq!(sight(&set, 21, 29), Sight::Bypassed, "two long transactions and none between them");
    assert_eq!(sight(&set, 31, 39), Sight::Bypassed);
    assert_eq!(sight(&set, 4, 5), Sight::InUse);
    assert_eq!(sight(&set, 5, 19), Sight::InUse, "an epoch is judged as a whole");
    assert_eq!(sight(&set, 6, 20), Sight::InUse);
    assert_eq!(sight(&set, 31, 40), Sight::InUse, "a transaction that begins now may be in this epoch");
}

#[test]
fn nobody_runs() {
    let set = running(&[], None, 400);
    assert_eq!(sight(&set, 0, 39), Sight::Obsolete);
    assert_eq!(sight(&set, 0, 40), Sight::InUse);
}

#[test]
fn a_statement_reader_may_read_anywhere_from_its_begin_on() {
    let set = running(&[50, 300], Some(100), 400);
    assert_eq!(sight(&set, 1, 4), Sight::Obsolete);
    assert_eq!(sight(&set, 6, 9), Sight::Bypassed);
    assert_eq!(sight(&set, 6, 10), Sight::InUse);
    assert_eq!(sight(&set, 11, 20), Sight::InUse);
    assert_eq!(sight(&running(&[], Some(100), 400), 1, 9), Sight::Obsolete);
}

#[test]
fn versions_are_judged_by_the_timestamp() {
    let at = |tick| Timestamp::new(tick, 0);
    let set = running(&[50, 205], Some(300), 400);
    assert!(set.may_see(at(50), at(51)) && set.may_see(at(200), at(206)));
    assert!(!set.may_see(at(51), at(205)), "a version is not visible at its end");
    assert!(!set.may_see(at(206), at(300)) && set.may_see(at(206), at(301)));
    assert!(
        running(&[], None, 400).may_see(at(10), at(401)),
        "a transaction that begins may read at the horizon"
    );
    assert!(!running(&[], None, 400).may_see(at(10), at(400)));
}

/// I-37.
#[test]
fn who_may_use_a_table() {
    let set = running(&[50, 205], Some(60), 400);
    let uses =
        |set: &RunningSet, from, until| set.may_use_table(Timestamp::new(from, 0), Timestamp::new(until, 0));
    assert!(uses(&set, 40, 50) && uses(&set, 50, 90) && uses(&set, 40, 90), "one reads meanwhile");
    assert!(!uses(&set, 51, 204), "it checks a table before it reads it, at any time");
    assert!(!uses(&set, 206, 399));
    assert!(uses(&set, 206, 400), "a transaction that begins now may read meanwhile");
    let set = RunningSet { newer_from: Timestamp::new(50, 0), ..set };
    assert!(uses(&set, 51, 204) && uses(&set, 206, 399), "one uses what is newer than itself");
    assert!(!uses(&set, 10, 49), "it began later");
}

/// By trying all timestamps at which a transaction may read.
#[test]
fn blocks_are_judged_by_the_timestamp() {
    let raw = Timestamp::from_raw;
    for (points, open_from, horizon) in [
        (&[][..], u64::MAX, 20),
        (&[5], u64::MAX, 20),
        (&[5, 11, 12], u64::MAX, 20),
        (&[5, 11], 15, 20),
        (&[], 9, 20),
        (&[20], 20, 20),
    ] {
        let set = RunningSet {
            points: points.iter().map(|&point| raw(point)).collect(),
            began: SmallVec::new(),
            open_from: raw(open_from),
            newer_from: Timestamp::MAX,
            horizon: raw(horizon),
        };
        let may_read = |at: u64| points.contains(&at) || at >= open_from || at >= horizon;
        for min in 0..25 {
            for max in min..25 {
                let expected = match (0..=max).filter(|&at| may_read(at)).max() {
                    None => Sight::Obsolete,
                    Some(last) if last < min => Sight::Bypassed,
                    Some(_) => Sight::InUse,
                };
                let found = set.sight(raw(min), raw(max));
                assert_eq!(found, expected, "{min} to {max} beside {points:?}, {open_from}, {horizon}");
            }
        }
    }
}
