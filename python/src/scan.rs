//! Scans: iterators that fetch rows in batches, without the interpreter's lock.

use std::collections::VecDeque;
use std::sync::Mutex;

use pantile::{Cursor, OwnedValue, Range, Result, Value};
use pyo3::prelude::*;

use crate::definition::Table;
use crate::error::Misuse;
use crate::transaction::{Transaction, Values};
use crate::value::{borrowed, key_from_python};

/// Rows fetched at a time. The first batch is small, for those who want one row.
const FIRST_BATCH: usize = 16;
const BATCH: usize = 512;

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
        prefix: Option<Bound<'_, PyAny>>,
        start: Option<Bound<'_, PyAny>>,
        stop: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
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
    tuples: bool,
    state: Mutex<State>,
}

struct State {
    cursor: Cursor,
    fetched: VecDeque<Values>,
    batch: usize,
    is_over: bool,
}

#[pymethods]
impl Scan {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let busy = |_| Misuse::new_err("another thread is using the scan; this call did nothing");
        let state = &mut *self.state.try_lock().map_err(busy)?;
        // Also for rows that are here already: nothing outlives its transaction.
        self.transaction.get().with(py, |txn| state.fetch(txn))?;
        let Some(row) = state.fetched.pop_front() else { return Ok(None) };
        let table = self.table.get();
        if self.tuples { table.to_tuple(py, &row) } else { table.to_dict(py, &row) }.map(Some)
    }
}

impl Scan {
    pub fn new(transaction: Py<Transaction>, table: Py<Table>, cursor: Cursor, tuples: bool) -> Self {
        let state = State { cursor, fetched: VecDeque::new(), batch: FIRST_BATCH, is_over: false };
        Self { transaction, table, tuples, state: Mutex::new(state) }
    }
}

impl State {
    /// Fetches a batch if there is none.
    fn fetch(&mut self, txn: &pantile::Transaction) -> Result<()> {
        if self.fetched.is_empty() && !self.is_over {
            while self.fetched.len() < self.batch && !self.is_over {
                match self.cursor.next(txn)? {
                    Some(row) => self.fetched.push_back(row.to_values()?),
                    None => self.is_over = true,
                }
            }
            self.batch = BATCH;
        }
        Ok(())
    }
}
