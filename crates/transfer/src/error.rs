//! What can go wrong, with the place in the input.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// A place in the input of a load.
///
/// ```
/// use pantile_transfer::Place;
/// assert_eq!(Place { file: None, line: 3 }.to_string(), "line 3");
/// assert_eq!(Place { file: Some("pets.csv".into()), line: 3 }.to_string(), "pets.csv, line 3");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The file, where a directory is loaded.
    pub file: Option<String>,
    /// The line, counted from 1; for a CSV row of several lines, the first of them.
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}, ")?;
        }
        write!(f, "line {}", self.line)
    }
}

/// Why a dump or a load failed.
///
/// ```
/// # use pantile::{MediumKind, Options};
/// use pantile_transfer::{Error, Load};
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// let failed = Load::new(&db).dump(&b"{\"pantile_dump\":9}\n"[..]).expect_err("a later format");
/// assert!(matches!(*failed.cause, Error::Version { found: 9, supported: 1 }));
/// # Ok::<(), pantile::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The database refused.
    Database(pantile::Error),
    /// The input cannot be read.
    Read {
        /// The file, or "the input".
        from: String,
        /// The system's error.
        source: io::Error,
    },
    /// The output cannot be written.
    Write {
        /// The file, or "the output".
        to: String,
        /// The system's error.
        source: io::Error,
    },
    /// The directory to write to exists already.
    Exists(PathBuf),
    /// The input is not a dump: it does not begin like one.
    NotADump {
        /// What is there instead.
        detail: String,
    },
    /// The dump has a version that this build cannot read.
    Version {
        /// The version found.
        found: u64,
        /// The version that this build reads.
        supported: u64,
    },
    /// The input ends too early, or is not what was written.
    Damaged {
        /// Where.
        at: Place,
        /// What is wrong there.
        detail: String,
    },
    /// The table of the dump exists with other columns or another primary key, or cannot be
    /// created.
    TableDiffers {
        /// The table.
        table: String,
        /// What is different.
        detail: String,
    },
    /// The dump does not have the table that was asked for.
    NoSuchTable(String),
    /// The table has no column of this name, or the input has it twice.
    UnknownColumn {
        /// Where the input names the column.
        at: Place,
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// What is wrong with it.
        detail: &'static str,
    },
    /// The input has no value for a column that does not take NULL.
    MissingColumn {
        /// The header or the row that lacks it.
        at: Place,
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A value that is not of the column's type, or does not fit it.
    WrongValue {
        /// The row.
        at: Place,
        /// The column.
        column: String,
        /// What the column takes.
        expected: String,
        /// The beginning of what is there.
        got: String,
    },
    /// The database refused a row, for example because of its key.
    Row {
        /// The row.
        at: Place,
        /// Why.
        source: Box<pantile::Error>,
    },
    /// The progress function asked to stop.
    Interrupted,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Database(error) => f.write_str(&without_advice(error)),
            Error::Read { from, source } => write!(f, "cannot read {from}: {source}"),
            Error::Write { to, source } => write!(f, "cannot write {to}: {source}"),
            Error::Exists(path) => {
                write!(f, "{} exists already; name a directory that does not", path.display())
            }
            Error::NotADump { detail } => write!(
                f,
                "this is not a dump ({detail}); to load the rows of one table, name the table and the format"
            ),
            Error::Version { found, supported } => {
                write!(f, "the dump has format version {found}, and this build reads version {supported}")
            }
            Error::Damaged { at, detail } => write!(f, "{at}: {detail}"),
            Error::TableDiffers { table, detail } => write!(f, "table {table:?} of the dump: {detail}"),
            Error::NoSuchTable(table) => write!(f, "the dump has no table {table:?}"),
            Error::UnknownColumn { at, table, column, detail } => {
                write!(f, "{at}: column {column:?} of table {table:?} {detail}")
            }
            Error::MissingColumn { at, table, column } => {
                write!(
                    f,
                    "{at}: column {column:?} of table {table:?} is missing; it has no default and does not take NULL"
                )
            }
            Error::WrongValue { at, column, expected, got } => {
                write!(f, "{at}, column {column:?}: {expected} is expected, not {got}")
            }
            Error::Row { at, source } => write!(f, "{at}: {}", without_advice(source)),
            Error::Interrupted => f.write_str("interrupted"),
        }
    }
}

/// The engine's message without what it says of its call: what is still true of the load follows.
fn without_advice(error: &pantile::Error) -> String {
    let text = error.to_string();
    match text.strip_suffix("; nothing was changed") {
        Some(text) => text.to_owned(),
        None => text,
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Database(source) => Some(source),
            Error::Row { source, .. } => Some(source.as_ref()),
            Error::Read { source, .. } | Error::Write { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<pantile::Error> for Error {
    fn from(error: pantile::Error) -> Self {
        Error::Database(error)
    }
}

/// Rows that are committed although the load failed; see [`crate::Load::batch`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Committed {
    /// The table.
    pub table: String,
    /// How many of its rows.
    pub rows: u64,
    /// Where the last of these rows ends.
    pub last: Place,
}

/// Why a load failed, and what is left of it.
///
/// ```
/// # use pantile::{MediumKind, Options, TableDef, Type};
/// use pantile_transfer::{Format, Load, LoadError};
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// let pets = db.create_table(TableDef::new("pets").column("id", Type::U32).primary_key(["id"]))?;
/// # db.run(|txn| txn.insert(&pets, &[1u32.into()]))?;
/// let failed: LoadError = Load::new(&db).rows("pets", Format::Csv, &b"id\n7\nten\n"[..]).unwrap_err();
/// assert_eq!(
///     failed.to_string(),
///     "line 3, column \"id\": u32 (a whole number from 0 to 4294967295) is expected, not \"ten\"; nothing was loaded"
/// );
/// # Ok::<(), pantile::Error>(())
/// ```
#[derive(Debug)]
pub struct LoadError {
    /// What went wrong.
    pub cause: Box<Error>,
    /// Rows that are committed and stay. Empty unless the load was in batches.
    pub committed: Vec<Committed>,
    /// Tables that still have a part of the rows, because the load could not remove them, with the
    /// reason.
    pub left: Vec<(String, pantile::Error)>,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)?;
        for Committed { table, rows, last } in &self.committed {
            write!(f, "; {rows} rows of table {table:?}, up to {last}, are committed and stay")?;
        }
        for (table, error) in &self.left {
            write!(f, "; table {table:?} has a part of the rows and could not be removed: {error}")?;
        }
        if matches!(&*self.cause, Error::Database(pantile::Error::MediumFailed { .. })) {
            return Ok(()); // It says itself that it is not known.
        }
        if self.committed.is_empty() && self.left.is_empty() {
            return f.write_str("; nothing was loaded");
        }
        f.write_str("; nothing else was loaded")
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.cause.as_ref())
    }
}
