//! `pantile space price`: what a space target costs.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::Args;
use pantile::{GcOptions, Pacing};
use pantile_bench::load::Context;
use pantile_bench::space::price::{Load, Price, Settings};
use pantile_paper::{space::figure, svg};
use serde_json::json;

use super::series::Series;
use crate::exit::Failure;
use crate::output::{self, Output};
use crate::progress::Bars;
use crate::table::Table;
use crate::values::{gc_pacing, gc_target, number};

/// Examples that `--help` shows.
pub const EXAMPLES: &str = "Columns: s, bytes of the medium per live byte: mean, p95 and max; used, the mean of the part in blocks in use;
A, bytes written per byte updated; copies, the part of them that moves survivors; optimum, the least A for the
mean s; ratio, A in units of it; of used, the same if only blocks in use counted as space.

Examples:
  pantile space price
  pantile space price --updates uniform --targets 1.25 --pacing adaptive
  pantile space price --rate 0    (as fast as the machine can)";

/// Settings of `space price`.
#[derive(Args, Debug)]
pub struct PriceArgs {
    /// Distributions of the updates, separated by commas: uniform, 80/20, zipf (0.9),
    /// tpc-c (its transactions on one warehouse) [default: all].
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = load)]
    updates: Vec<Load>,
    /// Space targets, separated by commas.
    #[arg(long, value_name = "RATIO", value_delimiter = ',', default_value = "1.25,1.5,2,3", value_parser = gc_target)]
    targets: Vec<f64>,
    /// The collector's pacing: adaptive keeps to the targets; fixed is the published policy, which has none.
    #[arg(long, value_name = "PACING", value_delimiter = ',', default_value = "adaptive,fixed", value_parser = gc_pacing)]
    pacing: Vec<Pacing>,
    /// Megabytes of live rows; not of tpc-c.
    #[arg(long, value_name = "MB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    live: u64,
    /// Rows that a transaction updates.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rows: u32,
    /// Megabytes updated per second of simulated time; 0 to update as fast as the machine can.
    #[arg(long, value_name = "MB_PER_S", default_value_t = 40)]
    rate: u64,
    /// Bytes to update before measuring, as a multiple of the live bytes.
    #[arg(long, value_name = "TIMES", default_value = "6", value_parser = |text: &str| number(text, 0.0))]
    warmup: f64,
    /// Bytes to update while measuring, as a multiple of the live bytes.
    #[arg(long, value_name = "TIMES", default_value = "4", value_parser = |text: &str| number(text, 0.1))]
    window: f64,
    /// Leave a transaction open while measuring, which only reads.
    #[arg(long)]
    reader: bool,
    /// Seed of all random numbers.
    #[arg(long, value_name = "N", default_value_t = 42)]
    seed: u64,
    /// Draw A over s, beside the optimum, to this file (SVG).
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the record to this file; - for stdout.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Show no progress.
    #[arg(long)]
    quiet: bool,
}

fn load(name: &str) -> Result<Load, String> {
    let is_meant = |load: &Load| load.name().split(' ').next() == name.split(' ').next();
    Load::all().into_iter().find(is_meant).ok_or_else(|| {
        let names: Vec<_> = Load::all().into_iter().map(Load::name).collect();
        format!("there are no such updates; there are {}", names.join(", "))
    })
}

impl PriceArgs {
    fn settings(&self) -> Settings {
        Settings {
            live_bytes: self.live << 20,
            rows_each: self.rows,
            bytes_per_second: (self.rate > 0).then_some(self.rate * 1_000_000),
            warmup: self.warmup,
            window: self.window,
            reader: self.reader,
            seed: self.seed,
        }
    }

    fn loads(&self) -> Vec<Load> {
        if self.updates.is_empty() { Load::all() } else { self.updates.clone() }
    }

    /// What each distribution is measured with.
    fn policies(&self) -> Vec<GcOptions> {
        let of = |&pacing: &Pacing| match pacing {
            Pacing::Fixed => vec![GcOptions::published()],
            _ => {
                self.targets.iter().map(|&t| GcOptions { space_target: t, ..GcOptions::default() }).collect()
            }
        };
        self.pacing.iter().flat_map(of).collect()
    }
}

/// Runs `pantile space price`.
pub fn price(args: &PriceArgs, stop: &AtomicBool) -> Result<(), Failure> {
    let settings = args.settings();
    let mut output = Output::open(args.json.as_deref())?;
    let bars = Bars::new(args.quiet);
    let context = Context { threads: 1, stop, observer: &bars };
    let loads = args.loads();
    let all = loads.into_iter().flat_map(|load| args.policies().into_iter().map(move |gc| (load, gc)));
    let series = Series::of(all, |(load, gc), prices| {
        let price = settings.measure(load, gc, &context)?;
        if !args.quiet {
            output::note(&line(&price).join("  "));
        }
        prices.push(price);
        Ok(())
    });
    let prices = &series.results;
    if let Some(path) = args.svg.as_ref().filter(|_| !prices.is_empty()) {
        let drawing = svg::alone(&figure(prices));
        std::fs::write(path, drawing).map_err(|error| output::cannot_write(path, &error))?;
    }
    if !prices.is_empty() {
        let interrupted = series.is_interrupted();
        let record = json!({ "settings": settings, "interrupted": interrupted, "prices": prices });
        output.write(&table(prices), &record)?;
    }
    series.outcome().map(drop)
}

fn table(prices: &[Price]) -> String {
    let head = ["updates", "target", "s", "p95", "max", "used", "A", "copies", "optimum", "ratio", "of used"];
    let mut table = Table::new(1, &head);
    prices.iter().for_each(|price| table.push(line(price)));
    table.render()
}

fn line(price: &Price) -> Vec<String> {
    let figures = [
        price.medium.mean,
        price.medium.p95,
        price.medium.max,
        price.used.mean,
        price.amplification,
        price.copied_bytes as f64 / price.updated_bytes as f64,
        price.optimum,
        price.ratio(),
        price.ratio_used(),
    ];
    let target = price.target.map_or("fixed".into(), |target| target.to_string());
    [price.load.name(), target].into_iter().chain(figures.map(|figure| format!("{figure:.2}"))).collect()
}
