use super::*;
use pantile::Conflict;
use pantile_testkit::Patience;
use std::cell::RefCell;
use std::sync::atomic::AtomicU64;

/// Lets each client end `count` transactions, all side by side. Returns how many of each kind ended.
pub(crate) fn side_by_side<C: Client>(clients: Vec<C>, kinds: usize, count: u64) -> Vec<u64> {
    let ended: Vec<AtomicU64> = (0..kinds).map(|_| AtomicU64::new(0)).collect();
    thread::scope(|scope| {
        for mut client in clients {
            let ended = &ended;
            scope.spawn(move || {
                for _ in 0..count {
                    let kind = client.draw();
                    while let Err(error) = client.attempt() {
                        assert!(error.is_retryable(), "{error}");
                    }
                    ended[kind].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    ended.into_iter().map(AtomicU64::into_inner).collect()
}

/// Takes a millisecond per attempt; every third fails with a conflict.
struct Fake<'a> {
    attempts: &'a AtomicU64,
    conflicts: bool,
    fails_at: u64,
    analytical: bool,
}

impl Client for Fake<'_> {
    fn draw(&mut self) -> usize {
        1
    }

    fn attempt(&mut self) -> Result<Outcome> {
        thread::sleep(Duration::from_millis(1));
        let n = self.attempts.fetch_add(1, Ordering::Relaxed) + 1;
        if n == self.fails_at {
            return Err(pantile::Error::ReadOnly.into());
        }
        if self.conflicts && n.is_multiple_of(3) {
            return Err(pantile::Error::Conflict { conflict: Conflict::Locked, table: "t".into() }.into());
        }
        Ok(if n.is_multiple_of(2) { Outcome::RolledBack } else { Outcome::Committed })
    }

    fn is_analytical(&self) -> bool {
        self.analytical
    }
}

fn pace(rate: f64) -> Pace {
    Pace { warmup: Duration::from_millis(50), measure: Duration::from_millis(300), rate }
}

/// Runs again until enough was done: a machine that is busy with something
/// else may not get to it in time.
fn until(enough: impl Fn(&Measured) -> bool, measure: impl Fn() -> Measured) -> Measured {
    let patience = Patience::new();
    loop {
        let measured = measure();
        if enough(&measured) {
            return measured;
        }
        patience.check(|| format!("not enough, ever: {measured:?}"));
    }
}

fn fakes(attempts: &AtomicU64, n: usize) -> Vec<Fake<'_>> {
    (0..n).map(|_| Fake { attempts, conflicts: true, fails_at: 0, analytical: false }).collect()
}

#[test]
fn conflicts_are_retried_and_counted() {
    let attempts = AtomicU64::new(0);
    let measured = until(
        |measured| measured.transactions() > 50,
        || run(fakes(&attempts, 3), 2, pace(0.0), || false, |_| ()).unwrap(),
    );
    let done = measured.transactions();
    assert_eq!(measured.kinds[0].latencies.count(), 0);
    assert!(measured.kinds[1].rolled_back > 0);
    assert_eq!(measured.per_second, [done]);
    let share = measured.aborts as f64 / done as f64;
    assert!((0.2..0.8).contains(&share), "{share}");
    assert!((measured.seconds - 0.3).abs() < 0.001);
    assert!(!measured.interrupted);
}

#[test]
fn seconds_are_told_one_by_one_between_begin_and_end() {
    let attempts = AtomicU64::new(0);
    let told = RefCell::new(Vec::new());
    let pace = Pace { measure: Duration::from_millis(1300), ..pace(100.0) };
    let tell = |moment| told.borrow_mut().extend((!matches!(moment, Moment::Passed(_))).then_some(moment));
    let measured = until(
        |_| matches!(told.borrow()[1], Moment::Second(first) if first.transactions > 0),
        || {
            told.borrow_mut().clear();
            run(fakes(&attempts, 2), 2, pace, || false, tell).unwrap()
        },
    );
    let told = told.into_inner();
    let [Moment::Begin, Moment::Second(first), Moment::Second(last), Moment::End] = told[..] else {
        panic!("{told:?}");
    };
    assert_eq!((first.number, last.number), (1, 2));
    assert!((first.seconds - 1.0).abs() < 1e-9 && (last.seconds - 0.3).abs() < 1e-9, "{told:?}");
    assert!(first.transactions + last.transactions <= measured.transactions());
    assert_eq!(measured.per_second.len(), 2);
    assert_eq!(measured.per_second.iter().sum::<u64>(), measured.transactions());
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let attempts = AtomicU64::new(0);
    let measured = until(
        |measured| measured.transactions() >= 20,
        || run(fakes(&attempts, 2), 2, pace(100.0), || false, |_| ()).unwrap(),
    );
    let done = measured.transactions();
    // 30 are due in the time, and 5 in the warm-up, which may have ended late.
    assert!(done <= 35, "{done}");
}

#[test]
fn queries_are_counted_apart_and_keep_no_rate() {
    let (attempts, of_queries) = (AtomicU64::new(0), AtomicU64::new(0));
    let told = RefCell::new(Vec::new());
    let pace = Pace { warmup: Duration::ZERO, ..pace(100.0) };
    let measured = until(
        |measured| measured.transactions() >= 20 && measured.queries > 0,
        || {
            let mut clients = fakes(&attempts, 2);
            clients.push(Fake { attempts: &of_queries, conflicts: false, fails_at: 0, analytical: true });
            told.borrow_mut().clear();
            run(clients, 2, pace, || false, |moment| told.borrow_mut().push(moment)).unwrap()
        },
    );
    let told = told.into_inner();
    let done = measured.transactions();
    assert!(done <= 31, "{done}");
    assert_eq!(measured.per_second, [done]);
    let queries = measured.queries;
    assert!(queries <= of_queries.load(Ordering::Relaxed));
    assert_eq!(measured.queries_per_second, Some(vec![queries]));
    assert_eq!(measured.kinds[1].latencies.count(), done + queries);
    let second = told.iter().find_map(|moment| match moment {
        Moment::Second(second) => Some(*second),
        _ => None,
    });
    assert!(second.unwrap().queries.is_some_and(|told| told <= queries));
    let without = run(fakes(&attempts, 1), 2, pace, || false, |_| ()).unwrap();
    assert_eq!((without.queries, without.queries_per_second), (0, None));
}

#[test]
fn an_open_loop_counts_waiting_for_the_client() {
    let attempts = AtomicU64::new(0);
    // One client can do 1,000 a second at most; the queue only grows.
    let measured = until(
        |measured| measured.kinds[1].latencies.count() >= 20,
        || run(fakes(&attempts, 1), 2, pace(5_000.0), || false, |_| ()).unwrap(),
    );
    // Each takes a millisecond, and was due a fifth of one after the one before.
    let latencies = &measured.kinds[1].latencies;
    let waited = latencies.summary().unwrap().max;
    assert!(waited >= 790.0 * latencies.count() as f64, "{waited} us");
}

#[test]
fn the_first_error_ends_the_run() {
    let attempts = AtomicU64::new(0);
    let mut clients = fakes(&attempts, 2);
    clients[0].fails_at = 20;
    clients[1].fails_at = 20;
    let long = Pace { measure: Duration::from_secs(3600), ..pace(0.0) };
    let error = run(clients, 2, long, || false, |_| ()).unwrap_err();
    assert!(matches!(error, Error::Engine(pantile::Error::ReadOnly)), "{error}");
}

#[test]
fn stopping_early_keeps_what_was_measured() {
    let attempts = AtomicU64::new(0);
    // A hundred attempts after measuring has begun.
    let stop_at = AtomicU64::new(u64::MAX);
    let long = Pace { measure: Duration::from_secs(3600), ..pace(0.0) };
    let begin = |moment| {
        if matches!(moment, Moment::Begin) {
            stop_at.store(attempts.load(Ordering::Relaxed) + 100, Ordering::Relaxed);
        }
    };
    let stop = || attempts.load(Ordering::Relaxed) > stop_at.load(Ordering::Relaxed);
    let measured = run(fakes(&attempts, 2), 2, long, stop, begin).unwrap();
    assert!(measured.interrupted);
    assert!(measured.seconds < 3600.0);
    assert!(measured.transactions() > 10);
    assert!(!measured.per_second.is_empty());
}

#[test]
fn stopping_before_measuring_is_an_error() {
    let attempts = AtomicU64::new(0);
    let error = run(fakes(&attempts, 2), 2, pace(0.0), || true, |_| ()).unwrap_err();
    assert!(matches!(error, Error::Interrupted { .. }));
}
