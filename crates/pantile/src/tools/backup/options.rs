//! How to back up, and what was done.

use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pantile_base::Timestamp;

use crate::types::error::{Error, Result};

/// How long a backup waits by default for writers that began before it.
const WAIT: Duration = Duration::from_secs(10);

type ProgressCall = Arc<dyn Fn(&BackupProgress) -> ControlFlow<()> + Send + Sync>;
type MomentCall = Arc<dyn Fn(bool) -> ControlFlow<()> + Send + Sync>;

/// How to back up.
///
/// ```
/// use std::ops::ControlFlow;
/// use pantile::BackupOptions;
/// # use pantile::{Database, Error};
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = Database::open(dir.path().join("shop"))?;
/// let options = BackupOptions::new().rate(50 << 20).progress(|done| {
///     println!("{} of about {} bytes", done.bytes, done.total_bytes);
///     ControlFlow::Continue(())
/// });
/// db.backup_to(dir.path().join("first"), &options)?;
///
/// // What has changed since, in a directory of its own.
/// let second = dir.path().join("second");
/// let report = db.backup_to(&second, &options.since(dir.path().join("first")))?;
/// assert_eq!(report.rows, report.kept_rows, "nothing has changed");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct BackupOptions {
    pub(super) bytes_per_second: Option<u64>,
    pub(super) wait: Duration,
    pub(super) since: Option<PathBuf>,
    progress: Option<ProgressCall>,
    at_moment: Option<MomentCall>,
}

impl Default for BackupOptions {
    fn default() -> Self {
        Self { bytes_per_second: None, wait: WAIT, since: None, progress: None, at_moment: None }
    }
}

impl fmt::Debug for BackupOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackupOptions")
            .field("rate", &self.bytes_per_second)
            .field("wait", &self.wait)
            .field("since", &self.since)
            .finish_non_exhaustive()
    }
}

impl BackupOptions {
    /// The defaults: no limit on the rate, and a wait of up to ten seconds for writers that began
    /// before.
    pub fn new() -> Self {
        Self::default()
    }

    /// Copies at most this many bytes per second, to leave more of the device to others.
    #[must_use]
    pub fn rate(mut self, bytes_per_second: u64) -> Self {
        self.bytes_per_second = Some(bytes_per_second);
        self
    }

    /// Sets how long the backup waits at its beginning for running serializable writers to end: 10
    /// seconds by default.
    ///
    /// The state of the backup is older than every writer that still runs after that, so commits
    /// made beside a long writer may be missing. [`BackupReport::is_current`] returns whether the
    /// backup has all of them.
    #[must_use]
    pub fn wait(mut self, limit: Duration) -> Self {
        self.wait = limit;
        self
    }

    /// Copies only what has changed since the backup in the directory `backup`.
    ///
    /// That backup may be incremental itself. It is read, with those that it continues, and
    /// compared row by row. This takes the time of reading them, and 16 bytes of memory for each
    /// row id that is or was in use in them. Keep them, because
    /// [`restore`](crate::tools::restore()) needs them all. The new backup notes the relative path
    /// to the earlier one, so they can be moved together.
    #[must_use]
    pub fn since(mut self, backup: impl Into<PathBuf>) -> Self {
        self.since = Some(backup.into());
        self
    }

    /// Sets a function that reports progress. It is called about once for each megabyte. If it
    /// returns `Break`, the backup ends with [`Error::Cancelled`].
    #[must_use]
    pub fn progress(
        mut self,
        call: impl Fn(&BackupProgress) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> Self {
        self.progress = Some(Arc::new(call));
        self
    }

    /// Sets a function that is called once the moment of the backup is fixed, before anything is
    /// copied.
    ///
    /// What commits from then on is not in the backup. The function is given `true` if the backup
    /// has every commit that was acknowledged before the backup was called, as
    /// [`BackupReport::is_current`]. If it returns `Break`, the backup ends with
    /// [`Error::Cancelled`]. If the directory holds an interrupted backup of which nothing can be
    /// used, another moment is fixed, and the function is called again.
    ///
    /// A program that backs up several stores at one point keeps commits out only until this call,
    /// not until everything is copied.
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use pantile::*;
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path().join("shop"))?;
    /// # let resume_commits = || ();
    /// let options = BackupOptions::new().at_moment(move |is_current| {
    ///     resume_commits();
    ///     if is_current { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    /// });
    /// db.backup_to(dir.path().join("backup"), &options)?;
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn at_moment(mut self, call: impl Fn(bool) -> ControlFlow<()> + Send + Sync + 'static) -> Self {
        self.at_moment = Some(Arc::new(call));
        self
    }

    pub(super) fn report_moment(&self, is_current: bool) -> Result<()> {
        match self.at_moment.as_ref().map(|call| call(is_current)) {
            Some(ControlFlow::Break(())) => Err(Error::Cancelled),
            _ => Ok(()),
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        match self.bytes_per_second {
            Some(0) => Err(Error::InvalidOption("rate is 0; it can be 1 or more".into())),
            _ => Ok(()),
        }
    }

    pub(super) fn report(&self, done: &BackupProgress) -> ControlFlow<()> {
        self.progress.as_ref().map_or(ControlFlow::Continue(()), |call| call(done))
    }
}

/// How far a backup is; see [`BackupOptions`] for an example.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct BackupProgress {
    /// Tables copied.
    pub tables: u64,
    /// Tables of the backup.
    pub total_tables: u64,
    /// Rows that are in the backup by now.
    pub rows: u64,
    /// The part of `rows` that was there before: in the backup given to [`BackupOptions::since`],
    /// or left by a call that was interrupted.
    pub kept_rows: u64,
    /// Rows that were there before and have been deleted.
    pub deleted_rows: u64,
    /// Bytes of versions copied, those of the engine's own tables included.
    pub bytes: u64,
    /// Bytes of versions that were there before.
    pub kept_bytes: u64,
    /// About how many bytes will be copied or kept: those of the versions that were live at the
    /// beginning.
    pub total_bytes: u64,
}

/// What was backed up; see [`Database::backup_to`](crate::Database::backup_to)
/// for an example.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct BackupReport {
    /// The moment of the backup. The backup holds what was committed at or below it, and nothing
    /// else.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub timestamp: Timestamp,
    /// Whether the backup has every commit that was acknowledged before the call. If a writer ran
    /// for longer than [`BackupOptions::wait`], commits beside it may be missing. If the database
    /// is [open for reading only](crate::Options::open_read_only), this is about commits that were
    /// acknowledged before it was opened.
    pub is_current: bool,
    /// Tables of the backup.
    pub tables: u64,
    /// Rows of the backup.
    pub rows: u64,
    /// The part of `rows` that was there before: in the backup given to [`BackupOptions::since`],
    /// or left by a call that was interrupted.
    pub kept_rows: u64,
    /// Rows that were there before and have been deleted.
    pub deleted_rows: u64,
    /// Bytes of versions copied, those of the engine's own tables included.
    pub bytes: u64,
    /// Bytes of the backup's file.
    pub file_bytes: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// What was restored; see [`restore`](crate::tools::restore()) for an example.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RestoreReport {
    /// Tables restored.
    pub tables: u64,
    /// Rows restored.
    pub rows: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
}
