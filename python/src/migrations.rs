//! Migrations: steps that Python has put together, made by the engine.

use std::error::Error as StdError;
use std::fmt;
use std::mem;

use pantile::{Conflict, Error as Engine, Migration};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::database::{Database, Step as ColumnStep, table_change};
use crate::definition::{ColumnParts, IndexParts, index_def, table_def};
use crate::error::{Error, raised};
use crate::transaction::Transaction;

/// Number, name and steps.
pub type MigrationParts<'py> = (u64, String, Vec<StepParts<'py>>);
/// What to do, and with what.
type StepParts<'py> = (String, Bound<'py, PyAny>);
/// Name, columns, primary key and indexes of a table.
type TableParts<'py> = (String, Vec<ColumnParts<'py>>, Vec<String>, Vec<IndexParts>);
/// Name of a table, columns to add, and other changes.
type AlterParts<'py> = (String, Vec<ColumnParts<'py>>, Vec<ColumnStep<'py>>);

/// The engine's migrations for those of Python.
pub fn migrations(db: &Py<Database>, parts: Vec<MigrationParts<'_>>) -> PyResult<pantile::Migrations> {
    parts.into_iter().try_fold(pantile::Migrations::new(), |all, (number, name, steps)| {
        let migration =
            steps.into_iter().try_fold(Migration::new(number, name), |to, step| add(db, to, step))?;
        Ok(all.then(migration))
    })
}

fn add(db: &Py<Database>, to: Migration, (what, with): StepParts<'_>) -> PyResult<Migration> {
    Ok(match what.as_str() {
        "create_table" => {
            let (name, columns, primary_key, indexes): TableParts<'_> = with.extract()?;
            to.create_table(table_def(name, columns, primary_key, indexes)?)
        }
        "alter_table" => {
            let (table, columns, steps): AlterParts<'_> = with.extract()?;
            to.alter_table(table, table_change(columns, steps)?)
        }
        "drop_table" => to.drop_table(with.extract::<String>()?),
        "create_index" => {
            let (table, index): (String, IndexParts) = with.extract()?;
            to.create_index(table, index_def(index))
        }
        "drop_index" => {
            let (table, index): (String, String) = with.extract()?;
            to.drop_index(table, index)
        }
        _ => {
            let (db, body) = (db.clone_ref(with.py()), with.unbind());
            to.run(move |engine, txn| run(&db, &body, engine, txn))
        }
    })
}

/// Lends the step's transaction to a function in Python. What it changed commits
/// with the note of the step.
fn run(
    db: &Py<Database>,
    body: &Py<PyAny>,
    engine: &pantile::Database,
    txn: &mut pantile::Transaction,
) -> Result<(), Box<dyn StdError + Send + Sync>> {
    // An idle one takes its place meanwhile.
    let lent = Transaction::lent(mem::replace(txn, engine.begin_read()?));
    let (taken, outcome) = Python::attach(|py| {
        let lent = Bound::new(py, lent)?;
        let outcome = body.call1(py, (db, &lent));
        let lent = lent.unbind();
        Ok::<_, PyErr>((py.detach(|| lent.get().take_back()), outcome.map(drop)))
    })
    .map_err(Raised::from)?;
    *txn = taken.ok_or(Engine::Closed)?;
    Ok(outcome.map_err(Raised::from)?)
}

/// What a function in Python raised, as the engine passes it on.
#[derive(Debug)]
struct Raised {
    error: PyErr,
    /// Stands for the conflict that was raised, so that the engine runs the step again.
    conflict: Option<Engine>,
}

impl From<PyErr> for Raised {
    fn from(error: PyErr) -> Self {
        let is_retryable = Python::attach(|py| {
            let flag = error.value(py).getattr("retryable");
            error.is_instance_of::<Error>(py) && flag.is_ok_and(|flag| flag.is_truthy().unwrap_or(false))
        });
        let conflict = Engine::Conflict { conflict: Conflict::ReadChanged, table: String::new() };
        Self { error, conflict: is_retryable.then_some(conflict) }
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl StdError for Raised {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.conflict.as_ref().map(|conflict| conflict as _)
    }
}

/// The exception for migrations that failed. Its cause is what a step raised. What is
/// no error, as a Ctrl-C, stays itself.
pub fn failed(py: Python<'_>, error: Engine) -> PyErr {
    let cause = match &error {
        Engine::MigrationFailed { error, .. } => error.downcast_ref::<Raised>(),
        _ => None,
    };
    let cause = cause.map(|raised| raised.error.clone_ref(py));
    match cause {
        Some(cause) if !cause.is_instance_of::<PyException>(py) => cause,
        cause => {
            let raised = raised(error);
            raised.set_cause(py, cause);
            raised
        }
    }
}
