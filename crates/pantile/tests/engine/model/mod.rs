//! Random operations of interleaved transactions, compared with a model that
//! keeps every version of every row in a map: what a transaction sees follows
//! from its timestamp and its own writes alone.

mod ops;
mod rows;
mod runner;
mod state;
mod tape;

use pantile::Durability;
use pantile_testkit::{Bed, Home, Patience, SeedNote, seeds};
use runner::{Collected, Runner};

fn run(bed: Bed, first_seed: u64, count: u64, steps: u64) {
    for seed in seeds(first_seed, count) {
        let _note = SeedNote(seed);
        let mut runner = Runner::new(Home::new(bed).collect_by_seed(seed), seed);
        for _ in 0..steps {
            runner.step();
        }
        runner.finish();
    }
}

/// The same beside a collector that frees blocks every few steps, and beside
/// long readers.
fn run_eager(bed: Bed, first_seed: u64, count: u64, steps: u64) {
    run_collecting(|seed| Home::new(bed).eager(seed), first_seed, count, steps);
}

fn run_collecting(home: impl Fn(u64) -> Home, first_seed: u64, count: u64, steps: u64) {
    let mut done = Collected::default();
    let run = |seed: u64| {
        let _note = SeedNote(seed);
        let mut runner = Runner::new(home(seed), seed).collecting();
        for _ in 0..steps {
            runner.step();
        }
        runner.finish()
    };
    for seed in seeds(first_seed, count) {
        done += run(seed);
    }
    // A reader may stay for a whole run, and keep everything. A seed that is given is the only one to run.
    let (is_given, patience) = (std::env::var_os("PANTILE_SEED").is_some(), Patience::new());
    for seed in 900_001.. {
        if done.reclaimed > 0 || is_given {
            break;
        }
        patience.check(|| format!("nothing was collected: {done:?}"));
        done += run(seed);
    }
    println!("{done:?}");
}

#[test]
fn model_beside_every_collector() {
    for (n, &collector) in (0u64..).zip(&pantile_rivals::all()[1..]) {
        println!("{collector}");
        run_collecting(|seed| Home::new(Bed::Dram).eager_with(collector, seed), 801 + 10 * n, 2, 1_000);
        let synced = Bed::File(Durability::None);
        run_collecting(|seed| Home::new(synced).eager_with(collector, seed), 806 + 10 * n, 1, 400);
    }
}

#[test]
fn model_on_dram() {
    run(Bed::Dram, 1, 12, 3_000);
}

#[test]
fn model_beside_a_cache_of_rows() {
    run_collecting(|seed| Home::new(Bed::Dram).eager(seed).row_cache(1 << 20), 1_501, 6, 2_500);
}

#[test]
fn model_on_file() {
    run(Bed::File(Durability::None), 101, 4, 2_500);
}

#[test]
fn model_on_synced_file() {
    run(Bed::File(Durability::Sync), 201, 2, 800);
}

#[test]
fn model_on_nvm() {
    run(Bed::Nvm, 301, 2, 2_000);
}

#[test]
fn model_beside_an_eager_collector_on_dram() {
    run_eager(Bed::Dram, 401, 8, 2_500);
}

#[test]
fn model_beside_an_eager_collector_on_file() {
    run_eager(Bed::File(Durability::None), 501, 2, 1_500);
}

#[test]
fn model_beside_an_eager_collector_on_synced_file() {
    run_eager(Bed::File(Durability::Sync), 601, 1, 400);
}

#[test]
fn model_beside_an_eager_collector_on_nvm() {
    run_eager(Bed::Nvm, 701, 1, 1_500);
}

/// Inputs that the fuzzer found worth keeping.
#[test]
fn the_corpus_of_operations() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/operations");
    let mut files: Vec<_> =
        std::fs::read_dir(corpus).expect("the corpus").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        println!("{}", file.display());
        tape::run(&std::fs::read(&file).expect("read"));
    }
}
