//! Reading the rows of one table: CSV, or a JSON object in each line.

use std::io::Read;
use std::sync::Arc;

use crate::batch::Lines;
use crate::block::{FULL, Layout, Records, Rows};
use crate::error::{Error, Place};
use crate::format::Format;
use crate::load::csv::Csv;
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
    let mut csv = Csv::new(input);
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    let Some(Lines { first: line, .. }) = csv.row(&mut bytes, &mut ends)? else {
        return target.check_columns(csv.input().place(), |_| false).map(|()| 0);
    };
    let at = csv.input().place_of(line);
    let layout = Arc::new(Layout {
        columns: columns(&bytes, &ends, target, &at)?,
        null: session.settings.null.clone(),
    });
    csv.longest = target.longest_text();
    let mut records = Records::new(&layout);
    let (mut rows, mut noted) = (0, (0, 0));
    loop {
        let next = next_row(&mut csv, &mut records);
        let is_row = matches!(next, Ok(true));
        rows += u64::from(is_row);
        // Also before an error: in batches, the rows before it count.
        if records.bytes.len() + records.lines.len() >= FULL || !is_row {
            let full = std::mem::replace(&mut records, Records::new(&layout));
            session.send(target, csv.input().file.as_deref(), Rows::Csv(full))?;
            let bytes = csv.input().bytes;
            session.note(&target.def.name, rows - noted.0, bytes - noted.1)?;
            noted = (rows, bytes);
        }
        if !next? {
            return Ok(rows);
        }
    }
}

/// Reads a row of CSV. Returns whether there was one.
fn next_row<R: Read>(csv: &mut Csv<'_, R>, records: &mut Records) -> Result<bool, Error> {
    let before = records.ends.len();
    let Some(lines) = csv.row(&mut records.bytes, &mut records.ends)? else { return Ok(false) };
    let (fields, wanted) = (records.ends.len() - before, records.layout.columns.len());
    if fields != wanted {
        let detail = format!("the row has {fields} fields, and the header {wanted}");
        return Err(Error::Damaged { at: csv.input().place_of(lines.first), detail });
    }
    records.lines.push(lines);
    Ok(true)
}

/// The columns that the header names.
fn columns(bytes: &[u8], ends: &[usize], target: &Target, at: &Place) -> Result<Vec<usize>, Error> {
    let mut columns = Vec::new();
    let mut from = 0;
    for end in ends {
        let name = String::from_utf8_lossy(&bytes[from..*end]);
        from = *end;
        let column = target.def.columns.iter().position(|column| column.name == name);
        let Some(column) = column else {
            return Err(target.unknown_column(at.clone(), &name, "does not exist"));
        };
        if columns.contains(&column) {
            return Err(target.unknown_column(at.clone(), &name, "is named twice"));
        }
        columns.push(column);
    }
    target.check_columns(at.clone(), |n| columns.contains(&n))?;
    Ok(columns)
}
