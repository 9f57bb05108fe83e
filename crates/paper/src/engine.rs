//! Executes runs.

use std::sync::atomic::AtomicBool;

use pantile_bench::load::{Context, Silent};
use pantile_bench::machine;
use pantile_bench::settings::Medium;
use pantile_flash::{Experiment, Layout};
use pantile_redo::Kind;

use crate::measurement::Measurement;
use crate::server;
use crate::spec::{OPENINGS, RunSpec, Step, not_built_in};

/// How a run ended.
#[derive(Clone, PartialEq, Debug)]
pub enum Ending {
    /// The run was measured.
    Measured(Box<Measurement>),
    /// The run was interrupted.
    Interrupted,
    /// The run failed, for this reason in one line.
    Failed(String),
}

/// Executes runs.
pub trait Runner {
    /// What the run needs that is not built in, if anything.
    fn missing(&self, run: &RunSpec) -> Option<String>;

    /// Executes one repetition of a run. `stop` is raised to end it early.
    fn run(&self, step: &Step, stop: &AtomicBool) -> Ending;
}

/// The engine, driven through the benchmarks or through a SQL server, over a traced medium, or opened after a kill.
#[derive(Clone, Copy, Debug, Default)]
pub struct Engine;

impl Runner for Engine {
    fn missing(&self, run: &RunSpec) -> Option<String> {
        let is_built_in = match (run.flash, run.recovery) {
            (Some(_), _) => run.gc.parse::<Layout>().is_ok(),
            (_, Some(_)) => run.gc.parse::<Kind>().is_ok(),
            (None, None) => pantile_rivals::by_name(run.gc).is_some(),
        };
        if !is_built_in {
            return Some(not_built_in(run.gc));
        }
        run.server.and_then(|_| server::script().err())
    }

    fn run(&self, step: &Step, stop: &AtomicBool) -> Ending {
        let run = &step.run;
        if run.server.is_some() {
            return match server::run(run, step.seed(), stop) {
                Ok(Some(measurement)) => Ending::Measured(Box::new(measurement)),
                Ok(None) => Ending::Interrupted,
                Err(why) => Ending::Failed(why),
            };
        }
        if let Some(experiment) = run.flash {
            return trace(&Experiment { seed: step.seed(), ..experiment }, run.gc, stop);
        }
        if let Some(experiment) = run.recovery {
            return recover(&pantile_redo::Experiment { seed: step.seed(), ..experiment }, run, stop);
        }
        let settings = match run.settings(step.seed()) {
            Ok(settings) => settings,
            Err(reason) => return Ending::Failed(reason),
        };
        let context = Context { threads: machine::cores(), stop, observer: &Silent };
        let mut records = Vec::new();
        let done = run.work.run(&settings, run.by_partition, &context, |record| records.push(record));
        match (done, records.pop()) {
            (Err(pantile_bench::Error::Interrupted { .. }), _) => Ending::Interrupted,
            (Err(error), _) => Ending::Failed(error.to_string()),
            (Ok(()), None) => Ending::Failed("the run left no record".into()),
            (Ok(()), Some(record)) if record.interrupted => Ending::Interrupted,
            (Ok(()), Some(record)) => match record.consistency.as_ref().filter(|found| found.failed > 0) {
                Some(found) => Ending::Failed(format!(
                    "{} of {} consistency conditions do not hold",
                    found.failed, found.checked
                )),
                None => Ending::Measured(Box::new(Measurement::from(&record))),
            },
        }
    }
}

/// Traces TPC-C, and replays it on a simulated device.
fn trace(experiment: &Experiment, layout: &str, stop: &AtomicBool) -> Ending {
    let layout = match layout.parse::<Layout>() {
        Ok(layout) => layout,
        Err(why) => return Ending::Failed(why),
    };
    let outcome = experiment.run(&layout, stop);
    ending(outcome.map(|outcome| Measurement::of_device(experiment.transactions, &outcome)))
}

/// Opens what a kill has left, a few times.
fn recover(experiment: &pantile_redo::Experiment, run: &RunSpec, stop: &AtomicBool) -> Ending {
    let named = run.gc.parse::<Kind>().and_then(|kind| Ok((kind, Medium::by_name(run.medium)?)));
    let (kind, medium) = match named {
        Ok(named) => named,
        Err(why) => return Ending::Failed(why),
    };
    let opened = experiment
        .leave(kind, medium, stop)
        .and_then(|left| (0..OPENINGS).map(|_| left.open()).collect::<pantile_bench::Result<Vec<_>>>());
    ending(opened.map(|opened| Measurement::of_openings(experiment.transactions, opened)))
}

fn ending(measured: pantile_bench::Result<Measurement>) -> Ending {
    match measured {
        Ok(measurement) => Ending::Measured(Box::new(measurement)),
        Err(pantile_bench::Error::Interrupted { .. }) => Ending::Interrupted,
        Err(error) => Ending::Failed(error.to_string()),
    }
}
