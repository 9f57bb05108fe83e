//! `pantile paper`: the published results on this machine.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::ProgressBar;
use pantile_bench::machine;
use pantile_bench::scaling::transfer_seconds;
use pantile_paper::agreement::Agreement;
use pantile_paper::claims::{self, Claim};
use pantile_paper::engine::Engine;
use pantile_paper::execute::{Conditions, Execution, Progress, execute};
use pantile_paper::numbers::FEWEST;
use pantile_paper::outlook::outlooks;
use pantile_paper::plan::Plan;
use pantile_paper::report::Report;
use pantile_paper::size::Size;
use pantile_paper::spec::Step;
use pantile_paper::store::{Build, Store};

use crate::exit::Failure;
use crate::figures::whole;
use crate::output::print;
use crate::progress;
use crate::values::number;

pub const EXAMPLES: &str = "Examples:
  pantile paper --quick                 (everything once, in ten minutes)
  pantile paper TB-7a TB-12             (two of them, in full)
  pantile paper --list
  pantile paper --compare docs/results/claims.json report/claims.json

The same command continues an interrupted report.";

/// Settings of `paper`.
#[derive(Args, Debug)]
pub struct PaperArgs {
    /// Claims to judge, by the names that --list prints [default: all].
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Small data and short runs: everything once, in ten minutes on two cores instead of three hours. A
    /// verdict needs three repetitions, for which there is time if few claims are named.
    #[arg(long)]
    quick: bool,
    /// List the claims and exit.
    #[arg(long)]
    list: bool,
    /// Say how far two reports agree, by their claims.json, and exit.
    #[arg(long, action = clap::ArgAction::Set, num_args = 2, value_names = ["FILE", "FILE"], conflicts_with_all = ["ids", "quick", "list"])]
    compare: Option<Vec<PathBuf>>,
    /// Directory of the report, and of the runs of an interrupted report.
    #[arg(long, value_name = "DIR", default_value = "report")]
    out: PathBuf,
    /// Discard the runs that are there and start over.
    #[arg(long)]
    fresh: bool,
    /// Seconds that all runs together may take; runs that do not fit are shortened, then left out
    /// [default: 580 with --quick, else 10720].
    #[arg(long, value_name = "SECONDS", value_parser = |text: &str| number(text, f64::MIN_POSITIVE))]
    budget: Option<f64>,
}

/// Runs `pantile paper`.
pub fn run(args: &PaperArgs, stop: &AtomicBool) -> Result<(), Failure> {
    if let Some([first, second]) = args.compare.as_deref() {
        return print(&Agreement::of(first, second)?.to_string());
    }
    let claims = claims::named(&args.ids)?;
    if args.list {
        return print(&list(&claims));
    }
    let cores = machine::cores();
    let size = if args.quick { Size::quick(cores) } else { Size::full(cores) };
    let budget = args.budget.unwrap_or(size.budget);
    let shown = Shown::new();
    let (mut store, before, note) = Store::open(&args.out, Build::this(), args.fresh)?;
    if let Some(note) = note {
        shown.note(&note);
    }
    let plan = Plan::new(&claims, &size, budget, &Engine);
    let began = Instant::now();
    let conditions =
        Conditions { runner: &Engine, stop, clock: &|| began.elapsed(), progress: &shown, budget };
    let done = execute(&plan, before, &mut store, &conditions)?;
    let outlooks = match transfer_seconds() {
        Ok(transfer) => outlooks(&claims, &done.results, &plan.size, transfer),
        // A machine with one core allows no predictions.
        Err(_) => Vec::new(),
    };
    let report = Report::new(&claims, &plan, &done, Build::this(), &outlooks);
    let page = report.write(&args.out)?;
    print(&verdicts(&report))?;
    print(&format!("{}written: {}\n", remarks(&done), page.display()))?;
    match done.failed.first() {
        None => Ok(()),
        Some(first) => Err(Failure::failed(format!("{} runs failed: {first}", done.failed.len()))),
    }
}

fn list(claims: &[&Claim]) -> String {
    claims.iter().map(|claim| format!("{:12} {} ({})\n", claim.id, claim.title, claim.source)).collect()
}

fn verdicts(report: &Report) -> String {
    let line = |entry: &pantile_paper::report::Entry| {
        let judgement = &entry.finding.judgement;
        format!("{:12} {:22} {}\n", entry.claim.id, judgement.verdict.words(), judgement.reason)
    };
    report.entries.iter().map(line).collect()
}

fn remarks(done: &Execution) -> String {
    let mut text = String::new();
    if done.interrupted {
        text += "interrupted; the same command goes on with what is missing\n";
    }
    if done.left_out > 0 {
        text += &format!("{} runs left out for lack of time\n", done.left_out);
    }
    if done.too_few > 0 {
        text += &format!(
            "{} runs made fewer than {FEWEST} times for lack of time, which decides nothing; judge fewer claims at once or raise --budget\n",
            done.too_few
        );
    }
    if done.not_repeated > 0 {
        text += &format!(
            "{} further runs, which might have decided conditions or shown causes, left out for lack of time\n",
            done.not_repeated
        );
    }
    text
}

/// Shows the progress of the runs: a bar on a terminal, a line for each run in a pipe.
struct Shown {
    bar: Option<ProgressBar>,
    /// The number of runs, and the number of the current one.
    count: RefCell<(usize, usize)>,
}

impl Shown {
    fn new() -> Self {
        let bar = progress::bar("{pos}/{len} [{bar:30}] {elapsed_precise} {msg}", None);
        Self { bar, count: RefCell::default() }
    }
}

fn minutes(time: Duration) -> String {
    humantime::format_duration(Duration::from_secs(time.as_secs())).to_string()
}

impl Progress for Shown {
    fn begin(&self, runs: usize, estimate: Duration) {
        self.note(&format!(
            "{runs} runs in about {}, and more of what is undecided then, as far as there is time",
            minutes(estimate)
        ));
        self.count.borrow_mut().0 = runs;
        if let Some(bar) = &self.bar {
            bar.set_length(runs as u64);
            bar.enable_steady_tick(Duration::from_millis(500));
        }
    }

    fn run(&self, number: usize, step: &Step) {
        let mut count = self.count.borrow_mut();
        *count = (count.0.max(number), number);
        if let Some(bar) = &self.bar {
            bar.set_length(count.0 as u64);
            bar.set_position(number as u64 - 1);
            bar.set_message(format!("{} {}", step.run.gc, step.run.work.arguments()));
        }
    }

    fn ended(&self, step: &Step, outcome: Result<f64, &str>, elapsed: Duration) {
        let (runs, number) = *self.count.borrow();
        let outcome = match outcome {
            // What is traced or opened again has no throughput.
            Ok(_) if step.run.flash.is_some() || step.run.recovery.is_some() => "done".into(),
            Ok(speed) => format!("{} txn/s", whole(Some(speed))),
            Err(why) => format!("failed: {why}"),
        };
        let key = step.run.key();
        let what = key.strip_prefix("pantile bench ").unwrap_or(&key);
        let line =
            format!("{number}/{runs} {} run {} of {what}: {outcome}", minutes(elapsed), step.repetition);
        if self.bar.is_none() || outcome.starts_with("failed") {
            self.note(&line);
        }
    }

    fn note(&self, line: &str) {
        progress::note(self.bar.as_ref(), line);
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
