//! Pantile beside other stores.

mod larger;
mod side;

use std::process::ExitCode;

use clap::Parser;
use pantile_bench::memory::{Failure, WORKER};

/// Measure Pantile and other stores in one run.
#[derive(Parser)]
enum Arguments {
    /// Loads, updates, reads, scans, a queue, space and opening, of six stores.
    Side(side::Arguments),
    /// Reads and updates of data that is larger than memory.
    Memory(larger::Arguments),
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    if std::env::args().nth(1).is_some_and(|first| first == WORKER) {
        return larger::work();
    }
    match Arguments::parse() {
        Arguments::Side(arguments) => side::compare(&arguments),
        Arguments::Memory(arguments) => larger::compare(&arguments),
    }
}
