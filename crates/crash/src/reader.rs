//! A transaction that now and then stays open beside the clients, and checks
//! that nothing it has read changes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pantile::lab::Protocol;
use pantile::{ConflictPolicy, Database, Error as EngineError, Isolation, Transaction, TransactionOptions};
use pantile_testkit::Random;

use crate::error::{Error, Result};
use crate::workload::Tables;

/// What a reader has seen.
type Seen = (Vec<i64>, Vec<String>);

/// Reads until `stop` is raised.
///
/// # Errors
/// [`Error::Broken`] if a transaction saw two states, or one that never
/// existed.
pub fn read_for_long(
    db: &Database,
    tables: &Tables,
    protocol: Option<Protocol>,
    seed: u64,
    stop: &AtomicBool,
) -> Result<()> {
    let mut random = Random::new(seed, 0x1046);
    let kinds = [
        TransactionOptions::new().safe_snapshot(),
        TransactionOptions::new().read_only(true).isolation(Isolation::Snapshot),
        TransactionOptions::new().read_only(true).conflict(ConflictPolicy::Abort),
    ];
    // Under a protocol, what a transaction reads need not be one state before it commits.
    let kinds = match protocol {
        None => &kinds[..],
        Some(protocol) if protocol.orders_by_timestamp() => &kinds[..1],
        Some(_) => return Ok(()),
    };
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_micros(random.below(30_000)));
        let txn = db.begin_with(kinds[random.below(kinds.len() as u64) as usize])?;
        match read_twice(tables, &txn, Duration::from_micros(random.below(60_000))) {
            Err(Error::Engine(EngineError::Conflict { .. })) => {}
            outcome => outcome?,
        }
    }
    Ok(())
}

fn read_twice(tables: &Tables, txn: &Transaction, between: Duration) -> Result<()> {
    let seen = read(tables, txn)?;
    thread::sleep(between);
    let again = read(tables, txn)?;
    if seen != again {
        return Err(Error::Broken(format!("transaction {txn:?} saw two states: {seen:?} and {again:?}")));
    }
    let sum: i64 = seen.0.iter().sum();
    if sum != 0 {
        return Err(Error::Broken(format!(
            "transaction {txn:?} saw balances that add up to {sum}: {:?}",
            seen.0
        )));
    }
    Ok(())
}

fn read(tables: &Tables, txn: &Transaction) -> Result<Seen> {
    Ok((tables.balances(txn)?, tables.tags(txn)?))
}
