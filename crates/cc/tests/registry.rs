//! Timestamps, watermarks and read marks, with threads.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use pantile_base::limits::{TRANSACTION_SLOTS, WRITER_SLOTS};
use pantile_base::{TableId, Timestamp, TupleId};
use pantile_cc::{Begin, Clock, ClockSource, Full, ReadMarks, Registry, Slot};
use pantile_testkit::{Patience, SaysDone, await_that};

const SOURCES: [ClockSource; 2] = [ClockSource::CycleCounter, ClockSource::SharedCounter];

/// Fewer steps under Miri, which is slow.
const fn steps(n: usize) -> usize {
    if cfg!(miri) { n / 100 } else { n }
}

fn registry(source: ClockSource) -> Registry {
    Registry::new(Clock::with_source(100, source))
}

#[test]
fn timestamps_are_unique_and_rise() {
    for source in SOURCES {
        let registry = registry(source);
        let draw = || {
            let mut last = Timestamp::ZERO;
            let drawn = (0..steps(3000)).map(|n| {
                let (slot, ts) = registry.begin(Begin::WriterAtBegin).expect("a slot");
                let commit = if n % 3 == 0 { registry.draw_commit(slot, Timestamp::ZERO) } else { ts };
                assert!(last < ts && ts <= commit, "a thread's timestamps rise");
                // A transaction that begins after the acknowledgement is later.
                registry.await_passed(commit);
                registry.release(slot);
                last = commit;
                if commit == ts { vec![ts] } else { vec![ts, commit] }
            });
            drawn.flatten().collect::<Vec<_>>()
        };
        let all: Vec<Timestamp> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(draw)).collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
        });
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{source:?}");
        assert_eq!(registry.running(), 0);
    }
}

#[test]
fn who_begins_after_an_acknowledgement_is_later() {
    for source in SOURCES {
        let registry = registry(source);
        let acknowledged = AtomicU64::new(0);
        let work = || {
            for _ in 0..steps(5000) {
                let before = acknowledged.load(Ordering::SeqCst);
                let (slot, ts) = registry.begin(Begin::WriterAtBegin).expect("a slot");
                assert!(
                    ts.get() > before,
                    "{source:?}: a transaction began at {ts:?} after {before} was acknowledged"
                );
                registry.await_passed(ts);
                registry.release(slot);
                acknowledged.fetch_max(ts.get(), Ordering::SeqCst);
            }
        };
        thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(work))));
    }
}

/// A transaction that only reads keeps what it sees, and does not keep tuple ids
/// from being used again.
#[test]
fn readers_hold_up_one_watermark_and_writers_both() {
    let registry = registry(ClockSource::SharedCounter);
    let refreshed = || {
        registry.refresh_watermark(Duration::ZERO);
        (registry.watermark(), registry.writers_watermark())
    };
    for (how, holds_up_both) in [
        (Begin::Reader, false),
        (Begin::SafeReader, false),
        (Begin::LateWriter, true),
        (Begin::ByStatement, true),
        (Begin::WriterAtBegin, true),
    ] {
        let (slot, ts) = registry.begin(how).expect("a slot");
        (0..100).for_each(|_| _ = registry.now());
        let (watermark, writers) = refreshed();
        assert!(watermark.get() <= ts.get() + 1, "{how:?}: {watermark:?} {ts:?}");
        assert_eq!(writers <= ts, holds_up_both, "{how:?}: {writers:?} {ts:?}");
        registry.release(slot);
        (0..100).for_each(|_| _ = registry.now());
        assert!(refreshed().1 > ts, "{how:?} has ended");
    }
}

/// What is prepared keeps nothing for itself, and publishes above all that others may have read.
#[test]
fn one_that_reads_no_more_holds_up_nothing() {
    let registry = registry(ClockSource::SharedCounter);
    let refreshed = || {
        (0..100).for_each(|_| _ = registry.now());
        registry.refresh_watermark(Duration::ZERO);
        (registry.watermark(), registry.writers_watermark())
    };
    for how in [Begin::LateWriter, Begin::ByStatement] {
        let (slot, ts) = registry.begin(how).expect("a slot");
        registry.reads_no_more(slot);
        let (watermark, writers) = refreshed();
        assert!(watermark > ts && writers > ts, "{how:?}: {watermark:?} {writers:?} {ts:?}");
        let set = registry.running_set().expect("nobody is just beginning");
        assert!(!set.may_see(ts, Timestamp::from_raw(ts.get() + 1)), "{how:?}: {set:?}");
        registry.set_committing(slot);
        assert!(registry.running_set().is_some(), "it looks at definitions, and draws later");
        assert!(refreshed().0 > watermark, "{how:?}");
        registry.set_moving(slot);
        assert!(registry.running_set().is_none(), "it may have drawn where it writes");
        let before = registry.watermark();
        assert_eq!(refreshed().0, before, "{how:?}: it may have drawn where it writes");
        let commit = registry.draw_commit(slot, Timestamp::ZERO);
        let (reader, read) = registry.begin(Begin::SafeReader).expect("a slot");
        let (watermark, _) = refreshed();
        assert!(before < commit && watermark < commit && read < commit, "{how:?}: {watermark:?} {commit:?}");
        registry.release(slot);
        registry.release(reader);
        let (slot, ts) = registry.begin(how).expect("a slot");
        assert!(refreshed().0.get() <= ts.get() + 1, "{how:?}: the next one reads again");
        registry.release(slot);
    }
}

/// Between two statements it keeps ids and tables, but no versions.
#[test]
fn one_that_reads_nothing_for_now_keeps_ids_and_tables_only() {
    let registry = registry(ClockSource::SharedCounter);
    let set = || {
        (0..100).for_each(|_| _ = registry.now());
        registry.running_set().expect("nobody is just beginning")
    };
    let (slot, began) = registry.begin(Begin::ByStatement).expect("a slot");
    let end = registry.now();
    assert!(set().may_see(began, end));
    let keeps = || registry.open().map(|open| (open.keeps, open.by_statement)).collect::<Vec<_>>();
    assert_eq!(keeps(), [(Some(began), true)]);
    registry.read_nothing_for_now(slot);
    let pause = set();
    assert!(!pause.may_see(began, end) && pause.may_use_table(began, began), "{pause:?}");
    assert_eq!(keeps(), [(None, false)]);
    registry.refresh_watermark(Duration::ZERO);
    assert!(registry.watermark() <= began && registry.writers_watermark() <= began);
    let again = registry.read_again(slot);
    let (before, after) = (registry.now(), set());
    assert!(!after.may_see(began, end) && after.may_see(again, before) && after.may_see(before, before));
    assert_eq!(keeps(), [(Some(again), true)]);
    let snapshot = registry.draw(slot);
    registry.read_at(slot, snapshot);
    let (next, later) = (Timestamp::from_raw(snapshot.get() + 1), registry.now());
    let last = set();
    assert!(last.may_see(snapshot, next) && !last.may_see(again, snapshot), "{last:?}");
    assert!(!last.may_see(next, later), "{last:?}");
    assert!(last.may_use_table(began, began), "{last:?}");
    registry.release(slot);
    let (slot, ts) = registry.begin(Begin::ByStatement).expect("a slot");
    assert_eq!(keeps(), [(Some(ts), true)], "the next one in the slot reads where it begins");
    registry.release(slot);
}

#[test]
fn slots_run_out_and_are_reused() {
    let registry = registry(ClockSource::SharedCounter);
    let write = || registry.begin_within(Begin::LateWriter, WRITER_SLOTS, Duration::ZERO);
    let mut slots: Vec<_> = (0..WRITER_SLOTS).map(|_| write().expect("a slot").0).collect();
    write().expect_err("the others are for readers");
    slots.extend((WRITER_SLOTS..TRANSACTION_SLOTS).map(|_| registry.begin(Begin::Reader).expect("a slot").0));
    assert_eq!(slots.iter().map(|slot| slot.index()).collect::<BTreeSet<_>>().len(), TRANSACTION_SLOTS);
    registry.begin(Begin::SafeReader).expect_err("all slots are in use");
    assert_eq!(registry.running(), TRANSACTION_SLOTS);
    registry.release(slots[7]);
    assert_eq!(write().expect("a slot").0, slots[7]);
    // A reader that could have either leaves a writer's slot to writers.
    registry.release(slots[7]);
    registry.release(slots[WRITER_SLOTS]);
    let (reader, _) = registry.begin(Begin::Reader).expect("a slot");
    assert_eq!(reader, slots[WRITER_SLOTS]);
    assert_eq!(write().expect("a slot").0, slots[7]);
    // A thread that has read in a reader's slot writes in another.
    registry.release(reader);
    write().expect_err("this one is for readers");
    registry.begin(Begin::SafeReader).expect("a slot");
}

#[test]
fn threads_that_come_and_go_leave_nothing() {
    let registry = registry(ClockSource::SharedCounter);
    let used = (0..steps(2000))
        .map(|_| {
            let one = || {
                let (slot, _) = registry.begin(Begin::WriterAtBegin).expect("a slot");
                registry.release(slot);
                slot.index()
            };
            thread::scope(|scope| scope.spawn(one).join().expect("no panic"))
        })
        .max();
    assert_eq!(used, Some(0), "one thread at a time needs one slot (T19)");
}

#[test]
fn a_watermark_stays_below_every_running_transaction() {
    for source in SOURCES {
        let registry = registry(source);
        let (old, began) = registry.begin(Begin::LateWriter).expect("a slot");
        for _ in 0..steps(3000) {
            assert!(registry.refresh_watermark(Duration::ZERO) <= began, "{source:?}");
        }
        registry.release(old);
        let (newer, ts) = registry.begin(Begin::WriterAtBegin).expect("a slot");
        let watermark = registry.refresh_watermark(Duration::ZERO);
        assert!(began < watermark && watermark <= ts, "{source:?}");
        assert_eq!(registry.undecided(ts, &registry.commits_under_way()), Some(vec![ts]), "{source:?}");
        let undecided = registry.undecided(watermark, &registry.commits_under_way());
        assert_eq!(undecided.map(|u| u.len()), Some(usize::from(watermark == ts)));
        registry.release(newer);
    }
}

/// A record does not list a transaction that others may have read from already.
#[test]
fn what_has_published_is_not_undecided() {
    for source in SOURCES {
        let registry = registry(source);
        let (idle, idle_ts) = registry.begin(Begin::WriterAtBegin).expect("a slot");
        let (slot, ts) = registry.begin(Begin::WriterAtBegin).expect("a slot");
        let (later, at) = registry.begin(Begin::WriterAtBegin).expect("a slot");
        registry.release(later);
        registry.await_passed(at);
        let commits = registry.commits_under_way();
        let listed = || {
            let mut listed = registry.undecided(at, &commits)?;
            listed.sort_unstable();
            Some(listed)
        };
        let both = Some(vec![idle_ts, ts]);
        assert_eq!(listed(), both, "{source:?}");
        registry.set_committing(slot);
        assert_eq!(listed(), None, "{source:?}: it may have published");
        registry.set_idle(slot);
        assert_eq!(listed(), both, "{source:?}");
        registry.set_committing(slot);
        registry.release(slot);
        assert_eq!(listed(), Some(vec![idle_ts]), "{source:?}");
        registry.release(idle);
    }
}

#[test]
fn watermarks_and_safe_snapshots_hold_under_load() {
    for source in SOURCES {
        let registry = registry(source);
        let stop = AtomicBool::new(false);
        let writer = || {
            while !stop.load(Ordering::Relaxed) {
                let (slot, ts) = registry.begin(Begin::WriterAtBegin).expect("a slot");
                assert!(ts >= registry.watermark(), "I-4");
                registry.refresh_watermark(Duration::ZERO);
                assert!(ts >= registry.watermark(), "I-4");
                registry.release(slot);
            }
        };
        // A safe reader at `ts`: from now on no transaction publishes at or
        // below it.
        let safe_reader = || {
            let _over = SaysDone(&stop);
            let (mut last, mut turns) = (Timestamp::ZERO, 0);
            // Safe snapshots advance, and the loop runs until they do.
            while turns < steps(20_000) || last <= Timestamp::from_raw(100 << 10) {
                turns += 1;
                let (slot, ts) = registry.begin(Begin::SafeReader).expect("a slot");
                assert!(ts.get() + 1 >= registry.watermark().get(), "the versions that it reads stay");
                let (own, write) = registry.begin(Begin::WriterAtBegin).expect("a slot");
                assert!(ts < write && registry.pending(own) == write);
                let (late, _) = registry.begin(Begin::LateWriter).expect("a slot");
                assert!(ts < registry.draw_commit(late, Timestamp::ZERO), "a late writer commits above it");
                for slot in [slot, own, late] {
                    registry.release(slot);
                }
                last = last.max(ts);
            }
        };
        thread::scope(|scope| {
            (0..2).for_each(|_| drop(scope.spawn(writer)));
            scope.spawn(safe_reader);
        });
    }
}

#[test]
fn a_clock_that_runs_backwards_is_left_for_good() {
    let registry = registry(ClockSource::CycleCounter);
    if registry.clock().source() == ClockSource::SharedCounter {
        println!("skipped: this machine's cycle counter is not trusted");
        return;
    }
    let (slot, before) = registry.begin(Begin::WriterAtBegin).expect("a slot");
    // A counter that was set back is below the floor.
    let floor = before.tick() + (1 << 36);
    registry.clock().raise_floor(floor);
    let next = registry.draw(slot);
    assert_eq!(registry.clock().source(), ClockSource::SharedCounter);
    assert!(next.tick() > floor && next > before);
    registry.release(slot);
    let (slot, after) = registry.begin(Begin::WriterAtBegin).expect("a slot");
    assert!(after > next);
    registry.release(slot);
}

#[test]
fn waiting_ends_with_the_lock_the_limit_or_a_circle() {
    let registry = registry(ClockSource::SharedCounter);
    let [a, b] = [0, 1].map(|_| registry.begin(Begin::LateWriter).expect("a slot").0);
    let soon = Duration::from_millis(20);
    let [bound_a, bound_b] = [a, b].map(|slot| registry.pending(slot));
    assert_eq!(registry.wait(a, b, bound_b, soon, || true), Some(true));
    assert_eq!(registry.wait(a, b, bound_b, soon, || false), Some(false));
    let unlocked = AtomicBool::new(false);
    // No clock can say when this is over.
    let far = Duration::MAX;
    thread::scope(|scope| {
        // The waiter may be the one whose wait closes the circle: then it waits again.
        let wait = || registry.wait(a, b, bound_b, far, || unlocked.load(Ordering::SeqCst));
        let waiter = scope.spawn(move || std::iter::repeat_with(wait).find_map(|outcome| outcome));
        // Once the waiter waits, a wait for it closes the circle. Before that, this
        // wait only lasts a while.
        let patience = Patience::new();
        while registry.wait(b, a, bound_a, soon, || false).is_some() {
            patience.check(|| "the waiter does not wait".into());
            thread::sleep(Duration::from_millis(5));
        }
        assert!(!waiter.is_finished(), "it waits until it is woken");
        unlocked.store(true, Ordering::SeqCst);
        registry.wake(b);
        assert_eq!(waiter.join().expect("no panic"), Some(true));
    });
}

/// B waits for A and is held up at its first look behind the announcement, at which it is free as `is_free` says. A makes
/// the `change` that ends this wait, and waits for B: that closes no circle.
fn a_wait_that_is_over_is_in_no_circle(begin: Begin, is_free: bool, change: impl FnOnce(&Registry, Slot)) {
    let registry = registry(ClockSource::SharedCounter);
    let [a, b] = [0, 1].map(|_| registry.begin(begin).expect("a slot").0);
    let [bound_a, bound_b] = [a, b].map(|slot| registry.pending(slot));
    let (looks, is_noticed) = (AtomicU32::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let noticed = SaysDone(&is_noticed);
        let waiter = scope.spawn(|| {
            let slow = || {
                // The look after this many is the first one behind the announcement. It
                // takes until the other wait is over.
                let is_behind = looks.fetch_add(1, Ordering::SeqCst) > 64;
                if is_behind {
                    await_that("the other wait is over", || is_noticed.load(Ordering::SeqCst));
                }
                is_behind && is_free
            };
            registry.wait(b, a, bound_a, Duration::MAX, slow)
        });
        await_that("b waits", || looks.load(Ordering::SeqCst) > 65);
        change(&registry, a);
        let soon = Duration::from_millis(20);
        assert_eq!(registry.wait(a, b, bound_b, soon, || false), Some(false));
        registry.wake(a);
        drop(noticed);
        assert_eq!(waiter.join().expect("no panic"), Some(true));
    });
}

/// A waiter that has not noticed yet that its wait is over is in no circle.
#[test]
fn a_wait_for_a_bound_that_has_moved_closes_no_circle() {
    a_wait_that_is_over_is_in_no_circle(Begin::WriterAtBegin, false, |registry, a| {
        registry.set_moving(a);
        registry.draw_commit(a, Timestamp::ZERO);
    });
}

/// The same, if the other has released the lock and goes on.
#[test]
fn a_wait_for_a_lock_that_is_free_closes_no_circle() {
    a_wait_that_is_over_is_in_no_circle(Begin::LateWriter, true, |registry, a| registry.wake(a));
}

/// If the other has released another lock, the waiter is still in the circle once it has noticed.
#[test]
fn a_wait_that_goes_on_closes_a_circle() {
    let registry = registry(ClockSource::SharedCounter);
    let [a, b] = [0, 1].map(|_| registry.begin(Begin::LateWriter).expect("a slot").0);
    let [bound_a, bound_b] = [a, b].map(|slot| registry.pending(slot));
    let [looks_a, looks_b] = [0; 2].map(AtomicU32::new);
    let (a_waits, b_is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    // Far longer than it takes. It ends a wait only if the circle is missed.
    let long = Duration::from_secs(60);
    thread::scope(|scope| {
        let announced = SaysDone(&a_waits);
        let waiter = scope.spawn(|| {
            let slow = || {
                if looks_b.fetch_add(1, Ordering::SeqCst) == 65 {
                    await_that("a waits", || a_waits.load(Ordering::SeqCst));
                }
                false
            };
            let outcome = registry.wait(b, a, bound_a, long, slow);
            b_is_over.store(true, Ordering::SeqCst);
            registry.release(b);
            outcome
        });
        await_that("b waits", || looks_b.load(Ordering::SeqCst) > 65);
        registry.wake(a);
        let mut announced = Some(announced);
        let over = || {
            if looks_a.fetch_add(1, Ordering::SeqCst) == 65 {
                announced.take();
            }
            b_is_over.load(Ordering::SeqCst)
        };
        assert_eq!(registry.wait(a, b, bound_b, long, over), Some(true));
        assert_eq!(waiter.join().expect("no panic"), None, "b is refused");
    });
}

/// Of the transactions of a circle, exactly one is refused, however close
/// together they begin to wait. Then it ends, and the others go on.
#[test]
fn a_circle_has_one_victim() {
    for members in [2, 3] {
        let registry = registry(ClockSource::SharedCounter);
        for _ in 0..steps(2000) {
            let slots: Vec<_> =
                (0..members).map(|_| registry.begin(Begin::LateWriter).expect("a slot").0).collect();
            let bounds: Vec<_> = slots.iter().map(|slot| registry.pending(*slot)).collect();
            let ended: Vec<_> = slots.iter().map(|_| AtomicBool::new(false)).collect();
            let together = Barrier::new(members);
            let run = |n: usize| {
                let other = (n + 1) % members;
                together.wait();
                let over = || ended[other].load(Ordering::SeqCst);
                let outcome = registry.wait(slots[n], slots[other], bounds[other], Duration::MAX, over);
                ended[n].store(true, Ordering::SeqCst);
                registry.release(slots[n]);
                outcome
            };
            let run = &run;
            let outcomes: Vec<_> = thread::scope(|scope| {
                let threads: Vec<_> = (0..members).map(|n| scope.spawn(move || run(n))).collect();
                threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
            });
            let victims = outcomes.iter().filter(|outcome| outcome.is_none()).count();
            assert_eq!(victims, 1, "{outcomes:?}");
            assert!(outcomes.iter().flatten().all(|free| *free), "{outcomes:?}");
        }
    }
}

#[test]
fn a_slot_is_waited_for() {
    let registry = registry(ClockSource::SharedCounter);
    let begin = |limit| registry.begin_within(Begin::WriterAtBegin, WRITER_SLOTS, limit);
    let mut slots: Vec<_> = (0..WRITER_SLOTS).map(|_| begin(Duration::ZERO).expect("a slot").0).collect();
    assert_eq!(begin(Duration::ZERO), Err(Full));
    assert_eq!(begin(Duration::from_millis(10)), Err(Full));
    // More wait than slots are freed at once, and each that gets one frees it.
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..20)
            .map(|_| {
                scope.spawn(|| {
                    let (slot, _) = begin(Duration::MAX).expect("a slot in the end");
                    registry.release(slot);
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(5));
        assert!(waiting.iter().all(|thread| !thread.is_finished()), "all slots are taken");
        registry.release(slots.pop().expect("a slot"));
    });
    slots.into_iter().for_each(|slot| registry.release(slot));
    assert_eq!(registry.running(), 0);
}

#[test]
fn marks_never_fall() {
    const END: u64 = if cfg!(miri) { 200 } else { 10_000 };
    let marks = ReadMarks::default();
    let (table, tuple) = (TableId(17), TupleId(4));
    assert_eq!(marks.highest(table, tuple), Timestamp::ZERO);
    for (ts, highest) in [(50, 50), (20, 50), (51, 51)] {
        marks.raise(table, tuple, Timestamp::from_raw(ts));
        assert_eq!(marks.highest(table, tuple).get(), highest);
    }
    assert_eq!(marks.highest(table, TupleId(5)), Timestamp::ZERO, "neighbours have separate cells");
    thread::scope(|scope| {
        for thread in 0..4u64 {
            let marks = &marks;
            scope.spawn(move || {
                for n in 0..END {
                    let ts = Timestamp::from_raw(n * 4 + thread);
                    marks.raise(table, TupleId(n % 8), ts);
                    assert!(marks.highest(table, TupleId(n % 8)) >= ts);
                }
            });
        }
    });
    for tuple in 0..8u64 {
        assert_eq!(marks.highest(table, TupleId(tuple)).get(), (END - 8 + tuple) * 4 + 3);
    }
}

/// Regression, found by `indexes_agree_with_scans_beside_an_eager_collector`,
/// seed 11. A late writer had drawn its bound and not yet announced it. The
/// running set did not include the writer, and a safe reader that began later
/// read there.
#[test]
fn a_late_writer_is_not_overlooked_before_it_announces_its_bound() {
    for source in SOURCES {
        let registry = registry(source);
        let (writer, begin) = registry.begin(Begin::LateWriter).expect("a slot");
        let before = registry.running_set().expect("no transaction commits");
        assert!(before.may_see(begin, Timestamp::MAX) && before.min() <= begin, "{source:?}");
        registry.set_committing(writer);
        // It may have much to look at, and wait for others, before it draws.
        assert!(registry.running_set().is_some(), "{source:?}");
        registry.set_moving(writer);
        assert_eq!(registry.running_set(), None, "{source:?}");
        let commit = registry.draw_commit(writer, Timestamp::ZERO);
        let set = registry.running_set().expect("it has announced where it will write");
        let (reader, ts) = registry.begin(Begin::SafeReader).expect("a slot");
        assert!(ts < commit, "{source:?}");
        assert!(set.may_see(ts, Timestamp::from_raw(ts.get() + 1)), "{source:?}");
        registry.release(reader);
        registry.release(writer);
    }
}

/// A safe reader that begins later reads only where the running set says that a
/// transaction may read.
#[test]
fn safe_readers_stay_within_the_running_set() {
    for source in SOURCES {
        let registry = registry(source);
        for _ in 0..steps(1000) {
            let set = registry.running_set().expect("no transaction is beginning");
            let (reader, ts) = registry.begin(Begin::SafeReader).expect("a slot");
            assert!(set.may_see(ts, Timestamp::from_raw(ts.get() + 1)), "{source:?}");
            registry.release(reader);
        }
    }
}
