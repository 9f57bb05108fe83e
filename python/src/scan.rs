//! Scans: iterators that fetch rows without the interpreter's lock, in batches where nothing can change them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use pantile::{Conflict, Cursor, OwnedValue, Range, Result, Value};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};

use crate::arrow::{self, Failure, Reader, Stream};
use crate::definition::{Table, to_tuple};
use crate::error::{InvalidValue, Misuse};
use crate::transaction::{Transaction, Values};
use crate::value::{borrowed, key_from_python};

/// Rows fetched at a time by a transaction that only reads. The first batch is small, for those who want one row. One
/// that may write fetches each row when it is asked for: what it has written or undone by then counts.
const FIRST_BATCH: usize = 16;
const BATCH: usize = 512;

/// A bound of a range, if the call has it. None is refused, so that a variable that is missing by mistake does not mean
/// all rows.
#[derive(Default)]
pub struct Given<'py>(Option<Bound<'py, PyAny>>);

impl<'py> FromPyObject<'py> for Given<'py> {
    fn extract_bound(bound: &Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(Self(Some(bound.clone())))
    }
}

impl<'py> Given<'py> {
    /// The bound, which has this name in the call.
    pub fn bound(self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.0 {
            Some(bound) if bound.is_none() => Err(Misuse::new_err(format!(
                "{name} is None, which is no bound; nothing was changed; leave {name} out for all rows, or give (None,) for NULL"
            ))),
            bound => Ok(bound),
        }
    }

    /// The same where one without values is refused, too: it would delete all rows.
    pub fn with_values(self, name: &str) -> PyResult<Self> {
        let is_empty = |bound: &Bound<'py, PyAny>| {
            bound.cast::<PyTuple>().is_ok_and(|values| values.is_empty())
                || bound.cast::<PyList>().is_ok_and(|values| values.is_empty())
        };
        if self.0.as_ref().is_some_and(is_empty) {
            return Err(Misuse::new_err(format!(
                "{name} has no values, which is no bound; nothing was changed; leave {name} out for all rows"
            )));
        }
        Ok(self)
    }
}

/// A range of keys that owns its bounds.
pub struct Bounds {
    lower: std::ops::Bound<Vec<OwnedValue>>,
    upper: std::ops::Bound<Vec<OwnedValue>>,
    reverse: bool,
    limit: usize,
}

type Borrowed<'r> = (std::ops::Bound<Vec<Value<'r>>>, std::ops::Bound<Vec<Value<'r>>>);

impl Bounds {
    /// From a prefix, or from `start` up to but not including `stop`.
    pub fn new(
        prefix: Given<'_>,
        start: Option<Bound<'_, PyAny>>,
        stop: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let prefix = prefix.bound("prefix")?;
        if prefix.is_some() && (start.is_some() || stop.is_some()) {
            return Err(Misuse::new_err("a range has a prefix, or start and stop, but not both"));
        }
        let key = |bound: Option<Bound<'_, PyAny>>| bound.map(|bound| key_from_python(&bound)).transpose();
        let (lower, upper) = match key(prefix)? {
            Some(prefix) => (Included(prefix.clone()), Included(prefix)),
            None => (key(start)?.map_or(Unbounded, Included), key(stop)?.map_or(Unbounded, Excluded)),
        };
        Ok(Self { lower, upper, reverse: false, limit: usize::MAX })
    }

    /// The same range in this order, with this limit.
    pub fn ordered(self, reverse: bool, limit: Option<usize>) -> Self {
        Self { reverse, limit: limit.unwrap_or(usize::MAX), ..self }
    }

    /// Its bounds, borrowed for [`Bounds::range`].
    pub fn borrowed(&self) -> Borrowed<'_> {
        (self.lower.as_ref().map(|key| borrowed(key)), self.upper.as_ref().map(|key| borrowed(key)))
    }

    /// The range for the engine.
    pub fn range<'r>(&self, (lower, upper): &'r Borrowed<'r>) -> Range<'r> {
        let range =
            Range::all().from(lower.as_ref().map(Vec::as_slice)).to(upper.as_ref().map(Vec::as_slice));
        let range = range.limit(self.limit);
        if self.reverse { range.reverse() } else { range }
    }
}

/// The rows of a scan, one after the other. It ends with its transaction.
#[pyclass(frozen, module = "pantile")]
pub struct Scan {
    transaction: Py<Transaction>,
    table: Py<Table>,
    columns: Vec<usize>,
    tuples: bool,
    state: Mutex<State>,
    failure: Failure,
}

struct State {
    /// None once the rows go to Arrow.
    cursor: Option<Cursor>,
    fetched: VecDeque<Values>,
    /// Why there is nothing behind these.
    failed: Option<pantile::Error>,
    batch: usize,
    has_begun: bool,
    is_over: bool,
}

#[pymethods]
impl Scan {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.state()?.fetched.is_empty() {
            // What takes the rows may be no loop of Python, which would do it.
            py.check_signals()?;
        }
        let state = &mut *self.state()?;
        // Also for rows that are here already: nothing outlives its transaction.
        self.transaction.get().with(py, |txn| state.fetch(txn, &self.columns))?;
        if state.cursor.is_none() {
            return Err(Misuse::new_err("the rows of this scan went to Arrow; make another scan"));
        }
        let Some(row) = state.fetched.pop_front() else { return Ok(None) };
        let columns = self.columns.iter().copied();
        if self.tuples { to_tuple(py, &row) } else { self.table.get().to_dict(py, columns, row) }.map(Some)
    }

    /// The rows as a stream of Arrow's C interface: any library that reads Arrow
    /// takes a scan. The schema is that of the columns, whatever is requested.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        arrow::capsule(py, self.reader(arrow::BATCH_ROWS)?)
    }

    /// A `pyarrow.RecordBatchReader` of the rows, in batches of `batch_rows` at most.
    #[pyo3(signature = (*, batch_rows = arrow::BATCH_ROWS))]
    fn to_batches<'py>(slf: &Bound<'py, Self>, batch_rows: usize) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pantile._arrow")?.getattr("reader")?.call1((slf, batch_rows))
    }

    /// All rows as a `pyarrow.Table`.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pantile._arrow")?.getattr("table")?.call1((slf,))
    }

    /// All rows as a `pandas.DataFrame`. Columns that take NULL get pandas' types
    /// that do, so that no integer becomes a float.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pantile._arrow")?.getattr("frame")?.call1((slf,))
    }

    /// The rows as a stream with batches of `batch_rows` at most.
    fn _stream(&self, batch_rows: usize) -> PyResult<Stream> {
        Ok(Stream::new(self.reader(batch_rows)?))
    }

    /// Raises what ended the stream, which Arrow has as text only.
    fn _raise_failure(&self, py: Python<'_>) -> PyResult<()> {
        // A handler that raises says more than a wait that it could not end.
        py.check_signals()?;
        match self.failure.lock().ok().and_then(|mut failure| failure.take()) {
            Some(failure) => Err(failure.into()),
            None => Ok(()),
        }
    }
}

impl Scan {
    pub fn new(
        transaction: Py<Transaction>,
        table: Py<Table>,
        cursor: Cursor,
        columns: Vec<usize>,
        tuples: bool,
    ) -> Self {
        let state = State {
            cursor: Some(cursor),
            fetched: VecDeque::new(),
            failed: None,
            batch: FIRST_BATCH,
            has_begun: false,
            is_over: false,
        };
        Self { transaction, table, columns, tuples, state: Mutex::new(state), failure: Failure::default() }
    }

    fn state(&self) -> PyResult<MutexGuard<'_, State>> {
        let busy = |_| Misuse::new_err("another thread is using the scan; this call did nothing");
        self.state.try_lock().map_err(busy)
    }

    /// What reads the rows as batches. The scan itself gives no more.
    fn reader(&self, batch_rows: usize) -> PyResult<Reader> {
        if batch_rows == 0 {
            return Err(InvalidValue::new_err("batch_rows is at least 1; the scan is as it was"));
        }
        let mut state = self.state()?;
        if state.has_begun {
            return Err(Misuse::new_err(
                "rows of this scan have been taken already, so Arrow would miss them; make another scan",
            ));
        }
        let cursor = state.cursor.take();
        let cursor = cursor
            .ok_or_else(|| Misuse::new_err("the rows of this scan went to Arrow; make another scan"))?;
        let transaction = self.transaction.get().shared();
        let table = &self.table.get().table;
        Reader::new(transaction, table, cursor, self.columns.clone(), batch_rows, Arc::clone(&self.failure))
    }
}

impl State {
    /// Fetches a batch if there is none.
    fn fetch(&mut self, txn: &pantile::Transaction, columns: &[usize]) -> Result<()> {
        let Some(cursor) = &mut self.cursor else { return Ok(()) };
        if self.fetched.is_empty() && !self.is_over {
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            let batch = if txn.is_read_only() { self.batch } else { 1 };
            while self.fetched.len() < batch && !self.is_over && self.failed.is_none() {
                let row = cursor.next(txn).map(|row| {
                    row.map(|row| columns.iter().map(|column| row.get(*column)).collect::<Result<_>>())
                });
                if let Ok(Some(Err(pantile::Error::Conflict { conflict: Conflict::Interrupted, .. }))) = &row {
                    // The next call begins with it again.
                    cursor.step_back();
                }
                match row.and_then(Option::transpose) {
                    Ok(Some(row)) => self.fetched.push_back(row),
                    Ok(None) => self.is_over = true,
                    Err(error) if self.fetched.is_empty() => return Err(error),
                    // The call raises what has interrupted it. The next one goes on.
                    Err(pantile::Error::Conflict { conflict: Conflict::Interrupted, .. }) => break,
                    Err(error) => self.failed = Some(error),
                }
            }
            (self.batch, self.has_begun) = (BATCH, true);
        }
        Ok(())
    }
}
