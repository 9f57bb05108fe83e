//! `pantile salvage`: copies what is whole of a damaged database.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use pantile::tools::SalvageReport;
use pantile::{Database, Durability, Options};

use crate::check::ReadArgs;
use crate::exit::Failure;
use crate::output::Output;
use crate::progress;

/// Examples that `--help` shows.
pub const EXAMPLES: &str =
    "Exit status: 0 if everything was copied, 1 if something is lost or nothing can be read.

Examples:
  pantile salvage /data/shop --into /data/shop.new
  pantile salvage /data/shop --into /data/shop.new --json - | jq '.lost[].what'";

/// Settings of a salvage.
#[derive(Args, Debug)]
pub struct SalvageArgs {
    /// Directory of the damaged database. Nothing in it is written to.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Directory of the new database; there must be nothing.
    #[arg(long, value_name = "DIR2")]
    into: PathBuf,
    /// Write the report to this file; - for stdout.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Most losses to list; the others are counted.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    most: usize,
    #[command(flatten)]
    reading: ReadArgs,
}

/// Runs `pantile salvage`.
pub fn run(args: &SalvageArgs) -> Result<(), Failure> {
    if args.into.symlink_metadata().is_ok() {
        let into = args.into.display();
        return Err(Failure::failed(format!("{into} exists already; name a directory that does not")));
    }
    let mut output = Output::open(args.json.as_deref())?;
    let found = pantile::salvage(&args.dir, &args.reading.options(args.most))?;
    // The copy is made again if the machine stops meanwhile.
    let new = Options::new().durability(Durability::None).open(&args.into)?;
    let copied = copy(found, new, args.reading.quiet);
    if copied.is_err() {
        // Best effort: what is there is not the whole copy.
        let _ = fs::remove_dir_all(&args.into);
    }
    let report = copied?;
    output.write(&text(&report, &args.into), &report)?;
    if report.is_whole() {
        return Ok(());
    }
    let places = if report.damaged == 1 { "place is" } else { "places are" };
    Err(Failure::failed(format!("{} {places} damaged or lost in {}", report.damaged, args.dir.display())))
}

fn copy(found: pantile::tools::Salvaged, new: Database, quiet: bool) -> Result<SalvageReport, Failure> {
    let report = found.copy_into(&new, &progress::of_copy(quiet))?;
    new.close()?;
    Ok(report)
}

fn text(report: &SalvageReport, into: &Path) -> String {
    let mut text: String = report.lost.iter().map(|finding| format!("{finding}\n")).collect();
    let more = report.damaged.saturating_sub(report.lost.len() as u64);
    if more > 0 {
        text += &format!("and {more} more\n");
    }
    let (tables, rows) = (report.tables, report.rows);
    text + &format!("{tables} tables and {rows} rows copied to {}; {:.1} s\n", into.display(), report.seconds)
}
