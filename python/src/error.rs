//! Errors of the engine as Python exceptions, each with the engine's message.

use std::fmt;

use pantile::Error as Engine;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    pantile,
    Error,
    PyException,
    "Whatever goes wrong. `retryable`: run the transaction again."
);
create_exception!(pantile, Conflict, Error, "Another transaction is in the way.");
create_exception!(pantile, DuplicateKey, Error, "A row with this key exists.");
create_exception!(pantile, AlreadyOpen, Error, "The database is open, here or in another process.");
create_exception!(pantile, Damaged, Error, "Data on the medium is damaged, or the medium has failed.");
create_exception!(pantile, OutOfSpace, Error, "The medium or the memory limit is full.");
create_exception!(pantile, Closed, Error, "The database is closed, or the transaction has ended.");
create_exception!(
    pantile,
    Misuse,
    Error,
    "A call that cannot mean what it says, or a transaction used by two threads at once or after a fork."
);
create_exception!(pantile, InvalidValue, Error, "A value that its column does not take.");
create_exception!(pantile, InvalidSchema, Error, "A table, column or index that is not there, or differs.");
create_exception!(pantile, InvalidMigrations, Error, "The migrations do not fit each other or the database.");
create_exception!(
    pantile,
    MigrationFailed,
    Error,
    "A step of a migration has failed. Those before it are made; the cause says why."
);
create_exception!(pantile, TransactionEnded, Error, "The transaction was ended from outside.");
create_exception!(
    pantile,
    IncompleteBackup,
    Error,
    "A backup that was begun and not completed, or an incremental one: no database."
);
create_exception!(pantile, NotEmpty, Error, "The directory for a backup or a copy has something in it.");

/// Makes the exceptions known to Python.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let all = [
        ("Error", py.get_type::<Error>()),
        ("Conflict", py.get_type::<Conflict>()),
        ("DuplicateKey", py.get_type::<DuplicateKey>()),
        ("AlreadyOpen", py.get_type::<AlreadyOpen>()),
        ("Damaged", py.get_type::<Damaged>()),
        ("OutOfSpace", py.get_type::<OutOfSpace>()),
        ("Closed", py.get_type::<Closed>()),
        ("Misuse", py.get_type::<Misuse>()),
        ("InvalidValue", py.get_type::<InvalidValue>()),
        ("InvalidSchema", py.get_type::<InvalidSchema>()),
        ("InvalidMigrations", py.get_type::<InvalidMigrations>()),
        ("MigrationFailed", py.get_type::<MigrationFailed>()),
        ("TransactionEnded", py.get_type::<TransactionEnded>()),
        ("IncompleteBackup", py.get_type::<IncompleteBackup>()),
        ("NotEmpty", py.get_type::<NotEmpty>()),
    ];
    py.get_type::<Error>().setattr("retryable", false)?;
    all.into_iter().try_for_each(|(name, class)| module.add(name, class))
}

/// The exception for an error of the engine.
pub fn raised(error: Engine) -> PyErr {
    let text = error.to_string();
    raised_as(&error, text)
}

/// The exception for another error with this text, which an error of the engine may have caused.
pub fn raised_by(error: &(dyn std::error::Error + 'static), text: String) -> PyErr {
    match Engine::in_chain(error) {
        Some(engine) => raised_as(engine, text),
        None => Error::new_err(text),
    }
}

fn raised_as(error: &Engine, text: String) -> PyErr {
    let raised = match error {
        Engine::Conflict { .. } => Conflict::new_err(text),
        Engine::DuplicateKey { .. } => DuplicateKey::new_err(text),
        Engine::AlreadyOpen { .. } | Engine::ReadersRefused { .. } | Engine::BeingFilled(_) => {
            AlreadyOpen::new_err(text)
        }
        Engine::Damaged { .. } | Engine::MediumFailed { .. } | Engine::NotADatabase { .. } => {
            Damaged::new_err(text)
        }
        Engine::StorageFull { .. } | Engine::MemoryFull(_) => OutOfSpace::new_err(text),
        Engine::Closed => Closed::new_err(text),
        Engine::WrongType { .. }
        | Engine::OutOfRange { .. }
        | Engine::TooLong { .. }
        | Engine::NotNull { .. }
        | Engine::WrongArity { .. }
        | Engine::RowTooLarge { .. } => InvalidValue::new_err(text),
        Engine::UnknownTable(_)
        | Engine::ForeignTable(_)
        | Engine::TableExists(_)
        | Engine::TableDropped(_)
        | Engine::UnknownIndex { .. }
        | Engine::IndexExists { .. }
        | Engine::UnknownColumn { .. }
        | Engine::ColumnDropped { .. }
        | Engine::DefinitionDiffers { .. }
        | Engine::InvalidDefinition(_) => InvalidSchema::new_err(text),
        Engine::InvalidMigrations(_) => InvalidMigrations::new_err(text),
        Engine::MigrationFailed { .. } => MigrationFailed::new_err(text),
        Engine::TransactionEnded { .. } => TransactionEnded::new_err(text),
        Engine::IncompleteBackup(_) | Engine::IncrementalBackup(_) => IncompleteBackup::new_err(text),
        Engine::NotEmpty(_) => NotEmpty::new_err(text),
        _ => Error::new_err(text),
    };
    mark(raised, error.is_retryable())
}

fn mark(raised: PyErr, retryable: bool) -> PyErr {
    Python::attach(|py| match raised.value(py).setattr("retryable", retryable) {
        Ok(()) => raised,
        Err(failed) => failed,
    })
}

/// Why a call did nothing, before Python is told.
pub enum Refusal {
    Misuse(String),
    Closed(&'static str),
    Engine(Engine),
    /// What a handler of signals has raised.
    Signal(PyErr),
}

impl From<Engine> for Refusal {
    fn from(error: Engine) -> Self {
        Self::Engine(error)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misuse(text) => f.write_str(text),
            Self::Closed(text) => f.write_str(text),
            Self::Engine(error) => error.fmt(f),
            Self::Signal(raised) => raised.fmt(f),
        }
    }
}

impl From<Refusal> for PyErr {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Misuse(text) => Misuse::new_err(text),
            Refusal::Closed(text) => Closed::new_err(text),
            Refusal::Engine(error) => raised(error),
            Refusal::Signal(raised) => raised,
        }
    }
}

/// Fails in a process that was forked from the one that opened the database.
pub fn check_process(opened_by: u32) -> Result<(), Refusal> {
    if std::process::id() == opened_by {
        return Ok(());
    }
    Err(Refusal::Misuse(format!(
        "process {opened_by} opened the database, and this one was forked from it; nothing was changed; open the database in one process only, after the fork"
    )))
}
