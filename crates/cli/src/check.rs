//! `pantile check`: what is wrong with a closed database, and where.

use std::path::PathBuf;

use clap::Args;
use pantile::Error;
use pantile::tools::{CheckOptions, CheckReport};

use crate::exit::Failure;
use crate::output::Output;
use crate::progress;

/// Examples that `--help` shows.
pub const EXAMPLES: &str = "Exit status: 0 if the database is sound, 1 if it is damaged or cannot be checked.

Examples:
  pantile check /data/shop
  pantile check /data/shop --json - | jq '.findings[].offset'";

/// Settings of a check.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Directory of the database. Nothing in it is written to.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Write the report to this file; - for stdout.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Most findings of damage, and most notices, to list; the others are counted.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    most: usize,
    #[command(flatten)]
    reading: ReadArgs,
}

/// How the files of a closed database are read.
#[derive(Args, Debug)]
pub struct ReadArgs {
    /// Threads to work with [default: the cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    threads: Option<u16>,
    /// Show no progress bar.
    #[arg(long)]
    pub quiet: bool,
}

impl ReadArgs {
    /// Options that list at most `most` findings of each severity. `begun` is called now and then from when the
    /// files have been opened.
    pub fn options(&self, most: usize, begun: impl Fn() + Send + Sync + 'static) -> CheckOptions {
        let mut options = CheckOptions::new().limit_findings(most);
        if let Some(threads) = self.threads {
            options = options.threads(threads.into());
        }
        progress::of_check(options, self.quiet, begun)
    }
}

/// Runs `pantile check`.
pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let mut output = Output::open(args.json.as_deref())?;
    let report =
        pantile::check(&args.dir, &args.reading.options(args.most, || ())).map_err(|e| unchecked(&e))?;
    output.write(&text(&report), &report)?;
    if report.is_sound() {
        return Ok(());
    }
    let places = if report.damaged == 1 { "place is" } else { "places are" };
    let dir = args.dir.display();
    Err(Failure::failed(format!("{} {places} damaged in {dir}; {}", report.damaged, CheckReport::ADVICE)))
}

/// Why nothing was checked, and what to do where the engine's message does not say it.
fn unchecked(error: &Error) -> Failure {
    let advice = match error {
        Error::NoDatabase(_) => "; name the directory that has the file pantile.data",
        Error::NotADatabase { .. } => {
            "; name the directory of a database, or restore a copy if this was one (`pantile restore`)"
        }
        Error::FormatVersion { .. } => "; check it with a build that reads its version",
        Error::Io { .. } => "; see to what the system says, and check again",
        _ => "",
    };
    Failure::failed(format!("{error}{advice}"))
}

fn text(report: &CheckReport) -> String {
    let mut text: String = report.findings.iter().map(|finding| format!("{finding}\n")).collect();
    let more = (report.damaged + report.notices).saturating_sub(report.findings.len() as u64);
    if more > 0 {
        text += &format!("and {more} more\n");
    }
    let state = if report.was_closed { "closed" } else { "not closed, checked as opening recovers it" };
    text += &format!(
        "{} bytes, {state}: {} chunks, {} blocks, {} contents of {} transactions\n",
        report.file_bytes, report.chunks, report.blocks, report.contents, report.transactions
    );
    if report.is_complete {
        text += &format!(
            "{} tables, {} rows, {} index entries, {} values out of line\n",
            report.tables, report.rows, report.index_entries, report.values_out_of_line
        );
    } else {
        text += "rows and indexes were not checked: contents are damaged\n";
    }
    let verdict = match (report.damaged, report.notices) {
        (0, 0) => "sound, nothing to do".to_owned(),
        (0, notices) => format!("sound, nothing to do, with {notices} to note"),
        (damaged, _) => format!("DAMAGED in {damaged} places"),
    };
    text + &format!("{verdict}; {:.1} s\n", report.seconds)
}
