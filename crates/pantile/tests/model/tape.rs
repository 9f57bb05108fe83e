//! Operations decided by bytes: what the fuzzer mutates, and what its corpus
//! holds (`fuzz/`).

use crate::runner::Runner;
use crate::support::{Bed, Home};

/// Most operations of one run.
const MOST: usize = 400;

/// Runs until the bytes are used up. The first says which collector works
/// beside, and how eagerly.
pub fn run(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let home = Home::new(Bed::Dram);
    let mut runner = match first % 2 {
        0 => Runner::new(home.collect_by_seed(u64::from(first)), 0),
        _ => Runner::new(home.eager(u64::from(first)), 0).collecting(),
    };
    runner = runner.deciding_by(rest);
    for _ in 0..MOST {
        if runner.rng.is_spent() {
            break;
        }
        runner.step();
    }
    runner.settle();
}
