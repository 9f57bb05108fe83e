//! Scans as Arrow: batches of columns that any library takes over without copying.

use std::sync::{Arc, Mutex};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use pantile::{ColumnDef, Cursor, Result, Table};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::columns::{Cells, cells, data_type};
use crate::error::{InvalidSchema, Misuse, Refusal};
use crate::transaction::Transaction;

/// Rows of a batch, at most, unless the program says how many.
pub const BATCH_ROWS: usize = 65_536;

/// A batch ends with the row that makes it longer than this, in bytes of text and bytes.
const BATCH_BYTES: usize = 64 << 20;

/// What ended a stream too early, kept for Python: Arrow has only room for its text.
pub type Failure = Arc<Mutex<Option<Refusal>>>;

fn field(def: &ColumnDef) -> PyResult<Field> {
    let ty = data_type(def.ty).ok_or_else(|| {
        let ColumnDef { name, ty, .. } = def;
        InvalidSchema::new_err(format!(
            "Arrow has no type for column {name:?}, {ty}; leave it out of columns"
        ))
    })?;
    Ok(Field::new(&def.name, ty, def.nullable))
}

/// The rows of a cursor as batches. It needs neither Python nor its lock.
pub struct Reader {
    transaction: Py<Transaction>,
    cursor: Cursor,
    columns: Vec<usize>,
    cells: Vec<Box<dyn Cells>>,
    schema: SchemaRef,
    batch_rows: usize,
    is_over: bool,
    failure: Failure,
}

impl Reader {
    pub fn new(
        transaction: Py<Transaction>,
        table: &Table,
        cursor: Cursor,
        columns: Vec<usize>,
        batch_rows: usize,
        failure: Failure,
    ) -> PyResult<Self> {
        let defs = columns.iter().map(|column| &table.columns()[*column]);
        let fields = defs.map(field).collect::<PyResult<Vec<_>>>()?;
        let types = columns.iter().zip(&fields);
        let cells =
            types.map(|(column, field)| cells(table.columns()[*column].ty, field.data_type())).collect();
        let schema = Arc::new(Schema::new(fields));
        Ok(Self { transaction, cursor, columns, cells, schema, batch_rows, is_over: false, failure })
    }

    /// Reads rows into the columns until a batch is full. Returns how many.
    fn fill(&mut self) -> Result<usize, Refusal> {
        let Self { transaction, cursor, columns, cells, batch_rows, is_over, .. } = self;
        transaction.get().read(|txn| {
            let (mut rows, mut bytes) = (0, 0);
            while rows < *batch_rows && bytes < BATCH_BYTES {
                let Some(row) = cursor.next(txn)? else {
                    *is_over = true;
                    break;
                };
                for (cells, column) in cells.iter_mut().zip(&*columns) {
                    bytes += cells.push(&row, *column)?;
                }
                rows += 1;
            }
            Ok(rows)
        })
    }

    fn batch(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        match self.fill() {
            Ok(0) => None,
            Ok(_) => {
                let columns = self.cells.iter_mut().map(|cells| cells.finish()).collect();
                Some(RecordBatch::try_new(Arc::clone(&self.schema), columns))
            }
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
        Arc::clone(&self.schema)
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
