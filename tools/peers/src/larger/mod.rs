//! Stores whose data is larger than memory. The measurement is that of `pantile
//! bench memory`; here redb and fjall take part in it.

mod on_fjall;
mod on_redb;

use clap::Args;
use pantile_bench::memory::{self, Engine, Failure, OnPantile, Settings};

use on_fjall::OnFjall;
use on_redb::OnRedb;

/// What is measured, and of which stores.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    settings: Settings,
    /// The stores, separated by commas.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "pantile,redb,fjall")]
    stores: Vec<String>,
}

const ALL: [&dyn Engine; 3] = [&OnPantile, &OnRedb, &OnFjall];

/// What this process does if it is a worker of the measurement.
pub fn work() -> Result<(), Failure> {
    memory::worker(&ALL)
}

/// Measures and prints a table, and the record as JSON.
pub fn compare(arguments: &Arguments) -> Result<(), Failure> {
    let is_wanted = |engine: &&dyn Engine| arguments.stores.iter().any(|name| name == engine.name());
    let engines: Vec<_> = ALL.into_iter().filter(is_wanted).collect();
    let report = memory::compare(&arguments.settings, &engines, &|line| eprintln!("{line}"))?;
    print!("{}", report.table());
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
