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
