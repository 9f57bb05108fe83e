//! Runs many cases, until one fails or enough have run.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pantile::Collector;
use pantile_testkit::cut::{Broken, CutKind};

use crate::case::{Case, Failure, Totals};

/// When a campaign ends.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After this time. Cases in progress are finished.
    Time(Duration),
    /// After this many cases.
    Cases(u64),
    /// After this many power cuts.
    Cuts(u64),
}

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The seed of the first case; the others follow from it.
    pub seed: u64,
    /// The media, in rotation.
    pub kinds: Vec<CutKind>,
    /// The collectors, in rotation.
    pub collectors: Vec<Collector>,
    /// When to end.
    pub until: Until,
    /// How many cases run at the same time.
    pub threads: usize,
    /// A promise that the media break.
    pub broken: Option<Broken>,
    /// Only lives that keep the collector busy with a few rows.
    pub is_busy: bool,
}

/// The result of a campaign.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Totals by medium and collector.
    pub totals: BTreeMap<(&'static str, &'static str), Totals>,
    /// The failure with the lowest seed, if any.
    pub failure: Option<Failure>,
    /// The duration.
    pub time: Duration,
}

impl Outcome {
    /// The sum of all totals.
    pub fn total(&self) -> Totals {
        let mut total = Totals::default();
        self.totals.values().for_each(|one| total.add(one));
        total
    }
}

impl Campaign {
    /// The case with this number.
    pub fn case(&self, number: u64) -> Case {
        let kinds = self.kinds.len() as u64;
        Case {
            seed: self.seed + number,
            kind: self.kinds[(number % kinds) as usize],
            collector: self.collectors[(number / kinds) as usize % self.collectors.len()],
            broken: self.broken,
            is_busy: self.is_busy,
        }
    }

    /// Runs the campaign. `stop` ends it early. `progress` receives the totals
    /// after each case.
    pub fn run(&self, stop: &AtomicBool, progress: impl Fn(&Totals) + Sync) -> Outcome {
        let began = Instant::now();
        let next = AtomicU64::new(0);
        let failed = AtomicBool::new(false);
        let outcome = Mutex::new(Outcome::default());
        let is_enough = |number: u64, cuts: u64| match self.until {
            Until::Time(time) => began.elapsed() >= time,
            Until::Cases(cases) => number >= cases,
            Until::Cuts(most) => cuts >= most,
        };
        let work = || {
            let mut cuts = 0;
            while !stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if is_enough(number, cuts) {
                    return;
                }
                let case = self.case(number);
                let mut totals = Totals::default();
                let result = case.run(None, &mut totals);
                let mut outcome = outcome.lock().expect("no thread panics while it holds the lock");
                let key = (case.kind.name(), case.collector.name());
                outcome.totals.entry(key).or_default().add(&totals);
                if let Err(failure) = result {
                    failed.store(true, Ordering::Relaxed);
                    let is_first = outcome.failure.as_ref().is_none_or(|f| case.seed < f.case.seed);
                    if is_first {
                        outcome.failure = Some(failure);
                    }
                }
                let total = outcome.total();
                cuts = total.cuts;
                progress(&total);
            }
        };
        std::thread::scope(|scope| {
            (0..self.threads.max(1)).for_each(|_| drop(scope.spawn(work)));
        });
        let mut outcome = outcome.into_inner().expect("no thread panicked while it held the lock");
        outcome.time = began.elapsed();
        outcome
    }
}
