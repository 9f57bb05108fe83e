//! Scans as Arrow: batches of columns that any library takes over without copying.

use std::sync::{Arc, Mutex};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pantile::{Cursor, Table};
use pantile_arrow::Batches;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::{InvalidSchema, Misuse, Refusal};
use crate::transaction::Shared;

/// Rows of a batch, at most, unless the program says how many.
pub const BATCH_ROWS: usize = 65_536;

/// What ended a stream too early, kept for Python: Arrow has only room for its text.
pub type Failure = Arc<Mutex<Option<Refusal>>>;

/// The rows of a cursor as batches. It needs neither Python nor its lock, and has no object of Python: libraries read
/// and drop it with and without the lock, on any thread, and nothing says which. Not even PyO3 knows, since it counts
/// its own calls only: within one of them, `Python::attach` takes the lock for held after a library has let go of it.
pub struct Reader {
    transaction: Arc<Shared>,
    cursor: Cursor,
    batches: Batches,
    batch_rows: usize,
    is_over: bool,
    failure: Failure,
}

impl Reader {
    pub fn new(
        transaction: Arc<Shared>,
        table: &Table,
        cursor: Cursor,
        columns: Vec<usize>,
        batch_rows: usize,
        failure: Failure,
    ) -> PyResult<Self> {
        let batches = Batches::new(table, columns);
        let batches = batches.map_err(|no_type| InvalidSchema::new_err(no_type.to_string()))?;
        Ok(Self { transaction, cursor, batches, batch_rows, is_over: false, failure })
    }

    fn batch(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        let Self { transaction, cursor, batches, batch_rows, .. } = self;
        match transaction.read(|txn| batches.fill(txn, cursor, *batch_rows)) {
            Ok(0) => {
                self.is_over = true;
                None
            }
            Ok(_) => Some(self.batches.finish()),
            Err(refusal) => {
                self.is_over = true;
                let text = refusal.to_string();
                if let Ok(mut failure) = self.failure.lock() {
                    *failure = Some(refusal);
                }
                Some(Err(ArrowError::ExternalError(text.into())))
            }
        }
    }
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over { None } else { self.batch() }
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.batches.schema())
    }
}

/// The batches as Python hands them from library to library.
pub fn capsule(py: Python<'_>, reader: Reader) -> PyResult<Bound<'_, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(Box::new(reader));
    PyCapsule::new(py, stream, Some(c"arrow_array_stream".to_owned()))
}

/// A stream with batches of a chosen size, to be read once.
#[pyclass(frozen, module = "pantile")]
pub struct Stream(Mutex<Option<Reader>>);

impl Stream {
    pub fn new(reader: Reader) -> Self {
        Self(Mutex::new(Some(reader)))
    }
}

#[pymethods]
impl Stream {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let reader = self.0.lock().ok().and_then(|mut reader| reader.take());
        capsule(py, reader.ok_or_else(|| Misuse::new_err("the stream has been read; make another scan"))?)
    }
}
