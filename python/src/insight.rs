//! What a database counts, and what its transactions hold back, as dicts.

use std::collections::HashSet;
use std::sync::Mutex;

use pantile::Stats;
use pantile::stats::{RunningTransaction, TableSpace};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::InvalidValue;

/// Texts that are kept as long as the process runs.
type Kept = Mutex<Option<HashSet<&'static str>>>;

/// Names of transactions.
static NAMES: Kept = Mutex::new(None);
/// Lines of programs that have begun transactions without a name.
static PLACES: Kept = Mutex::new(None);

/// More names than that are no names of kinds of transactions.
const MOST_NAMES: usize = 1000;

/// The text, kept for good; none if there are too many already.
fn keep(text: &str, all: &Kept) -> Option<&'static str> {
    let mut all = all.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let all = all.get_or_insert_default();
    if let Some(kept) = all.get(text) {
        return Some(kept);
    }
    (all.len() < MOST_NAMES).then(|| {
        let text = Box::leak(text.into());
        all.insert(text);
        &*text
    })
}

/// The name of a transaction. A name is for all transactions of a kind, so there are few.
pub fn name(name: &str) -> PyResult<&'static str> {
    keep(name, &NAMES).ok_or_else(|| InvalidValue::new_err(format!(
        "there are {MOST_NAMES} names of transactions already, and {name:?} would be another; nothing has begun; give transactions of one kind one name"
    )))
}

/// The line that has begun a transaction, in the place of a name. A program that is made while it runs may have any
/// number of lines, and the later ones go without.
pub fn place(line: &str) -> Option<&'static str> {
    keep(line, &PLACES)
}

fn dict<'py>(py: Python<'py>, counts: &[(&str, u64)]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    counts.iter().try_for_each(|(name, count)| dict.set_item(name, count))?;
    Ok(dict)
}

/// Counts of a database.
pub fn stats<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let counts = [
        ("commits", stats.commits),
        ("aborts", stats.aborts),
        ("running", stats.running),
        ("pin_warnings", stats.pin_warnings),
        ("pin_ends", stats.pin_ends),
        ("rows", stats.tuples),
        ("medium_bytes", stats.medium_bytes),
        ("live_bytes", stats.live_bytes),
        ("obsolete_bytes", stats.obsolete_bytes),
        ("free_bytes", stats.free_bytes),
        ("dram_bytes", stats.dram_bytes),
    ];
    dict(py, &counts)
}

/// A transaction that has not ended.
pub fn transaction<'py>(py: Python<'py>, running: &RunningTransaction) -> PyResult<Bound<'py, PyDict>> {
    let counts = [
        ("held_bytes", running.held_bytes),
        ("freed_bytes", running.freed_bytes),
        ("held_dram_bytes", running.held_dram_bytes),
        ("buffer_bytes", running.buffer_bytes),
    ];
    let (dict, open) = (dict(py, &counts)?, &running.transaction);
    dict.set_item("id", open.id.map(|id| id.get()))?;
    dict.set_item("name", open.name)?;
    dict.set_item("age", open.age.as_secs_f64())?;
    dict.set_item("read_only", open.read_only)?;
    dict.set_item("thread", open.thread.as_deref())?;
    dict.set_item("ended", open.ended.map(|by| by.to_string()))?;
    let tables = PyDict::new(py);
    running.tables.iter().try_for_each(|held| tables.set_item(&held.table, held.bytes))?;
    dict.set_item("tables", tables)?;
    Ok(dict)
}

/// The space of tables by their names.
pub fn space<'py>(py: Python<'py>, tables: &[TableSpace]) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for space in tables {
        let counts = [
            ("bytes", space.bytes),
            ("obsolete_bytes", space.obsolete_bytes),
            ("contents", space.contents),
            ("obsolete", space.obsolete),
        ];
        all.set_item(&space.table, dict(py, &counts)?)?;
    }
    Ok(all)
}
