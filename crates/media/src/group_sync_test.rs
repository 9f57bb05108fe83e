use super::*;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

fn sharing(call: SyncCall, window: Duration) -> Arc<GroupSync> {
    Arc::new(GroupSync::new(call, Arc::default(), window))
}

/// Waits for a condition that another thread will bring about.
#[track_caller]
fn until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(600);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain");
        thread::yield_now();
    }
}

fn waiting(sync: &GroupSync) -> u64 {
    sync.state.lock().waiting
}

/// A sync that reports when it starts and ends when it is told to.
fn stepped() -> (SyncCall, mpsc::Receiver<()>, mpsc::Sender<io::Result<()>>) {
    let (started, starts) = mpsc::channel();
    let (end, ends) = mpsc::channel();
    let ends = Mutex::new(ends);
    let call = move || {
        started.send(()).expect("the test listens");
        ends.lock().recv().expect("the test goes on")
    };
    (Box::new(call), starts, end)
}

#[test]
fn sixteen_fences_take_two_syncs() {
    let (call, starts, end) = stepped();
    let sync = sharing(call, Duration::ZERO);
    let start = || {
        let sync = Arc::clone(&sync);
        thread::spawn(move || sync.sync().expect("sync"))
    };
    let mut callers = vec![start()];
    starts.recv().expect("the first leads");
    // The sync under way started before these were called and cannot serve them.
    callers.extend((0..15).map(|_| start()));
    until(|| waiting(&sync) == 15);
    end.send(Ok(())).expect("end of the first");
    starts.recv().expect("one of the others leads");
    end.send(Ok(())).expect("end of the second");
    let led = callers.into_iter().map(|caller| caller.join().expect("caller"));
    assert_eq!(led.filter(|&led| led).count(), 2);
}

#[test]
fn a_fence_is_never_served_by_a_sync_that_started_before_it() {
    // Each thread raises `written` and then syncs; a sync makes durable what
    // was written when it started.
    let written: Arc<Vec<AtomicU64>> = Arc::new((0..16).map(|_| AtomicU64::new(0)).collect());
    let durable: Arc<Vec<AtomicU64>> = Arc::new((0..16).map(|_| AtomicU64::new(0)).collect());
    let calls = Arc::new(AtomicU64::new(0));
    let call = {
        let (written, durable, calls) = (written.clone(), durable.clone(), calls.clone());
        move || {
            let seen: Vec<u64> = written.iter().map(|w| w.load(Ordering::SeqCst)).collect();
            calls.fetch_add(1, Ordering::SeqCst);
            thread::yield_now();
            for (place, seen) in durable.iter().zip(seen) {
                place.fetch_max(seen, Ordering::SeqCst);
            }
            Ok(())
        }
    };
    let sync = sharing(Box::new(call), Duration::ZERO);
    let led: u64 = thread::scope(|scope| {
        let worker = |me: usize| {
            let (sync, written, durable) = (&sync, &written, &durable);
            move || {
                let mut led = 0;
                for round in 1..=50 {
                    written[me].store(round, Ordering::SeqCst);
                    led += u64::from(sync.sync().expect("sync"));
                    assert!(durable[me].load(Ordering::SeqCst) >= round);
                }
                led
            }
        };
        let workers: Vec<_> = (0..16).map(|me| scope.spawn(worker(me))).collect();
        workers.into_iter().map(|w| w.join().expect("worker")).sum()
    });
    assert_eq!(led, calls.load(Ordering::SeqCst));
}

#[test]
fn a_failed_sync_fails_its_group_and_everything_after_without_a_retry() {
    let (call, starts, end) = stepped();
    let sync = sharing(call, Duration::ZERO);
    let start = || {
        let sync = Arc::clone(&sync);
        thread::spawn(move || sync.sync())
    };
    let mut callers = vec![start()];
    starts.recv().expect("the first leads");
    callers.extend((0..3).map(|_| start()));
    until(|| waiting(&sync) == 3);
    end.send(Err(io::Error::other("lost power"))).expect("failure");
    for caller in callers {
        let error = caller.join().expect("caller").expect_err("failed");
        assert!(error.to_string().contains("lost power"), "{error}");
    }
    sync.sync().expect_err("latched");
    assert!(starts.try_recv().is_err(), "no sync was tried again");
}

#[test]
fn a_failure_elsewhere_leaves_no_caller_waiting() {
    // A write fails while a sync is under way, which then ends well: all callers
    // that wait for the next sync must get the failure, and not only one.
    let (call, starts, end) = stepped();
    let failure = Arc::new(Failure::default());
    let sync = Arc::new(GroupSync::new(call, Arc::clone(&failure), Duration::ZERO));
    let start = || {
        let sync = Arc::clone(&sync);
        thread::spawn(move || sync.sync())
    };
    let first = start();
    starts.recv().expect("the first leads");
    let others: Vec<_> = (0..5).map(|_| start()).collect();
    until(|| waiting(&sync) == 5);
    failure.latch("a write of another thread");
    end.send(Ok(())).expect("end of the first");
    first.join().expect("first").expect("its sync ended well");
    let deadline = Instant::now() + Duration::from_secs(600);
    until(|| others.iter().all(|other| other.is_finished()) || Instant::now() > deadline);
    for other in others {
        assert!(other.is_finished(), "a caller waits for a sync that will never start");
        let error = other.join().expect("other").expect_err("failed");
        assert!(error.to_string().contains("a write of another thread"), "{error}");
    }
}

#[test]
fn a_point_is_done_by_a_sync_that_starts_after_it_and_by_no_other() {
    let (call, starts, end) = stepped();
    let sync = sharing(call, Duration::ZERO);
    let start = || {
        let sync = Arc::clone(&sync);
        thread::spawn(move || sync.sync())
    };
    let before = sync.next();
    assert!(!sync.is_done(before), "nothing was synced yet");
    let first = start();
    starts.recv().expect("the first leads");
    let during = sync.next();
    assert!(!sync.is_done(before), "the sync is still under way");
    end.send(Ok(())).expect("end of the first");
    first.join().expect("first").expect("sync");
    assert!(sync.is_done(before));
    assert!(!sync.is_done(during), "that sync had started before");
    let second = start();
    starts.recv().expect("the second leads");
    let after = sync.next();
    end.send(Ok(())).expect("end of the second");
    second.join().expect("second").expect("sync");
    assert!(sync.is_done(during) && !sync.is_done(after));
}

#[test]
fn a_point_before_a_failed_sync_is_never_done() {
    let (call, starts, end) = stepped();
    let sync = sharing(call, Duration::ZERO);
    let point = sync.next();
    end.send(Ok(())).expect("end of the first");
    sync.sync().expect("sync");
    let lost = sync.next();
    end.send(Err(io::Error::other("lost power"))).expect("failure");
    sync.sync().expect_err("failed");
    sync.sync().expect_err("latched");
    assert!(sync.is_done(point), "what was durable stays so");
    assert!(!sync.is_done(lost) && !sync.is_done(sync.next()));
    assert_eq!(starts.try_iter().count(), 2, "nothing was tried again");
}

#[test]
fn a_leader_waits_for_the_companions_it_saw() {
    let (call, starts, end) = stepped();
    // A window that never ends: the test ends only if companions end the wait.
    let sync = sharing(call, Duration::from_secs(3600));
    let start = || {
        let sync = Arc::clone(&sync);
        thread::spawn(move || sync.sync().expect("sync"))
    };
    let first = start();
    starts.recv().expect("a lone committer does not wait");
    let second = start();
    until(|| waiting(&sync) == 1);
    end.send(Ok(())).expect("end");
    assert!(first.join().expect("first"));
    // Two were at work, so the second waits for the first to come back.
    until(|| sync.state.lock().led);
    assert!(starts.try_recv().is_err());
    let third = start();
    starts.recv().expect("both are there");
    end.send(Ok(())).expect("end");
    let led = [second, third].map(|caller| caller.join().expect("caller"));
    assert_eq!(led.iter().filter(|&&led| led).count(), 1);
}

#[test]
fn an_absent_companion_is_waited_for_no_longer_than_the_window() {
    let sync = sharing(Box::new(|| Ok(())), Duration::from_millis(1));
    sync.state.lock().expected = 5;
    assert!(sync.sync().expect("sync"));
    assert_eq!(sync.state.lock().expected, 1);
}

#[test]
fn many_threads_in_groups_all_return() {
    let sync = sharing(Box::new(|| Ok(())), Duration::from_micros(50));
    let together = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                together.wait();
                for _ in 0..50 {
                    sync.sync().expect("sync");
                }
            });
        }
    });
    let state = sync.state.lock();
    assert_eq!((state.waiting, state.parked.len(), state.led), (0, 0, false));
    assert!(sync.is_done(sync.next() - 1));
}
