//! `pantile space patterns`: the files that patterns of use leave.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::Args;
use pantile_bench::load::{Context, Silent};
use pantile_bench::space::patterns::{PATTERNS, Pattern, Rest, Settings};
use serde_json::json;

use super::series::Series;
use crate::exit::Failure;
use crate::output::Output;
use crate::table::Table;
use crate::values::{DurabilityArg, number};

/// Examples that `--help` shows.
pub const EXAMPLES: &str = "Columns, in MB of 2^20 bytes: live, bytes of the newest versions, headers included; end, later and closed, what
the files take of the file system when the pattern ends, two seconds later and after closing; length, where they
end two seconds later; bar, the most that later and closed may be; x live, later per live byte; dead, unfilled
and free, the parts of later in superseded versions, in slots not yet written, and in empty blocks and reserve;
dram, the database's memory as it says; own, the process's, without pages of files and what it had before.

Examples:
  pantile space patterns
  pantile space patterns reader --reader-seconds 60 --dir /data";

/// Settings of `space patterns`.
#[derive(Args, Debug)]
pub struct PatternsArgs {
    /// Patterns: new, tables, sizes, queue, updates-100, updates-10k, updates-1m, one-transaction,
    /// reader, indexed, large [default: all].
    #[arg(value_name = "NAME", value_parser = pattern)]
    patterns: Vec<usize>,
    /// What all measurements of files share.
    #[command(flatten)]
    on: OnFiles,
    /// When a commit is acknowledged.
    #[arg(long, value_enum, default_value = "none")]
    durability: DurabilityArg,
    /// Seconds for which a reader stays open beside updates.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = |text: &str| number(text, 0.0))]
    reader_seconds: f64,
}

/// What all measurements of files share.
#[derive(Args, Debug)]
pub struct OnFiles {
    /// Directory in which databases are created and removed [default: the system's for temporary files].
    #[arg(long, value_name = "PATH")]
    pub dir: Option<PathBuf>,
    /// Share of each pattern to run; bars are for all of it.
    #[arg(long, value_name = "SHARE", default_value = "1", value_parser = |text: &str| number(text, f64::MIN_POSITIVE))]
    pub scale: f64,
    /// Seed of all random numbers.
    #[arg(long, value_name = "N", default_value_t = 42)]
    pub seed: u64,
    /// Write the record to this file; - for stdout.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

fn pattern(name: &str) -> Result<usize, String> {
    PATTERNS.iter().position(|pattern| pattern.name == name).ok_or_else(|| {
        let names: Vec<_> = PATTERNS.iter().map(|pattern| pattern.name).collect();
        format!("there is no such pattern; there are {}", names.join(", "))
    })
}

/// Runs `pantile space patterns`.
pub fn patterns(args: &PatternsArgs, stop: &AtomicBool) -> Result<(), Failure> {
    let settings = Settings {
        durability: args.durability.into(),
        scale: args.on.scale,
        reader_seconds: args.reader_seconds,
        seed: args.on.seed,
    };
    let mut output = Output::open(args.on.json.as_deref())?;
    let context = Context { threads: 1, stop, observer: &Silent };
    let chosen: Vec<&Pattern> = match args.patterns.as_slice() {
        [] => PATTERNS.iter().collect(),
        some => some.iter().map(|&n| &PATTERNS[n]).collect(),
    };
    let series = Series::of(chosen, |pattern, rests| {
        rests.extend(pattern.run(&settings, args.on.dir.as_deref(), &context)?);
        Ok(())
    });
    let rests = &series.results;
    if !rests.is_empty() {
        let interrupted = series.is_interrupted();
        let record = json!({ "settings": settings, "interrupted": interrupted, "patterns": rests });
        output.write(&table(rests), &record)?;
    }
    match series.outcome()?.iter().find(|rest| !rest.is_within()) {
        None => Ok(()),
        Some(rest) => Err(Failure::failed(format!("more space than its bar: {}", rest.pattern))),
    }
}

fn table(rests: &[Rest]) -> String {
    let head = [
        "pattern", "live", "end", "later", "closed", "length", "bar", "", "x live", "dead", "unfilled",
        "free", "dram", "own",
    ];
    let mut table = Table::new(1, &head);
    for rest in rests {
        let (later, live) = (rest.later.allocated, rest.live_bytes);
        table.push(vec![
            rest.pattern.clone(),
            megabytes(live),
            megabytes(rest.at_end.allocated),
            megabytes(later),
            rest.closed.map_or(String::new(), |closed| megabytes(closed.allocated)),
            megabytes(rest.later.length),
            megabytes(rest.bar),
            if rest.is_within() { "kept".into() } else { "MISSED".into() },
            // A ratio to next to nothing says nothing.
            if live < 1 << 19 { String::new() } else { format!("{:.2}", later as f64 / live as f64) },
            megabytes(rest.obsolete_bytes),
            megabytes(rest.unfilled_bytes),
            megabytes(rest.free_bytes),
            megabytes(rest.dram_bytes),
            megabytes(rest.own_memory),
        ]);
    }
    table.render()
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}
