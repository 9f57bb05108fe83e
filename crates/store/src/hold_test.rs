use std::thread;

use super::*;

/// Commits look while they have the allocator's lock, for which another who looks may wait. So one
/// who waits to begin a hold must keep nobody from looking.
#[test]
fn looks_do_not_wait_for_a_hold_that_waits_to_begin() {
    let holds = Holds::default();
    thread::scope(|scope| {
        let looking = holds.look();
        let begun = scope.spawn(|| holds.begin());
        while holds.0.try_read().is_some() {
            thread::yield_now();
        }
        assert!(holds.look().holds.is_empty());
        drop(looking);
        assert_eq!(begun.join().expect("it begins"), 1);
    });
}

/// I-37: of a process that reads at 100 what had been opened by 110.
#[test]
fn tables_are_held_for_those_who_may_read_them() {
    let holds = Holds::default();
    let covers = |from, until| {
        let [from, until] = [from, until].map(Timestamp::from_raw);
        holds.cover_table(Period { from, until })
    };
    assert!(!covers(0, 1));
    let number = holds.begin();
    assert!(covers(1000, 2000), "nobody knows yet what it reads");
    holds.narrow(number, Timestamp::from_raw(110));
    assert!(covers(10, 20) && covers(110, 120) && !covers(111, 120), "it may look at any block of before");
    holds.leave_out(number, Timestamp::from_raw(100), &[]);
    assert!(covers(10, 20) && !covers(111, 120));
    holds.scan_is_over(number);
    assert!(!covers(10, 99) && covers(10, 100) && covers(105, 120) && !covers(111, 120));
    holds.end(number);
    assert!(!covers(10, 100));
}
