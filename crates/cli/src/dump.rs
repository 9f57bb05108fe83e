//! `pantile dump`: a database as text.

use std::io::{ErrorKind, stdout};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use clap::{Args, ValueEnum};
use pantile::Database;
use pantile_transfer::{Dump, Dumped, Error, Format};

use crate::exit::Failure;
use crate::output;
use crate::progress;

/// Examples that `--help` shows.
pub const EXAMPLES: &str = "Exit status: 0 if everything was written, 1 if not.

Examples:
  pantile dump /data/shop > shop.dump
  pantile dump /data/shop --schema
  pantile dump /data/shop --table orders --format csv > orders.csv
  pantile dump /data/shop --into shop-text --format csv";

/// Settings of a dump.
#[derive(Args, Debug)]
pub struct DumpArgs {
    /// Directory of the database. Another process may have it open and write.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Dump this table; can be given several times [default: all tables].
    #[arg(long = "table", value_name = "T")]
    tables: Vec<String>,
    /// Write the rows of one table for other programs [default: a dump that `pantile load` makes
    /// tables from; with --into, jsonl].
    #[arg(long, value_enum)]
    format: Option<FormatArg>,
    /// Write the definitions of the tables only.
    #[arg(long, conflicts_with_all = ["format", "into"])]
    schema: bool,
    /// Write a file for each table, and the definitions, into this directory; it must not exist.
    #[arg(long, value_name = "OUTDIR")]
    into: Option<PathBuf>,
    /// Show no progress, and say nothing at the end.
    #[arg(long)]
    quiet: bool,
}

/// A format of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum FormatArg {
    /// A JSON object in each line.
    Jsonl,
    /// CSV, with the names of the columns in the first row.
    Csv,
}

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Jsonl => Format::JsonLines,
            FormatArg::Csv => Format::Csv,
        }
    }
}

/// Runs `pantile dump`.
pub fn run(args: &DumpArgs, stop: &AtomicBool) -> Result<(), Failure> {
    if args.format.is_some() && args.into.is_none() && args.tables.len() != 1 {
        return Err(Failure::misuse(
            "--format writes the rows of one table: name it with --table, or a directory for several with --into; a whole database needs no --format",
        ));
    }
    let began = Instant::now();
    let db = Database::open_read_only(&args.dir)?;
    let dumped = match write(args, &db, stop) {
        Err(Error::Write { source, .. }) if source.kind() == ErrorKind::BrokenPipe && args.into.is_none() => {
            None
        }
        dumped => Some(dumped?),
    };
    // A reader that leaves has seen enough.
    if let Some(Dumped { tables, rows, bytes, .. }) = dumped.filter(|_| !args.quiet) {
        let seconds = began.elapsed().as_secs_f64();
        output::note(&format!("{tables} tables, {rows} rows, {bytes} bytes; {seconds:.1} s"));
    }
    Ok(())
}

fn write(args: &DumpArgs, db: &Database, stop: &AtomicBool) -> Result<Dumped, Error> {
    let progress = progress::of_transfer(args.quiet, "written", stop);
    let dump = if args.tables.is_empty() { Dump::new(db) } else { Dump::of_tables(db, &args.tables) };
    let dump = dump?.progress(&progress);
    // It makes its blocks of lines itself.
    let to = stdout().lock();
    match (&args.into, args.format) {
        (Some(dir), format) => dump.write_files(dir, format.unwrap_or(FormatArg::Jsonl).into()),
        (None, Some(format)) => dump.write_rows(&args.tables[0], format.into(), to),
        (None, None) if args.schema => dump.write_schema(to),
        (None, None) => dump.write(to),
    }
}
