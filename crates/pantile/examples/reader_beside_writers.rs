//! Readers beside a writer that runs for long.
//!
//! A reader sees everything that was acknowledged before it began, waits for nobody, and never
//! fails. The long writer commits at its first try, at a later timestamp than all readers that
//! began meanwhile.
//!
//! `cargo run -p pantile --example reader_beside_writers`

use std::time::{Duration, Instant};

use pantile::{Database, Options, Range, Result, Table, TableDef, Transaction, Type};

const ACCOUNTS: u64 = 1000;
const READERS: usize = 200;

fn add(txn: &mut Transaction, accounts: &Table, id: u64, by: i64) -> Result<()> {
    txn.modify(accounts, &[id.into()], |row| {
        let balance = row.get::<i64>(1)?;
        row.set(1, (balance + by).into())?;
        Ok(true)
    })?;
    Ok(())
}

/// The sum of all accounts, and how long it took.
fn report(db: &Database, accounts: &Table) -> Result<(i64, Duration)> {
    let began = Instant::now();
    let reader = db.begin_read()?;
    let balances = reader.scan(accounts, Range::all())?.map(|row| row?.get::<i64>(1));
    Ok((balances.sum::<Result<i64>>()?, began.elapsed()))
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let db = Options::new().open(dir.path())?;
    let definition = TableDef::new("accounts").column("id", Type::U64).column("balance", Type::I64);
    let accounts = db.create_table(definition.primary_key(["id"]))?;
    db.run(|txn| (0..ACCOUNTS).try_for_each(|id| txn.insert(&accounts, &[id.into(), 100i64.into()])))?;

    // A writer changes every tenth account, and stays open.
    let mut long = db.begin()?;
    (0..ACCOUNTS).step_by(10).try_for_each(|id| add(&mut long, &accounts, id, 1))?;

    let mut longest = Duration::ZERO;
    for n in 0..READERS as i64 {
        // What this thread has committed, its next reader sees.
        db.run(|txn| add(txn, &accounts, 5, 1))?;
        let (sum, took) = report(&db, &accounts)?;
        assert_eq!(sum, 100 * ACCOUNTS as i64 + n + 1);
        longest = longest.max(took);
    }
    println!("{READERS} readers scanned beside an open writer; the slowest took {longest:?}");

    let last = db.begin_read()?;
    assert!(last.get(&accounts, &[0u64.into()])?.is_some());
    let committed = long.commit()?;
    assert!(committed > last.timestamp());
    println!("the writer has committed, behind all of them");
    let (sum, _) = report(&db, &accounts)?;
    assert_eq!(sum, 100 * ACCOUNTS as i64 + READERS as i64 + ACCOUNTS as i64 / 10);
    Ok(())
}
