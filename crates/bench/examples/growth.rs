//! What operations cost as a database gets more tables, a table more indexes, or more transactions stay
//! open, in memory, with one client. `scripts/scale` prints it as tables.
//!
//! Arguments: `tables`, `indexes` or `writers`, how many, the seconds of each measurement (1).
//! Prints microseconds, and what else the case says, on one line.

use std::time::{Duration, Instant};

use pantile::{Database, IndexDef, MediumKind, Options, Result, Table, TableDef, Transaction, Type, Value};
use pantile_testkit::Random;

/// Rows in all tables together.
const ROWS: u64 = 1_000_000;

/// Rows of the table that has indexes: with eight of them there are more entries than in a table of a million rows.
const INDEXED_ROWS: u64 = 200_000;

/// Columns that can have an index.
const COLUMNS: usize = 8;

/// Operations of a transaction.
const OPS: u64 = 20;

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let number = |n: usize| arguments.get(n).and_then(|number| number.parse::<u64>().ok());
    let count = number(1).unwrap_or(1);
    let time = Duration::from_secs(number(2).unwrap_or(1));
    match arguments.first().map(String::as_str) {
        Some("tables") => tables(count, time),
        Some("indexes") => indexes(count as usize, time),
        Some("writers") => writers(count, time),
        _ => {
            Err(pantile::Error::InvalidOption("usage: growth tables|indexes|writers COUNT [SECONDS]".into()))
        }
    }
}

fn open() -> Result<Database> {
    Options::new().medium(MediumKind::Dram).open("unused")
}

/// Microseconds of each of `of` operations that a call of `run` is, called for this long.
fn each(time: Duration, of: u64, mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let (began, mut calls) = (Instant::now(), 0);
    while began.elapsed() < time {
        run()?;
        calls += 1;
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / (calls * of) as f64)
}

/// A table of keys and fields of 16 bytes.
fn make(db: &Database, name: &str) -> Result<Table> {
    let def = TableDef::new(name).column("id", Type::U64).column("field", Type::FixedBytes(16));
    db.create_table(def.primary_key(["id"]))
}

/// Gives a table the rows with the keys below this one.
fn fill(db: &Database, table: &Table, rows: u64) -> Result<()> {
    let row = |id: u64| [id.into(), Value::Bytes(&[1; 16])];
    for first in (0..rows).step_by(10_000) {
        db.run(|txn| txn.insert_many(table, (first..rows.min(first + 10_000)).map(row)))?;
    }
    Ok(())
}

/// Reads and updates of rows in random tables.
fn work(db: &Database, tables: &[Table], rows: u64, random: &mut Random) -> Result<()> {
    let mut txn = db.begin()?;
    for op in 0..OPS {
        let table = &tables[random.below(tables.len() as u64) as usize];
        let key = [Value::UInt(random.below(rows))];
        match op % 2 {
            0 => _ = txn.get(table, &key)?,
            _ => _ = txn.update(table, &key, &[(1usize, Value::Bytes(&[2; 16]))])?,
        }
    }
    txn.commit().map(drop)
}

/// Microseconds of an operation and of a table that is created, megabytes of DRAM and of the medium in all.
fn tables(count: u64, time: Duration) -> Result<()> {
    let db = open()?;
    let rows = ROWS / count;
    let mut tables = Vec::new();
    let began = Instant::now();
    for n in 0..count {
        tables.push(make(&db, &format!("table {n}"))?);
    }
    let create = began.elapsed().as_secs_f64() * 1e6 / count as f64;
    tables.iter().try_for_each(|table| fill(&db, table, rows))?;
    let mut random = Random::new(1, 0);
    each(time, OPS, || work(&db, &tables, rows, &mut random))?;
    let op = each(time, OPS, || work(&db, &tables, rows, &mut random))?;
    let stats = db.stats();
    println!(
        "{op:.2} {create:.1} {:.1} {:.1}",
        stats.dram_bytes as f64 / 1e6,
        stats.medium_bytes as f64 / 1e6
    );
    Ok(())
}

/// Microseconds of an insert, of an update of a column that no index has, of one that an index has if there is any, of a
/// delete; a transaction is twenty of the same.
fn indexes(count: usize, time: Duration) -> Result<()> {
    let db = open()?;
    let mut def = TableDef::new("rows").column("id", Type::U64).primary_key(["id"]);
    for column in 0..=COLUMNS {
        def = def.column(format!("c{column}"), Type::U64);
    }
    for column in 0..count.min(COLUMNS) {
        def = def.index(IndexDef::new(format!("i{column}"), [format!("c{column}")]));
    }
    let table = db.create_table(def)?;
    let mut random = Random::new(1, 0);
    let row = |id: u64, random: &mut Random| -> Vec<Value<'static>> {
        (0..COLUMNS + 2).map(|n| Value::UInt(if n == 0 { id } else { random.word() })).collect()
    };
    for first in (0..INDEXED_ROWS).step_by(1_000) {
        db.run(|txn| (first..first + 1_000).try_for_each(|id| txn.insert(&table, &row(id, &mut random))))?;
    }
    let mut next = INDEXED_ROWS;
    let insert = each(time, OPS, || {
        next += OPS;
        db.run(|txn| (next - OPS..next).try_for_each(|id| txn.insert(&table, &row(id, &mut random))))
    })?;
    let mut update = |column: usize| {
        each(time, OPS, || {
            let mut txn = db.begin()?;
            for _ in 0..OPS {
                let key = [Value::UInt(random.below(INDEXED_ROWS))];
                txn.update(&table, &key, &[(column, Value::UInt(random.word()))])?;
            }
            txn.commit().map(drop)
        })
    };
    let (other, indexed) = (update(COLUMNS + 1)?, update(1)?);
    // The last first, until time is up or none is left.
    let (began, mut last) = (Instant::now(), next);
    while last >= OPS && began.elapsed() < time {
        last -= OPS;
        db.run(|txn| (last..last + OPS).try_for_each(|id| txn.delete(&table, &[id.into()]).map(drop)))?;
    }
    let delete = began.elapsed().as_secs_f64() * 1e6 / (next - last) as f64;
    println!("{insert:.2} {other:.2} {indexed:.2} {delete:.2}");
    Ok(())
}

/// Microseconds of an operation beside transactions that have each written a row and stay open.
fn writers(count: u64, time: Duration) -> Result<()> {
    let db = open()?;
    let (busy, idle) = (make(&db, "busy")?, make(&db, "idle")?);
    fill(&db, &busy, ROWS)?;
    fill(&db, &idle, count)?;
    let mut open: Vec<Transaction> = Vec::new();
    for id in 0..count {
        let mut txn = db.begin()?;
        txn.update(&idle, &[id.into()], &[(1usize, Value::Bytes(&[3; 16]))])?;
        open.push(txn);
    }
    let mut random = Random::new(1, 0);
    let tables = [busy];
    each(time, OPS, || work(&db, &tables, ROWS, &mut random))?;
    let op = each(time, OPS, || work(&db, &tables, ROWS, &mut random))?;
    let stats = db.stats();
    println!("{op:.2} {:.1}", stats.medium_bytes as f64 / 1e6);
    open.into_iter().try_for_each(|txn| txn.commit().map(drop))
}
