//! Reading a dump: a header, the tables with their rows, and an end.

use std::io::Read;
use std::sync::Arc;

use pantile::TableDef;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::block::{FULL, Rows};
use crate::error::Error;
use crate::load::input::Input;
use crate::load::session::Session;
use crate::schema::{DumpEnd, Header, TableEnd, TableLine, VERSION};
use crate::target::Target;
use crate::text;

/// A table whose rows are being read.
struct Section {
    name: String,
    /// `None` if the table is not to be loaded.
    target: Option<Arc<Target>>,
    rows: u64,
    /// The first line of the block.
    first: u64,
    block: Vec<u8>,
    /// Rows and bytes that have been reported.
    noted: (u64, u64),
}

/// Reads the first line.
pub fn header<R: Read>(input: &mut Input<R>) -> Result<Header, Error> {
    let mut line = Vec::new();
    input.line(&mut line)?;
    let not_a_dump = |detail: &str| Error::NotADump { detail: detail.to_owned() };
    if line.is_empty() {
        return Err(not_a_dump("it is empty"));
    }
    let begins = || not_a_dump(&format!("its first line is {:?}", text::excerpt(line.trim_ascii_end())));
    let value: Value = serde_json::from_slice(&line).map_err(|_| begins())?;
    let found = value.get("pantile_dump").and_then(Value::as_u64).ok_or_else(begins)?;
    if found != VERSION {
        return Err(Error::Version { found, supported: VERSION });
    }
    serde_json::from_value(value).map_err(|error| input.damaged(error.to_string()))
}

/// Reads a whole dump.
pub fn read<R: Read>(session: &mut Session<'_>, input: &mut Input<R>) -> Result<(), Error> {
    let header = header(input)?;
    let (mut tables, mut rows) = (Vec::<String>::new(), 0);
    let mut section: Option<Section> = None;
    while let Some(first) = input.peek()? {
        if first == b'[' {
            match &mut section {
                Some(section) => section.row(session, input)?,
                None => return Err(misplaced_row(input)),
            }
            continue;
        }
        match (control(input)?, section.take()) {
            (Line::Blank, open) => {
                section = open;
                // Lines of a block are counted.
                section.iter_mut().for_each(|section| section.block.push(b'\n'));
            }
            (Line::Table(line), None) => {
                if line.file.is_some() {
                    return Err(input
                        .damaged("the rows are in files beside this one: load the directory that has them"));
                }
                let def = definition(&line, input)?;
                if tables.contains(&def.name) {
                    return Err(input.damaged(format!("table {:?} is here for the second time", def.name)));
                }
                tables.push(def.name.clone());
                section = begin(session, input, def, header.schema_only)?;
            }
            (Line::TableEnd(end), Some(open)) => rows += open.end(session, input, &end)?,
            (Line::DumpEnd(end), None) => {
                let counted = (tables.len() as u64, (!header.schema_only).then_some(rows));
                return check_end(input, &end, counted);
            }
            (_, Some(open)) => {
                return Err(input.damaged(format!("the rows of table {:?} have no end", open.name)));
            }
            (Line::TableEnd(_), None) => return Err(input.damaged("there is an end without a table")),
        }
    }
    Err(truncated(input))
}

fn misplaced_row<R: Read>(input: &mut Input<R>) -> Error {
    match input.line(&mut Vec::new()) {
        Ok(_) => input.damaged("there is a row without a table"),
        Err(error) => error,
    }
}

pub fn truncated<R: Read>(input: &Input<R>) -> Error {
    input.damaged("the dump ends here, and its last line is missing: it is truncated")
}

/// A line that is no row.
pub enum Line {
    Blank,
    Table(TableLine),
    TableEnd(TableEnd),
    DumpEnd(DumpEnd),
}

/// Reads a line that is no row.
pub fn control<R: Read>(input: &mut Input<R>) -> Result<Line, Error> {
    let mut line = Vec::new();
    let has_end = input.line(&mut line)?;
    if line.trim_ascii().is_empty() {
        return Ok(Line::Blank);
    }
    let Ok(value) = serde_json::from_slice::<Value>(&line) else {
        let excerpt = text::excerpt(line.trim_ascii());
        return Err(match has_end {
            true => input.damaged(format!("this is not a line of a dump: {excerpt:?}")),
            false => truncated(input),
        });
    };
    if value.get("table").is_some() {
        part(value, input).map(Line::Table)
    } else if value.get("end_of_table").is_some() {
        part(value, input).map(Line::TableEnd)
    } else {
        part(value, input).map(Line::DumpEnd)
    }
}

fn part<T: DeserializeOwned, R: Read>(value: Value, input: &Input<R>) -> Result<T, Error> {
    serde_json::from_value(value)
        .map_err(|error| input.damaged(format!("this is not a line of a dump: {error}")))
}

/// The definition in a line.
pub fn definition<R: Read>(line: &TableLine, input: &Input<R>) -> Result<TableDef, Error> {
    line.definition().map_err(|detail| input.damaged(detail))
}

fn begin<R: Read>(
    session: &mut Session<'_>,
    input: &Input<R>,
    def: TableDef,
    schema_only: bool,
) -> Result<Option<Section>, Error> {
    let name = def.name.clone();
    let is_wanted = session.wants(&name);
    if schema_only {
        if is_wanted {
            session.create(def)?;
        }
        return Ok(None);
    }
    let target = if is_wanted { Some(session.table(def)?) } else { None };
    let (first, noted) = (input.lines + 1, (0, input.bytes));
    Ok(Some(Section { name, target, rows: 0, first, block: Vec::new(), noted }))
}

impl Section {
    fn row<R: Read>(&mut self, session: &mut Session<'_>, input: &mut Input<R>) -> Result<(), Error> {
        if !input.line(&mut self.block)? {
            return Err(truncated(input));
        }
        self.rows += 1;
        if self.block.len() >= FULL { self.hand_over(session, input) } else { Ok(()) }
    }

    fn hand_over<R: Read>(&mut self, session: &mut Session<'_>, input: &Input<R>) -> Result<(), Error> {
        let block = std::mem::replace(&mut self.block, Vec::with_capacity(FULL + FULL / 8));
        let first = std::mem::replace(&mut self.first, input.lines + 1);
        let (rows, bytes) = std::mem::replace(&mut self.noted, (self.rows, input.bytes));
        let loaded = match &self.target {
            Some(target) => {
                session.send(target, input.file.as_deref(), Rows::Arrays(first, block))?;
                self.rows - rows
            }
            None => 0,
        };
        session.note(&self.name, loaded, input.bytes - bytes)
    }

    /// Returns the rows.
    fn end<R: Read>(
        mut self,
        session: &mut Session<'_>,
        input: &Input<R>,
        end: &TableEnd,
    ) -> Result<u64, Error> {
        self.hand_over(session, input)?;
        let Self { name, rows, .. } = self;
        if end.end_of_table != name {
            let other = &end.end_of_table;
            return Err(input.damaged(format!("this is the end of table {other:?}, not of {name:?}")));
        }
        if end.rows != rows {
            let wanted = end.rows;
            return Err(input.damaged(format!(
                "table {name:?} has {rows} rows here, and {wanted} were written: the dump is damaged"
            )));
        }
        Ok(rows)
    }
}

/// Checks the last line and that nothing follows it.
pub fn check_end<R: Read>(
    input: &mut Input<R>,
    end: &DumpEnd,
    counted: (u64, Option<u64>),
) -> Result<(), Error> {
    if (end.tables, end.rows) != counted {
        let show = |(tables, rows): (u64, Option<u64>)| match rows {
            Some(rows) => format!("{tables} tables and {rows} rows"),
            None => format!("{tables} tables"),
        };
        let (here, written) = (show(counted), show((end.tables, end.rows)));
        return Err(
            input.damaged(format!("there are {here}, and {written} were written: the dump is damaged"))
        );
    }
    while input.peek()?.is_some() {
        let mut line = Vec::new();
        input.line(&mut line)?;
        if !line.trim_ascii().is_empty() {
            return Err(input.damaged("there is more after the end of the dump"));
        }
    }
    Ok(())
}
