//! `pantile load`: text into a database.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read, stdin};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use clap::Args;
use pantile::{Database, Durability, Options};
use pantile_transfer::{Load, Loaded};
use serde::Serialize;

use crate::dump::FormatArg;
use crate::exit::Failure;
use crate::output::{self, Output};
use crate::progress;

/// Examples that `--help` shows.
pub const EXAMPLES: &str =
    "Exit status: 0 if everything was loaded, 1 if not; then nothing was, unless --batch was given.

Examples:
  pantile load /data/new --create --from shop.dump
  pantile dump /data/shop | pantile load /data/new --create
  pantile load /data/shop --table orders --format csv --from orders.csv
  pantile load /data/new --create --from shop-text";

/// Settings of a load.
#[derive(Args, Debug)]
pub struct LoadArgs {
    /// Directory of the database. No other process may have it open.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// File to read, or a directory that `dump --into` has written; - for stdin.
    #[arg(long, value_name = "PATH", default_value = "-")]
    from: PathBuf,
    /// Load this table of the dump, which can be given several times [default: all tables]; with
    /// --format, the table that the rows go to.
    #[arg(long = "table", value_name = "T")]
    tables: Vec<String>,
    /// Read the rows of one table that exists, by the names of its columns; those that are not there
    /// get their default, or NULL [default: a dump].
    #[arg(long, value_enum)]
    format: Option<FormatArg>,
    /// Create the database if there is none.
    #[arg(long)]
    create: bool,
    /// Commit after each N rows of tables that exist already; if the load fails, these rows stay
    /// [default: all rows or none].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    batch: Option<u64>,
    /// Text that stands for NULL in CSV [default: \N].
    #[arg(long, value_name = "TEXT")]
    null: Option<String>,
    /// Write the record to this file; - for stdout.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Show no progress.
    #[arg(long)]
    quiet: bool,
}

/// What was loaded.
#[derive(Serialize)]
struct Record {
    tables_created: u64,
    rows: u64,
    bytes: u64,
    seconds: f64,
}

/// Runs `pantile load`. Ctrl-C stops it like a failure.
pub fn run(args: &LoadArgs, stop: &AtomicBool) -> Result<(), Failure> {
    check(args)?;
    let began = Instant::now();
    let input = if args.from.is_dir() { None } else { Some(open(&args.from)?) };
    let mut report = Output::open(args.json.as_deref())?;
    let before = Before::of(&args.dir);
    // A load is all or nothing, and closing makes it durable.
    let db = Options::new().create(args.create).durability(Durability::None).open(&args.dir)?;
    let loaded = load(args, &db, input, stop);
    let loaded = match (loaded, db.close()) {
        (Ok(loaded), closed) => closed.map(|()| loaded).map_err(Failure::from),
        // A medium that has failed is told once.
        (Err(failure), Err(closing)) if failure.line.contains(&closing.to_string()) => Err(failure),
        (Err(failure), Err(closing)) => {
            let line = format!("{}; and then the database could not be closed: {closing}", failure.line);
            Err(Failure { line, ..failure })
        }
        (failed, Ok(())) => failed,
    };
    if loaded.is_err() {
        before.restore(&args.dir);
    }
    let Loaded { tables_created, rows, bytes, .. } = loaded?;
    let seconds = began.elapsed().as_secs_f64();
    let text = format!("{tables_created} tables created, {rows} rows loaded; {seconds:.1} s\n");
    let record = Record { tables_created, rows, bytes, seconds };
    report.write_after("everything is loaded", &text, &record)
}

/// What was in the place of the database.
struct Before {
    /// The names in the directory, if there was one.
    names: Option<Vec<OsString>>,
}

impl Before {
    fn of(dir: &Path) -> Self {
        let names = || Ok(fs::read_dir(dir)?.flatten().map(|entry| entry.file_name()).collect());
        let names: io::Result<_> = names();
        // What cannot be looked at stays as it is.
        let is_absent = dir.symlink_metadata().is_err();
        Self { names: names.ok().or_else(|| (!is_absent).then(|| vec![DATA_FILE.into()])) }
    }

    /// Removes a new database in which there is nothing. Best effort. It is open meanwhile, so that none of
    /// another process goes, which may have been faster.
    fn restore(self, dir: &Path) {
        let was_there = self.names.is_some();
        let names = self.names.unwrap_or_default();
        if names.iter().any(|name| name == DATA_FILE) {
            return;
        }
        // Nothing else is to write there.
        let options = Options::new().create(false).durability(Durability::None);
        let opened = options.worker(false).publish_stats(false).open(dir);
        let Some(_db) = opened.ok().filter(|db| db.tables().is_empty()) else { return };
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.as_encoded_bytes().starts_with(b"pantile.") && !names.contains(&name) {
                let _ = fs::remove_file(entry.path());
            }
        }
        if !was_there {
            let _ = fs::remove_dir(dir);
        }
    }
}

/// The file without which there is no database.
pub const DATA_FILE: &str = "pantile.data";

fn check(args: &LoadArgs) -> Result<(), Failure> {
    if args.format.is_some() && args.tables.len() != 1 {
        return Err(Failure::misuse("--format needs the table that the rows go to: --table T"));
    }
    if args.format.is_some() && args.from.is_dir() {
        return Err(Failure::misuse(
            "a directory knows its formats: leave --format out, or name a file in it",
        ));
    }
    if args.null.is_some() && args.format != Some(FormatArg::Csv) {
        return Err(Failure::misuse("--null is for --format csv"));
    }
    Ok(())
}

fn open(from: &Path) -> Result<Box<dyn Read>, Failure> {
    if from == Path::new("-") {
        if stdin().is_terminal() {
            output::note("reading from the terminal; Ctrl-D ends the input");
        }
        return Ok(Box::new(stdin().lock()));
    }
    let file = File::open(from);
    let file = file.map_err(|error| Failure::failed(format!("cannot read {}: {error}", from.display())))?;
    Ok(Box::new(file))
}

/// Loads the input, or without one the directory.
fn load(
    args: &LoadArgs,
    db: &Database,
    input: Option<Box<dyn Read>>,
    stop: &AtomicBool,
) -> Result<Loaded, Failure> {
    let progress = progress::of_transfer(args.quiet, "loaded", stop);
    let mut load = Load::new(db).alone().progress(&progress);
    if let Some(rows) = args.batch {
        load = load.batch(rows);
    }
    if let Some(text) = &args.null {
        load = load.null(text);
    }
    let loaded = match (input, args.format) {
        (Some(input), Some(format)) => load.rows(&args.tables[0], format.into(), input),
        (Some(input), None) => load.tables(&args.tables).dump(input),
        (None, _) => load.tables(&args.tables).files(&args.from),
    };
    Ok(loaded?)
}
