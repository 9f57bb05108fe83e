//! `pantile dump`: a database as text.

use std::io::{ErrorKind, stdout};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use clap::{Args, ValueEnum};
use pantile::Database;
use pantile::tools::CheckOptions;
use pantile_transfer::{Dump, Dumped, Error, Format};

use crate::exit::Failure;
use crate::losses::Losses;
use crate::output;
use crate::progress;

/// Examples that `--help` shows.
pub const EXAMPLES: &str =
    "Exit status: 0 if everything was written, 1 if not. With --salvage 1 also if something is lost:
what is on stdout is then a whole dump of the rest.

Examples:
  pantile dump /data/shop > shop.dump
  pantile dump /data/shop --schema
  pantile dump /data/shop --table orders --format csv > orders.csv
  pantile dump /data/shop --into shop-text --format csv
  pantile dump /data/shop --salvage 2> lost.txt > rest.dump";

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
    /// Read a damaged database, which is not written to: dump every whole row, and list on stderr
    /// what is lost, by table and key where known.
    #[arg(long)]
    salvage: bool,
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
    if args.salvage {
        return salvage(args, stop);
    }
    let began = Instant::now();
    let db = Database::open_read_only(&args.dir)?;
    if !db.is_current() {
        output::note(
            "a transaction was writing when this began: what others have committed beside it is not in the dump; make another when it has ended",
        );
    }
    let dump = dump(args, &db);
    for name in dump.iter().flat_map(|dump| dump.prepared()) {
        output::note(&format!(
            "the prepared transaction \"{}\" is not in the dump; commit it or roll it back, and make another",
            name.escape_ascii()
        ));
    }
    let dumped = written(args, dump, stop)?;
    summarize(args, dumped, began);
    Ok(())
}

/// Dumps what is whole of a damaged database.
fn salvage(args: &DumpArgs, stop: &AtomicBool) -> Result<(), Failure> {
    let began = Instant::now();
    let losses = Losses::default();
    // Every loss is a line.
    let options = CheckOptions::new().limit_findings(usize::MAX);
    let found = pantile::salvage(&args.dir, &progress::of_check(options, args.quiet, || ()))?;
    let note = |row| losses.note(row);
    let dump = dump(args, found.database()).map(|dump| dump.leave_out_damaged(&note));
    let dumped = written(args, dump, stop)?;
    summarize(args, dumped, began);
    losses.report(&found.lost(), &args.dir)
}

fn dump<'d>(args: &DumpArgs, db: &'d Database) -> Result<Dump<'d>, Error> {
    if args.tables.is_empty() { Dump::new(db) } else { Dump::of_tables(db, &args.tables) }
}

/// Writes the dump; nothing is returned if the reader of rows or definitions has left. Of a whole dump it must not: it
/// would be taken for one.
fn written(
    args: &DumpArgs,
    dump: Result<Dump<'_>, Error>,
    stop: &AtomicBool,
) -> Result<Option<Dumped>, Failure> {
    match dump.and_then(|dump| write(args, dump, stop)) {
        Err(Error::Write { source, .. }) if source.kind() == ErrorKind::BrokenPipe && args.into.is_none() => {
            match args.schema || args.format.is_some() {
                // It has seen enough.
                true => Ok(None),
                false => Err(Failure::failed("the reader of the dump has left, which is not whole")),
            }
        }
        // What is on stdout looks like rows, or like the beginning of a dump.
        Err(error) if args.into.is_none() => {
            Err(Failure::failed(format!("{error}; what was written, if anything, is not the whole")))
        }
        dumped => Ok(Some(dumped?)),
    }
}

fn summarize(args: &DumpArgs, dumped: Option<Dumped>, began: Instant) {
    if let Some(Dumped { tables, rows, bytes, .. }) = dumped.filter(|_| !args.quiet) {
        let seconds = began.elapsed().as_secs_f64();
        output::note(&format!("{tables} tables, {rows} rows, {bytes} bytes; {seconds:.1} s"));
    }
}

fn write(args: &DumpArgs, dump: Dump<'_>, stop: &AtomicBool) -> Result<Dumped, Error> {
    let progress = progress::of_transfer(args.quiet, "written", stop);
    let dump = dump.progress(&progress);
    // It makes its blocks of lines itself.
    let to = stdout().lock();
    match (&args.into, args.format) {
        (Some(dir), format) => dump.write_files(dir, format.unwrap_or(FormatArg::Jsonl).into()),
        (None, Some(format)) => dump.write_rows(&args.tables[0], format.into(), to),
        (None, None) if args.schema => dump.write_schema(to),
        (None, None) => dump.write(to),
    }
}
