//! Rows as they are printed.

use std::io::Write;

use pantile::{ColumnDef, OwnedValue, Type, Value};
use pantile_transfer::field;

use crate::error::Error;
use crate::words;

/// How rows are printed.
///
/// ```
/// use pantile_shell::Mode;
/// assert_eq!(Mode::by_name("jsonl"), Some(Mode::JsonLines));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Columns below each other, for people.
    #[default]
    Table,
    /// CSV, with the names of the columns in the first row.
    Csv,
    /// A JSON object in each line.
    JsonLines,
}

impl Mode {
    /// The mode of this name: `table`, `csv` or `jsonl`.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "table" => Some(Mode::Table),
            "csv" => Some(Mode::Csv),
            "jsonl" => Some(Mode::JsonLines),
            _ => None,
        }
    }
}

/// Rows that a table is laid out for at a time: a long result appears as it is read.
const TOGETHER: usize = 200;

/// Prints the rows of a result.
pub struct Printer<'p> {
    out: &'p mut dyn Write,
    columns: &'p [ColumnDef],
    mode: Mode,
    widths: Vec<usize>,
    waiting: Vec<Vec<String>>,
    /// Rows that were handed over.
    pub rows: u64,
    has_head: bool,
}

impl<'p> Printer<'p> {
    pub fn new(out: &'p mut dyn Write, columns: &'p [ColumnDef], mode: Mode) -> Self {
        let widths = columns.iter().map(|column| heading(column).chars().count()).collect();
        Self { out, columns, mode, widths, waiting: Vec::new(), rows: 0, has_head: false }
    }

    pub fn row(&mut self, values: &[OwnedValue]) -> Result<(), Error> {
        self.rows += 1;
        match self.mode {
            Mode::JsonLines => {
                let values: Vec<Value<'_>> = values.iter().map(OwnedValue::as_value).collect();
                let mut line = Vec::new();
                field::append_object(self.columns, &values, &mut line);
                Ok(self.out.write_all(&line)?)
            }
            Mode::Csv => {
                self.csv_head()?;
                let fields = self.texts(values);
                self.record(&fields)
            }
            Mode::Table => {
                let texts = self.texts(values).iter().map(|text| cell(text)).collect();
                self.waiting.push(texts);
                if self.waiting.len() >= TOGETHER { self.lay_out() } else { Ok(()) }
            }
        }
    }

    /// Prints the rest; of an empty result the names of the columns.
    pub fn finish(mut self) -> Result<u64, Error> {
        match self.mode {
            Mode::Table => self.lay_out()?,
            Mode::Csv => self.csv_head()?,
            Mode::JsonLines => {}
        }
        Ok(self.rows)
    }

    fn texts(&self, values: &[OwnedValue]) -> Vec<String> {
        let columns = self.columns.iter().zip(values);
        columns.map(|(column, value)| field::text(column.ty, &value.as_value())).collect()
    }

    fn csv_head(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.has_head, true) {
            return Ok(());
        }
        let names: Vec<String> = self.columns.iter().map(|column| column.name.clone()).collect();
        self.record(&names)
    }

    fn record(&mut self, fields: &[String]) -> Result<(), Error> {
        let mut line = Vec::new();
        field::append_record(fields.iter().map(String::as_bytes), &mut line);
        Ok(self.out.write_all(&line)?)
    }

    fn lay_out(&mut self) -> Result<(), Error> {
        let rows = std::mem::take(&mut self.waiting);
        for row in &rows {
            for (width, text) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(text.chars().count());
            }
        }
        if !std::mem::replace(&mut self.has_head, true) {
            let names: Vec<String> = self.columns.iter().map(heading).collect();
            let rule: Vec<String> = self.widths.iter().map(|width| "-".repeat(*width)).collect();
            self.line(&names)?;
            self.line(&rule)?;
        }
        rows.iter().try_for_each(|row| self.line(row))
    }

    fn line(&mut self, texts: &[String]) -> Result<(), Error> {
        let mut line = String::new();
        for (n, (text, width)) in texts.iter().zip(&self.widths).enumerate() {
            if n > 0 {
                line += "  ";
            }
            let fill = " ".repeat(width - text.chars().count());
            line += &if is_number(self.columns[n].ty) { fill + text } else { text.clone() + &fill };
        }
        Ok(writeln!(self.out, "{}", line.trim_end())?)
    }
}

fn heading(column: &ColumnDef) -> String {
    words::shown(&column.name).unwrap_or_else(|| column.name.clone())
}

/// A value as it is entered: as CSV has it, with quotes where it needs them, or with escapes.
fn cell(text: &str) -> String {
    if let Some(word) = words::shown(text) {
        return word;
    }
    let mut field = Vec::new();
    field::append_record([text.as_bytes()].into_iter(), &mut field);
    field.pop();
    String::from_utf8(field).expect("a quoted text is text")
}

fn is_number(ty: Type) -> bool {
    !matches!(
        ty,
        Type::Bool
            | Type::Timestamp
            | Type::String(_)
            | Type::FixedString(_)
            | Type::Bytes(_)
            | Type::FixedBytes(_)
    )
}
