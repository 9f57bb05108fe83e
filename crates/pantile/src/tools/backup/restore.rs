//! Restoring: a verified copy of a backup, with all that it continues.

use std::fs::File;
use std::path::Path;

use pantile_base::limits::HEAD_BYTES;
use pantile_base::sync::Instant;
use pantile_base::{TableId, Timestamp};
use pantile_media::files::{allow_like, create_own, promise, read_exact_at, write_all_at};
use pantile_media::{DATA_FILE, ViewMedium, check_file_size};
use pantile_store::{ContentFlags, Found, NewContent, Store, StoreError, Urgency, begin_history};

use crate::engine::failure::from_medium;
use crate::tools::backup::chain::{Chain, new_identity};
use crate::tools::backup::copy::{recovered, target_error};
use crate::tools::backup::held::Held;
use crate::tools::backup::options::RestoreReport;
use crate::tools::backup::target::{Part, Target, io_error};
use crate::tools::check::{CheckReport, check};
use crate::tools::findings::Severity;
use crate::tools::options::{CheckOptions, CheckStep};
use crate::types::error::{Error, Result};

/// Bytes copied at once. Pieces of zeros take no space in the copy.
const PIECE: usize = 64 << 10;

const _: () = assert!(PIECE as u64 >= HEAD_BYTES);

/// Restores the backup in the directory `backup` into the directory `into`, and checks the copy.
///
/// The directory `into` is created if there is none. The copy is checked as [`check`] does:
/// formats, checksums, rows and indexes. There is a database in `into` only when the call has
/// returned Ok and the copy is durable. The backup is not changed. It must be closed, and cannot be
/// opened while it is read.
///
/// If the backup is [incremental](`crate::BackupOptions::since`), the call also finds and reads the
/// backups that it continues. The copy then has the state that the last backup of this chain saw.
///
/// The call reports its progress to the function that [`CheckOptions::progress`] sets. It takes as
/// much memory as [`check`].
///
/// # Errors
/// [`Error::NotEmpty`] if there is something else in `into`; [`Error::IncompleteBackup`] if the
/// backup is incomplete, or if there is a partial backup in `into`; [`Error::NoDatabase`];
/// [`Error::AlreadyOpen`] if the backup is open; [`Error::BeingFilled`] if another call is filling `into`;
/// [`Error::Damaged`], [`Error::NotADatabase`] and [`Error::FormatVersion`] if the backup is not
/// sound, or is not the one that an incremental one continues; [`Error::MissingBackup`];
/// [`Error::StorageFull`]; [`Error::Cancelled`]; [`Error::Io`]. If the call fails, it removes what it has made.
///
/// ```
/// use pantile::tools::{BackupOptions, CheckOptions, RestoreReport, restore};
/// use pantile::{Database, TableDef, Type};
/// # let dir = tempfile::tempdir().unwrap();
/// # let (backup, shop) = (dir.path().join("backup"), dir.path().join("restored"));
/// # let db = Database::open(dir.path().join("shop"))?;
/// # let pets = db.create_table(TableDef::new("pets").column("id", Type::U32).primary_key(["id"]))?;
/// # db.run(|txn| txn.insert(&pets, &[1u32.into()]))?;
/// db.backup_to(&backup, &BackupOptions::new())?;
/// let report: RestoreReport = restore(&backup, &shop, &CheckOptions::new())?;
/// assert_eq!((report.tables, report.rows), (1, 1));
/// let shop = Database::open(&shop)?;
/// # assert_eq!(shop.tables(), ["pets"]);
/// # Ok::<(), pantile::Error>(())
/// ```
pub fn restore(
    backup: impl AsRef<Path>,
    into: impl AsRef<Path>,
    options: &CheckOptions,
) -> Result<RestoreReport> {
    let (backup, into, began) = (backup.as_ref(), into.as_ref(), Instant::now());
    let options = &options.begun();
    let chain = Chain::of(backup)?;
    let target = Target::claim(into, Part::OfRestored)?;
    let whole = chain.first();
    // The view keeps others from opening the backup.
    let view = ViewMedium::open(whole, &|done, total| options.report(CheckStep::Read, done, total));
    let view = view.map_err(from_medium)?;
    if let Some(offset) = view.unreadable().first() {
        let place = format!("byte {offset} of the backup in {}", whole.display());
        return Err(Error::Damaged { place, detail: "it cannot be read".into() });
    }
    copy(whole, &view, target.part())?;
    drop(view);
    if let Some(at) = chain.is_at() {
        add_increments(&chain, at, target.part())?;
    }
    let report = check_part(&target, backup, options)?;
    target.complete(false)?;
    Ok(RestoreReport {
        tables: report.tables,
        rows: report.rows,
        file_bytes: report.file_bytes,
        seconds: began.elapsed().as_secs_f64(),
    })
}

fn copy(backup: &Path, view: &ViewMedium, part: &Path) -> Result<()> {
    let (from, to) = (backup.join(DATA_FILE), part.join(DATA_FILE));
    let (reading, writing) = (io_error("read", &from), io_error("write", &to));
    let source = File::open(&from).map_err(&reading)?;
    // Nobody may read the database who may not read the backup.
    let copy = create_own(&to).map_err(&writing)?;
    allow_like(&copy, &source);
    let len = source.metadata().map_err(&reading)?.len();
    // Zeros are not copied, and are to be written to later.
    let made = check_file_size(len).and_then(|()| copy.set_len(len)).and_then(|()| promise(&copy, 0, len));
    made.map_err(&writing)?;
    let mut piece = vec![0; PIECE];
    for at in (0..len).step_by(PIECE) {
        let bytes = &mut piece[..(len - at).min(PIECE as u64) as usize];
        read_exact_at(&source, bytes, at).map_err(&reading)?;
        if at == 0 {
            begin_history(bytes, new_identity());
        }
        if bytes.iter().any(|&byte| byte != 0) {
            write_all_at(&copy, bytes, at).map_err(&writing)?;
        }
    }
    // A backup may have been opened, and not closed.
    view.add_journal_to(&copy).map_err(from_medium)?;
    copy.sync_all().map_err(&writing)
}

/// Adds what has changed since to the copy of the first backup of a chain, which
/// ends at `at`. Recovery takes the newest content of each tuple.
fn add_increments(chain: &Chain, at: Timestamp, part: &Path) -> Result<()> {
    let mut held = Held::default();
    let failed = |error| target_error(error, part);
    let store = recovered(part, None, &mut held).map_err(failed)?;
    chain.read_increments(&mut held, |table, found| append(&store, at, table, found).map_err(failed))?;
    // Nothing in it is later, so all of it has been decided (I-8, I-9).
    store.record_closed(store.sample(|| at)).map_err(failed)
}

fn append(store: &Store, at: Timestamp, table: TableId, found: &[Found<'_>]) -> Result<(), StoreError> {
    let contents = found.iter().map(|Found { content, .. }| NewContent {
        table,
        tuple: content.tuple(),
        flags: match content.flags().is_tombstone() {
            true => ContentFlags::COPY_OF_TOMBSTONE,
            false => ContentFlags::COPY,
        },
        layout: content.layout(),
        since: None,
        timestamp: content.timestamp(),
        transaction_contents: 1,
        row: content.row(),
    });
    let mut addresses = Vec::with_capacity(found.len());
    store.append(0, Urgency::Write, contents, || at, &mut addresses)?.persist()
}

fn check_part(target: &Target, backup: &Path, options: &CheckOptions) -> Result<CheckReport> {
    let report = check(target.part(), options).map_err(|error| match error {
        Error::NoDatabase(_) => Error::NoDatabase(backup.to_owned()),
        error => error,
    })?;
    let first = report.findings.iter().find(|finding| finding.severity == Severity::Damage);
    match first {
        Some(damage) => Err(Error::Damaged {
            place: format!("the copy of the backup in {}", backup.display()),
            detail: damage.to_string(),
        }),
        None if report.damaged > 0 => Err(Error::Damaged {
            place: format!("the copy of the backup in {}", backup.display()),
            detail: format!("{} places are damaged", report.damaged),
        }),
        None => Ok(report),
    }
}
