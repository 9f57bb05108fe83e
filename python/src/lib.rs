//! The compiled half of Pantile for Python; `pantile/__init__.py` is the other one.
//!
//! Each call that reads or writes runs without the interpreter's lock, on values that Rust owns.

mod arrow;
mod database;
mod definition;
mod error;
mod insight;
mod migrations;
mod savepoint;
mod scan;
mod text;
mod transaction;
mod value;

use pyo3::prelude::*;

/// Databases, tables, transactions and scans, and what can go wrong with them.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<database::Database>()?;
    module.add_class::<definition::Table>()?;
    module.add_class::<transaction::Transaction>()?;
    module.add_class::<savepoint::Savepoint>()?;
    module.add_class::<scan::Scan>()?;
    module.add_class::<arrow::Stream>()?;
    error::add_to(module)
}
