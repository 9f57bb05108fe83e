//! How to look at the files of a closed database.

use std::ops::ControlFlow;
use std::sync::Arc;

use pantile_base::sync::atomic::{AtomicBool, Ordering};
use pantile_media::Medium;
use pantile_reclaim::Collector;

use crate::types::error::{Error, Result};
use crate::types::options::{Options, cores};

/// What a check is doing.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use pantile::tools::{CheckOptions, CheckStep};
/// let options = CheckOptions::new().progress(|step, done, total| {
///     match step {
///         CheckStep::Tables => println!("{done} of {total} tables"),
///         _ => println!("{step:?}: {done} of {total}"),
///     }
///     ControlFlow::Continue(())
/// });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CheckStep {
    /// Reading the whole file once, to see whether the device can; in bytes.
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
    progress: ProgressCall,
    /// Raised when `progress` has ended the call that is under way.
    stop: Arc<AtomicBool>,
}

type ProgressCall = Arc<dyn Fn(CheckStep, u64, u64) -> ControlFlow<()> + Send + Sync>;

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            threads: None,
            most_findings: 1000,
            progress: Arc::new(|_, _, _| ControlFlow::Continue(())),
            stop: Arc::default(),
        }
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
    /// The defaults: one thread per core, and at most a thousand findings of each severity.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of threads, from 1 to 1,024; by default one per core. If the system refuses
    /// threads, fewer do the work.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Sets how many findings of each severity are reported at most; the others are only counted.
    #[must_use]
    pub fn limit_findings(mut self, most: usize) -> Self {
        self.most_findings = most;
        self
    }

    /// Sets a function that reports progress. It is called now and then, from several threads, with
    /// the step, how much of it is done, and how much there is to do. If it returns `Break`, the work
    /// ends with [`Error::Cancelled`]; recovery in memory first ends its scan, or the table at which it is.
    #[must_use]
    pub fn progress(
        mut self,
        call: impl Fn(CheckStep, u64, u64) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> Self {
        self.progress = Arc::new(call);
        self
    }

    /// The same for a call that begins, which no earlier one has ended.
    pub(crate) fn begun(&self) -> Self {
        Self { stop: Arc::default(), ..self.clone() }
    }

    pub(crate) fn report(&self, step: CheckStep, done: u64, total: u64) -> ControlFlow<()> {
        if self.is_stopped() {
            return ControlFlow::Break(());
        }
        let goes_on = (self.progress)(step, done, total);
        if goes_on.is_break() {
            self.stop.store(true, Ordering::Relaxed);
        }
        goes_on
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn check_stopped(&self) -> Result<()> {
        if self.is_stopped() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// How to recover a view of the files.
    pub(crate) fn recovery(&self, view: Arc<dyn Medium>) -> Options {
        let progress = self.clone();
        let mut options = Options::new()
            .on_medium(view)
            .collector(Collector::NONE)
            .recovery_threads(self.thread_count())
            .streams(1)
            .progress(move |p| _ = progress.report(CheckStep::Recover, p.done, p.total));
        options.stop = Some(Arc::clone(&self.stop));
        options
    }

    pub(crate) fn most_findings(&self) -> usize {
        self.most_findings
    }

    pub(crate) fn thread_count(&self) -> usize {
        self.threads.unwrap_or_else(cores).clamp(1, 1024)
    }
}
