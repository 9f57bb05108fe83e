use std::cell::{Cell, RefCell};
use std::path::Path;

use super::*;
use crate::claims;
use crate::measurement::Measurement;
use crate::size::Size;
use crate::spec::RunSpec;
use crate::store::Build;

/// Takes as long as estimated, times a factor. Fails with one collector, and is
/// interrupted after a number of runs.
struct Fake<'a> {
    now: Cell<f64>,
    factor: f64,
    fails: Option<&'static str>,
    /// What others take during the runs, one after the other; then nothing.
    others: RefCell<Vec<f64>>,
    stops_after: usize,
    ran: RefCell<Vec<String>>,
    stop: &'a AtomicBool,
}

impl<'a> Fake<'a> {
    fn new(stop: &'a AtomicBool) -> Self {
        Self {
            now: Cell::new(0.0),
            factor: 1.0,
            fails: None,
            others: RefCell::default(),
            stops_after: usize::MAX,
            ran: RefCell::default(),
            stop,
        }
    }
}

impl Runner for Fake<'_> {
    fn missing(&self, _: &RunSpec) -> Option<String> {
        None
    }

    fn run(&self, step: &Step, _: &AtomicBool) -> Ending {
        let run = &step.run;
        self.now.set(self.now.get() + run.cost() * self.factor);
        self.ran.borrow_mut().push(run.key());
        if self.fails == Some(run.gc) {
            return Ending::Failed("it broke".into());
        }
        if self.ran.borrow().len() > self.stops_after {
            self.stop.store(true, Ordering::Relaxed);
            return Ending::Interrupted;
        }
        let others_share = self.others.borrow_mut().pop();
        let txn_per_s = match run.gc {
            "none" => 1000.0,
            "tb-collect" => 910.0,
            "zen" => 750.0,
            "one-shot" | "n2db" => 680.0,
            _ => 640.0,
        };
        Ending::Measured(Box::new(Measurement { txn_per_s, others_share, ..Measurement::default() }))
    }
}

struct Quiet;

impl Progress for Quiet {
    fn begin(&self, _: usize, _: Duration) {}
    fn run(&self, _: usize, _: &Step) {}
    fn ended(&self, _: &Step, _: std::result::Result<f64, &str>, _: Duration) {}
    fn note(&self, _: &str) {}
    fn end(&self) {}
}

fn build(commit: &str) -> Build {
    Build { commit: commit.into(), machine: "m".into(), debug: false }
}

fn plan(runner: &Fake<'_>, budget: f64) -> Plan {
    Plan::new(&claims::named(&["TB-7a".into()]).unwrap(), &Size::quick(2), budget, runner)
}

fn run(fake: &Fake<'_>, plan: &Plan, budget: f64, dir: &Path, commit: &str) -> Execution {
    let (mut store, before, _) = Store::open(dir, build(commit), false).unwrap();
    let clock = || Duration::from_secs_f64(fake.now.get());
    let conditions = Conditions { runner: fake, stop: fake.stop, clock: &clock, progress: &Quiet, budget };
    execute(plan, before, &mut store, &conditions).unwrap()
}

#[test]
fn runs_made_before_are_not_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let first = Fake { stops_after: 7, ..Fake::new(&stop) };
    let plan = plan(&first, 1e6);
    // All are as fast as published, so that everything is held after these.
    let all = plan.steps.iter().filter(|step| step.repetition <= FEWEST).count();
    let cut = run(&first, &plan, 1e6, dir.path(), "a");
    assert!(cut.interrupted);
    assert_eq!((cut.made, cut.reused), (7, 0));

    stop.store(false, Ordering::Relaxed);
    let second = Fake::new(&stop);
    let done = run(&second, &plan, 1e6, dir.path(), "a");
    assert_eq!((done.made, done.reused, done.interrupted), (all - 7, 7, false));
    assert!(plan.steps.iter().all(|step| done.results.repetitions(&step.run.key()) == 3));

    let third = Fake::new(&stop);
    assert_eq!(run(&third, &plan, 1e6, dir.path(), "a").reused, all);
    assert!(third.ran.borrow().is_empty());
    // Runs of another commit do not count.
    assert_eq!(run(&third, &plan, 1e6, dir.path(), "b").made, all);
}

#[test]
fn slow_runs_lose_their_last_repetitions() {
    let dir = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let slow = Fake { factor: 2.5, ..Fake::new(&stop) };
    let plan = plan(&slow, 60.0);
    let done = run(&slow, &plan, 60.0, dir.path(), "a");
    // It learns from each run. The last run may still take longer than
    // estimated.
    let last = plan.steps[0].run.cost() * slow.factor;
    assert!(slow.now.get() <= 60.0 + last, "{}", slow.now.get());
    assert!(done.made < plan.steps.len());
    assert_eq!(done.left_out, 0);
    assert!(plan.steps.iter().all(|step| done.results.repetitions(&step.run.key()) > 0));
}

#[test]
fn a_run_that_fails_is_told_and_not_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let fake = Fake { fails: Some("zen"), ..Fake::new(&stop) };
    let plan = plan(&fake, 1e6);
    let done = run(&fake, &plan, 1e6, dir.path(), "a");
    assert_eq!(done.failed.len(), 1);
    assert_eq!(fake.ran.borrow().iter().filter(|key| key.contains("--gc zen")).count(), 1);
    let zen = plan.steps.iter().find(|step| step.run.gc == "zen").unwrap();
    assert_eq!(done.results.why_missing(&zen.run).unwrap(), "zen failed: it broke");
}

#[test]
fn an_interruption_says_why_runs_are_missing() {
    let dir = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(true);
    let fake = Fake::new(&stop);
    let plan = plan(&fake, 1e6);
    let done = run(&fake, &plan, 1e6, dir.path(), "a");
    assert!(done.interrupted && fake.ran.borrow().is_empty());
    let why = done.results.why_missing(&plan.steps[0].run).unwrap();
    assert_eq!(why, "the report was interrupted before its run");
}

#[test]
fn a_run_that_others_disturb_is_made_again_and_the_quietest_counts() {
    let dir = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let mut fake = Fake::new(&stop);
    let plan = plan(&fake, 1e6);
    // Runs of the first repetition are enough time for further attempts.
    let steps = plan.steps.iter().filter(|step| step.repetition == 1).count();
    let mut others = vec![0.02; steps];
    others.extend([0.3, 0.1, 0.2]);
    others.extend([0.3, 0.04]);
    others.reverse();
    *fake.others.get_mut() = others;
    fake.now.set(1e5);
    let done = run(&fake, &plan, 1e6, dir.path(), "a");
    assert_eq!(done.repeated, 3);
    assert_eq!(done.results.count(Measurement::is_disturbed), 1);
    assert_eq!(done.results.count(|run| run.others_share == Some(0.1)), 1);
    assert_eq!(done.results.count(|run| run.others_share == Some(0.04)), 1);
    assert_eq!(fake.ran.borrow().len(), done.made + 3);
}

#[test]
fn where_others_never_rest_repetitions_are_worth_more() {
    let dir = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let mut fake = Fake::new(&stop);
    *fake.others.get_mut() = vec![0.5; 1000];
    let plan = plan(&fake, 1e6);
    let done = run(&fake, &plan, 1e6, dir.path(), "a");
    assert!(done.repeated > 0 && done.repeated * 9 <= done.made, "{} of {}", done.repeated, done.made);
    assert!(plan.steps.iter().all(|step| done.results.repetitions(&step.run.key()) >= FEWEST));
}
