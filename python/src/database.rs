//! Databases.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use pantile::{
    BackupOptions, CheckOptions, Durability, Error as Engine, Isolation, MediumKind, OnPinned, Options,
    TransactionOptions,
};
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::definition::{ColumnParts, IndexParts, Table, column_def, index_def, table_def, type_of};
use crate::error::{Closed, Error, check_process, raised};
use crate::migrations::{self, MigrationParts};
use crate::transaction::Transaction;
use crate::value::from_python;
use crate::{insight, text};

/// A step of `Database.alter`: what, which column, and what it gets.
pub type Step<'py> = (String, String, Bound<'py, PyAny>);

/// An open database.
#[pyclass(frozen, subclass, module = "pantile")]
pub struct Database {
    open: Mutex<Option<pantile::Database>>,
    process: u32,
}

#[pymethods]
impl Database {
    #[new]
    #[pyo3(signature = (path, *, durability = "sync", memory = false, create = true, read_only = false, max_bytes = None, max_pinned_age = None, max_pinned_bytes = None, on_pinned = "warn"))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        durability: &str,
        memory: bool,
        create: bool,
        read_only: bool,
        max_bytes: Option<u64>,
        max_pinned_age: Option<f64>,
        max_pinned_bytes: Option<u64>,
        on_pinned: &str,
    ) -> PyResult<Self> {
        let medium = if memory { MediumKind::Dram } else { MediumKind::File };
        let mut options = Options::new().medium(medium).durability(durability_of(durability)?).create(create);
        if let Some(bytes) = max_bytes {
            options = options.max_bytes(bytes);
        }
        let then = on_pinned_of(on_pinned)?;
        if let Some(seconds) = max_pinned_age {
            options = options.max_pinned_age(seconds_of(seconds)?, then);
        }
        if let Some(bytes) = max_pinned_bytes {
            options = options.max_pinned_bytes(bytes, then);
        }
        let opened = py.detach(|| if read_only { options.open_read_only(path) } else { options.open(path) });
        Ok(Self { open: Mutex::new(Some(opened.map_err(raised)?)), process: std::process::id() })
    }

    /// The table of this definition, made if it is not there.
    fn _open_or_create(
        &self,
        py: Python<'_>,
        name: String,
        columns: Vec<ColumnParts<'_>>,
        primary_key: Vec<String>,
        indexes: Vec<IndexParts>,
    ) -> PyResult<Table> {
        let def = table_def(name, columns, primary_key, indexes)?;
        Ok(Table::new(py, self.with(py, |db| db.open_or_create(def))?))
    }

    /// The table of this name.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        Ok(Table::new(py, self.with(py, |db| db.table(name))?))
    }

    /// The names of all tables.
    fn tables(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, |db| Ok(db.tables()))
    }

    /// Drops a table with all its rows.
    fn drop_table(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.with(py, |db| db.drop_table(name))
    }

    /// Changes columns, all at once. Returns a new handle of the table.
    fn _alter(
        &self,
        py: Python<'_>,
        table: &Table,
        add: Vec<ColumnParts<'_>>,
        steps: Vec<Step<'_>>,
    ) -> PyResult<Table> {
        let change = table_change(add, steps)?;
        Ok(Table::new(py, self.with(py, |db| db.alter_table(&table.table, &change))?))
    }

    /// Makes the migrations that the database has not had. Returns their numbers.
    fn _migrate(slf: Bound<'_, Self>, migrations: Vec<MigrationParts<'_>>) -> PyResult<Vec<u64>> {
        let py = slf.py();
        let db = slf.get().open()?;
        let all = migrations::migrations(&slf.unbind(), migrations)?;
        py.detach(|| all.apply(&db)).map_err(|error| migrations::failed(py, error))
    }

    /// Makes an index over rows that are there.
    #[pyo3(signature = (table, name, columns, *, unique = false))]
    fn create_index(
        &self,
        py: Python<'_>,
        table: &Table,
        name: String,
        columns: Vec<String>,
        unique: bool,
    ) -> PyResult<()> {
        self.with(py, |db| db.create_index(&table.table, index_def((name, columns, unique))).map(drop))
    }

    /// Drops an index.
    fn drop_index(&self, py: Python<'_>, table: &Table, name: &str) -> PyResult<()> {
        self.with(py, |db| db.drop_index(&table.table, name))
    }

    /// Begins a transaction, which `transactions` shows with its name, or else with the line that has begun it.
    fn _begin(
        &self,
        py: Python<'_>,
        isolation: &str,
        read_only: bool,
        safe_snapshot: bool,
        name: Option<&str>,
        place: &str,
    ) -> PyResult<Transaction> {
        let options = TransactionOptions::new().isolation(isolation_of(isolation)?).read_only(read_only);
        let options = if safe_snapshot { options.safe_snapshot() } else { options };
        let name = match name {
            Some(name) => Some(insight::name(name)?),
            None => insight::place(place),
        };
        let options = name.into_iter().fold(options, TransactionOptions::name);
        Ok(Transaction::new(self.with(py, |db| db.begin_with(options))?))
    }

    /// Counts of what the database has and has done. `rows` are as stored, with those of the
    /// engine's own: at least one for each table, and the pieces of long values. `Transaction.count`
    /// has a table's rows.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        insight::stats(py, &self.with(py, |db| Ok(db.stats()))?)
    }

    /// The transactions that have not ended, and what each holds back.
    fn _transactions<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let running = self.with(py, |db| Ok(db.transactions()))?;
        running.iter().map(|transaction| insight::transaction(py, transaction)).collect()
    }

    /// Ends the transaction with this number from outside. Its calls raise `TransactionEnded`. What it
    /// holds, locks included, is released when its program leaves it.
    fn end_transaction(&self, py: Python<'_>, id: u64) -> PyResult<()> {
        self.with(py, |db| db.end_transaction(pantile::TransactionId::from_number(id)))
    }

    /// What each table takes, in bytes and in contents, by its name. A table that was dropped and still takes space is
    /// called like "orders, table 17 (dropped)".
    fn space_by_table<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        insight::space(py, &self.with(py, |db| Ok(db.space_by_table()))?)
    }

    /// All counts and measurements, in the text format of Prometheus.
    fn metrics(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |db| Ok(db.metrics()))
    }

    /// Writes all tables as text into a new file, as one moment shows them. Returns
    /// how many rows there are.
    fn dump(&self, py: Python<'_>, file: PathBuf) -> PyResult<u64> {
        let db = self.open()?;
        py.detach(|| text::dump(&db, &file))
    }

    /// Loads what `dump` has written, all of it or nothing. Returns how many rows
    /// there are.
    fn load(&self, py: Python<'_>, file: PathBuf) -> PyResult<u64> {
        let db = self.open()?;
        py.detach(|| text::load(&db, &file))
    }

    /// Brings the space that the database takes down to the least.
    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |db| db.compact().map(drop))
    }

    /// Reads every row and returns how many there are. Raises `Damaged` when one is.
    fn verify(&self, py: Python<'_>) -> PyResult<u64> {
        let verified = self.with(py, |db| db.verify(None))?;
        match verified.damaged.first() {
            None => Ok(verified.rows),
            Some(row) => Err(crate::error::Damaged::new_err(format!(
                "{} rows are damaged, the first in table {:?}: {}; nothing was changed; restore a copy",
                verified.damaged.len(),
                row.table,
                row.what
            ))),
        }
    }

    /// Copies the database into an empty directory, beside its transactions, or where
    /// a backup was interrupted. `rate` is in bytes per second. With `since`, copies
    /// only what has changed since the backup there. Returns how many rows it holds. Warns (`RuntimeWarning`)
    /// if it lacks commits that were made beside a transaction which was still writing.
    #[pyo3(signature = (directory, *, rate = None, since = None))]
    fn backup_to(
        &self,
        py: Python<'_>,
        directory: PathBuf,
        rate: Option<u64>,
        since: Option<PathBuf>,
    ) -> PyResult<u64> {
        let options = rate.map_or_else(BackupOptions::new, |rate| BackupOptions::new().rate(rate));
        let options = match since {
            Some(since) => options.since(since),
            None => options,
        };
        let report = self.with(py, |db| db.backup_to(directory, &options))?;
        if !report.is_current {
            let what = c"the backup is complete, but a transaction was writing when it began, so what others have committed beside it is not in the backup; make another when it has ended";
            PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), what, 1)?;
        }
        Ok(report.rows)
    }

    /// Whether the database shows every commit that was acknowledged when it was opened. That is false
    /// only after `open_read_only` beside another process, if commits were made there while another
    /// transaction went on writing. To see them, open the database again when that has ended.
    #[getter]
    fn is_current(&self) -> PyResult<bool> {
        Ok(self.open()?.is_current())
    }

    /// Copies a backup into an empty directory and checks the copy.
    #[staticmethod]
    fn _restore(py: Python<'_>, backup: PathBuf, into: PathBuf) -> PyResult<u64> {
        let outcome = py.detach(|| pantile::restore(backup, into, &CheckOptions::new()));
        outcome.map(|report| report.rows).map_err(raised)
    }

    /// Closes the database. Does nothing if it is closed. It stays open if it fails because transactions have not ended,
    /// and not for any other reason.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        check_process(self.process)?;
        let Ok(db) = self.open() else { return Ok(()) };
        py.detach(|| match db.close() {
            // Another thread is closing it.
            Err(Engine::Closed) => Ok(()),
            Err(error @ Engine::StillOpen { .. }) => Err(error),
            // The handle holds the directory's lock, also where the last state could not be recorded.
            outcome => {
                drop(self.take());
                outcome
            }
        })
        .map_err(raised)
    }

    /// Closes the database as soon as its transactions have ended, and does not wait for that. Never raises.
    fn _let_go(&self, py: Python<'_>) {
        if check_process(self.process).is_ok() {
            py.detach(|| drop(self.take()));
        }
    }
}

impl Database {
    /// Runs a call of the engine without the interpreter's lock.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(pantile::Database) -> pantile::Result<T> + Send,
    ) -> PyResult<T> {
        let db = self.open()?;
        py.detach(|| call(db)).map_err(raised)
    }

    /// The handle; calls after this one raise `Closed`.
    fn take(&self) -> Option<pantile::Database> {
        self.open.lock().ok()?.take()
    }

    fn open(&self) -> PyResult<pantile::Database> {
        check_process(self.process)?;
        let open = self.open.lock().ok().and_then(|open| open.clone());
        open.ok_or_else(|| Closed::new_err("the database is closed; open it again"))
    }
}

impl Drop for Database {
    /// A forked process leaves everything to its parent.
    fn drop(&mut self) {
        let Some(db) = self.open.get_mut().ok().and_then(Option::take) else { return };
        if self.process != std::process::id() {
            std::mem::forget(db);
        } else {
            // The last handle closes the database, which may take a second or more. Other threads go on meanwhile.
            Python::attach(|py| py.detach(|| drop(db)));
        }
    }
}

/// A change of a table: columns to add, and the other steps. Names that it drops or gives to others are free for the
/// columns that it adds.
pub fn table_change(add: Vec<ColumnParts<'_>>, steps: Vec<Step<'_>>) -> PyResult<pantile::TableChange> {
    let frees = |(what, ..): &Step<'_>| matches!(what.as_str(), "drop" | "rename");
    let (first, then): (Vec<_>, Vec<_>) = steps.into_iter().partition(frees);
    let freed = first.into_iter().try_fold(pantile::TableChange::new(), with_step)?;
    let added = add
        .into_iter()
        .try_fold(freed, |change, column| Ok::<_, PyErr>(change.add_column(column_def(column)?)));
    then.into_iter().try_fold(added?, with_step)
}

fn with_step(change: pantile::TableChange, (what, column, to): Step<'_>) -> PyResult<pantile::TableChange> {
    Ok(match what.as_str() {
        "drop" => change.drop_column(column),
        "rename_table" => change.rename_table(to.extract::<String>()?),
        "rename" => change.rename_column(column, to.extract::<String>()?),
        "rename_index" => change.rename_index(column, to.extract::<String>()?),
        "widen" => change.widen_column(column, type_of(&to.extract::<String>()?)?),
        "default" => change.set_default(column, from_python(&to)?.as_value()),
        _ => change.make_nullable(column),
    })
}

fn durability_of(name: &str) -> PyResult<Durability> {
    match name {
        "sync" => Ok(Durability::Sync),
        "group" => Ok(Durability::Group),
        "none" => Ok(Durability::None),
        _ => Err(Error::new_err(format!("durability is \"sync\", \"group\" or \"none\", not {name:?}"))),
    }
}

fn on_pinned_of(name: &str) -> PyResult<OnPinned> {
    match name {
        "warn" => Ok(OnPinned::Warn),
        "end" => Ok(OnPinned::End),
        _ => Err(Error::new_err(format!("on_pinned is \"warn\" or \"end\", not {name:?}"))),
    }
}

fn seconds_of(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| Error::new_err(format!("max_pinned_age is in seconds, not below 0: not {seconds}")))
}

fn isolation_of(name: &str) -> PyResult<Isolation> {
    match name {
        "serializable" => Ok(Isolation::Serializable),
        "snapshot" => Ok(Isolation::Snapshot),
        "read committed" => Ok(Isolation::ReadCommitted),
        _ => Err(Error::new_err(format!(
            "isolation is \"serializable\", \"snapshot\" or \"read committed\", not {name:?}"
        ))),
    }
}
