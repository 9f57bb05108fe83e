//! Pieces of the input, which threads read into batches.

use std::sync::Arc;

use pantile::{ColumnDef, Type};

use crate::batch::{Batch, Cell, Lines};
use crate::error::{Error, Place};
use crate::json;
use crate::target::Target;
use crate::text;

/// Bytes after which a block is handed over.
pub const FULL: usize = 256 << 10;

/// Rows of one table as they are in the input.
pub struct Block {
    pub target: Arc<Target>,
    /// Its number among all blocks of the load.
    pub number: u64,
    /// Its number among those that go into one transaction.
    pub turn: Option<u64>,
    pub file: Option<String>,
    pub rows: Rows,
}

/// Rows that have not been read.
pub enum Rows {
    /// Lines with an array each, from the line of this number on.
    Arrays(u64, Vec<u8>),
    /// Lines with an object each, from the line of this number on.
    Objects(u64, Vec<u8>),
    Csv(Records),
}

/// Rows of a CSV file, their fields unquoted.
pub struct Records {
    pub layout: Arc<Layout>,
    pub bytes: Vec<u8>,
    /// Where each field ends.
    pub ends: Vec<usize>,
    /// The lines of each row.
    pub lines: Vec<Lines>,
}

/// How a CSV file stands for rows.
pub struct Layout {
    /// The column of each field.
    pub columns: Vec<usize>,
    /// The text that stands for NULL, if it is not [`NULL`].
    pub null: Option<String>,
}

/// NULL in CSV. Strings of backslashes and an N have one backslash more.
pub const NULL: &str = r"\N";

/// Whether a text is one or more backslashes and an N.
pub fn is_like_null(text: &[u8]) -> bool {
    matches!(text, [b'\\', rest @ .., b'N'] if rest.iter().all(|c| *c == b'\\'))
}

impl Block {
    /// Reads the rows, and checks that the values fit their columns. If one
    /// does not, returns the rows before it.
    pub fn read(&self) -> (Batch, Result<(), Error>) {
        let mut batch = Batch::new(self.target.defaults(), self.file.clone());
        let read = match &self.rows {
            Rows::Arrays(first, bytes) => {
                self.lines(*first, bytes, |line, at| json::read_array(line, at, &self.target, &mut batch))
            }
            Rows::Objects(first, bytes) => {
                self.lines(*first, bytes, |line, at| json::read_object(line, at, &self.target, &mut batch))
            }
            Rows::Csv(records) => records.read(&self.target, &mut batch),
        };
        (batch, read)
    }

    fn lines(
        &self,
        first: u64,
        bytes: &[u8],
        mut read: impl FnMut(&str, u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for (line, at) in bytes.split(|c| *c == b'\n').zip(first..) {
            let line = str::from_utf8(line).map_err(|_| self.not_utf8(at))?.trim_ascii();
            if !line.is_empty() {
                read(line, at)?;
            }
        }
        Ok(())
    }

    fn not_utf8(&self, line: u64) -> Error {
        let at = Place { file: self.file.clone(), line };
        Error::Damaged { at, detail: "the text is not UTF-8".into() }
    }
}

impl Records {
    pub fn new(layout: &Arc<Layout>) -> Self {
        let (bytes, ends, lines) = (Vec::new(), Vec::new(), Vec::new());
        Self { layout: Arc::clone(layout), bytes, ends, lines }
    }

    fn read(&self, target: &Target, batch: &mut Batch) -> Result<(), Error> {
        let mut from = 0;
        for (ends, lines) in self.ends.chunks_exact(self.layout.columns.len()).zip(&self.lines) {
            let start = batch.add_row(*lines);
            for (end, n) in ends.iter().zip(&self.layout.columns) {
                let field = &self.bytes[from..*end];
                from = *end;
                let column = &target.def.columns[*n];
                let null = self.layout.null.as_deref();
                let cell = cell(column, field, null, batch).ok_or_else(|| Error::WrongValue {
                    at: batch.last(),
                    column: column.name.clone(),
                    expected: text::expected(column.ty, column.nullable),
                    got: got(field),
                })?;
                batch.set(start + n, cell);
            }
            batch.end_row();
        }
        Ok(())
    }
}

/// What is there instead of a value, for messages, with control characters escaped.
pub fn got(field: &[u8]) -> String {
    let excerpt = text::excerpt(field);
    match str::from_utf8(field) {
        Ok(_) => format!("{excerpt:?}"),
        Err(_) => format!("{excerpt:?}, which is not UTF-8"),
    }
}

/// Reads a field of CSV, in which `null` stands for NULL if it is not [`NULL`].
pub fn cell(column: &ColumnDef, field: &[u8], null: Option<&str>, batch: &mut Batch) -> Option<Cell> {
    let field = match null {
        Some(null) if field == null.as_bytes() => return column.nullable.then_some(Cell::Null),
        None if field == NULL.as_bytes() => return column.nullable.then_some(Cell::Null),
        None if is_like_null(field) => &field[1..],
        _ => field,
    };
    let may_be_empty =
        matches!(column.ty, Type::String(_) | Type::FixedString(_) | Type::Bytes(_) | Type::FixedBytes(_));
    if field.is_empty() && !may_be_empty {
        return column.nullable.then_some(Cell::Null);
    }
    text::parse(column.ty, str::from_utf8(field).ok()?, batch)
}
