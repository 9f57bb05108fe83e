//! Backups of a running database, and restoring them.

mod chain;
mod copy;
mod held;
mod options;
mod restore;
mod sync_ahead;
mod target;

use std::path::{Path, PathBuf};
use std::time::Duration;

use pantile_base::Timestamp;
use pantile_base::sync::Instant;
use pantile_cc::Registry;
use pantile_media::DATA_FILE;

use crate::api::database::Database;
use crate::transactions::transaction::Transaction;
use crate::types::error::{Error, Result};
use crate::types::transaction_options::TransactionOptions;

use chain::{Chain, Increment};
use copy::{Copied, Earlier};
use held::Held;
pub use options::{BackupOptions, BackupProgress, BackupReport, RestoreReport};
pub use restore::restore;
use target::{Part, Target, io_error};

/// Between two looks whether older writers have ended.
const PAUSE: Duration = Duration::from_millis(1);

/// Whether two paths lead to the same directory, as far as that is known.
fn is_same(one: &Path, other: &Path) -> bool {
    let spelled = |path: &Path| std::path::absolute(path).ok();
    let found = |path: &Path| path.canonicalize().ok();
    let same = |one: Option<PathBuf>, other: Option<PathBuf>| one.is_some() && one == other;
    same(spelled(one), spelled(other)) || same(found(one), found(other))
}

impl Database {
    /// Backs up the database into the directory `dir`, while transactions run.
    ///
    /// The directory is created if there is none, and may be on another file system. The backup is
    /// a database like any other: open it, check it, back it up, or [`restore`] it elsewhere. It is
    /// stored in a file, whatever the medium of this database is.
    ///
    /// The backup holds the state of the database at one moment, which is fixed at the beginning of
    /// the call (see [`BackupOptions::wait`]). It has every transaction that committed up to that
    /// moment, as a whole, and none that committed later. Its tables and indexes are also those of
    /// that moment, even if they are changed or dropped during the call. No writer waits for the
    /// backup or fails because of it. The checksum of every version is verified before the version
    /// is copied.
    ///
    /// Until the call returns Ok, there is no database in `dir`: opening a partial backup fails
    /// with [`Error::IncompleteBackup`]. After a kill, a power failure or an error, call it again
    /// with the same directory. Versions that the earlier call has copied, and that have not
    /// changed since, are not copied again. The backup is then of the moment of the later call. If
    /// the device is full, the call removes what it has copied. To abandon a backup, remove the
    /// directory.
    ///
    /// An earlier call that was killed right before it returned may have completed its backup. The
    /// later call then fails with [`Error::NotEmpty`], and the backup can be opened and restored.
    ///
    /// With [`BackupOptions::since`], the call copies only what has changed since an earlier
    /// backup. The result is an incremental backup, which can be [restored](`restore`), but not
    /// opened.
    ///
    /// While the call runs, it is a reader like any other: the versions that it may read stay, and
    /// [`Database::transactions`] shows what it holds back. [`Database::close`] ends it.
    ///
    /// # Errors
    /// [`Error::NotEmpty`] if there is something else in `dir`; [`Error::IncompleteBackup`] if
    /// there is a partial restore in `dir`; [`Error::BeingFilled`] if another backup into it is
    /// running; [`Error::StorageFull`] and [`Error::Io`] of `dir`; [`Error::Damaged`] if a
    /// version's checksum does not fit; [`Error::Cancelled`]; [`Error::Closed`], also if the
    /// database is closed during the call; [`Error::TooManyTransactions`]; [`Error::InvalidOption`]
    /// if the rate is 0, if the path of `dir` is empty, if the earlier backup is in `dir` itself, if
    /// the path to it cannot be stored as text, or if the database is damaged and open to be salvaged; errors of [`restore`]
    /// about the earlier backup, and [`Error::NotABackupOfThis`]. This database is unaffected in
    /// every case.
    ///
    /// ```
    /// use pantile::tools::{BackupOptions, BackupReport};
    /// use pantile::{Database, TableDef, Type};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let (path, backup) = (dir.path().join("shop"), dir.path().join("backup"));
    /// let db = Database::open(&path)?;
    /// let pets = db.create_table(TableDef::new("pets").column("id", Type::U32).primary_key(["id"]))?;
    /// db.run(|txn| txn.insert(&pets, &[1u32.into()]))?;
    ///
    /// let report: BackupReport = db.backup_to(&backup, &BackupOptions::new())?;
    /// assert_eq!((report.tables, report.rows, report.is_current), (1, 1, true));
    ///
    /// db.run(|txn| txn.delete(&pets, &[1u32.into()]))?;
    /// let old = Database::open(&backup)?;
    /// assert!(old.begin_read()?.get(&old.table("pets")?, &[1u32.into()])?.is_some());
    /// # Ok::<(), pantile::Error>(())
    /// ```
    pub fn backup_to(&self, dir: impl AsRef<Path>, options: &BackupOptions) -> Result<BackupReport> {
        let (dir, began) = (dir.as_ref(), Instant::now());
        options.check()?;
        if let Some(since) = &options.since
            && is_same(since, dir)
        {
            return Err(Error::InvalidOption(format!(
                "a backup into {} cannot be since itself; make it in a directory of its own, since an earlier backup",
                dir.display()
            )));
        }
        if self.core.options.salvage.is_some() {
            let way = "a damaged database is copied by Salvaged::copy_into";
            return Err(Error::InvalidOption(way.into()));
        }
        self.core.check_open()?;
        let mut target = Target::claim(dir, Part::OfBackup)?;
        let made = self.back_up(dir, &mut target, options)?;
        if let Some(increment) = made.increment {
            let written = increment.write(target.part(), made.timestamp);
            if let Err(Error::StorageFull { .. }) = written {
                target.keep(false);
            }
            written?;
        }
        let data = target.complete(options.since.is_some())?;
        let file_bytes = data.metadata().map_err(io_error("look at", &data))?.len();
        Ok(BackupReport {
            timestamp: made.timestamp,
            is_current: made.is_current,
            tables: made.copied.tables,
            rows: made.copied.rows,
            kept_rows: made.copied.kept_rows,
            deleted_rows: made.copied.deleted_rows,
            bytes: made.copied.bytes,
            file_bytes,
            seconds: began.elapsed().as_secs_f64(),
        })
    }

    /// Copies what is not held into the part of the target, which stays unless
    /// there is nothing in it or no room for more.
    fn back_up(&self, dir: &Path, target: &mut Target, options: &BackupOptions) -> Result<Made> {
        let lineage = self.core.store.lineage();
        loop {
            let (mut held, mut increment) = (Held::default(), None);
            if let Some(since) = &options.since {
                Chain::of(since)?.read(&mut held, &|earlier| {
                    // A database that is in use goes on, and is no backup.
                    let is_of_this = earlier.origin == lineage.origin && earlier.source != 0;
                    if is_of_this { Ok(()) } else { Err(Error::NotABackupOfThis(since.clone())) }
                })?;
                increment = Some(Increment::new(dir, since, &held)?);
                held.doubt_unnamed();
            }
            let (store, earlier) = copy::open_part(target.part(), lineage, &mut held)?;
            let goes_on = earlier == Earlier::Some;
            if let Some(source) = &self.core.store.medium().facts().mapped {
                // Nobody may read the backup who may not read the database.
                source.allow_copy(&target.part().join(DATA_FILE));
            }
            let (txn, is_current) = self.begin_backup(options.wait, held.highest)?;
            if let Err(cancelled) = options.report_moment(is_current) {
                target.keep(goes_on);
                return Err(cancelled);
            }
            let (timestamp, mut copied) = (self.moment_of(&txn), BackupProgress::default());
            let outcome =
                copy::copy(self, (txn, timestamp), (store, target.part()), &held, options, &mut copied);
            target.keep(goes_on || copied.bytes > 0);
            match outcome {
                Ok(Copied::All) => return Ok(Made { timestamp, is_current, increment, copied }),
                Ok(Copied::NotOurs) if goes_on => copy::remove_part(target.part())?,
                Ok(Copied::NotOurs) => {
                    target.keep(false);
                    return Err(Error::NotABackupOfThis(options.since.clone().unwrap_or_default()));
                }
                Err(error) => {
                    if let Error::StorageFull { .. } = error {
                        target.keep(false);
                    }
                    return Err(error);
                }
            }
        }
    }

    /// The moment that a transaction sees, in the time of those who write.
    fn moment_of(&self, txn: &Transaction) -> Timestamp {
        let options = &self.core.options;
        match options.beside() {
            Some(beside) => beside.timestamp,
            // The clock of the next process that writes starts there.
            None if options.is_read_only() => self.core.registry.start(),
            None => txn.timestamp(),
        }
    }

    /// A safe snapshot, and whether it sees every commit that has been
    /// acknowledged. It is below all running writers, so this waits for those
    /// that began before the call, at most for `limit`; for as long, too, if it is
    /// not above `held`. What is open to be read stays as it was when it was opened.
    fn begin_backup(&self, limit: Duration, held: Timestamp) -> Result<(Transaction, bool)> {
        let registry = &self.core.registry;
        let (called, began) = (registry.now(), registry.clock().elapsed());
        let options = &self.core.options;
        loop {
            let named = TransactionOptions::new().safe_snapshot().name("backup");
            let txn = self.begin_with(named)?.past_the_cache();
            let is_current = match options.beside() {
                Some(beside) => beside.is_current,
                None => Registry::shows_all(txn.timestamp(), called),
            };
            if is_current && txn.timestamp() >= held
                || options.is_read_only()
                || registry.clock().elapsed().saturating_sub(began) >= limit
            {
                return Ok((txn, is_current));
            }
            drop(txn);
            registry.clock().sleep(PAUSE);
        }
    }
}

/// What has been copied.
struct Made {
    timestamp: Timestamp,
    is_current: bool,
    /// If it is incremental.
    increment: Option<Increment>,
    copied: BackupProgress,
}
