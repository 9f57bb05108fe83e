//! Stores whose data is larger than memory. The measurement is that of `pantile
//! bench memory`; here redb, LMDB, fjall, RocksDB and SQLite take part in it.

mod on_fjall;
mod on_lmdb;
mod on_redb;
#[cfg(feature = "rocksdb")]
mod on_rocksdb;
mod on_sqlite;

use clap::Args;
use pantile_bench::memory::{self, Engine, Failure, OnPantile, Settings};

use on_fjall::OnFjall;
use on_lmdb::OnLmdb;
use on_redb::OnRedb;
#[cfg(feature = "rocksdb")]
use on_rocksdb::OnRocksdb;
use on_sqlite::OnSqlite;

/// What is measured, and of which stores.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    settings: Settings,
    /// The stores, separated by commas.
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "pantile,redb,lmdb,fjall,rocksdb,sqlite"
    )]
    stores: Vec<String>,
}

const ALL: &[&dyn Engine] = &[
    &OnPantile::PLAIN,
    &OnPantile::CACHED,
    &OnRedb,
    &OnLmdb,
    &OnFjall,
    #[cfg(feature = "rocksdb")]
    &OnRocksdb,
    &OnSqlite,
];

/// What this process does if it is a worker of the measurement.
pub fn work() -> Result<(), Failure> {
    memory::worker(ALL)
}

/// Measures and prints a table, and the record as JSON.
pub fn compare(arguments: &Arguments) -> Result<(), Failure> {
    let is_wanted = |engine: &&dyn Engine| arguments.stores.iter().any(|name| name == engine.name());
    let engines: Vec<_> = ALL.iter().copied().filter(is_wanted).collect();
    let report = memory::compare(&arguments.settings, &engines, &|line| eprintln!("{line}"))?;
    print!("{}", report.table());
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
