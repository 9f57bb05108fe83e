//! Runs clients against a database for a while and measures them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::latency::Latencies;
use pantile_testkit::Random;

/// How a transaction ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It committed.
    Committed,
    /// It rolled back because its input demands it.
    RolledBack,
}

/// One client: a stream of transactions, one after the other.
pub trait Client: Send {
    /// Draws the next transaction with all its inputs, and returns the number
    /// of its kind.
    fn draw(&mut self) -> usize;

    /// Runs the drawn transaction once. After an error that allows a retry,
    /// the runner calls this again.
    ///
    /// # Errors
    /// Those of the engine; a row that must exist is missing.
    fn attempt(&mut self) -> Result<Outcome>;

    /// Whether its transactions are analytical queries: they ignore the rate,
    /// and are counted separately.
    fn is_analytical(&self) -> bool {
        false
    }
}

/// How long and how fast.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Time before measuring.
    pub warmup: Duration,
    /// Time of measuring.
    pub measure: Duration,
    /// Transactions that all clients, except analytical ones, together start
    /// per second, on a fixed schedule; 0 for as fast as possible.
    pub rate: f64,
}

/// What was measured of one kind of transaction.
#[derive(Clone, Debug, Default)]
pub struct KindMeasured {
    /// Their latencies; from the scheduled start when there is a schedule.
    pub latencies: Latencies,
    /// Those that rolled back because their input demanded it.
    pub rolled_back: u64,
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Seconds of measuring.
    pub seconds: f64,
    /// Per kind of transaction, by its number.
    pub kinds: Vec<KindMeasured>,
    /// Attempts that ended in a conflict and were made again.
    pub aborts: u64,
    /// Transactions that ended in each second.
    pub per_second: Vec<u64>,
    /// Analytical queries that ended in each second; `None` where no client
    /// is analytical.
    pub queries_per_second: Option<Vec<u64>>,
    /// All of these queries.
    pub queries: u64,
    /// Whether it was stopped early.
    pub interrupted: bool,
}

impl Measured {
    /// Transactions that ended, committed or rolled back, without queries.
    pub fn transactions(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.latencies.count()).sum::<u64>() - self.queries
    }

    fn new(kinds: usize, measure: Duration) -> Self {
        let seconds = measure.as_secs_f64().ceil() as usize;
        Self { kinds: vec![KindMeasured::default(); kinds], per_second: vec![0; seconds], ..Self::default() }
    }

    /// Adds what another client has measured.
    fn merge(&mut self, other: &Self, analytical: bool) {
        for (mine, others) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.latencies.merge(&others.latencies);
            mine.rolled_back += others.rolled_back;
        }
        self.aborts += other.aborts;
        let per_second = if analytical {
            self.queries += other.transactions();
            self.queries_per_second.get_or_insert_with(|| vec![0; other.per_second.len()])
        } else {
            &mut self.per_second
        };
        for (mine, others) in per_second.iter_mut().zip(&other.per_second) {
            *mine += others;
        }
    }
}

/// A sleeping thread checks this often whether it should stop.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// The system may end a sleep this much late.
const SLEEP_IS_LATE: Duration = Duration::from_micros(150);

/// What [`run`] reports while clients run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Moment {
    /// Measuring begins.
    Begin,
    /// Some time has passed, in all.
    Passed(Duration),
    /// A second of measuring is over, or what is left of one at the end.
    Second(Second),
    /// Measuring ends.
    End,
}

/// A second of measuring.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Second {
    /// Its number, from 1.
    pub number: usize,
    /// How long it was.
    pub seconds: f64,
    /// Transactions known at its end to have ended in it.
    pub transactions: u64,
    /// The same of queries, where a client is analytical.
    pub queries: Option<u64>,
}

const SECOND: Duration = Duration::from_secs(1);

/// Transactions that one client has ended while measuring, readable while it
/// runs; on a cache line of its own.
#[repr(align(64))]
struct Count {
    ended: AtomicU64,
    /// Whether they are queries.
    analytical: bool,
}

impl Count {
    /// The client is the only one that writes.
    #[inline]
    fn increment(&self) {
        self.ended.store(self.ended.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// A quarter of the longest wait of a client after its second abort.
const SHORTEST_BACK_OFF: Duration = Duration::from_micros(2);

/// That time doubles this often, once with each abort: up to 128 us, about the
/// time of a commit that must reach a disk.
const BACK_OFF_DOUBLINGS: u32 = 6;

/// After this many aborts two transactions may be aborting each other forever.
const HOPELESS_ABORTS: u32 = 200;

/// The longest wait from then on: longer than a transaction takes.
const LONGEST_BACK_OFF: Duration = Duration::from_millis(2);

/// The points in time that all clients share.
#[derive(Clone, Copy)]
struct Schedule {
    start: Instant,
    measure_from: Instant,
    measure_to: Instant,
    /// Between two transactions of one client, when there is a schedule.
    interval: Option<Duration>,
    /// Whether a client that waits may keep its core busy.
    spin: bool,
}

/// Runs every client on a thread of its own, and measures.
///
/// Calls `tell` while the clients run; for the last second and the end, after
/// they have been told to stop. `stop` ends the run early.
///
/// # Errors
/// The first error of a client that allows no retry;
/// [`Error::Interrupted`] when told to stop before measuring began.
pub fn run<C: Client>(
    clients: Vec<C>,
    kinds: usize,
    pace: Pace,
    stop: impl Fn() -> bool,
    mut tell: impl FnMut(Moment),
) -> Result<Measured> {
    let count = clients.len().max(1);
    // Time enough for the threads to start.
    let start = Instant::now() + Duration::from_millis(5 + count as u64 / 4);
    let measure_from = start + pace.warmup;
    let scheduled = clients.iter().filter(|client| !client.is_analytical()).count();
    let schedule = Schedule {
        start,
        measure_from,
        measure_to: measure_from + pace.measure,
        interval: (pace.rate > 0.0).then(|| Duration::from_secs_f64(scheduled as f64 / pace.rate)),
        spin: count <= crate::machine::cores(),
    };
    let ended = AtomicBool::new(false);
    let counts: Vec<Count> = clients
        .iter()
        .map(|client| Count { ended: AtomicU64::new(0), analytical: client.is_analytical() })
        .collect();
    let mut nth_scheduled = 0;
    thread::scope(|scope| {
        let threads: Vec<_> = clients
            .into_iter()
            .zip(&counts)
            .enumerate()
            .map(|(n, (client, ended_so_far))| {
                let interval = schedule.interval.filter(|_| !ended_so_far.analytical);
                let schedule = Schedule { interval, ..schedule };
                let share = f64::from(nth_scheduled) / scheduled.max(1) as f64;
                let offset = interval.unwrap_or_default().mul_f64(share);
                nth_scheduled += u32::from(!ended_so_far.analytical);
                let (own, ended) = (Measured::new(kinds, pace.measure), &ended);
                scope.spawn(move || {
                    // Clients take nodes in turn, where there are nodes.
                    pantile_nvm::join_node(n);
                    Loop { client, schedule, own, ended_so_far, random: Random::new(n as u64, 0), ended }
                        .run(schedule.start + offset)
                })
            })
            .collect();
        let watch = Watch { start, stop: &stop, ended: &ended, counts: &counts };
        let reached = watch.sleep_until(measure_from, &mut tell);
        let mut seconds = 0.0;
        if reached {
            tell(Moment::Begin);
            seconds = watch.measure(measure_from, pace.measure, &mut tell).as_secs_f64();
            tell(Moment::End);
        }
        ended.store(true, Ordering::Relaxed);
        let mut all = Measured::new(kinds, pace.measure);
        for (thread, count) in threads.into_iter().zip(&counts) {
            all.merge(&thread.join().map_err(|_| Error::Panicked)??, count.analytical);
        }
        if !reached {
            return Err(Error::Interrupted { during: "warming up" });
        }
        all.seconds = seconds;
        all.interrupted = stop();
        let whole = seconds.ceil() as usize;
        all.per_second.truncate(whole);
        all.queries_per_second.iter_mut().for_each(|queries| queries.truncate(whole));
        Ok(all)
    })
}

/// The measuring thread.
struct Watch<'a> {
    start: Instant,
    stop: &'a dyn Fn() -> bool,
    ended: &'a AtomicBool,
    counts: &'a [Count],
}

impl Watch<'_> {
    /// Returns whether the time was reached; if not, the run has ended early.
    fn sleep_until(&self, time: Instant, tell: &mut dyn FnMut(Moment)) -> bool {
        loop {
            let left = time.saturating_duration_since(Instant::now());
            if left.is_zero() || (self.stop)() || self.ended.load(Ordering::Relaxed) {
                return left.is_zero();
            }
            thread::sleep(left.min(LONGEST_SLEEP));
            tell(Moment::Passed(self.start.elapsed()));
        }
    }

    /// Reports the seconds one by one; returns how long measuring took.
    fn measure(&self, from: Instant, measure: Duration, tell: &mut dyn FnMut(Moment)) -> Duration {
        let (mut passed, mut transactions, mut queries) = (Duration::ZERO, 0, 0);
        let has_queries = self.counts.iter().any(|count| count.analytical);
        for number in 1.. {
            let end = (passed + SECOND).min(measure);
            let reached = self.sleep_until(from + end, tell);
            let now = if reached { end } else { from.elapsed().clamp(passed, end) };
            let over = !reached || end == measure;
            // Reporting the end takes time, which must not be measured.
            self.ended.fetch_or(over, Ordering::Relaxed);
            let (transactions_so_far, queries_so_far) = (self.ended(false), self.ended(true));
            tell(Moment::Second(Second {
                number,
                seconds: (now - passed).as_secs_f64(),
                transactions: transactions_so_far - transactions,
                queries: has_queries.then_some(queries_so_far - queries),
            }));
            (passed, transactions, queries) = (now, transactions_so_far, queries_so_far);
            if over {
                break;
            }
        }
        passed
    }

    /// Transactions that have ended, or queries.
    fn ended(&self, analytical: bool) -> u64 {
        let counts = self.counts.iter().filter(|count| count.analytical == analytical);
        counts.map(|count| count.ended.load(Ordering::Relaxed)).sum()
    }
}

/// A client's thread.
struct Loop<'a, C> {
    client: C,
    schedule: Schedule,
    own: Measured,
    ended_so_far: &'a Count,
    random: Random,
    ended: &'a AtomicBool,
}

impl<C: Client> Loop<'_, C> {
    fn run(mut self, first: Instant) -> Result<Measured> {
        // When this thread ends, all end: the time is over, or it has failed.
        let _end = EndAll(self.ended);
        self.wait_until(first.min(self.schedule.measure_to));
        let mut began = first;
        while !self.ended.load(Ordering::Relaxed) {
            let kind = self.client.draw();
            let Some((outcome, aborts)) = self.complete()? else { break };
            let now = Instant::now();
            if now >= self.schedule.measure_to {
                break;
            }
            self.count(kind, outcome, aborts, began, now);
            began = match self.schedule.interval {
                None => now,
                Some(interval) => {
                    self.wait_until((began + interval).min(self.schedule.measure_to));
                    began + interval
                }
            };
        }
        Ok(self.own)
    }

    /// Runs the transaction until it ends; `None` if the run ends first.
    fn complete(&mut self) -> Result<Option<(Outcome, u32)>> {
        let mut aborts = 0;
        loop {
            match self.client.attempt() {
                Ok(outcome) => return Ok(Some((outcome, aborts))),
                Err(error) if !error.is_retryable() => return Err(error),
                Err(_) if self.ended.load(Ordering::Relaxed) => return Ok(None),
                Err(_) => aborts += 1,
            }
            self.back_off(aborts);
        }
    }

    /// Waits for a random time that grows with the aborts: otherwise two
    /// transactions could abort each other forever.
    fn back_off(&mut self, aborts: u32) {
        if aborts < 2 {
            return;
        }
        let most = match aborts {
            ..HOPELESS_ABORTS => SHORTEST_BACK_OFF * (1 << aborts.min(BACK_OFF_DOUBLINGS)),
            _ => LONGEST_BACK_OFF,
        };
        let until = Instant::now() + most.mul_f64(self.random.fraction());
        while Instant::now() < until {
            // The transaction in the way may need this core to finish.
            thread::yield_now();
        }
    }

    fn count(&mut self, kind: usize, outcome: Outcome, aborts: u32, began: Instant, now: Instant) {
        let Some(since) = now.checked_duration_since(self.schedule.measure_from) else { return };
        let own = &mut self.own;
        own.kinds[kind].latencies.record(now - began);
        own.kinds[kind].rolled_back += u64::from(outcome == Outcome::RolledBack);
        own.aborts += u64::from(aborts);
        self.ended_so_far.increment();
        if let Some(second) = own.per_second.get_mut(since.as_secs() as usize) {
            *second += 1;
        }
    }

    /// Sleeps until the time or the end; the last stretch awake where a core is free.
    fn wait_until(&self, time: Instant) {
        let awake = if self.schedule.spin { SLEEP_IS_LATE } else { Duration::ZERO };
        while let Some(left) = time.checked_duration_since(Instant::now()) {
            if left.is_zero() || self.ended.load(Ordering::Relaxed) {
                return;
            }
            match left.checked_sub(awake) {
                Some(long) if !long.is_zero() => thread::sleep(long.min(LONGEST_SLEEP)),
                _ => std::hint::spin_loop(),
            }
        }
    }
}

/// Raises the flag when dropped, by a panic too.
pub(crate) struct EndAll<'a>(pub &'a AtomicBool);

impl Drop for EndAll<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "runner_test.rs"]
pub(crate) mod tests;
