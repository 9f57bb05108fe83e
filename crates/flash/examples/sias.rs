//! What TPC-C writes to flash when rows are appended and when they are updated in place, and what a simulated SSD
//! makes of it (SIAS, section III and table I). docs/flash.md says what the columns are.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::Parser;
use pantile_bench::{Error, Result};
use pantile_flash::{Experiment, Layout, Outcome, PAGE_BYTES, SEED, SsdSettings};

mod arguments;

use arguments::{number, write_file};

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
    /// Share of the flash that the device keeps for itself, at most 0.9.
    #[arg(long, default_value_t = 0.2, value_parser = |text: &str| number(text, 0.0..=0.9))]
    over_provisioning: f64,
    /// Kilobytes of an erase unit, on each channel.
    #[arg(long, value_delimiter = ',', default_value = "256", value_parser = clap::value_parser!(u32).range(4..=1 << 20))]
    erase_units: Vec<u32>,
    /// Writes what the only layout asks the device for to this file, as text.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let Arguments { warehouses, transactions, pool, synced, seed, layouts, .. } = &arguments;
    if arguments.trace.is_some() && layouts.len() != 1 {
        return Err(Error::Setting("a trace is of one layout: add --layouts with one name".to_owned()));
    }
    let experiment = Experiment {
        warehouses: *warehouses,
        transactions: *transactions,
        pool: *pool,
        is_synced: *synced,
        seed: *seed,
    };
    println!(
        "layout       erase unit KB  pages read/txn  written MB    requests  amplification  erased blocks  seconds, 1 request  32 requests"
    );
    for layout in layouts {
        let requested = experiment.trace(layout, &AtomicBool::new(false))?;
        write_file(arguments.trace.as_deref(), |out| requested.write(out))?;
        for erase_unit in &arguments.erase_units {
            let Outcome { writes, one, many, .. } = requested.replay(SsdSettings {
                over_provisioning: arguments.over_provisioning,
                block_pages: erase_unit / (PAGE_BYTES >> 10) as u32,
                ..SsdSettings::default()
            });
            println!(
                "{:12} {erase_unit:>13} {:>15.2} {:>11.1} {writes:>11} {:>14.2} {:>14} {:>19.1} {:>12.1}",
                layout.to_string(),
                one.read_pages as f64 / *transactions as f64,
                one.host_bytes() as f64 / 1e6,
                one.write_amplification(),
                one.erases,
                one.micros / 1e6,
                many.micros / 1e6,
            );
        }
    }
    Ok(())
}
