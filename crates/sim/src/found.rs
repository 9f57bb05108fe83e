//! What a database holds, compared with what it must hold.

use std::sync::Arc;

use pantile::lab::{SimulatedTime, index_entries};
use pantile::{Database, Medium, Options, Range};
use pantile_testkit::cut::{CutKind, CutMedium, Image, Log};

use crate::client::{BY_V, KEYS, PAD, decode};
use crate::state::{State, TableState};

/// Bytes of a piece of a value out of line.
const PIECE: usize = 60_000;

/// Rows, pieces of values out of line, and definitions.
pub(crate) fn tuples(state: &State) -> u64 {
    let pieces = |(_, data): &(u64, Vec<u8>)| match data.len() {
        ..65_000 => 0,
        long => long.div_ceil(PIECE) as u64,
    };
    let of = |table: &TableState| 1 + table.rows.values().map(|row| 1 + pieces(row)).sum::<u64>();
    state.values().map(of).sum()
}

/// Compares the number of index entries with that of the rows.
pub(crate) fn compare_entries(db: &Database, state: &State) -> Result<(), String> {
    let indexed = state.values().filter(|table| table.is_indexed);
    let expected = tuples(state) + indexed.map(|table| table.rows.len() as u64).sum::<u64>();
    match index_entries(db).map_err(|error| format!("the entries cannot be counted: {error}"))? {
        entries if entries == expected => Ok(()),
        entries => {
            let stale = db.stats().stale_entries;
            Err(format!(
                "the indexes have {entries} entries, {stale} to be cleaned; the rows need {expected}"
            ))
        }
    }
}

/// A database that was opened.
pub(crate) struct Opened {
    pub state: State,
    /// What opening did to the medium.
    pub log: Log,
    pub was_closed: bool,
}

/// Opens what a cut has left, or a closed database.
///
/// # Errors
/// A description, if it cannot be opened or contradicts itself.
pub(crate) fn found(image: &Image, kind: CutKind, floor: u64, is_closed: bool) -> Result<Opened, String> {
    let medium = CutMedium::new(image, kind, None);
    let time = SimulatedTime::default();
    let options = Options::new()
        .on_medium(Arc::clone(&medium) as Arc<dyn Medium>)
        .recovery_threads(1)
        .streams(1)
        .verify_reads(true)
        .simulated_time(time);
    let db = options.open("simulated").map_err(|error| format!("the database cannot be opened: {error}"))?;
    let log = medium.take_log();
    let state = read_all(&db).map_err(|error| format!("the database cannot be read: {error}"))??;
    check_space(&db, &state, is_closed)?;
    let next = db.begin().map_err(|error| error.to_string())?.timestamp().get();
    if next <= floor {
        return Err(format!("the clock went back from {floor} to {next}"));
    }
    Ok(Opened { state, log, was_closed: db.recovery().was_closed })
}

/// What a recovered database holds besides its rows, and what it has found.
fn check_space(db: &Database, state: &State, is_closed: bool) -> Result<(), String> {
    let (recovery, counted, expected) = (db.recovery(), db.stats().tuples, tuples(state));
    if is_closed && (!recovery.was_closed || recovery.discarded > 0) {
        return Err(format!("the database was closed, and {recovery:?}"));
    }
    if counted != expected {
        return Err(format!("there are {counted} tuples, and the rows have {expected}"));
    }
    compare_entries(db, state)?;
    // Each block that is kept holds something that was committed.
    let tables = db.space_by_table();
    let blocks: u64 = tables.iter().map(|of| of.blocks).sum();
    let contents = match recovery.from_image {
        true => tables.iter().map(|of| of.contents).sum(),
        false => recovery.contents_scanned - recovery.discarded,
    };
    if !recovery.was_closed && blocks > contents {
        return Err(format!("{blocks} blocks are in use, for {contents} contents"));
    }
    Ok(())
}

/// All rows, by the primary key and by the index.
fn read_all(db: &Database) -> pantile::Result<Result<State, String>> {
    let txn = db.begin_read()?;
    let mut state = State::new();
    for name in db.tables() {
        let table = db.table(&name)?;
        // Before the indexes have been used.
        let early = txn.get(&table, &[(KEYS / 2).into()])?.map(|row| decode(&row)).transpose()?;
        let rows: std::collections::BTreeMap<_, _> =
            txn.scan(&table, Range::all())?.map(|row| decode(&row?)).collect::<pantile::Result<_>>()?;
        if table.column(PAD.0).is_ok() {
            for row in txn.scan(&table, Range::all())? {
                let pad: u64 = row?.get(PAD.0)?;
                if pad != PAD.1 {
                    return Ok(Err(format!("a row of {name} has {pad} in its new column")));
                }
            }
        }
        let index = table.index(BY_V).ok();
        if let Some(index) = &index {
            let found: std::collections::BTreeMap<_, _> = txn
                .scan_index(index, Range::all())?
                .map(|row| decode(&row?))
                .collect::<pantile::Result<_>>()?;
            if found != rows {
                return Ok(Err(format!("the index of {name} has {found:?}, the table {rows:?}")));
            }
        }
        if early.map(|(_, row)| row).as_ref() != rows.get(&(KEYS / 2)) {
            return Ok(Err(format!("the first read of {name} differs from a scan")));
        }
        for key in 0..KEYS {
            let row = txn.get(&table, &[key.into()])?.map(|row| decode(&row)).transpose()?;
            if row.map(|(_, row)| row).as_ref() != rows.get(&key) {
                return Ok(Err(format!("a read of {name} {key} differs from a scan")));
            }
        }
        state.insert(name, TableState { rows, is_indexed: index.is_some() });
    }
    Ok(Ok(state))
}
