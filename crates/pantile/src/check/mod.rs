//! Checking a closed database: everything that its files promise.
//!
//! The data file is mapped privately, so that nothing is ever written to it:
//! first it is read as it is and compared with the format, then it is
//! recovered as opening would do it, in memory, and what recovery makes of it
//! is compared with what is there.

mod contents;
mod evidence;
mod findings;
mod tables;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use pantile_base::limits::CHUNK_BYTES;
use pantile_base::sync::thread;
use pantile_media::ViewMedium;
use pantile_store::{BlockUse, ChunkUse, Survey, SurveyCalls, survey};

use crate::core::from_medium;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::inspect::Definitions;
use crate::options::Options;
use pantile_reclaim::Collector;

use evidence::Evidence;
pub(crate) use findings::Findings;
pub use findings::{Finding, Place, Severity};

/// What a check is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckStep {
    /// Trying whether the device can read the file; in bytes.
    Read,
    /// Comparing formats, checksums and counts; in bytes.
    Survey,
    /// Recovering the database in memory; in bytes and tables.
    Recover,
    /// Comparing what recovery found with all contents; in bytes.
    Contents,
    /// Comparing rows and indexes; in tables.
    Tables,
}

/// How to check.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("shop");
/// # drop(pantile::Database::open(&path)?);
/// use pantile::{CheckOptions, check};
/// let report = check(&path, &CheckOptions::new().threads(2))?;
/// assert!(report.is_sound() && report.findings.is_empty());
/// # Ok::<(), pantile::Error>(())
/// ```
#[derive(Clone)]
pub struct CheckOptions {
    threads: Option<usize>,
    most_findings: usize,
    progress: Arc<dyn Fn(CheckStep, u64, u64) + Send + Sync>,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self { threads: None, most_findings: 1000, progress: Arc::new(|_, _, _| {}) }
    }
}

impl std::fmt::Debug for CheckOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("CheckOptions");
        out.field("threads", &self.threads)
            .field("most_findings", &self.most_findings)
            .finish_non_exhaustive()
    }
}

impl CheckOptions {
    /// As many threads as cores, and a thousand findings of each severity.
    pub fn new() -> Self {
        Self::default()
    }

    /// Threads to work with, at least 1.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Most findings of each severity to report; the others are counted.
    #[must_use]
    pub fn limit_findings(mut self, most: usize) -> Self {
        self.most_findings = most;
        self
    }

    /// Called now and then with what is done and is to be done of a step,
    /// from several threads.
    #[must_use]
    pub fn progress(mut self, call: impl Fn(CheckStep, u64, u64) + Send + Sync + 'static) -> Self {
        self.progress = Arc::new(call);
        self
    }

    pub(crate) fn report(&self, step: CheckStep, done: u64, total: u64) {
        (self.progress)(step, done, total);
    }

    pub(crate) fn most_findings(&self) -> usize {
        self.most_findings
    }

    pub(crate) fn thread_count(&self) -> usize {
        self.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)).max(1)
    }
}

/// What a check has found.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct CheckReport {
    /// Findings, damage first, in the order of places.
    pub findings: Vec<Finding>,
    /// Places that are damaged, also those not among `findings`.
    pub damaged: u64,
    /// Other findings, also those not among `findings`.
    pub notices: u64,
    /// Whether everything was checked. Where the bytes themselves are damaged
    /// nothing can be said about rows and indexes.
    pub is_complete: bool,
    /// Whether the database had been closed; else it was checked as opening
    /// would recover it.
    pub was_closed: bool,
    /// Bytes of the data file.
    pub file_bytes: u64,
    /// Chunks that are divided into blocks.
    pub chunks: u64,
    /// Blocks in use.
    pub blocks: u64,
    /// Contents in them, superseded ones included.
    pub contents: u64,
    /// Transactions that wrote them.
    pub transactions: u64,
    /// Tables of users.
    pub tables: u64,
    /// Rows of all tables.
    pub rows: u64,
    /// Entries of all indexes, primary ones included.
    pub index_entries: u64,
    /// Values out of line.
    pub values_out_of_line: u64,
    /// Seconds that it took.
    pub seconds: f64,
}

impl CheckReport {
    /// Whether there is no damage.
    pub fn is_sound(&self) -> bool {
        self.damaged == 0
    }
}

/// Checks the closed database in the directory `path` without writing a byte.
/// It cannot be opened meanwhile.
///
/// Takes 8 bytes of memory for each row, the indexes, and 24 bytes for each
/// transaction that wrote one of the stored versions.
///
/// # Errors
/// [`Error::AlreadyOpen`]; [`Error::NoDatabase`]; [`Error::NotADatabase`] and
/// [`Error::FormatVersion`] where there is nothing that could be checked;
/// [`Error::Io`]. Damage is no error but in the report.
pub fn check(path: impl AsRef<Path>, options: &CheckOptions) -> Result<CheckReport> {
    let (path, began) = (path.as_ref(), Instant::now());
    let view = ViewMedium::open(path, &|done, total| options.report(CheckStep::Read, done, total));
    let view = view.map_err(from_medium)?;
    let findings = Findings::new(options.most_findings);
    note_file(&view, &findings);
    let (evidence, definitions) = (Evidence::new(), Definitions::default());
    let found = survey(
        &*view,
        &SurveyCalls {
            threads: options.thread_count(),
            contents: &|table, contents| {
                evidence.count(contents, &findings);
                definitions.note(table, contents);
            },
            finding: &|finding| findings.add(finding),
            progress: &|done, total| options.report(CheckStep::Survey, done, total),
        },
    );
    recognise(path, &found)?;
    let mut done = counted(&found);
    done.file_bytes = view.file_len();
    done.transactions = evidence.finish(&findings);
    let names: BTreeMap<u32, String> =
        definitions.tables().into_iter().map(|(id, def)| (id, def.name)).collect();
    if found.is_blank {
        findings.notice(Place::default(), "nothing has been stored here: opening makes an empty database");
        done.is_complete = true;
    } else if findings.counted()[0] == 0 {
        let medium = Arc::clone(&view) as Arc<dyn pantile_media::Medium>;
        check_recovered(medium, &found, options, &findings, &mut done)?;
    }
    if view.was_disturbed() {
        return Err(Error::AlreadyOpen(path.to_owned()));
    }
    [done.damaged, done.notices] = findings.counted();
    done.findings = findings.into_list(&names);
    done.seconds = began.elapsed().as_secs_f64();
    Ok(done)
}

/// What can be said of the file before it is known what is in it.
pub(crate) fn note_file(view: &ViewMedium, findings: &Findings) {
    for &at in view.unreadable() {
        findings.damage(pantile_store::Place::at(at), "the device cannot read this page of 4096 bytes");
    }
    let len = view.file_len();
    if !len.is_multiple_of(CHUNK_BYTES) {
        let what = format!("the file has {len} bytes, which are not whole chunks: it has been truncated");
        findings.damage(pantile_store::Place::at(len), what);
    }
}

fn recognise(path: &Path, found: &Survey) -> Result<()> {
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

/// Recovers the database as opening does, and compares.
fn check_recovered(
    medium: Arc<dyn pantile_media::Medium>,
    found: &Survey,
    options: &CheckOptions,
    findings: &Findings,
    done: &mut CheckReport,
) -> Result<()> {
    let progress = Arc::clone(&options.progress);
    let opened = Options::new()
        .on_medium(medium)
        .collector(Collector::None)
        .recovery_threads(options.thread_count())
        .streams(1)
        .progress(move |p| progress(CheckStep::Recover, p.done, p.total))
        .open("a view");
    let db: Database = match opened {
        Ok(db) => db,
        Err(Error::Damaged { place, detail }) => {
            findings.damage(Place::default(), format!("{place}: {detail}"));
            return Ok(());
        }
        Err(other) => return Err(other),
    };
    contents::check(&db.core, found, options, findings);
    tables::check(&db.core, options, findings, done);
    done.is_complete = true;
    Ok(())
}
