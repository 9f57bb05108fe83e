//! Rows of Pantile as batches of [Apache Arrow](https://arrow.apache.org), which dataframes and query engines take over
//! without copying.
//!
//! ```
//! use pantile::{Database, Range, TableDef, Type};
//! use pantile_arrow::Batches;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let db = Database::open(dir.path())?;
//! let pets = TableDef::new("pets").column("id", Type::U32).column("name", Type::String(40)).primary_key(["id"]);
//! let pets = db.create_table(pets)?;
//! db.run(|txn| txn.insert_many(&pets, [[1u32.into(), "Tom".into()], [2u32.into(), "Ida".into()]]))?;
//!
//! let txn = db.begin_read()?;
//! let mut cursor = txn.cursor(&pets, Range::all())?;
//! let mut batches = Batches::new(&pets, vec![1])?;
//! while batches.fill(&txn, &mut cursor, 8192)? > 0 {
//!     let batch = batches.finish()?;
//!     assert_eq!((batch.num_rows(), batch.schema().field(0).name().as_str()), (2, "name"));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! All batches of one transaction are of one state of the database, whatever others write meanwhile.

mod columns;

use std::fmt;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use pantile::{ColumnDef, Cursor, Result, Table, Transaction, Type};

pub use columns::data_type;
use columns::{Cells, cells};

/// A batch ends with the row that makes it longer than this, in bytes of text and bytes.
const BATCH_BYTES: usize = 64 << 20;

/// Arrow has no type for a column, or this crate does not know it yet. Read the table without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoArrowType {
    /// The column.
    pub column: String,
    /// Its type.
    pub ty: Type,
}

impl fmt::Display for NoArrowType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arrow has no type for column {:?}, {}; leave it out of the columns", self.column, self.ty)
    }
}

impl std::error::Error for NoArrowType {}

/// Rows, column by column, until they are made a batch.
pub struct Batches {
    columns: Vec<usize>,
    cells: Vec<Box<dyn Cells>>,
    schema: SchemaRef,
    rows: usize,
    bytes: usize,
}

impl Batches {
    /// Batches of these columns of a table, by their numbers, in this order.
    ///
    /// # Errors
    /// [`NoArrowType`].
    ///
    /// # Panics
    /// If the table has no such column.
    pub fn new(table: &Table, columns: Vec<usize>) -> Result<Self, NoArrowType> {
        let defs = || columns.iter().map(|column| &table.columns()[*column]);
        let fields = defs().map(field).collect::<Result<Vec<_>, _>>()?;
        let cells = defs().zip(&fields).map(|(def, field)| cells(def.ty, field.data_type())).collect();
        Ok(Self { columns, cells, schema: Arc::new(Schema::new(fields)), rows: 0, bytes: 0 })
    }

    /// What the batches hold.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Adds rows of a cursor until there are `rows`, or until they are about 64 MB long. Returns how many there are; 0
    /// if the cursor is at its end.
    ///
    /// # Errors
    /// As [`Cursor::next`].
    pub fn fill(&mut self, txn: &Transaction, cursor: &mut Cursor, rows: usize) -> Result<usize> {
        while self.rows < rows && self.bytes < BATCH_BYTES {
            let Some(row) = cursor.next(txn)? else { break };
            for (cells, column) in self.cells.iter_mut().zip(&self.columns) {
                self.bytes += cells.push(&row, *column)?;
            }
            self.rows += 1;
        }
        Ok(self.rows)
    }

    /// The rows as a batch. What comes next begins another one.
    ///
    /// # Errors
    /// [`ArrowError::InvalidArgumentError`] if a column that had no NULL when the table was opened has one now.
    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let columns = self.cells.iter_mut().map(|cells| cells.finish()).collect();
        self.bytes = 0;
        // A batch without columns has rows all the same.
        let options = RecordBatchOptions::new().with_row_count(Some(std::mem::take(&mut self.rows)));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}

fn field(def: &ColumnDef) -> Result<Field, NoArrowType> {
    let ty = data_type(def.ty).ok_or_else(|| NoArrowType { column: def.name.clone(), ty: def.ty })?;
    Ok(Field::new(&def.name, ty, def.nullable))
}
