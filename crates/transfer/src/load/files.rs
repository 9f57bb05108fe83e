//! Reading a directory: the definitions in one file, the rows of each table in another.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::dump::files::SCHEMA;
use crate::error::Error;
use crate::format::Format;
use crate::load::input::Input;
use crate::load::rows;
use crate::load::session::Session;
use crate::load::stream::{self, Line};
use crate::target::Target;

/// A file with rows.
struct Part {
    target: Arc<Target>,
    file: String,
    format: Format,
    rows: u64,
}

/// Reads all files.
pub fn read(session: &mut Session<'_>, dir: &Path) -> Result<(), Error> {
    for part in parts(session, dir)? {
        let mut input = open(dir, &part.file)?;
        let rows = rows::read(session, &part.target, part.format, &mut input)?;
        let (file, wanted) = (&part.file, part.rows);
        // The rest of the last row may look like all of it.
        if wanted > 0 && !input.ends_with_line {
            return Err(input.damaged(format!("the last line of {file} has no end: it is truncated")));
        }
        if rows != wanted {
            return Err(input.damaged(format!(
                "{file} has {rows} rows, and {wanted} were written: it is truncated or damaged"
            )));
        }
    }
    Ok(())
}

fn open(dir: &Path, name: &str) -> Result<Input<File>, Error> {
    let path = dir.join(name);
    let from = path.display().to_string();
    File::open(&path)
        .map(|file| Input::new(file, Some(name.to_owned())))
        .map_err(|source| Error::Read { from, source })
}

/// Reads the definitions, and creates the tables.
fn parts(session: &mut Session<'_>, dir: &Path) -> Result<Vec<Part>, Error> {
    let mut input = open(dir, SCHEMA)?;
    stream::header(&mut input)?;
    let (mut parts, mut tables) = (Vec::new(), 0);
    while input.peek()?.is_some() {
        match stream::control(&mut input)? {
            Line::Blank => {}
            Line::Table(line) => {
                tables += 1;
                let def = stream::definition(&line, &input)?;
                let (Some(file), Some(rows)) = (line.file, line.rows) else {
                    return Err(input.damaged("the line names no file with the rows of the table"));
                };
                let format = Format::of_file(&file)
                    .ok_or_else(|| input.damaged(format!("{file:?} is no file of a dump")))?;
                if session.has_seen(&def.name) {
                    return Err(input.damaged(format!("table {:?} is here for the second time", def.name)));
                }
                if session.wants(&def.name) {
                    let target = session.table(def)?;
                    parts.push(Part { target, file, format, rows });
                }
            }
            Line::DumpEnd(end) => {
                stream::check_end(&mut input, &end, (tables, None))?;
                return Ok(parts);
            }
            Line::TableEnd(_) => return Err(input.damaged("there is an end without a table")),
        }
    }
    Err(stream::truncated(&input))
}
