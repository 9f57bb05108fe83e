//! Restoring: a verified copy of a backup.

use std::fs::File;
use std::path::Path;

use pantile_base::sync::Instant;
use pantile_media::files::{read_exact_at, write_all_at};
use pantile_media::{DATA_FILE, ViewMedium};

use crate::api::incomplete;
use crate::engine::failure::from_medium;
use crate::tools::backup::options::RestoreReport;
use crate::tools::backup::target::{Target, io_error};
use crate::tools::check::{CheckReport, check};
use crate::tools::findings::Severity;
use crate::tools::options::{CheckOptions, CheckStep};
use crate::types::error::{Error, Result};

/// Bytes copied at once. Pieces of zeros take no space in the copy.
const PIECE: usize = 64 << 10;

/// Copies the closed database in the directory `backup` to the directory `into`,
/// which is created if need be, and checks the copy as [`check`] does: formats,
/// checksums, rows and indexes. There is a database in `into` only when the call
/// has returned Ok and the copy is durable. The backup is not changed, and cannot
/// be opened while it is read.
///
/// Calls what [`CheckOptions::progress`] has set. The memory that it takes is
/// that of [`check`].
///
/// # Errors
/// [`Error::NotEmpty`] if there is something in `into`; [`Error::IncompleteBackup`];
/// [`Error::NoDatabase`]; [`Error::AlreadyOpen`] if the backup is open;
/// [`Error::Damaged`], [`Error::NotADatabase`] and [`Error::FormatVersion`] if the
/// backup is not sound; [`Error::StorageFull`]; [`Error::Io`]. What was made is
/// removed then.
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
/// assert_eq!((report.tables, report.rows), (1, 2), "the row, and that of the table's definition");
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
    incomplete::refuse(backup)?;
    incomplete::refuse_part(backup)?;
    let target = Target::claim(into)?;
    // The view keeps others from opening the backup.
    let view = ViewMedium::open(backup, &|done, total| options.report(CheckStep::Read, done, total));
    let view = view.map_err(from_medium)?;
    if let Some(offset) = view.unreadable().first() {
        let place = format!("byte {offset} of the backup in {}", backup.display());
        return Err(Error::Damaged { place, detail: "it cannot be read".into() });
    }
    copy(backup, target.part())?;
    drop(view);
    let report = check_part(&target, backup, options)?;
    target.complete()?;
    Ok(RestoreReport {
        tables: report.tables,
        rows: report.rows,
        file_bytes: report.file_bytes,
        seconds: began.elapsed().as_secs_f64(),
    })
}

fn copy(backup: &Path, part: &Path) -> Result<()> {
    let (from, to) = (backup.join(DATA_FILE), part.join(DATA_FILE));
    let (reading, writing) = (io_error("read", &from), io_error("write", &to));
    let source = File::open(&from).map_err(&reading)?;
    let copy = File::create_new(&to).map_err(&writing)?;
    let len = source.metadata().map_err(&reading)?.len();
    copy.set_len(len).map_err(&writing)?;
    let mut piece = vec![0; PIECE];
    for at in (0..len).step_by(PIECE) {
        let bytes = &mut piece[..(len - at).min(PIECE as u64) as usize];
        read_exact_at(&source, bytes, at).map_err(&reading)?;
        if bytes.iter().any(|&byte| byte != 0) {
            write_all_at(&copy, bytes, at).map_err(&writing)?;
        }
    }
    copy.sync_all().map_err(&writing)
}

fn check_part(target: &Target, backup: &Path, options: &CheckOptions) -> Result<CheckReport> {
    let report = check(target.part(), options)?;
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
