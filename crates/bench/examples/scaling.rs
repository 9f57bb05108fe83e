//! Calibrates the model of larger machines with one and two clients, checks
//! it with four, and says what it expects of the machine of TB-Collect.
//!
//! Arguments: seconds of a run (2), runs of each number of clients (3).

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pantile::{Collector, Durability, ExclusiveStage, GcOptions, Isolation};
use pantile_bench::Result;
use pantile_bench::experiment::run_all;
use pantile_bench::load::{Context, Silent};
use pantile_bench::record::Record;
use pantile_bench::runner::Pace;
use pantile_bench::scaling::{Machine, calibrate, curve, transfer_seconds, validate};
use pantile_bench::settings::{Medium, Settings, Variant};
use pantile_bench::tpcc::{Scale, Tpcc};
use pantile_bench::workload::Workload;
use pantile_bench::ycsb::{Mix, Ycsb};
use pantile_nvm::NvmConfig;

static NEVER: AtomicBool = AtomicBool::new(false);

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).filter_map(|argument| argument.parse::<u64>().ok());
    let (seconds, rounds) = (arguments.next().unwrap_or(2), arguments.next().unwrap_or(3));
    let transfer = transfer_seconds()?;
    println!("a line takes {:.0} ns from one core to another", transfer * 1e9);
    let mix = Mix { updates: 50, ..Mix::default() };
    let ycsb = Ycsb { tuples: 200_000, tuple_bytes: 100, ops: 20, mix, seed: 1, ..Ycsb::default() };
    explain(&ycsb, seconds, rounds, transfer)?;
    explain(&Tpcc { scale: Scale::full(4), together: false, seed: 1 }, seconds, rounds, transfer)
}

/// Prints what is expected of a workload, and what was measured.
fn explain<W: Workload>(workload: &W, seconds: u64, rounds: u64, transfer: f64) -> Result<()> {
    for medium in [Medium::Dram, Medium::Nvm(NvmConfig::OPTANE)] {
        for gc in [Collector::NONE, Collector::TB_COLLECT] {
            let mut runs: [Vec<Record>; 3] = Default::default();
            for _ in 0..rounds {
                for (threads, records) in [1, 2, 4].into_iter().zip(&mut runs) {
                    let settings = settings(Variant::new(medium, gc), threads, seconds);
                    let context = Context { threads: 2, stop: &NEVER, observer: &Silent };
                    run_all(workload, &settings, &context, |record| records.push(record))?;
                }
            }
            let [one, two, four] = &runs;
            let costs = calibrate(one, two, transfer)?;
            println!("{costs:#?}");
            for row in validate(&costs, &Machine::here(transfer), one.iter().chain(two).chain(four)) {
                println!("{row}");
            }
            for row in curve(&costs, &Machine::tb_collect(transfer), &[1, 10, 20, 40, 80]) {
                println!("{row}");
            }
        }
    }
    Ok(())
}

fn settings(variant: Variant, threads: usize, seconds: u64) -> Settings {
    let (warmup, measure) = (Duration::from_secs(1), Duration::from_secs(seconds));
    Settings {
        variants: vec![variant],
        runs: 1,
        gc: GcOptions::default(),
        threads,
        long_readers: 0,
        long_seconds: None,
        pace: Pace { warmup, measure, rate: 0.0 },
        isolation: Isolation::Serializable,
        writers_move: true,
        stage: ExclusiveStage::default(),
        row_cache: None,
        durability: Durability::Sync,
        seed: 1,
        dir: None,
    }
}
