//! What opening takes: until the first row has been read, and until everything
//! can be used.
//!
//!     cargo run --release -p pantile-bench --example opening -- DIRECTORY 100000 1000000

use std::path::Path;
use std::time::{Duration, Instant};

use pantile::{Database, Durability, IndexDef, Options, Range, Result, Table, TableDef, Type};

/// Rows of a transaction that loads.
const BATCH: u64 = 10_000;
/// Openings of one database.
const TIMES: usize = 5;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().expect("a directory");
    let sizes = arguments.map(|rows| rows.parse().expect("a number of rows"));
    println!("rows, indexes: open, first row, a commit, everything (ms; the median of {TIMES}), close");
    for rows in sizes {
        for indexes in [0, 1] {
            let path = Path::new(&directory).join(format!("opening-{rows}-{indexes}"));
            if !path.exists() {
                load(&path, rows, indexes)?;
            }
            measure(&path, rows, indexes)?;
        }
    }
    Ok(())
}

fn options() -> Options {
    Options::new().durability(Durability::None)
}

/// Keys in an order that is not theirs.
fn key(n: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn load(path: &Path, rows: u64, indexes: usize) -> Result<()> {
    let db = options().open(path)?;
    let mut def = TableDef::new("rows")
        .column("id", Type::U64)
        .column("group", Type::U64)
        .column("data", Type::Bytes(100))
        .primary_key(["id"]);
    if indexes > 0 {
        def = def.index(IndexDef::new("by_group", ["group"]));
    }
    let table = db.create_table(def)?;
    for first in (0..rows).step_by(BATCH as usize) {
        db.run(|txn| {
            for n in first..(first + BATCH).min(rows) {
                txn.insert(&table, &[key(n).into(), (n % 1000).into(), (&[7u8; 84][..]).into()])?;
            }
            Ok(())
        })?;
    }
    let began = Instant::now();
    db.close()?;
    println!("loaded {rows} rows; closed in {:.1} ms", ms(began.elapsed()));
    Ok(())
}

fn measure(path: &Path, rows: u64, indexes: usize) -> Result<()> {
    let mut times: [Vec<Duration>; 5] = Default::default();
    for turn in 0..TIMES as u64 {
        let began = Instant::now();
        let db = options().open(path)?;
        times[0].push(began.elapsed());
        let table = db.table("rows")?;
        read(&db, &table, key(turn * 7 % rows))?;
        times[1].push(began.elapsed());
        db.run(|txn| {
            txn.upsert(&table, &[key(turn * 7 % rows).into(), (turn % 1000).into(), (&[8u8; 84][..]).into()])
        })?;
        times[2].push(began.elapsed());
        use_all(&db, &table, indexes)?;
        times[3].push(began.elapsed());
        let began = Instant::now();
        db.close()?;
        times[4].push(began.elapsed());
    }
    let [open, first, commit, all, close] = times.map(median);
    println!("{rows}, {indexes}: {open:.2}, {first:.2}, {commit:.2}, {all:.2}, close {close:.2}");
    Ok(())
}

fn read(db: &Database, table: &Table, key: u64) -> Result<()> {
    let txn = db.begin_read()?;
    assert!(txn.get(table, &[key.into()])?.is_some(), "a row that was loaded");
    Ok(())
}

/// Uses each index.
fn use_all(db: &Database, table: &Table, indexes: usize) -> Result<()> {
    let txn = db.begin_read()?;
    txn.scan(table, Range::all())?.next().transpose()?;
    if indexes > 0 {
        txn.scan_index(&table.index("by_group")?, Range::all())?.next().transpose()?;
    }
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    ms(times[times.len() / 2])
}
