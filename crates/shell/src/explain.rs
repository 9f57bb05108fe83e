//! Commands about the database itself.

use std::collections::HashMap;
use std::io::Write;

use pantile::stats::TableSpace;
use pantile::{ColumnDef, Decimal, OwnedValue, Stats, Type};

use crate::error::Error;
use crate::print::{Mode, Printer};
use crate::session::Session;
use crate::words::Word;

pub fn run(session: &Session<'_>, verb: &str, words: &[Word], out: &mut dyn Write) -> Result<(), Error> {
    match (verb, words) {
        ("explain", [space]) if space.is("space") => explain_space(session, out),
        ("stats", []) => stats(session, out),
        ("transactions", []) => transactions(session, out),
        ("explain", _) => Err(Error::command("`explain space`")),
        _ => Err(Error::Command(format!("`{verb}` stands alone"))),
    }
}

fn stats(session: &Session<'_>, out: &mut dyn Write) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(&session.db.stats()).map_err(std::io::Error::from)?;
    Ok(writeln!(out, "{text}")?)
}

fn transactions(session: &Session<'_>, out: &mut dyn Write) -> Result<(), Error> {
    let running = session.db.transactions();
    for one in &running {
        let (held, freed) = (one.held_bytes, one.freed_bytes);
        writeln!(out, "{}; keeps {held} obsolete bytes, {freed} of them alone", one.transaction)?;
    }
    if running.is_empty() {
        writeln!(out, "no transaction is open")?;
    }
    Ok(())
}

fn explain_space(session: &Session<'_>, out: &mut dyn Write) -> Result<(), Error> {
    let number = |name: &str| ColumnDef::new(name, Type::U64);
    let columns = [
        ColumnDef::new("table", Type::String(1 << 10)),
        number("rows"),
        number("bytes"),
        number("obsolete_bytes"),
        number("blocks"),
        number("open_blocks"),
        ColumnDef::new("obsolete_share", Type::Decimal { precision: 5, scale: 2 }),
        ColumnDef::new("why", Type::String(1 << 10)),
    ];
    let held = session.db.transactions().iter().map(|one| one.held_bytes).max().unwrap_or(0);
    let (tables, stats) = (session.db.space_by_table(), session.db.stats());
    if tables.is_empty() && stats.live_bytes > 0 {
        return Err(Error::command(
            "`top` in another terminal: what tables take is known only to the process that writes",
        ));
    }
    let parts = session.db.parts_by_table().into_iter().map(|parts| (parts.table, parts.rows));
    let rows: HashMap<String, u64> = parts.collect();
    let mut printer = Printer::new(out, &columns, session.mode);
    for space in tables {
        let rows = rows.get(&space.table).copied().unwrap_or_default();
        printer.row(&line(&space, rows, held))?;
    }
    printer.finish()?;
    // Programs get rows, and nothing between them.
    if session.mode == Mode::Table { total(&stats, out) } else { Ok(()) }
}

fn line(space: &TableSpace, rows: u64, held: u64) -> [OwnedValue; 8] {
    let number = OwnedValue::UInt;
    [
        OwnedValue::Str(space.table.clone()),
        number(rows),
        number(space.bytes),
        number(space.obsolete_bytes),
        number(space.blocks),
        number(space.open_blocks),
        OwnedValue::Decimal(share(space)),
        OwnedValue::Str(why(space, held).into()),
    ]
}

fn share(space: &TableSpace) -> Decimal {
    let hundredths = u128::from(space.obsolete_bytes) * 100 / u128::from(space.bytes.max(1));
    Decimal::new(hundredths as i128, 2)
}

/// What most of the space is taken for that live rows do not need.
fn why(space: &TableSpace, held: u64) -> &'static str {
    let in_open = space.bytes * space.open_blocks / space.blocks.max(1);
    if space.obsolete_bytes * 20 > space.bytes {
        if held > 0 { "open transactions may read old versions" } else { "old versions, not yet reclaimed" }
    } else if in_open * 2 > space.bytes {
        "blocks that are not full yet"
    } else {
        "compact"
    }
}

fn total(stats: &Stats, out: &mut dyn Write) -> Result<(), Error> {
    let Stats { medium_bytes, live_bytes, obsolete_bytes, unfilled_bytes, free_bytes, .. } = stats;
    let amplification = *medium_bytes as f64 / (*live_bytes).max(1) as f64;
    writeln!(
        out,
        "in all {medium_bytes} bytes: {live_bytes} live, {obsolete_bytes} obsolete, {unfilled_bytes} not yet filled, {free_bytes} free"
    )?;
    Ok(writeln!(out, "amplification {amplification:.1}: bytes taken for each live one")?)
}
