//! Compares a database with what was acknowledged.

use std::collections::BTreeSet;

use pantile::stats::TableSpace;
use pantile::{Database, Range, Result};
use pantile_testkit::await_that;

use crate::history::{Extra, History, Is};
use crate::rows::{Rows, row_words};
use crate::workload::{EXTRA_INDEX, Tables, extra_seq};

/// The most problems of one kind that are reported one by one.
const TOLD: usize = 5;

/// Compares the database with the history, and records in the history what else
/// exists: a killed process may have committed what it could not acknowledge.
/// Returns the problems found, or nothing if all is well.
///
/// # Errors
/// What the engine returns when the database is read.
pub fn verify(db: &Database, history: &mut History) -> Result<Vec<String>> {
    let mut problems = history.broken.clone();
    let Some(workload) = history.workload else {
        return Ok(problems);
    };
    let tables = Tables::open(db)?;
    let mut lasts = Vec::new();
    for (client, &acknowledged) in (0..).zip(&history.lasts) {
        let last = tables.last_of(db, client)?;
        problems.extend(sequence_problem(client, last, acknowledged, history.lives));
        lasts.push(last);
    }
    // From here on, compare with what exists: if transactions are missing, are
    // they missing entirely?
    for (name, expected) in workload.rows(&lasts) {
        problems.extend(table_problems(db, name, &expected)?);
    }
    verify_extras(db, history, &lasts, &mut problems)?;
    problems.extend(space_problems(db)?);
    let next = db.begin()?.timestamp();
    if next <= history.highest {
        problems.push(format!("the clock went back from {} to {next}", history.highest));
    }
    history.lasts = lasts;
    history.lives = 0;
    Ok(problems)
}

fn sequence_problem(client: u64, last: u64, acknowledged: u64, lives: u64) -> Option<String> {
    if last < acknowledged {
        return Some(format!(
            "client {client}: the last {} of {acknowledged} acknowledged transactions are missing",
            acknowledged - last
        ));
    }
    (last > acknowledged + lives).then(|| {
        format!("client {client}: {last} transactions exist, but only {acknowledged} were acknowledged in {lives} lives")
    })
}

fn verify_extras(
    db: &Database,
    history: &mut History,
    lasts: &[u64],
    problems: &mut Vec<String>,
) -> Result<()> {
    let there: BTreeSet<String> = db.tables().into_iter().filter(|name| extra_seq(name).is_some()).collect();
    for (name, extra) in &history.extras {
        if extra.table == Is::There && !there.contains(name) {
            problems.push(format!("table {name} was created and is gone"));
        }
    }
    let known = std::mem::take(&mut history.extras);
    let workload = history.workload.expect("a life has reported its workload");
    for name in there {
        let indexed = db.table(&name)?.index(EXTRA_INDEX).is_ok();
        match known.get(&name) {
            None => problems.push(format!("table {name} was dropped or never created, but exists")),
            Some(extra) if !extra.index.agrees(indexed) => {
                let what = if indexed { "was dropped, but exists" } else { "was created and is gone" };
                problems.push(format!("the index of {name} {what}"));
            }
            Some(_) => {}
        }
        problems.extend(table_problems(db, &name, &workload.extra_rows(&name, lasts))?);
        let index = if indexed { Is::There } else { Is::Absent };
        history.extras.insert(name, Extra { table: Is::There, index });
    }
    Ok(())
}

/// Compares a table and each of its indexes with the rows that it must contain.
fn table_problems(db: &Database, name: &str, expected: &Rows) -> Result<Vec<String>> {
    let table = db.table(name)?;
    let txn = db.begin_read()?;
    let scan = txn.scan(&table, Range::all())?;
    let rows: Vec<_> = scan.map(|row| row_words(&row?)).collect::<Result<_>>()?;
    let mut problems = differences(&format!("table {name}"), &rows, expected);
    let there: Rows = rows.into_iter().collect();
    for def in &table.definition().indexes {
        let index = table.index(&def.name)?;
        let scan = txn.scan_index(&index, Range::all())?;
        let found: Vec<_> = scan.map(|row| row_words(&row?)).collect::<Result<_>>()?;
        problems.extend(differences(&format!("index {} of {name}", def.name), &found, &there));
    }
    Ok(problems)
}

fn differences(place: &str, found: &[Vec<String>], expected: &Rows) -> Vec<String> {
    let there: Rows = found.iter().cloned().collect();
    let missing = expected.difference(&there).map(|row| format!("{place}: {} is missing", row.join(" ")));
    let extra = there.difference(expected).map(|row| format!("{place}: {} must not exist", row.join(" ")));
    let mut problems: Vec<String> = missing.take(TOLD).chain(extra.take(TOLD)).collect();
    let (missing, extra) = (expected.difference(&there).count(), there.difference(expected).count());
    if missing > TOLD || extra > TOLD {
        problems.push(format!("{place}: {missing} rows are missing, {extra} must not exist"));
    }
    if there.len() < found.len() {
        problems.push(format!("{place}: {} rows appear twice", found.len() - there.len()));
    }
    problems
}

/// The collector may be moving rows: one may be looked for in its new block too
/// early and in its old one too late. Two looks that agree are whole.
fn settled_space(db: &Database) -> Vec<TableSpace> {
    let mut last = db.space_by_table();
    await_that("space settles", || {
        let before = std::mem::replace(&mut last, db.space_by_table());
        before == last
    });
    last
}

/// Whether the accounting of space has room for the rows that exist.
fn space_problems(db: &Database) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let spaces = settled_space(db);
    for name in db.tables() {
        let txn = db.begin_read()?;
        let rows = txn.scan(&db.table(&name)?, Range::all())?.count() as u64;
        let (contents, obsolete) =
            spaces.iter().filter(|space| space.table == name).fold((0, 0), |(contents, obsolete), space| {
                (contents + space.contents, obsolete + space.obsolete)
            });
        if contents < obsolete + rows {
            problems.push(format!(
                "space of {name}: {contents} contents, {obsolete} of them obsolete, for {rows} rows"
            ));
        }
    }
    Ok(problems)
}

#[cfg(test)]
#[path = "verify_test.rs"]
mod tests;
