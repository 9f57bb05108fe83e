//! `pantile compact`: brings the space of a database down.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use pantile::stats::RunningTransaction;
use pantile::{Database, Options};
use serde::Serialize;

use crate::exit::Failure;
use crate::output::Output;

/// Examples that `--help` shows.
pub const EXAMPLES: &str =
    "Exit status: 0 if the database is compact or Ctrl-C stopped the work, 1 if it failed, or if another process that reads
the database, or a prepared transaction, keeps what could be given back.

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
    /// Whether nothing more can be given back for now.
    is_held: bool,
    /// What keeps the rest.
    held_by: Vec<String>,
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
    let held_by = if left.is_held { holders(&db) } else { Vec::new() };
    db.close()?;
    let record = Record {
        medium_bytes_before: before,
        medium_bytes: stats.medium_bytes,
        live_bytes: stats.live_bytes,
        is_done: left.is_done(),
        is_held: left.is_held,
        held_by,
    };
    output.write_after("the database is compacted", &text(&record), &record)?;
    if !record.is_held {
        return Ok(());
    }
    let holders = record.held_by.join("; ");
    let why = if holders.is_empty() { "what is left cannot be given back now" } else { &holders };
    Err(Failure::failed(format!("{why}; the database is as compact as it can be until then")))
}

/// The processes and transactions that hold something back.
fn holders(db: &Database) -> Vec<String> {
    let processes = db.reading_processes().into_iter().map(|process| process.to_string());
    let hold = |running: RunningTransaction| {
        format!("{} holds back {} bytes until it ends", running.transaction, running.held_bytes)
    };
    processes.chain(db.transactions().into_iter().map(hold)).collect()
}

fn text(record: &Record) -> String {
    let Record { medium_bytes_before, medium_bytes, live_bytes, is_done, is_held, .. } = record;
    let stopped = if *is_done || *is_held { "" } else { "; stopped" };
    format!("{medium_bytes} bytes taken for {live_bytes} live, {medium_bytes_before} before{stopped}\n")
}
