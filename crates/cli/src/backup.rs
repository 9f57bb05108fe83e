//! `pantile backup` and `pantile restore`: copies of a database.

use std::io::{IsTerminal, stderr};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use indicatif::ProgressBar;
use pantile::tools::{BackupOptions, BackupReport, RESTORING, RestoreReport};
use pantile::{Database, Error};

use crate::check::ReadArgs;
use crate::exit::Failure;
use crate::output::Output;
use crate::{leftover, output, progress};

/// Examples that the help of `backup` shows.
pub const BACKUP_EXAMPLES: &str =
    "Exit status: 0 if there is a backup, 1 if there is none, also after Ctrl-C. The same command then
goes on with what has been copied.

Examples:
  pantile backup /data/shop --to /backups/sunday
  pantile backup /data/shop --to /backups/monday --since /backups/sunday
  pantile backup /data/shop --to /backups/sunday --rate 50000000";

/// Examples that the help of `restore` shows.
pub const RESTORE_EXAMPLES: &str = "Exit status: 0 if the backup is sound and restored, 1 if it is not.

Example:
  pantile restore /backups/monday --to /data/shop";

/// Settings of a backup.
#[derive(Args, Debug)]
pub struct BackupArgs {
    /// Directory of the database. Another process may have it open and write.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Directory of the backup; there must be nothing in it, or a backup that was interrupted.
    #[arg(long, value_name = "DIR2")]
    to: PathBuf,
    /// Copy only what has changed since the backup in this directory.
    #[arg(long, value_name = "BACKUP")]
    since: Option<PathBuf>,
    /// Bytes to copy per second at most.
    #[arg(long, value_name = "BYTES_PER_SECOND", value_parser = clap::value_parser!(u64).range(1..))]
    rate: Option<u64>,
    /// Write the report to this file; - for stdout.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Show no progress bar.
    #[arg(long)]
    quiet: bool,
}

/// Settings of a restoration.
#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// Directory of the backup. Nothing in it is written to.
    #[arg(value_name = "BACKUP")]
    backup: PathBuf,
    /// Directory of the database; there must be nothing in it.
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Write the report to this file; - for stdout.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    reading: ReadArgs,
}

/// Runs `pantile backup`. Ctrl-C stops it.
pub fn run(args: &BackupArgs, stop: &'static AtomicBool) -> Result<(), Failure> {
    let mut output = Output::open(args.json.as_deref())?;
    let mut options = shown(args.quiet, stop);
    if let Some(rate) = args.rate {
        options = options.rate(rate);
    }
    if let Some(since) = &args.since {
        options = options.since(since);
    }
    let db = Database::open_read_only(&args.dir)?;
    let report = db.backup_to(&args.to, &options).map_err(|error| match error {
        Error::Cancelled => {
            let to = args.to.display();
            Failure::failed(format!(
                "stopped; there is no backup in {to}, and the same command goes on with it"
            ))
        }
        error => error.into(),
    })?;
    // With its bar.
    drop(options);
    if !report.is_current {
        output::note(
            "A transaction was writing when this began. What others have committed beside it is not in the backup: \
             make another when it has ended.",
        );
    }
    output.write_after("the backup is complete", &backup_text(&report, &args.to), &report)
}

/// A bar that leaves no line behind.
struct Cleared(Option<ProgressBar>);

impl Drop for Cleared {
    fn drop(&mut self) {
        self.0.iter().for_each(ProgressBar::finish_and_clear);
    }
}

/// Options with a bar on a terminal.
fn shown(quiet: bool, stop: &'static AtomicBool) -> BackupOptions {
    let wanted = !quiet && stderr().is_terminal();
    let bar = Mutex::new(Cleared(wanted.then(|| progress::bar(progress::STEADY, None)).flatten()));
    BackupOptions::new().progress(move |done| {
        if let Ok(bar) = bar.lock()
            && let Some(bar) = bar.0.as_ref()
        {
            bar.set_message("copying");
            let bytes = done.bytes + done.kept_bytes;
            bar.set_length(done.total_bytes.max(bytes));
            bar.set_position(bytes);
        }
        match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })
}

/// Runs `pantile restore`.
pub fn restore(args: &RestoreArgs) -> Result<(), Failure> {
    let mut output = Output::open(args.json.as_deref())?;
    let made = args.to.join(RESTORING);
    // Another process may be at work there until this one has begun.
    let options = args.reading.options(1, move || leftover::note(&made));
    let report = pantile::restore(&args.backup, &args.to, &options)?;
    output.write_after("the database is restored", &restore_text(&report, &args.to), &report)
}

fn backup_text(report: &BackupReport, to: &Path) -> String {
    let BackupReport { tables, rows, kept_rows, deleted_rows, bytes, file_bytes, seconds, .. } = report;
    let rate = *bytes as f64 / 1e6 / seconds.max(1e-9);
    let before = match kept_rows + deleted_rows {
        0 => String::new(),
        _ => format!(" ({kept_rows} of them were there before, and {deleted_rows} others were deleted)"),
    };
    format!(
        "{tables} tables and {rows} rows{before} backed up to {}: {file_bytes} bytes; {seconds:.1} s, {rate:.0} MB/s\n",
        to.display()
    )
}

fn restore_text(report: &RestoreReport, to: &Path) -> String {
    let RestoreReport { tables, rows, file_bytes, seconds, .. } = report;
    format!(
        "{tables} tables and {rows} rows restored to {} and checked: {file_bytes} bytes; {seconds:.1} s\n",
        to.display()
    )
}
