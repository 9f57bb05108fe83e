//! Errors of the engine as Python exceptions, each with the engine's message.

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
create_exception!(pantile, Misuse, Error, "A transaction used by two threads at once, or after a fork.");
create_exception!(pantile, InvalidValue, Error, "A value that its column does not take.");
create_exception!(pantile, InvalidSchema, Error, "A table, column or index that is not there, or differs.");

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
    ];
    py.get_type::<Error>().setattr("retryable", false)?;
    all.into_iter().try_for_each(|(name, class)| module.add(name, class))
}

/// The exception for an error of the engine.
pub fn raised(error: Engine) -> PyErr {
    let text = error.to_string();
    let raised = match error {
        Engine::Conflict { .. } => Conflict::new_err(text),
        Engine::DuplicateKey { .. } => DuplicateKey::new_err(text),
        Engine::AlreadyOpen { .. } | Engine::ReadersRefused { .. } => AlreadyOpen::new_err(text),
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
        | Engine::TableExists(_)
        | Engine::TableDropped(_)
        | Engine::UnknownIndex { .. }
        | Engine::IndexExists { .. }
        | Engine::UnknownColumn { .. }
        | Engine::ColumnDropped { .. }
        | Engine::DefinitionDiffers { .. }
        | Engine::InvalidDefinition(_) => InvalidSchema::new_err(text),
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

/// Fails in a process that was forked from the one that opened the database.
pub fn check_process(opened_by: u32) -> PyResult<()> {
    if std::process::id() == opened_by {
        return Ok(());
    }
    Err(Misuse::new_err(format!(
        "process {opened_by} opened the database, and this one was forked from it; nothing was changed; open the database in one process only, after the fork"
    )))
}
