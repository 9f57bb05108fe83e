//! `pantile crashtest --simulate`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use pantile::Collector;
use pantile_bench::load::Observer;
use pantile_bench::settings::Medium;
use pantile_sim::{Campaign, CutOfCase, Failure as Found, NegativeControl, Outcome, Totals, Until};
use pantile_testkit::cut::CutKind;
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::output::Output;
use crate::progress::Bars;

/// A negative control must be noticed within this time.
const CONTROL_LIMIT: Duration = Duration::from_secs(600);

/// Settings of `crashtest --simulate`.
#[derive(Args, Debug)]
pub struct SimulateArgs {
    /// Simulate power cuts instead: clients, collector and crashes run in one thread, and the seed
    /// determines everything. A round is a case in which a database is opened one to three times.
    #[arg(long)]
    pub simulate: bool,
    /// Power cuts after which no new case begins.
    #[arg(long, value_name = "N", requires = "simulate", conflicts_with_all = ["rounds", "seconds"])]
    cuts: Option<u64>,
    /// Repeat one cut of one case: LIFE:BOUNDARY:KEEP:CHOICE, and the same for a cut of the recovery.
    #[arg(long, value_name = "CUT", requires = "simulate", conflicts_with_all = ["rounds", "seconds"])]
    cut: Option<CutOfCase>,
    /// Disable one promise of the medium or one safeguard of the engine at a time; each must be
    /// noticed within ten minutes, and takes seconds. The name of one, or all.
    #[arg(long, value_name = "NAME", requires = "simulate", num_args = 0..=1, default_missing_value = "all")]
    controls: Option<String>,
}

/// The other settings of `crashtest`.
pub struct Settings {
    pub seed: u64,
    pub medium: Option<Medium>,
    pub gc: Option<Collector>,
    pub threads: Option<u16>,
    pub rounds: Option<u64>,
    pub seconds: Option<f64>,
    pub json: Option<PathBuf>,
}

/// Cases by default.
const CASES: u64 = 200;

/// Runs `pantile crashtest --simulate`.
pub fn run(args: &SimulateArgs, settings: &Settings, stop: &AtomicBool) -> Result<(), Failure> {
    let mut output = Output::open(settings.json.as_deref())?;
    if let Some(name) = &args.controls {
        return controls(name, settings, &mut output, stop);
    }
    let campaign = campaign(args, settings);
    if let Some(cut) = args.cut {
        let mut totals = Totals::default();
        return match campaign.case(0).run(Some(cut), &mut totals) {
            Ok(()) => output.write("nothing is lost after this cut\n", &json!({ "losses": 0 })),
            Err(found) => Err(Failure::failed(found)),
        };
    }
    quiet_panics();
    let outcome = follow(&campaign, stop);
    output.write(&table(&outcome), &record(&campaign, &outcome))?;
    match &outcome.failure {
        None => Ok(()),
        Some(found) => Err(Failure::failed(tell(found))),
    }
}

fn campaign(args: &SimulateArgs, settings: &Settings) -> Campaign {
    let kinds = match settings.medium {
        None => CutKind::ALL.to_vec(),
        Some(Medium::File) => vec![CutKind::File],
        Some(_) => vec![CutKind::Memory],
    };
    let until = match (args.cuts, settings.seconds) {
        (Some(cuts), _) => Until::Cuts(cuts),
        (_, Some(seconds)) => Until::Time(Duration::from_secs_f64(seconds)),
        _ => Until::Cases(settings.rounds.unwrap_or(CASES)),
    };
    Campaign {
        seed: settings.seed,
        kinds,
        collectors: settings.gc.map_or(pantile_rivals::all().to_vec(), |gc| vec![gc]),
        until,
        threads: threads(settings),
        broken: None,
        is_busy: false,
    }
}

fn threads(settings: &Settings) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    settings.threads.map_or_else(cores, usize::from)
}

/// A panic is reported as a failure, like any other.
fn quiet_panics() {
    std::panic::set_hook(Box::new(|_| {}));
}

fn follow(campaign: &Campaign, stop: &AtomicBool) -> Outcome {
    let bars = Bars::new(false);
    let steps = match campaign.until {
        Until::Time(time) => time.as_secs().max(1),
        Until::Cases(n) | Until::Cuts(n) => n,
    };
    bars.begin("cutting the power", steps);
    let (began, shown) = (std::time::Instant::now(), Mutex::new(0));
    let outcome = campaign.run(stop, |totals| {
        let now = match campaign.until {
            Until::Time(_) => began.elapsed().as_secs(),
            Until::Cases(_) => totals.cases,
            Until::Cuts(_) => totals.cuts,
        };
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        bars.advance(now.min(steps).saturating_sub(*shown));
        *shown = now.min(steps).max(*shown);
    });
    bars.end();
    outcome
}

fn tell(found: &Found) -> String {
    format!("{found}; again: pantile crashtest {}", found.replay())
}

fn table(outcome: &Outcome) -> String {
    let mut text = format!(
        "{:<8} {:<17} {:>7} {:>7} {:>9} {:>9} {:>12} {:>9} {:>9} {:>8}\n",
        "medium",
        "collector",
        "cases",
        "lives",
        "commits",
        "cuts",
        "in recovery",
        "blocks",
        "versions",
        "flips"
    );
    let line = |medium: &str, gc: &str, t: &Totals| {
        format!(
            "{medium:<8} {gc:<17} {:>7} {:>7} {:>9} {:>9} {:>12} {:>9} {:>9} {:>8}\n",
            t.cases,
            t.lives,
            t.commits,
            t.cuts,
            t.cuts_of_recovery,
            t.blocks_reclaimed,
            t.versions_reclaimed,
            t.flips
        )
    };
    for ((medium, gc), totals) in &outcome.totals {
        text += &line(medium, gc, totals);
    }
    let total = outcome.total();
    text += &line("all", "", &total);
    let seconds = outcome.time.as_secs_f64();
    let losses = if outcome.failure.is_some() { "A LOSS" } else { "0 losses" };
    text + &format!("{} power cuts in {seconds:.1} s, {losses}\n", total.cuts)
}

fn totals(t: &Totals) -> Value {
    json!({
        "cases": t.cases, "lives": t.lives, "transactions_acknowledged": t.commits, "refused": t.refused, "events": t.events,
        "cuts": t.cuts, "cuts_of_recovery": t.cuts_of_recovery, "blocks_reclaimed": t.blocks_reclaimed,
        "blocks_passed_over": t.blocks_bypassed, "versions_reclaimed": t.versions_reclaimed,
        "survivors_relocated": t.survivors_relocated, "tombstones_dropped": t.tombstones_dropped, "flips": t.flips, "sectors_lost": t.sectors_lost, "flips_reported": t.flips_reported,
    })
}

fn record(campaign: &Campaign, outcome: &Outcome) -> Value {
    let by = outcome
        .totals
        .iter()
        .map(|((medium, gc), t)| json!({ "medium": medium, "gc": gc, "totals": totals(t) }));
    json!({
        "mode": "simulate",
        "seed": campaign.seed,
        "seconds": outcome.time.as_secs_f64(),
        "losses": u64::from(outcome.failure.is_some()),
        "failure": outcome.failure.as_ref().map(tell),
        "totals": totals(&outcome.total()),
        "by_medium_and_collector": by.collect::<Vec<_>>(),
    })
}

/// Runs negative controls; fails if one goes unnoticed.
fn controls(name: &str, settings: &Settings, output: &mut Output, stop: &AtomicBool) -> Result<(), Failure> {
    let mut controls = NegativeControl::all();
    if name != "all" {
        controls.retain(|control| control.name == name);
        if controls.is_empty() {
            let known: Vec<_> = NegativeControl::all().iter().map(|control| control.name).collect();
            return Err(Failure::misuse(format!(
                "there is no control {name}; there are {}",
                known.join(", ")
            )));
        }
    }
    quiet_panics();
    let bars = Bars::new(false);
    bars.begin("taking answers away", controls.len() as u64);
    let (mut text, mut records, mut missed) = (String::new(), Vec::new(), Vec::new());
    for control in &controls {
        let caught = control.run(settings.seed, threads(settings), CONTROL_LIMIT, stop);
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let seconds = caught.as_ref().map(|caught| caught.after.as_secs_f64());
        match &caught {
            Some(caught) => {
                text += &format!(
                    "{:<22} noticed after {:>5.2} s, case {:>4}\n",
                    control.name,
                    caught.after.as_secs_f64(),
                    caught.cases
                );
            }
            None => {
                text += &format!("{:<22} NOT NOTICED\n", control.name);
                missed.push(control.name);
            }
        }
        records.push(json!({
            "name": control.name, "what": control.what, "seconds": seconds,
            "by": caught.map(|caught| tell(&caught.failure)),
        }));
        bars.advance(1);
    }
    bars.end();
    output.write(&text, &json!({ "mode": "controls", "seed": settings.seed, "controls": records }))?;
    if missed.is_empty() {
        Ok(())
    } else {
        Err(Failure::failed(format!("not noticed: {}", missed.join(", "))))
    }
}
