//! What TPC-C writes to flash when rows are appended and when they are updated in place, and what a simulated SSD
//! makes of it (SIAS, section III and table I). docs/flash.md says what the columns are.

use std::sync::atomic::AtomicBool;

use clap::Parser;
use pantile_bench::Result;
use pantile_flash::{Experiment, Layout, Outcome, SEED};

#[derive(Parser)]
#[command(about = "What TPC-C writes to flash, appended and in place, and what a simulated SSD makes of it")]
struct Arguments {
    /// Warehouses.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1000))]
    warehouses: u16,
    /// Transactions to measure, after loading.
    #[arg(long, default_value_t = 60_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    transactions: u64,
    /// Megabytes of the buffer pool of the store that updates in place, and of the system's cache for others.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pool: u64,
    /// Each commit waits for the device.
    #[arg(long)]
    synced: bool,
    /// The seed of data and transactions.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Names of collectors, and in-place.
    #[arg(long, value_delimiter = ',', default_value = "none,tb-collect,in-place")]
    layouts: Vec<Layout>,
}

fn main() -> Result<()> {
    let Arguments { warehouses, transactions, pool, synced, seed, layouts } = Arguments::parse();
    let experiment = Experiment { warehouses, transactions, pool, is_synced: synced, seed };
    println!(
        "layout       pages read/txn  written MB    requests  amplification  erased blocks  seconds, 1 request  32 requests"
    );
    for layout in layouts {
        let Outcome { writes, one, many, .. } = experiment.run(&layout, &AtomicBool::new(false))?;
        println!(
            "{:12} {:>14.2} {:>11.1} {writes:>11} {:>14.2} {:>14} {:>19.1} {:>12.1}",
            layout.to_string(),
            one.read_pages as f64 / transactions as f64,
            one.host_bytes() as f64 / 1e6,
            one.write_amplification(),
            one.erases,
            one.micros / 1e6,
            many.micros / 1e6,
        );
    }
    Ok(())
}
