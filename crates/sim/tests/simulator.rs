//! The simulator repeats itself exactly, finds nothing in a sound engine, and
//! notices faults.
//!
//! `PANTILE_SIM_CASES` and `PANTILE_SIM_SEED` set the number of cases and the
//! first seed.

use std::time::Duration;

use pantile_base::limits::CHUNK_BYTES;
use pantile_media::Medium;
use pantile_media::unshared::Unshared;
use pantile_sim::{Campaign, Case, CutOfCase, NegativeControl, Totals, Until};
use pantile_testkit::cut::{Broken, CutKind, CutMedium, Image, Keep};
use pantile_testkit::from_env;

/// No control takes nearly as long, not even on a slow and busy machine.
const PATIENCE: Duration = Duration::from_secs(3600);

fn campaign(seed: u64, until: Until, broken: Option<Broken>) -> Campaign {
    let (kinds, collectors) = (CutKind::ALL.to_vec(), pantile_rivals::all().to_vec());
    Campaign { seed, kinds, collectors, until, threads: 2, broken, is_busy: false }
}

#[test]
fn a_seed_does_the_same_again() {
    let cases = campaign(7, Until::Cases(0), None);
    for number in 0..8 {
        let case = cases.case(number);
        let [log, again] = [(); 2].map(|()| case.log().unwrap_or_else(|what| panic!("{case:?}: {what}")));
        assert_eq!(log.difference(&again), None, "{case:?}");
    }
}

#[test]
fn nothing_is_lost() {
    let (seed, cases) = (from_env("PANTILE_SIM_SEED", 1), from_env("PANTILE_SIM_CASES", 36));
    println!("PANTILE_SIM_SEED={seed} PANTILE_SIM_CASES={cases}");
    let outcome = campaign(seed, Until::Cases(cases), None).run(&false.into(), |_| {});
    if let Some(failure) = &outcome.failure {
        panic!("{failure}; reproduce with: pantile crashtest {}", failure.replay());
    }
    let total = outcome.total();
    println!("{total:?}");
    assert!(total.cuts > 100 * cases && total.cuts_of_recovery > 5 * cases && total.blocks_reclaimed > cases);
    // Collectors that free no blocks free versions one by one.
    let one_by_one = outcome.totals.values().filter(|one| one.blocks_reclaimed == 0);
    assert!(one_by_one.map(|one| one.versions_reclaimed).sum::<u64>() > 100 * cases);
}

#[test]
fn broken_promises_are_noticed() {
    for control in NegativeControl::all() {
        let caught = control.run(1, 2, PATIENCE, &false.into());
        let caught = caught.unwrap_or_else(|| panic!("{} was not noticed", control.name));
        println!("{}: {:?}, {}", control.name, caught.after, caught.failure);
    }
}

#[test]
fn one_cut_is_shown_again_by_what_the_failure_says() {
    let failure = campaign(1, Until::Cases(20), Some(Broken::Fence)).run(&false.into(), |_| {}).failure;
    let failure = failure.expect("fences do nothing");
    let cut = failure.cut.expect("the failure follows a cut");
    let read: CutOfCase = cut.to_string().parse().expect("what is displayed can be read");
    assert_eq!(read, cut);
    let again = failure.case.run(Some(read), &mut Totals::default()).expect_err("the same cut fails again");
    assert_eq!((again.cut, again.what), (Some(cut), failure.what));
    let sound = Case { broken: None, ..failure.case };
    assert!(sound.run(Some(read), &mut Totals::default()).is_ok(), "the medium keeps its promises");
}

#[test]
fn a_cut_of_a_later_life_is_shown_again() {
    let fails = |seed| {
        let (broken, collector) = (Some(Broken::FlushOfZeros), pantile::Collector::TB_COLLECT);
        let kind = CutKind::Memory;
        let case = Case { seed, kind, collector, broken, is_busy: false };
        let failure = case.run(None, &mut Totals::default()).err()?;
        failure.cut.filter(|cut| cut.life > 0).map(|cut| (failure, cut))
    };
    let (failure, cut) = (1..200).find_map(fails).expect("a later life shows it");
    let again = failure.case.run(Some(cut), &mut Totals::default()).expect_err("the same cut fails again");
    assert_eq!((again.cut, again.what), (Some(cut), failure.what));
}

/// The storage of a range is given back and taken again. What another core has
/// made durable there since is not lost when the zeros become durable.
#[test]
fn zeros_of_a_discard_do_not_overtake_what_was_written_later() {
    for (giver, taker) in [(0, 1), (0, 0)] {
        let medium = CutMedium::new(&Image::default(), CutKind::Memory, None);
        let write = |core: u8, byte: u8, lines: u64| {
            medium.run_as(core);
            medium.put(CHUNK_BYTES, &vec![byte; lines as usize * 64]).expect("there is room");
            medium.flush(CHUNK_BYTES, lines * 64);
        };
        medium.grow(2 * CHUNK_BYTES).expect("there is room");
        write(giver, 1, 3);
        medium.fence().expect("a medium that works");
        medium.give_back(CHUNK_BYTES, CHUNK_BYTES).expect("a medium that works");
        medium.take_back(CHUNK_BYTES, CHUNK_BYTES).expect("a medium that works");
        write(taker, 2, 1);
        medium.fence().expect("a medium that works");
        let taken = medium.events();
        medium.run_as(giver);
        medium.fence().expect("a medium that works");
        let given = medium.events();
        let found = |events: usize, keep: Keep, choice: u64| {
            let found = CutMedium::new(&medium.cut(events, keep, choice), CutKind::Memory, None);
            let mut bytes = [0; 3 * 64];
            found.get(CHUNK_BYTES, &mut bytes).expect("it is as long");
            bytes
        };
        for choice in 0..32 {
            for &keep in Keep::of(CutKind::Memory) {
                assert!(found(taken, keep, choice)[..64].iter().all(|&b| b == 2), "{keep:?} {choice}");
                let bytes = found(given, keep, choice);
                assert!(bytes[..64].iter().all(|&b| b == 2), "{keep:?} {choice}");
                assert!(bytes[64..].iter().all(|&b| b == 0), "{keep:?} {choice}");
            }
        }
    }
}

#[test]
fn nonsense_is_no_cut() {
    for text in ["", "1", "1:2:3", "1:2:lines:x", "1:2:some:3", "1:2:all:3:4", "1:2:all:3:4:words:5:6"] {
        let cut: Result<CutOfCase, String> = text.parse();
        assert!(cut.is_err_and(|why| why.contains("LIFE:BOUNDARY:KEEP:CHOICE")), "{text}");
    }
}
