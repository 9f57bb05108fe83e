//! Pantile beside other stores, where the data is larger than memory.
//!
//! The measurement is that of `pantile bench memory`; here redb and fjall take
//! part in it.

mod on_fjall;
mod on_redb;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;
use pantile_bench::memory::{self, Engine, OnPantile, Settings, WORKER};

use on_fjall::OnFjall;
use on_redb::OnRedb;

/// Measure Pantile, redb and fjall where their rows take more than the memory.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    settings: Settings,
    /// The stores, separated by commas.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "pantile,redb,fjall")]
    stores: Vec<String>,
}

const ALL: [&dyn Engine; 3] = [&OnPantile, &OnRedb, &OnFjall];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error + Send + Sync>> {
    if std::env::args().nth(1).is_some_and(|first| first == WORKER) {
        return memory::worker(&ALL);
    }
    let arguments = Arguments::parse();
    let is_wanted = |engine: &&dyn Engine| arguments.stores.iter().any(|name| name == engine.name());
    let engines: Vec<_> = ALL.into_iter().filter(is_wanted).collect();
    let report = memory::compare(&arguments.settings, &engines, &|line| eprintln!("{line}"))?;
    print!("{}", report.table());
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
