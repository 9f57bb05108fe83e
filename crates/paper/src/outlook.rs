//! Predictions of a model for larger machines. The model is calibrated with the
//! runs of the claims about the number of threads (docs/scaling.md).
//! Predictions are drawn beside measurements and never affect a verdict.

use pantile_bench::scaling::{Costs, Machine, beside, calibrate_with, curve};
use pantile_bench::settings::Medium;

use crate::claims::Claim;
use crate::figure::{Figure, Origin, Point, Series, Shape};
use crate::results::Results;
use crate::size::Size;
use crate::spec::RunSpec;

/// Numbers of threads to predict.
const THREADS: [usize; 12] = [1, 2, 4, 8, 10, 16, 20, 32, 40, 64, 80, 128];

/// A claim with an outlook: its machine, and the media to show.
struct Subject {
    claim: &'static str,
    machine: fn(f64) -> Machine,
    media: &'static [&'static str],
}

const SUBJECTS: [Subject; 3] = [
    Subject {
        claim: "TB-7b",
        machine: Machine::tb_collect,
        media: &["nvm:optane-40", "nvm:A", "nvm:B", "nvm:C", "nvm:D", "nvm:E", "dram"],
    },
    Subject { claim: "TB-8a", machine: Machine::tb_collect, media: &["nvm:optane-40"] },
    Subject { claim: "ST-8", machine: Machine::steam, media: &["dram"] },
];

/// The model's predictions for a claim.
#[derive(Clone, PartialEq, Debug)]
pub struct Outlook {
    /// The claim.
    pub claim: &'static str,
    /// For the claim's first figure of throughput: predictions for this machine.
    pub here: Vec<Series>,
    /// Figures for the claim's machine, and for the accuracy of the model here.
    pub figures: Vec<Figure>,
}

/// The outlooks of those of the claims that have one, provided that they were
/// measured with one and with two threads. `transfer` is the time to move a
/// cache line from one core to another, in seconds.
pub fn outlooks(claims: &[&'static Claim], results: &Results, size: &Size, transfer: f64) -> Vec<Outlook> {
    let of = |subject: &Subject| {
        let claim = claims.iter().find(|claim| claim.id == subject.claim)?;
        outlook(subject, &claim.runs(size), results, transfer)
    };
    SUBJECTS.iter().filter_map(of).collect()
}

fn outlook(subject: &Subject, runs: &[RunSpec], results: &Results, transfer: f64) -> Option<Outlook> {
    let here = Machine::here(transfer);
    let mut costs: Vec<(&'static str, Costs)> = Vec::new();
    let (mut predicted, mut quotients) = (Vec::new(), Vec::new());
    for run in runs.iter().filter(|run| run.threads == 1) {
        let by_threads = |threads| told(results, &RunSpec { threads, ..run.clone() });
        let Ok(medium) = Medium::by_name(run.medium) else { continue };
        let calibrated =
            calibrate_with(&run.work.arguments(), run.gc, medium, &by_threads(1), &by_threads(2), transfer);
        let Ok(of_run) = calibrated else { continue };
        let measured = runs.iter().filter(|other| RunSpec { threads: 1, ..(*other).clone() } == *run);
        let rows = beside(&of_run, &here, measured.flat_map(|run| told(results, run)));
        let points = |of: &dyn Fn(&pantile_bench::scaling::Row) -> Option<f64>| {
            let mut points: Vec<_> =
                rows.iter().filter_map(|row| Some(Point::exact(row.threads as f64, of(row)?))).collect();
            points.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
            middles(points)
        };
        let model = |points| Series { name: run.gc.into(), origin: Origin::Model, points };
        predicted.push(model(points(&|row| Some(row.predicted.txn_per_s))));
        quotients.push(model(points(&|row| Some(1.0 + row.error_percent()? / 100.0))));
        costs.push((run.gc, of_run));
    }
    if costs.is_empty() {
        return None;
    }
    let machine = (subject.machine)(transfer);
    let mut figures = vec![lines(
        "Accuracy of the model on this machine, calibrated with 1 and 2 threads".into(),
        "predicted / measured throughput".into(),
        quotients,
    )];
    for medium in subject.media {
        let Ok(on) = Medium::by_name(medium) else { continue };
        let series = costs.iter().map(|(gc, costs)| {
            let rows = curve(&Costs { medium: on, ..costs.clone() }, &machine, &THREADS);
            let points = rows.iter().map(|row| Point::exact(row.threads as f64, row.predicted.txn_per_s));
            Series { name: (*gc).into(), origin: Origin::Model, points: points.collect() }
        });
        let title = format!("What a model predicts for {}", machine.name);
        figures.push(lines(title, format!("transactions/s, {medium}"), series.collect()));
    }
    Some(Outlook { claim: subject.claim, here: predicted, figures })
}

/// The model's input from all repetitions of a run.
fn told(results: &Results, run: &RunSpec) -> Vec<pantile_bench::scaling::Run> {
    results.all(run).map(|measurement| measurement.costs).collect()
}

/// The middle point at each position. The points come in order.
fn middles(points: Vec<Point>) -> Vec<Point> {
    points.chunk_by(|a, b| a.x == b.x).map(|at| at[at.len() / 2]).collect()
}

fn lines(title: String, y: String, series: Vec<Series>) -> Figure {
    Figure { title, shape: Shape::Lines { doubling: true, markers: true }, x: "threads".into(), y, series }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims;
    use crate::measurement::Measurement;

    /// Runs of a machine on which nothing is shared. A transaction takes 100
    /// us.
    fn measured(size: &Size) -> Results {
        let mut results = Results::default();
        for claim in claims::named(&["TB-7b".into()]).unwrap() {
            for run in claim.runs(size) {
                let cores = run.threads.min(2) as f64;
                let costs = pantile_bench::scaling::Run {
                    threads: run.threads,
                    txn_per_s: 10_000.0 * cores,
                    cores_had: cores,
                    cpu: 1e-4,
                    ..Default::default()
                };
                let measurement = Measurement { txn_per_s: costs.txn_per_s, costs, ..Measurement::default() };
                results.add(&run.key(), 1, measurement);
            }
        }
        results
    }

    #[test]
    fn what_shares_nothing_grows_with_the_cores() {
        let size = Size::quick(2);
        let claims = claims::named(&[]).unwrap();
        let all = outlooks(&claims, &measured(&size), &size, 1e-7);
        // Claims that share runs with it have an outlook as well.
        let outlook = all.iter().find(|outlook| outlook.claim == "TB-7b").expect("the claim was measured");
        let last = outlook.figures.last().unwrap();
        assert!(last.y.contains("dram"));
        let none = last.series.iter().find(|series| series.name == "none").unwrap();
        let at = |x: f64| none.points.iter().find(|point| point.x == x).unwrap().y;
        assert!((at(1.0) - 10_000.0).abs() < 1.0 && (at(20.0) - 200_000.0).abs() < 20.0);
        assert!(at(40.0) > at(20.0) && at(128.0) <= at(40.0) * 1.001);
    }

    #[test]
    fn nothing_is_foretold_of_what_was_not_measured() {
        let size = Size::quick(2);
        let claims = claims::named(&[]).unwrap();
        assert_eq!(outlooks(&claims, &Results::default(), &size, 1e-7), []);
    }
}
