use std::sync::atomic::{AtomicUsize, Ordering};

use pantile_testkit::await_that;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

fn syncer() -> (Syncer, Arc<AtomicUsize>) {
    let syncer = Syncer::with_leisure(HOUR);
    assert!(syncer.has_thread(&Options::new()));
    (syncer, Arc::default())
}

fn leave(syncer: &Syncer, ended: &Arc<AtomicUsize>, tasks: usize) {
    for _ in 0..tasks {
        let ended = Arc::clone(ended);
        syncer.run_later(Box::new(move || {
            ended.fetch_add(1, Ordering::SeqCst);
        }));
    }
}

#[test]
fn what_somebody_waits_for_ends_at_once() {
    let (syncer, ended) = syncer();
    let mut expected = 0;
    for round in 0..50 {
        leave(&syncer, &ended, 1 + round % 5);
        expected += 1 + round % 5;
        syncer.urge().now();
        await_that("the syncer ends them", || ended.load(Ordering::SeqCst) == expected);
    }
}

#[test]
fn many_end_at_once() {
    let (syncer, ended) = syncer();
    leave(&syncer, &ended, MOST * 3);
    // The last ones are fewer.
    await_that("the syncer ends them", || ended.load(Ordering::SeqCst) > MOST * 2);
}

#[test]
fn all_end_with_the_database() {
    let (syncer, ended) = syncer();
    leave(&syncer, &ended, 10);
    drop(syncer);
    assert_eq!(ended.load(Ordering::SeqCst), 10);
}

#[test]
fn all_end_with_the_last_handle() {
    let (syncer, ended) = syncer();
    let last = syncer.last_commits();
    leave(&syncer, &ended, 10);
    drop(last);
    assert_eq!(ended.load(Ordering::SeqCst), 10);
    leave(&syncer, &ended, 1);
    await_that("what comes later is not left to others", || ended.load(Ordering::SeqCst) == 11);
}

/// The task that wakes a program may drop what had the last handle.
#[test]
fn a_task_with_the_last_handle_does_not_wait_for_itself() {
    let (syncer, ended) = syncer();
    let last = syncer.last_commits();
    syncer.run_later(Box::new(move || drop(last)));
    leave(&syncer, &ended, 1);
    syncer.urge().now();
    await_that("the syncer goes on", || ended.load(Ordering::SeqCst) == 1);
}

/// It may run a program's own waker.
#[test]
fn a_task_that_panics_ends_alone() {
    let (syncer, ended) = syncer();
    syncer.run_later(Box::new(|| panic!("a waker")));
    for expected in [10, 20] {
        leave(&syncer, &ended, 10);
        syncer.urge().now();
        await_that("the syncer goes on", || ended.load(Ordering::SeqCst) == expected);
    }
}

#[test]
fn nobody_hurries_it() {
    let (syncer, ended) = syncer();
    leave(&syncer, &ended, 10);
    thread::sleep(Duration::from_millis(20));
    assert_eq!(ended.load(Ordering::SeqCst), 0);
    drop(syncer);
}
