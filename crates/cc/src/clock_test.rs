use std::cell::RefCell;
use std::rc::Rc;

use super::*;

thread_local! {
    static MANUAL: RefCell<Option<Rc<dyn Fn() -> u64>>> = const { RefCell::new(None) };
}

/// The cycle counter, or what the thread has put in its place.
pub(crate) fn cycles() -> u64 {
    let manual = MANUAL.with_borrow(Clone::clone);
    manual.map_or_else(trust::cycles, |read| read())
}

/// Each later reading of this thread's cycle counter calls `read`, which may
/// itself read the counter.
pub(crate) fn set_cycles(read: impl Fn() -> u64 + 'static) {
    MANUAL.set(Some(Rc::new(read)));
}

/// A clock on this thread's manual counter, a tick for each cycle, whose cores
/// differ by up to `skew` ticks.
pub(crate) fn manual_clock(skew: u64) -> Clock {
    set_cycles(|| 0);
    Clock { rate: 1 << 32, skew, ..cycle_clock(0) }
}

/// A clock on the cycle counter, whether or not this machine's can be trusted.
fn cycle_clock(after: u64) -> Clock {
    let clock = Clock { rate: 1 << 28, ..Clock::with_source(after, ClockSource::SharedCounter) };
    clock.shared_mode.store(false, Ordering::Relaxed);
    clock
}

#[test]
fn ticks_begin_above_what_came_before() {
    for clock in [Clock::new(1000), Clock::with_source(1000, ClockSource::SharedCounter)] {
        assert!(clock.try_tick().expect("a tick") > 1000, "{:?}", clock.source());
    }
}

#[test]
fn shared_ticks_are_unique_and_rise_over_threads() {
    let clock = Clock::with_source(5, ClockSource::SharedCounter);
    assert_eq!(clock.source(), ClockSource::SharedCounter);
    let draw = || -> Vec<u64> {
        (0..if cfg!(miri) { 50 } else { 5000 }).map(|_| clock.try_tick().expect("a tick")).collect()
    };
    let mut all: Vec<u64> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(draw)).collect();
        threads
            .into_iter()
            .flat_map(|thread| {
                let ticks = thread.join().expect("no panic");
                assert!(ticks.is_sorted_by(|a, b| a < b));
                ticks
            })
            .collect()
    });
    let drawn = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), drawn);
}

#[test]
fn shared_ticks_follow_the_system_clock() {
    let clock = Clock::with_source(0, ClockSource::SharedCounter);
    let before = clock.try_tick().expect("a tick");
    thread::sleep(Duration::from_millis(20));
    let passed = Clock::duration(clock.try_tick().expect("a tick") - before);
    assert!(passed >= Duration::from_millis(19), "{passed:?}");
}

#[test]
fn a_counter_below_the_floor_is_noticed() {
    let clock = cycle_clock(0);
    let tick = clock.try_tick().expect("a tick");
    clock.raise_floor(tick + (1 << 40));
    assert_eq!(clock.try_tick(), None);
    clock.fall_back(tick + (1 << 41));
    assert_eq!(clock.source(), ClockSource::SharedCounter);
    let before = clock.try_tick().expect("a tick");
    assert!(before > tick + (1 << 41));
    // Ticks do not stand still until the time has caught up.
    thread::sleep(Duration::from_millis(20));
    let passed = Clock::duration(clock.try_tick().expect("a tick") - before);
    assert!(passed >= Duration::from_millis(19), "{passed:?}");
}

#[test]
fn a_thread_that_is_held_up_and_a_core_that_is_behind_are_no_sign_of_a_bad_counter() {
    let clock = cycle_clock(0);
    let held_up = clock.checked(|| {
        let tick = clock.cycle_tick();
        clock.raise_floor(tick + 1_000_000);
        tick
    });
    assert!(held_up.is_some());
    let floor = clock.floor.load(Ordering::Relaxed);
    assert_eq!(clock.checked(|| floor - clock.skew), Some(floor - clock.skew));
    assert_eq!(clock.checked(|| floor - clock.skew - 1), None);
}

#[test]
fn a_counter_that_was_set_back_below_the_origin_is_noticed() {
    let mut clock = cycle_clock(0);
    clock.raise_floor(clock.try_tick().expect("a tick") + clock.skew + 1);
    // As if the counter had restarted on another machine.
    clock.origin_cycles = u64::MAX / 2;
    assert_eq!(clock.try_tick(), None);
}

#[test]
fn simulated_clocks_differ_by_no_more_than_they_say() {
    let skew = Duration::from_micros(10);
    let time = SimulatedTime::with_skew(skew);
    let clock = Clock::simulated(1_000, time.clone());
    assert_eq!(clock.skew(), Clock::ticks(skew).max(1) + 1);
    let first = clock.try_tick().expect("a tick");
    time.run_ahead(skew);
    let ahead = clock.try_tick().expect("a tick");
    time.run_ahead(Duration::ZERO);
    let behind = clock.try_tick().expect("a tick");
    assert!(first > 1_000 && behind > first && ahead > behind);
    assert!(ahead - first <= clock.skew() + 1, "{first}, {ahead}");
}

/// A pause lets others go on once the time has passed.
#[test]
fn a_pause_in_simulated_time_calls_who_else_may_go_on() {
    let time = SimulatedTime::default();
    let clock = Clock::simulated(0, time.clone());
    let (seen, heard) = std::sync::mpsc::channel();
    time.on_pause({
        let time = time.clone();
        move || seen.send(time.now()).expect("it is heard")
    });
    clock.sleep(Duration::from_secs(2));
    clock.yield_now();
    let pauses: Vec<Duration> = heard.try_iter().collect();
    assert_eq!(pauses, [Duration::from_secs(2), Duration::from_secs(2) + SIMULATED_YIELD]);
}
