//! Checking a closed database.
//!
//! The data file is mapped privately, so the check never writes to it. First the check reads the
//! file as it is and compares it with the format. Then it recovers the database in memory, as
//! opening would, and compares the result with the file: first from all contents, then from the
//! index image, if opening would use that.

mod contents;
mod evidence;
mod report;
mod tables;

use std::path::Path;
use std::time::Instant;

use pantile_media::ViewMedium;
use pantile_reclaim::Collector;
use pantile_store::{BlockUse, ChunkUse, Survey};

use crate::api::opening;
use crate::engine::failure::from_medium;
use crate::tools::findings::{Findings, Location};
use crate::tools::image;
use crate::tools::options::CheckOptions;
use crate::tools::reading::Files;
use crate::types::error::{Error, Result};
use crate::types::options::Options;

use evidence::Evidence;
pub use report::CheckReport;

/// Checks the closed database in the directory `path`, without writing to its files.
///
/// The database cannot be opened during the check.
///
/// The check needs memory for the indexes, 8 bytes for each row, and 24 bytes for each transaction
/// that wrote one of the stored versions.
///
/// # Errors
/// [`Error::AlreadyOpen`]; [`Error::NoDatabase`]; [`Error::NotADatabase`] and
/// [`Error::FormatVersion`] if there is nothing that can be checked; [`Error::Cancelled`]; [`Error::Io`]. Damage is not
/// an error; the report lists it.
pub fn check(path: impl AsRef<Path>, options: &CheckOptions) -> Result<CheckReport> {
    let (path, options, began) = (path.as_ref(), &options.begun(), Instant::now());
    let (evidence, findings) = (Evidence::new(), Findings::new(options.most_findings()));
    let files = Files::read(path, options, &findings, &|contents| evidence.count(contents, &findings))?;
    let found = &files.found;
    recognise(path, found)?;
    let mut done = counted(found);
    done.file_bytes = files.view.file_len();
    done.transactions = evidence.finish(&findings);
    if findings.counted()[0] == 0 {
        let has_image = has_image(&files.view, found, &findings);
        let recovery = options.recovery(files.view.clone());
        check_recovered(recovery, found, options, (&findings, contents::THEMSELVES), &mut done)?;
        if has_image && findings.counted()[0] == 0 {
            let view = files.view.with_images().map_err(from_medium)?;
            let recovery = options.recovery(view).collector(Collector::TB_COLLECT);
            let mut by_image = CheckReport::default();
            check_recovered(recovery, found, options, (&findings, BY_IMAGE), &mut by_image)?;
            if by_image.is_complete && by_image.rows != done.rows {
                let what = format!("there are {} rows, and {}{BY_IMAGE}", done.rows, by_image.rows);
                findings.damage(Location::default(), what);
            }
        }
    }
    [done.damaged, done.notices] = findings.counted();
    done.findings = findings.list(&files.names());
    done.seconds = began.elapsed().as_secs_f64();
    Ok(done)
}

/// Fails if there is no database of this format.
pub(super) fn recognise(path: &Path, found: &Survey) -> Result<()> {
    if found.is_blank {
        return Err(Error::NoDatabase(path.to_owned()));
    }
    if let Some(found) = found.other_version {
        return Err(Error::FormatVersion { found, supported: pantile_store::FORMAT_VERSION });
    }
    match (&found.superblock_problem, found.version) {
        (Some(problem), None) => Err(Error::NotADatabase { path: path.to_owned(), detail: problem.clone() }),
        _ => Ok(()),
    }
}

fn counted(found: &Survey) -> CheckReport {
    let blocks = || found.chunks.iter().flat_map(|c| &c.blocks).filter(|b| b.found == BlockUse::Used);
    CheckReport {
        was_closed: found.record().is_some_and(|record| record.closed),
        chunks: found.chunks.iter().filter(|c| matches!(c.found, ChunkUse::Carved { .. })).count() as u64,
        blocks: blocks().count() as u64,
        contents: blocks().map(|b| u64::from(b.contents)).sum(),
        ..CheckReport::default()
    }
}

/// Said of what only opening from the image would find.
const BY_IMAGE: &str =
    " by the index image, while the contents are sound; without the file pantile.image opening reads those";

/// Whether opening would use an image. One that cannot be used costs time and nothing else.
fn has_image(view: &ViewMedium, found: &Survey, findings: &Findings) -> bool {
    let named = image::look(view, found).filter(|image| image.is_named);
    match named.map(|image| image.problem) {
        None => false,
        Some(None) => true,
        Some(Some(problem)) => {
            let what = format!("the index image cannot be used ({problem}): opening reads all contents");
            findings.notice(Location::default(), what);
            false
        }
    }
}

/// Recovers the database as opening does, and compares.
fn check_recovered(
    recovery: Options,
    found: &Survey,
    options: &CheckOptions,
    (findings, by): (&Findings, &str),
    done: &mut CheckReport,
) -> Result<()> {
    // No more than the engine: what is prepared is not made again.
    let core = match opening::open(Path::new("a view"), recovery) {
        Ok(core) => core,
        Err(Error::Damaged { place, detail }) => {
            findings.damage(Location::default(), format!("{place}: {detail}{by}"));
            return Ok(());
        }
        Err(other) => return Err(other),
    };
    for table in core.tables.all() {
        core.load_apart(&table)?;
    }
    contents::check(&core, found, options, (findings, by));
    options.check_stopped()?;
    tables::check(&core, options, (findings, by), done);
    options.check_stopped()?;
    done.is_complete = true;
    Ok(())
}
