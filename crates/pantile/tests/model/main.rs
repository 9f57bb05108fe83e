//! Random operations of interleaved transactions, compared with a model that
//! keeps every version of every row in a map: what a transaction sees follows
//! from its timestamp and its own writes alone.

#[path = "../support/mod.rs"]
mod support;

mod ops;
mod rows;
mod runner;
mod state;

use pantile::Durability;
use runner::Runner;
use support::{Bed, SeedNote, seeds};

fn run(bed: Bed, first_seed: u64, count: u64, steps: u64) {
    for seed in seeds(first_seed, count) {
        let _note = SeedNote(seed);
        let mut runner = Runner::new(bed, seed);
        for _ in 0..steps {
            runner.step();
        }
        runner.finish();
    }
}

#[test]
fn model_on_dram() {
    run(Bed::Dram, 1, 12, 3_000);
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
