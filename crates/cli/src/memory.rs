//! `pantile bench memory`: rows that take more than the memory.

use std::path::PathBuf;

use clap::Args;
use pantile_bench::memory::{self, Engine, OnPantile, Settings};
use serde_json::json;

use crate::exit::Failure;
use crate::output::{self, Output};

/// Examples that `--help` shows.
pub const EXAMPLES: &str =
    "Each size and load is a line of the table, in rows a second. On stderr: page faults that waited for the
device, bytes read and written, and processor time, each per row.

Examples:
  pantile bench memory --dir /data
  pantile bench memory --times 4 --ops 1,10 --rows 8000000";

/// Pantile without and with a cache of rows.
const ENGINES: &[&dyn Engine] = &[&OnPantile::PLAIN, &OnPantile::CACHED];

/// Settings of `bench memory`.
#[derive(Args, Debug)]
pub struct MemoryArgs {
    /// What is measured.
    #[command(flatten)]
    settings: Settings,
    /// Write the record to this file; - for stdout.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Print no line for each load on stderr.
    #[arg(long)]
    quiet: bool,
}

/// Runs `pantile bench memory`.
pub fn run(args: &MemoryArgs) -> Result<(), Failure> {
    let mut output = Output::open(args.json.as_deref())?;
    let note = |line: &str| {
        if !args.quiet {
            output::note(line)
        }
    };
    let report = memory::compare(&args.settings, ENGINES, &note)?;
    output.write(&report.table(), &json!({ "settings": args.settings, "report": report }))?;
    match report.skipped.first() {
        None => Ok(()),
        Some(first) => Err(Failure::failed(format!(
            "{} of the measurements could not be made; the first was to be of {}: {}",
            report.skipped.len(),
            first.engine,
            first.why
        ))),
    }
}

/// Runs the process whose memory is limited.
pub fn worker() -> Result<(), Failure> {
    memory::worker(ENGINES).map_err(Failure::failed)
}
