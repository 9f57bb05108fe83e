//! Reading the rows of one table: CSV, or a JSON object in each line.

use std::io::Read;
use std::sync::Arc;

use csv::{ByteRecord, ReaderBuilder};

use crate::block::{FULL, Layout, Records, Rows};
use crate::error::Error;
use crate::format::Format;
use crate::load::input::Input;
use crate::load::session::Session;
use crate::target::Target;

/// Reads all rows, and returns how many there are.
pub fn read<R: Read>(
    session: &mut Session<'_>,
    target: &Arc<Target>,
    format: Format,
    input: &mut Input<R>,
) -> Result<u64, Error> {
    match format {
        Format::Csv => read_csv(session, target, input),
        Format::JsonLines => read_objects(session, target, input),
    }
}

fn read_objects<R: Read>(
    session: &mut Session<'_>,
    target: &Arc<Target>,
    input: &mut Input<R>,
) -> Result<u64, Error> {
    let (mut block, mut first, mut rows, mut noted) = (Vec::new(), 1, 0, (0, 0));
    loop {
        let is_over = input.peek()?.is_none();
        if block.len() >= FULL || is_over {
            let block = std::mem::take(&mut block);
            session.send(target, input.file.as_deref(), Rows::Objects(first, block))?;
            session.note(&target.def.name, rows - noted.0, input.bytes - noted.1)?;
            (first, noted) = (input.lines + 1, (rows, input.bytes));
        }
        if is_over {
            return Ok(rows);
        }
        let start = block.len();
        input.line(&mut block)?;
        rows += u64::from(!block[start..].trim_ascii().is_empty());
    }
}

fn read_csv<R: Read>(
    session: &mut Session<'_>,
    target: &Arc<Target>,
    input: &mut Input<R>,
) -> Result<u64, Error> {
    let file = input.file.clone();
    let mut reader = ReaderBuilder::new().from_reader(input.reader());
    let header = reader.byte_headers().map_err(|error| csv_error(file.clone(), error))?.clone();
    let layout =
        Arc::new(Layout { columns: columns(&header, target, &file)?, null: session.settings.null.clone() });
    let mut records = Records::new(&layout);
    let (mut record, mut rows, mut noted) = (ByteRecord::new(), 0, (0, 0));
    loop {
        let is_row = reader.read_byte_record(&mut record).map_err(|error| csv_error(file.clone(), error))?;
        if is_row {
            rows += 1;
            records.lines.push(record.position().map_or(0, csv::Position::line));
            let start = records.bytes.len();
            records.bytes.extend_from_slice(record.as_slice());
            let ends = (0..record.len()).filter_map(|n| record.range(n));
            records.ends.extend(ends.map(|range| start + range.end));
        }
        if records.bytes.len() + records.lines.len() >= FULL || !is_row {
            let full = std::mem::replace(&mut records, Records::new(&layout));
            session.send(target, file.as_deref(), Rows::Csv(full))?;
            let bytes = reader.position().byte();
            session.note(&target.def.name, rows - noted.0, bytes - noted.1)?;
            noted = (rows, bytes);
        }
        if !is_row {
            return Ok(rows);
        }
    }
}

/// The columns that the header names.
fn columns(header: &ByteRecord, target: &Target, file: &Option<String>) -> Result<Vec<usize>, Error> {
    let at = || crate::error::Place { file: file.clone(), line: 1 };
    let mut columns = Vec::new();
    for name in header {
        let name = String::from_utf8_lossy(name);
        let column = target.def.columns.iter().position(|column| column.name == name);
        let Some(column) = column else {
            return Err(target.unknown_column(at(), &name, "does not exist"));
        };
        if columns.contains(&column) {
            return Err(target.unknown_column(at(), &name, "is named twice"));
        }
        columns.push(column);
    }
    target.check_columns(at(), |n| columns.contains(&n))?;
    Ok(columns)
}

fn csv_error(file: Option<String>, error: csv::Error) -> Error {
    use csv::ErrorKind;
    let line = error.position().map_or(1, csv::Position::line);
    match error.into_kind() {
        ErrorKind::Io(source) => Error::Read { from: file.unwrap_or_else(|| "the input".into()), source },
        ErrorKind::UnequalLengths { expected_len, len, .. } => Error::Damaged {
            at: crate::error::Place { file, line },
            detail: format!("the row has {len} fields, and the header {expected_len}"),
        },
        kind => Error::Damaged {
            at: crate::error::Place { file, line },
            detail: format!("this is not CSV: {kind:?}"),
        },
    }
}
