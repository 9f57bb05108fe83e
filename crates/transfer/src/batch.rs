//! Rows that have been read and checked, and wait to be inserted.

use pantile::{Decimal, OwnedValue, Value};

use crate::error::Place;

/// A value. Strings, bytes and decimals are kept beside the cells.
#[derive(Clone, Copy)]
pub enum Cell {
    /// The default of the column.
    Default,
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Timestamp(i64),
    Decimal(usize),
    Text {
        at: usize,
        len: u32,
    },
    Bytes {
        at: usize,
        len: u32,
    },
}

/// The lines that a row takes.
#[derive(Clone, Copy)]
pub struct Lines {
    pub first: u64,
    pub last: u64,
}

impl Lines {
    pub fn one(line: u64) -> Self {
        Self { first: line, last: line }
    }
}

/// Rows of one table.
pub struct Batch {
    /// Of each column.
    defaults: Vec<OwnedValue>,
    pub file: Option<String>,
    pub lines: Vec<Lines>,
    /// Rows that have all their values.
    whole: usize,
    cells: Vec<Cell>,
    pub decimals: Vec<Decimal>,
    pub text: String,
    pub bytes: Vec<u8>,
}

impl Batch {
    /// A batch without rows, for rows of columns with these defaults.
    pub fn new(defaults: Vec<OwnedValue>, file: Option<String>) -> Self {
        let (lines, cells, decimals) = (Vec::new(), Vec::new(), Vec::new());
        Self { defaults, file, lines, whole: 0, cells, decimals, text: String::new(), bytes: Vec::new() }
    }

    /// Adds a row of defaults, and returns the number of its first cell.
    pub fn add_row(&mut self, lines: Lines) -> usize {
        self.lines.push(lines);
        let start = self.cells.len();
        self.cells.resize(start + self.defaults.len(), Cell::Default);
        start
    }

    /// Sets a value of the last row.
    pub fn set(&mut self, cell: usize, value: Cell) {
        self.cells[cell] = value;
    }

    /// Says that the last row has all its values.
    pub fn end_row(&mut self) {
        self.whole = self.lines.len();
    }

    /// Where the row is from.
    pub fn place(&self, row: usize) -> Place {
        Place { file: self.file.clone(), line: self.lines[row].first }
    }

    /// The last line of the row.
    pub fn end(&self, row: usize) -> Place {
        Place { file: self.file.clone(), line: self.lines[row].last }
    }

    /// Where the row is from that is being read.
    pub fn last(&self) -> Place {
        self.place(self.lines.len() - 1)
    }

    /// Hands each row that is whole to `action`, with its number.
    pub fn try_each<E>(&self, mut action: impl FnMut(usize, &[Value<'_>]) -> Result<(), E>) -> Result<(), E> {
        let mut values = Vec::with_capacity(self.defaults.len());
        for (n, row) in self.cells.chunks_exact(self.defaults.len()).take(self.whole).enumerate() {
            values.clear();
            values.extend(row.iter().enumerate().map(|(n, cell)| self.value(n, *cell)));
            action(n, &values)?;
        }
        Ok(())
    }

    /// The value of a cell of the n-th column.
    pub fn value(&self, n: usize, cell: Cell) -> Value<'_> {
        match cell {
            Cell::Default => self.defaults[n].as_value(),
            Cell::Null => Value::Null,
            Cell::Bool(value) => Value::Bool(value),
            Cell::Int(value) => Value::Int(value),
            Cell::UInt(value) => Value::UInt(value),
            Cell::Float(value) => Value::Float(value),
            Cell::Timestamp(value) => Value::Timestamp(value),
            Cell::Decimal(n) => Value::Decimal(self.decimals[n]),
            Cell::Text { at, len } => Value::Str(&self.text[at..at + len as usize]),
            Cell::Bytes { at, len } => Value::Bytes(&self.bytes[at..at + len as usize]),
        }
    }
}
