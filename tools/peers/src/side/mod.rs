//! Five stores side by side: what an application does with a small and a large
//! database.

mod floor;
mod measure;
mod on_fjall;
mod on_lmdb;
mod on_pantile;
mod on_redb;
#[cfg(feature = "rocksdb")]
mod on_rocksdb;
mod on_sqlite;
mod store;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pantile_bench::machine;
use pantile_bench::memory::Failure;

use store::Peer;

/// What is measured, and of which stores.
#[derive(Args)]
pub struct Arguments {
    /// Rows; each has a key, an owner and 100 bytes that cannot be compressed.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1000..))]
    rows: u64,
    /// Seconds of a measurement that has no end of its own.
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    seconds: f64,
    /// Measurements of each store; the stores take turns, and medians are printed.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// The stores, separated by commas; `floor` is what memory accesses alone take.
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "pantile,redb,lmdb,fjall,rocksdb,sqlite,floor"
    )]
    stores: Vec<String>,
    /// Measure only what has this in its name.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Write all samples, the settings, the commit and the machine to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Directory for the databases, on the device that is to be measured. They are removed
    /// afterwards [default: the directory for temporary files].
    #[arg(long, value_name = "PATH")]
    dir: Option<PathBuf>,
}

const ALL: &[&dyn Peer] = &[
    &on_pantile::OnPantile,
    &on_redb::OnRedb,
    &on_lmdb::OnLmdb,
    &on_fjall::OnFjall,
    #[cfg(feature = "rocksdb")]
    &on_rocksdb::OnRocksdb,
    &on_sqlite::OnSqlite,
    &floor::Floor,
];

/// Measures and prints a table.
pub fn compare(arguments: &Arguments) -> Result<(), Failure> {
    let is_wanted =
        |peer: &&dyn Peer| arguments.stores.iter().any(|name| name.eq_ignore_ascii_case(peer.name()));
    let peers: Vec<_> = ALL.iter().copied().filter(is_wanted).collect();
    let time = Duration::from_secs_f64(arguments.seconds);
    let load = measure::Load { rows: arguments.rows, time, only: &arguments.only };
    let mut figures = vec![Vec::new(); peers.len()];
    for round in 0..arguments.rounds {
        for (peer, figures) in peers.iter().zip(&mut figures) {
            eprintln!("round {} of {}: {}", round + 1, arguments.rounds, peer.name());
            let dir = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
            let place = tempfile::Builder::new().prefix("pantile-peers-").tempdir_in(dir)?;
            figures.push(measure::measure(*peer, place.path(), &load, round)?);
        }
    }
    let names: Vec<_> = peers.iter().map(|peer| peer.name()).collect();
    let (floor, stores): (Vec<_>, Vec<_>) =
        names.into_iter().zip(figures).partition(|(name, _)| *name == floor::NAME);
    print!("{}", table::table(&stores, floor.first().map(|(_, rounds)| rounds)));
    if let Some(path) = &arguments.record {
        let stores = stores.iter().chain(&floor);
        std::fs::write(path, serde_json::to_string_pretty(&record(arguments, stores))?)?;
    }
    Ok(())
}

/// Everything that was measured, and on what.
fn record<'r>(arguments: &Arguments, stores: impl Iterator<Item = &'r Measured>) -> serde_json::Value {
    let of_store = |(name, rounds): &Measured| {
        let figures = |round: &Vec<measure::Figure>| -> serde_json::Value {
            round
                .iter()
                .map(|figure| (figure.what.to_owned(), serde_json::Value::from(figure.value)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        ((*name).to_owned(), rounds.iter().map(figures).collect())
    };
    serde_json::json!({
        "commit": machine::commit(),
        "machine": machine::describe(),
        "rows": arguments.rows,
        "seconds": arguments.seconds,
        "rounds": stores.map(of_store).collect::<serde_json::Map<String, serde_json::Value>>(),
    })
}

/// A store and the figures of its rounds.
type Measured = (&'static str, Vec<Vec<measure::Figure>>);
