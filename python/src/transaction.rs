//! Transactions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use pantile::{OwnedValue, Position, Result};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::definition::Table;
use crate::error::{Closed, InvalidValue, Misuse, Refusal, check_process};
use crate::savepoint::{Points, Savepoint};
use crate::scan::{Bounds, Given, Scan};
use crate::value::{borrowed, key_from_python};

/// How a transaction that waits treats signals.
#[derive(Default)]
struct Signals {
    /// What a handler has raised meanwhile.
    raised: Mutex<Option<PyErr>>,
    /// A library reads as Arrow. Whether it holds the interpreter's lock is not known, so no handler can run.
    are_left: AtomicBool,
}

/// The part of a transaction that is no object of Python.
pub struct Shared {
    running: Mutex<Option<pantile::Transaction>>,
    signals: Arc<Signals>,
    process: u32,
}

/// A transaction. Only one thread at a time can use it. It is rolled back
/// unless it commits.
#[pyclass(frozen, module = "pantile")]
pub struct Transaction {
    shared: Arc<Shared>,
    points: Mutex<Points>,
    /// A migration has lent it, and ends it itself.
    is_lent: bool,
    has_committed: AtomicBool,
    /// The program has given it up.
    is_given_up: AtomicBool,
}

#[pymethods]
impl Transaction {
    /// Adds a row: a dict, or a sequence of all its values.
    fn insert(&self, py: Python<'_>, table: &Table, row: &Bound<'_, PyAny>) -> PyResult<()> {
        let row = table.row_from(row)?;
        self.with(py, |txn| txn.insert(&table.table, &borrowed(&row)))
    }

    /// Adds rows, all of them or none. Returns how many they are.
    fn insert_many(&self, py: Python<'_>, table: &Table, rows: &Bound<'_, PyAny>) -> PyResult<u64> {
        let rows = rows.try_iter()?.map(|row| table.row_from(&row?)).collect::<PyResult<Vec<_>>>()?;
        self.with(py, |txn| txn.insert_many(&table.table, rows.iter().map(|row| borrowed(row))))
    }

    /// Adds a row or replaces the one with its key. Returns whether there was one.
    fn upsert(&self, py: Python<'_>, table: &Table, row: &Bound<'_, PyAny>) -> PyResult<bool> {
        let row = table.row_from(row)?;
        self.with(py, |txn| txn.upsert(&table.table, &borrowed(&row)))
    }

    /// Changes columns of the row with this key. Returns whether there is one.
    #[pyo3(signature = (table, key, /, **changes))]
    fn update(
        &self,
        table: &Table,
        key: &Bound<'_, PyAny>,
        changes: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<bool> {
        let changes = changes.map_or(Ok(Vec::new()), |named| table.changes_from(named))?;
        let key_values = key_from_python(key)?;
        self.with(key.py(), |txn| {
            let changes: Vec<_> = changes.iter().map(|(column, value)| (*column, value.as_value())).collect();
            txn.update(&table.table, &borrowed(&key_values), &changes)
        })
    }

    /// Changes columns of many rows: pairs of a key and a dict of columns. Returns how many of the
    /// keys have a row. In memory that is faster than one `update` after the other.
    fn update_many(&self, py: Python<'_>, table: &Table, changes: &Bound<'_, PyAny>) -> PyResult<u64> {
        let pair = |pair: PyResult<Bound<'_, PyAny>>| {
            let (key, named): (Bound<'_, PyAny>, Bound<'_, PyDict>) = pair?.extract()?;
            Ok((key_from_python(&key)?, table.changes_from(&named)?))
        };
        let changes = changes.try_iter()?.map(pair).collect::<PyResult<Vec<_>>>()?;
        self.with(py, |txn| {
            let mut borrowed_changes = Vec::with_capacity(changes.len());
            for (key, of) in &changes {
                let of: Vec<_> = of.iter().map(|(column, value)| (*column, value.as_value())).collect();
                borrowed_changes.push((borrowed(key), of));
            }
            txn.update_many(&table.table, &borrowed_changes)
        })
    }

    /// Deletes the row with this key. Returns whether there was one.
    fn delete(&self, py: Python<'_>, table: &Table, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = key_from_python(key)?;
        self.with(py, |txn| txn.delete(&table.table, &borrowed(&key)))
    }

    /// The row with this key as a dict, or None. `for_update` locks it.
    #[pyo3(signature = (table, key, *, for_update = false))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        table: &Table,
        key: &Bound<'py, PyAny>,
        for_update: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = key_from_python(key)?;
        let row = self.with(py, |txn| {
            let found = match for_update {
                true => txn.get_for_update(&table.table, &borrowed(&key))?,
                false => txn.get(&table.table, &borrowed(&key))?,
            };
            found.map(|row| row.to_values()).transpose()
        })?;
        row.map(|row| table.to_dict(py, 0.., row)).transpose()
    }

    /// The rows with these keys, in the order of the keys, each as a dict; None for a key that has no
    /// row. In memory that is faster than one `get` after the other.
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        table: &Table,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let keys = keys.try_iter()?.map(|key| key_from_python(&key?)).collect::<PyResult<Vec<_>>>()?;
        let rows = self.with(py, |txn| {
            let keys: Vec<_> = keys.iter().map(|key| borrowed(key)).collect();
            let found = txn.get_many(&table.table, &keys)?;
            found
                .into_iter()
                .map(|row| row.map(|row| row.to_values()).transpose())
                .collect::<Result<Vec<_>>>()
        })?;
        let dicts = rows.into_iter().map(|row| row.map(|row| table.to_dict(py, 0.., row)).transpose());
        PyList::new(py, dicts.collect::<PyResult<Vec<_>>>()?)
    }

    /// The rows of a range of keys, in order. Bounds are keys or the first values
    /// of keys; `stop` is excluded. `prefix=(None,)` has the rows with NULL. With `index`, keys
    /// are those of the index. `columns` are those that the rows have, all by default.
    #[pyo3(signature = (table, *, prefix = Given::default(), start = None, stop = None, index = None, reverse = false, limit = None, columns = None, tuples = false))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn scan(
        slf: Bound<'_, Self>,
        table: Py<Table>,
        prefix: Given<'_>,
        start: Option<Bound<'_, PyAny>>,
        stop: Option<Bound<'_, PyAny>>,
        index: Option<&str>,
        reverse: bool,
        limit: Option<usize>,
        columns: Option<Vec<String>>,
        tuples: bool,
    ) -> PyResult<Scan> {
        let columns = table.get().columns_of(columns)?;
        let bounds = Bounds::new(prefix, start, stop)?.ordered(reverse, limit);
        let py = slf.py();
        let handle = &table.get().table;
        let cursor = slf.get().with(py, |txn| match index {
            Some(index) => txn.index_cursor(&handle.index(index)?, bounds.range(&bounds.borrowed())),
            None => txn.cursor(handle, bounds.range(&bounds.borrowed())),
        })?;
        Ok(Scan::new(slf.unbind(), table, cursor, columns, tuples))
    }

    /// The next `rows` rows of a range at most, and where the next page begins: hand
    /// that over as `after`, in any transaction. None at the end. `for_update` locks
    /// the rows, and waits for those that others have locked, unless it skips them.
    #[pyo3(signature = (table, rows, *, after = None, prefix = Given::default(), start = None, stop = None, index = None, reverse = false, columns = None, for_update = false, skip_locked = false))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn page<'py>(
        &self,
        py: Python<'py>,
        table: &Table,
        rows: usize,
        after: Option<&[u8]>,
        prefix: Given<'py>,
        start: Option<Bound<'py, PyAny>>,
        stop: Option<Bound<'py, PyAny>>,
        index: Option<&str>,
        reverse: bool,
        columns: Option<Vec<String>>,
        for_update: bool,
        skip_locked: bool,
    ) -> PyResult<(Bound<'py, PyList>, Option<Bound<'py, PyBytes>>)> {
        if rows == 0 {
            return Err(InvalidValue::new_err("a page has at least one row"));
        }
        if skip_locked && !for_update {
            return Err(InvalidValue::new_err("skip_locked says what for_update does; say that, too"));
        }
        let columns = table.columns_of(columns)?;
        let after = after.map(|bytes| {
            let no_position = || InvalidValue::new_err("after is what an earlier page has returned");
            Position::from_bytes(bytes).ok_or_else(no_position)
        });
        let after = after.transpose()?;
        let bounds = Bounds::new(prefix, start, stop)?.ordered(reverse, Some(rows));
        let (found, end) = self.with(py, |txn| {
            let borrowed = bounds.borrowed();
            let range = bounds.range(&borrowed);
            let range = after.as_ref().map_or(range, |after| range.behind(after));
            let mut cursor = match index {
                Some(index) => txn.index_cursor(&table.table.index(index)?, range)?,
                None => txn.cursor(&table.table, range)?,
            };
            let mut found = Vec::new();
            loop {
                let row = match for_update {
                    true => cursor.next_for_update(txn, skip_locked)?,
                    false => cursor.next(txn)?,
                };
                let Some(row) = row else { break };
                let values = columns.iter().map(|column| row.get(*column));
                found.push(values.collect::<Result<Values>>()?);
            }
            let end = if found.len() < rows { None } else { cursor.position() };
            Ok((found, end))
        })?;
        let dicts = found.into_iter().map(|row| table.to_dict(py, columns.iter().copied(), row));
        let dicts = PyList::new(py, dicts.collect::<PyResult<Vec<_>>>()?)?;
        Ok((dicts, end.map(|end| PyBytes::new(py, &end.to_bytes()))))
    }

    /// A savepoint: `with txn.savepoint():` undoes what the block has written if it
    /// raises, and the transaction goes on.
    fn savepoint(slf: Bound<'_, Self>) -> PyResult<Savepoint> {
        Savepoint::new(slf)
    }

    /// How many rows a range of keys has.
    #[pyo3(signature = (table, *, prefix = Given::default(), start = None, stop = None, index = None))]
    fn count(
        &self,
        py: Python<'_>,
        table: &Table,
        prefix: Given<'_>,
        start: Option<Bound<'_, PyAny>>,
        stop: Option<Bound<'_, PyAny>>,
        index: Option<&str>,
    ) -> PyResult<u64> {
        let bounds = Bounds::new(prefix, start, stop)?;
        self.with(py, |txn| match index {
            Some(index) => txn.count_index(&table.table.index(index)?, bounds.range(&bounds.borrowed())),
            None => txn.count(&table.table, bounds.range(&bounds.borrowed())),
        })
    }

    /// Deletes the rows of a range of primary keys, all rows if the call has no bound. Returns
    /// how many there were.
    #[pyo3(signature = (table, *, prefix = Given::default(), start = Given::default(), stop = Given::default()))]
    fn delete_range(
        &self,
        py: Python<'_>,
        table: &Table,
        prefix: Given<'_>,
        start: Given<'_>,
        stop: Given<'_>,
    ) -> PyResult<u64> {
        let prefix = prefix.with_values("prefix")?;
        let [start, stop] = [start.with_values("start")?.bound("start")?, stop.with_values("stop")?.bound("stop")?];
        let bounds = Bounds::new(prefix, start, stop)?;
        self.with(py, |txn| txn.delete_range(&table.table, bounds.range(&bounds.borrowed())))
    }

    /// Commits, and returns when the commit is durable.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py, |txn| txn.commit().map(drop))?;
        self.has_committed.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether the program has committed it or has given it up. A commit that has failed is neither.
    fn _is_settled(&self) -> bool {
        self._has_committed() || self.is_given_up.load(Ordering::Acquire)
    }

    /// Whether it has committed.
    fn _has_committed(&self) -> bool {
        self.has_committed.load(Ordering::Acquire)
    }

    /// Undoes all writes. Does nothing if the transaction has ended.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        match self.end(py, |txn| {
            txn.rollback();
            Ok(())
        }) {
            Err(error) if !error.is_instance_of::<Closed>(py) => Err(error),
            _ => {
                self.is_given_up.store(true, Ordering::Release);
                Ok(())
            }
        }
    }
}

impl Transaction {
    pub fn new(mut txn: pantile::Transaction) -> Self {
        let signals = Arc::<Signals>::default();
        txn.interrupt_when(stop_on_signals(Arc::clone(&signals)));
        let shared = Shared { running: Mutex::new(Some(txn)), signals, process: std::process::id() };
        Self {
            shared: Arc::new(shared),
            points: Mutex::default(),
            is_lent: false,
            has_committed: AtomicBool::new(false),
            is_given_up: AtomicBool::new(false),
        }
    }

    /// One that Python can use, but not end, until it is taken back.
    pub fn lent(txn: pantile::Transaction) -> Self {
        let mut lent = Self::new(txn);
        lent.is_lent = true;
        lent
    }

    /// Takes back what was lent, once no other thread uses it.
    pub fn take_back(&self) -> Option<pantile::Transaction> {
        self.shared.running.lock().ok().and_then(|mut running| running.take())
    }

    /// Runs a call of the engine without the interpreter's lock.
    pub fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut pantile::Transaction) -> Result<T> + Send,
    ) -> PyResult<T> {
        self.locked(py, |running| running.as_mut().map(call))
    }

    fn end(
        &self,
        py: Python<'_>,
        call: impl FnOnce(pantile::Transaction) -> Result<()> + Send,
    ) -> PyResult<()> {
        if self.is_lent {
            return Err(Misuse::new_err(
                "the migration ends this transaction; return to commit it, raise to roll it back",
            ));
        }
        self.locked(py, |running| running.take().map(call))
    }

    fn locked<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Option<pantile::Transaction>) -> Option<Result<T>> + Send,
    ) -> PyResult<T> {
        Ok(py.detach(|| self.shared.try_locked(call))?)
    }

    /// Its savepoints, to be changed within its calls.
    pub fn points(&self) -> MutexGuard<'_, Points> {
        self.points.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What reads its rows where there may be no Python.
    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }
}

impl Drop for Transaction {
    /// What the program has forgotten is rolled back, which may take long. Other threads go on meanwhile.
    fn drop(&mut self) {
        // A reader of its rows may still have it, and a forked process leaves it to its parent.
        let Some(shared) = Arc::get_mut(&mut self.shared) else { return };
        if shared.process != std::process::id() {
            return;
        }
        if let Some(txn) = shared.running.get_mut().ok().and_then(Option::take) {
            Python::attach(|py| py.detach(|| drop(txn)));
        }
    }
}

impl Shared {
    /// Runs a call of the engine on a thread that may not know Python, or may hold its lock.
    pub fn read<T>(&self, call: impl FnOnce(&pantile::Transaction) -> Result<T>) -> Result<T, Refusal> {
        self.try_locked(|running| {
            let txn = running.as_ref()?;
            self.signals.are_left.store(true, Ordering::Relaxed);
            let outcome = call(txn);
            self.signals.are_left.store(false, Ordering::Relaxed);
            Some(outcome)
        })
    }

    fn try_locked<T>(
        &self,
        call: impl FnOnce(&mut Option<pantile::Transaction>) -> Option<Result<T>>,
    ) -> Result<T, Refusal> {
        check_process(self.process)?;
        let misuse = |what: &str| Refusal::Misuse(what.to_owned());
        let (outcome, signal) = match self.running.try_lock() {
            Ok(mut running) => {
                let outcome = call(&mut running);
                (outcome, self.signals.raised.lock().ok().and_then(|mut raised| raised.take()))
            }
            Err(TryLockError::WouldBlock) => {
                return Err(misuse("another thread is using the transaction; this call did nothing"));
            }
            Err(TryLockError::Poisoned(_)) => {
                return Err(misuse("a call has failed in the middle; the transaction can only be dropped"));
            }
        };
        match signal {
            // Also if the call has something to return, as rows that it has read ahead.
            Some(signal) => Err(Refusal::Signal(signal)),
            None => Ok(outcome.ok_or(Refusal::Closed("the transaction has ended; begin another one"))??),
        }
    }
}

/// Lets Python handle signals while a transaction waits, and stops the wait
/// when a handler raises, as that of Ctrl-C does.
fn stop_on_signals(signals: Arc<Signals>) -> impl Fn(Option<u64>) -> bool + Send + Sync {
    move |_| {
        if signals.are_left.load(Ordering::Relaxed) {
            return false;
        }
        match Python::attach(|py| py.check_signals()) {
            Ok(()) => false,
            Err(signal) => signals.raised.lock().map(|mut raised| *raised = Some(signal)).is_ok(),
        }
    }
}

impl Drop for Shared {
    /// Rolls back, but not in a forked process: the locks are its parent's.
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.running.get_mut().ok().and_then(Option::take));
        }
    }
}

/// The values of a row.
pub type Values = Vec<OwnedValue>;
