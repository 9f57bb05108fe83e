//! How long opening takes after a kill, for the engine and for a store with a redo log and a checkpoint (Zen+, figure 22).
//! docs/experiments.md says what is compared.

use std::sync::atomic::AtomicBool;

use clap::Parser;
use pantile_bench::Result;
use pantile_bench::settings::Medium;
use pantile_redo::{Experiment, Kind, SEED};

#[derive(Parser)]
#[command(about = "How long opening takes after a kill, for the engine and for a store with a redo log")]
struct Arguments {
    /// Megabytes of rows of 1 KB.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    megabytes: u64,
    /// Transactions of eight updates before the kill.
    #[arg(long, default_value_t = 4_000)]
    transactions: u64,
    /// Where the data is kept: dram, or an emulated memory.
    #[arg(long, default_value = "nvm:optane-40", value_parser = memory)]
    medium: Medium,
    /// The memory has this many times the bytes of DRAM; with 1, all rows of the store with a log are in DRAM.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    ratio: u64,
    /// The seed of the data and the transactions.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Openings of each, in turn.
    #[arg(long, default_value_t = 3, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    openings: usize,
    /// What is opened: tb-collect (the engine), redo-log.
    #[arg(long, value_delimiter = ',', default_value = "tb-collect,redo-log")]
    kinds: Vec<Kind>,
}

/// A medium of this name that outlives a database in this process.
fn memory(name: &str) -> std::result::Result<Medium, String> {
    match Medium::by_name(name)? {
        Medium::File | Medium::Dax { .. } => {
            Err("recovery is measured on dram and on emulated memory".to_owned())
        }
        memory => Ok(memory),
    }
}

fn main() -> Result<()> {
    let Arguments { megabytes, transactions, medium, ratio, seed, openings, kinds } = Arguments::parse();
    let experiment = Experiment { megabytes, transactions, ratio, seed };
    let stop = AtomicBool::new(false);
    let left: Vec<_> =
        kinds.iter().map(|kind| experiment.leave(*kind, medium, &stop)).collect::<Result<_>>()?;
    println!("what         MB read    seconds       GB/s");
    for _ in 0..openings {
        for (kind, left) in kinds.iter().zip(&left) {
            let opened = left.open()?;
            let megabytes = opened.bytes as f64 / 1e6;
            println!(
                "{:10} {megabytes:>9.1} {:>10.4} {:>10.2}",
                kind.name(),
                opened.seconds,
                megabytes / 1e3 / opened.seconds
            );
        }
    }
    Ok(())
}
