//! `pantile salvage`: copies what is whole of a damaged database.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use pantile::tools::SalvageReport;
use pantile::{Database, Durability, Options};

use crate::check::ReadArgs;
use crate::exit::Failure;
use crate::leftover;
use crate::load::DATA_FILE;
use crate::output::{Output, cannot_write};
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
    /// Directory of the new database; there must be nothing. The copy has .unfinished behind its name until it is whole.
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
    let made = unfinished(&args.into)?;
    let found = pantile::salvage(&args.dir, &args.reading.options(args.most, || ()))?;
    leftover::note(&made);
    // The copy is made again if the machine stops meanwhile.
    let new = Options::new().durability(Durability::None).open(&made)?;
    allow_like(&made, &args.dir);
    let copied =
        copy(found, new, args.reading.quiet).and_then(|report| put(&made, &args.into).map(|()| report));
    if copied.is_err() {
        // Best effort: what is there is not the whole copy.
        let _ = fs::remove_dir_all(&made);
    }
    let report = copied?;
    output.write_after("what is whole is copied", &text(&report, &args.into), &report)?;
    if report.is_whole() {
        return Ok(());
    }
    let places = if report.damaged == 1 { "place is" } else { "places are" };
    Err(Failure::failed(format!("{} {places} damaged or lost in {}", report.damaged, args.dir.display())))
}

/// Where the copy is made. It gets its name when it is whole.
fn unfinished(into: &Path) -> Result<PathBuf, Failure> {
    let mut name = into.file_name().map(OsString::from).unwrap_or_default();
    name.push(".unfinished");
    let made = into.with_file_name(name);
    match made.symlink_metadata() {
        Ok(_) => Err(Failure::failed(format!(
            "{} is the unfinished copy of a salvage; if none is at work there any more, remove it and try again",
            made.display()
        ))),
        Err(_) => Ok(made),
    }
}

/// Lets nobody read the copy who may not read the database; its owner may write to it. If it cannot have the same group,
/// its group has the rights of all others. Best effort: a file system may have no such thing.
#[cfg(unix)]
fn allow_like(made: &Path, dir: &Path) {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    for (name, own) in [(DATA_FILE, 0o600), ("", 0o700)] {
        let (from, copy) = (dir.join(name), made.join(name));
        let Ok(found) = from.metadata() else { continue };
        let _ = chown(&copy, None, Some(found.gid()));
        let mut mode = found.mode() & 0o777 | own;
        if copy.metadata().is_ok_and(|copy| copy.gid() != found.gid()) {
            mode &= !0o070 | (mode & 0o007) << 3;
        }
        let _ = fs::set_permissions(&copy, fs::Permissions::from_mode(mode));
    }
}

#[cfg(not(unix))]
fn allow_like(_: &Path, _: &Path) {}

/// Gives the copy its name, for good.
fn put(made: &Path, into: &Path) -> Result<(), Failure> {
    let above = into.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let renamed = fs::rename(made, into).and_then(|()| fs::File::open(above)?.sync_all());
    renamed.map_err(|error| cannot_write(into, &error))
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
