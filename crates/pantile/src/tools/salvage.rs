//! Reading a damaged database, and copying what is whole into a new one.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::api::database::Database;
use crate::engine::ending::OR_DELETE_ROWS;
use crate::engine::table::Table;
use crate::tools::check::recognise;
use crate::tools::findings::{Finding, Findings, Location, Severity};
use crate::tools::options::CheckOptions;
use crate::tools::reading::Files;
use crate::transactions::transaction::Transaction;
use crate::types::error::{Error, Result};
use crate::types::lost::{Lost, LostParts};
use crate::types::owned_value::OwnedValue;
use crate::types::range::Range;
use crate::types::row::Row;
use crate::types::schema::TableDef;
use crate::types::stored_value::variable_bytes;
use crate::types::value::Value;

/// Rows of a transaction that copies, and about the most bytes of one.
const BATCH_ROWS: u64 = 1000;
const BATCH_BYTES: usize = 8 << 20;

/// A damaged database that is open for reading; see [`salvage`].
#[derive(Debug)]
pub struct Salvaged {
    db: Database,
    lost: Findings,
    names: BTreeMap<u32, String>,
}

/// What was copied out of a damaged database, and what was not.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct SalvageReport {
    /// What is lost, in the order of places. A place that belonged to a row
    /// names the table and, where it is known, the row's primary key.
    pub lost: Vec<Finding>,
    /// The number of places that are damaged or left out, including those not among `lost`.
    pub damaged: u64,
    /// Tables copied.
    pub tables: u64,
    /// Rows copied.
    pub rows: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
}

impl SalvageReport {
    /// Whether nothing is lost.
    pub fn is_whole(&self) -> bool {
        self.damaged == 0
    }
}

/// Opens the database in the directory `path` to read what is undamaged, however much is damaged.
///
/// The files are not changed. While it is open here, the database cannot be opened otherwise, and
/// every write to it fails with [`Error::ReadOnly`].
///
/// Only contents with a matching checksum count. So every row that is found was once committed, and
/// every row outside of the damage is found in its newest state. A row whose newest version is
/// damaged may be found in an older state. A row that was deleted may be found again if the record
/// of the deletion is damaged. If a transaction committed in the last second or 64 MB before an
/// unclean stop and one of its rows is damaged, it counts as not committed. If all copies of the
/// state record are lost, that holds for all transactions.
///
/// # Errors
/// [`Error::AlreadyOpen`]; [`Error::NoDatabase`]; [`Error::NotADatabase`] if
/// there is nothing that this library has written, and [`Error::Damaged`] if
/// the superblock and its copy are both lost; [`Error::FormatVersion`];
/// [`Error::Cancelled`]; [`Error::Io`].
///
/// ```
/// use std::ops::ControlFlow;
///
/// use pantile::tools::{CheckOptions, SalvageReport, Salvaged, salvage};
/// use pantile::{Database, Range, TableDef, Type};
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("shop");
/// # let db = Database::open(&path)?;
/// # let pets = db.create_table(TableDef::new("pets").column("id", Type::U32).primary_key(["id"]))?;
/// # db.run(|txn| (0..100u32).try_for_each(|id| txn.insert(&pets, &[id.into()])))?;
/// # drop(pets);
/// # db.close()?;
/// # let mut file = std::fs::read(path.join("pantile.data")).unwrap();
/// # file[20] ^= 1;
/// # std::fs::write(path.join("pantile.data"), file).unwrap();
/// // A bit of the superblock of the database in `path` has flipped.
/// assert!(Database::open(&path).is_err());
/// let found: Salvaged = salvage(&path, &CheckOptions::new())?;
/// let db: &Database = found.database();
/// let txn = db.begin_read()?;
/// assert_eq!(txn.scan(&db.table("pets")?, Range::all())?.count(), 100);
///
/// let new = Database::open(dir.path().join("new"))?;
/// let report: SalvageReport = found.copy_into(&new, &|table, rows| {
///     println!("{table}: {rows} rows");
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!((report.tables, report.rows), (1, 100));
/// assert!(!report.is_whole() && report.lost[0].what.contains("superblock"));
/// # Ok::<(), pantile::Error>(())
/// ```
pub fn salvage(path: impl AsRef<Path>, options: &CheckOptions) -> Result<Salvaged> {
    let (path, options) = (path.as_ref(), &options.begun());
    let lost = Findings::of_damage(options.most_findings());
    let files = Files::read(path, options, &lost, &|_| ())?;
    recognise(path, &files.found)?;
    let names = files.names();
    let left_out = Arc::new(LostParts::default());
    let mut opening = options.recovery(files.view);
    opening.salvage = Some(Arc::clone(&left_out));
    let db = opening.open(path)?;
    for Lost { table, tuple, what } in left_out.take() {
        lost.damage(Location { table_id: table, tuple, ..Location::default() }, what);
    }
    for name in db.written_prepared()? {
        let what = format!(
            "the prepared transaction \"{}\" is left out: it can be committed only where it was prepared",
            name.escape_ascii()
        );
        lost.damage(Location::default(), what);
    }
    Ok(Salvaged { db, lost, names })
}

impl Salvaged {
    /// The database, open for reading.
    pub fn database(&self) -> &Database {
        &self.db
    }

    /// What is lost, in the order of places: what is damaged on the medium, and
    /// what recovery has left out.
    pub fn lost(&self) -> Vec<Finding> {
        self.lost.list(&self.names)
    }

    /// Copies all tables, with their indexes and every undamaged row, into another database, which
    /// should be new. Calls `progress` with the name of a table and the number of its rows that
    /// have been copied. If it returns `Break`, the copy ends with [`Error::Cancelled`].
    ///
    /// # Errors
    /// [`Error::Cancelled`], and errors of creating tables and of commits in the other database, which then has a part of the
    /// copy. A row that cannot be read is no error: the report lists it.
    pub fn copy_into(
        self,
        new: &Database,
        progress: &dyn Fn(&str, u64) -> ControlFlow<()>,
    ) -> Result<SalvageReport> {
        self.copy(new, progress).map_err(|error| match error {
            // What is in the way of the copy are no rows of the caller's.
            Error::StorageFull { detail, holder } => {
                Error::StorageFull { detail: detail.replace(OR_DELETE_ROWS, ""), holder }
            }
            other => other,
        })
    }

    fn copy(self, new: &Database, progress: &dyn Fn(&str, u64) -> ControlFlow<()>) -> Result<SalvageReport> {
        let began = Instant::now();
        let mut report = SalvageReport::default();
        let txn = self.db.begin_read()?;
        // What was prepared names tables by numbers that are others in the copy.
        for name in self.db.tables().into_iter().filter(|name| !self.db.is_for_prepared(name)) {
            let from = self.db.table(&name)?;
            let to = new.create_table(from.definition())?;
            let copy = Copy { txn: &txn, from: &from, def: from.definition(), lost: &self.lost };
            report.rows += copy.rows(new, &to, progress)?;
            report.tables += 1;
        }
        drop(txn);
        report.damaged = self.lost.counted()[Severity::Damage as usize];
        report.lost = self.lost();
        report.seconds = began.elapsed().as_secs_f64();
        Ok(report)
    }
}

/// Copies one table.
struct Copy<'c> {
    txn: &'c Transaction,
    from: &'c Table,
    def: TableDef,
    lost: &'c Findings,
}

impl Copy<'_> {
    fn rows(
        &self,
        new: &Database,
        to: &Table,
        progress: &dyn Fn(&str, u64) -> ControlFlow<()>,
    ) -> Result<u64> {
        let mut rows = self.txn.scan(self.from, Range::all())?;
        let mut copied = 0;
        loop {
            let (mut batch, mut bytes, mut seen) = (new.begin()?, 0, 0);
            while seen < BATCH_ROWS && bytes < BATCH_BYTES {
                let Some(row) = rows.next() else { break };
                seen += 1;
                let len = self.row(&row?, &mut batch, to)?;
                copied += u64::from(len.is_some());
                bytes += len.unwrap_or(0);
            }
            batch.commit()?;
            if progress(&self.def.name, copied).is_break() {
                return Err(Error::Cancelled);
            }
            if seen == 0 {
                return Ok(copied);
            }
        }
    }

    /// Copies a row. Returns the bytes of its strings, or nothing if it is lost.
    fn row(&self, row: &Row<'_>, batch: &mut Transaction, to: &Table) -> Result<Option<usize>> {
        let copied = row.to_values().and_then(|owned| {
            let values: Vec<_> = owned.iter().map(OwnedValue::as_value).collect();
            batch.insert(to, &values)?;
            Ok(values.iter().map(|value| variable_bytes(value).len()).sum())
        });
        match copied {
            Ok(bytes) => Ok(Some(bytes)),
            // A row as it was written before columns were added or widened may be too large for them.
            Err(error @ (Error::DuplicateKey { .. } | Error::Damaged { .. } | Error::RowTooLarge { .. })) => {
                self.leave_out(row, &error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn leave_out(&self, row: &Row<'_>, why: &str) {
        let key: Vec<String> = self
            .def
            .primary_key
            .iter()
            .map(|column| row.get::<Value<'_>>(column.as_str()).map_or("?".into(), |v| format!("{v:?}")))
            .collect();
        let what = format!("the row with the primary key ({}) is left out: {why}", key.join(", "));
        self.lost.damage(Location { table: Some(self.def.name.clone()), ..Location::default() }, what);
    }
}
