//! Five stores side by side: what an application does with a small and a large
//! database.

mod measure;
mod on_fjall;
mod on_lmdb;
mod on_pantile;
mod on_redb;
mod on_sqlite;
mod store;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
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
    /// The stores, separated by commas.
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "pantile,redb,lmdb,fjall,sqlite"
    )]
    stores: Vec<String>,
    /// Measure only what has this in its name.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Directory for the databases, on the device that is to be measured. They are removed
    /// afterwards [default: the directory for temporary files].
    #[arg(long, value_name = "PATH")]
    dir: Option<PathBuf>,
}

const ALL: [&dyn Peer; 5] =
    [&on_pantile::OnPantile, &on_redb::OnRedb, &on_lmdb::OnLmdb, &on_fjall::OnFjall, &on_sqlite::OnSqlite];

/// Measures and prints a table.
pub fn compare(arguments: &Arguments) -> Result<(), Failure> {
    let is_wanted =
        |peer: &&dyn Peer| arguments.stores.iter().any(|name| name.eq_ignore_ascii_case(peer.name()));
    let peers: Vec<_> = ALL.into_iter().filter(is_wanted).collect();
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
    print!("{}", table::table(&names, &figures));
    Ok(())
}
