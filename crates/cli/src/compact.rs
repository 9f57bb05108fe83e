//! `pantile compact`: brings the space of a database down.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use pantile::Options;
use serde::Serialize;

use crate::exit::Failure;
use crate::output::Output;

/// Examples that `--help` shows.
pub const EXAMPLES: &str =
    "Exit status: 0 if the database is compact or Ctrl-C stopped the work, 1 if it failed.

Example:
  pantile compact /data/shop";

/// Settings of compacting.
#[derive(Args, Debug)]
pub struct CompactArgs {
    /// Directory of the database. No other process may have it open.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Write the record to this file; - for stdout.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What compacting did, in bytes.
#[derive(Serialize)]
struct Record {
    medium_bytes_before: u64,
    medium_bytes: u64,
    live_bytes: u64,
    is_done: bool,
}

/// Runs `pantile compact`. Ctrl-C stops it and leaves the database as compact
/// as it is by then.
pub fn run(args: &CompactArgs, stop: &AtomicBool) -> Result<(), Failure> {
    let mut output = Output::open(args.json.as_deref())?;
    let db = Options::new().create(false).open(&args.dir)?;
    let before = db.stats().medium_bytes;
    let left = db.compact_with(|_| match stop.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    })?;
    let stats = db.stats();
    db.close()?;
    let record = Record {
        medium_bytes_before: before,
        medium_bytes: stats.medium_bytes,
        live_bytes: stats.live_bytes,
        is_done: left.is_done(),
    };
    output.write(&text(&record), &record)
}

fn text(record: &Record) -> String {
    let Record { medium_bytes_before, medium_bytes, live_bytes, is_done } = record;
    let stopped = if *is_done { "" } else { "; stopped" };
    format!("{medium_bytes} bytes taken for {live_bytes} live, {medium_bytes_before} before{stopped}\n")
}
