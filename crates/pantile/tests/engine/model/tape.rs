//! Operations decided by bytes: what the fuzzer mutates, and what its corpus
//! holds (`fuzz/`).

use std::collections::VecDeque;

use super::runner::Runner;
use pantile_testkit::{Bed, Home, Random};

/// The source of a run's decisions: bytes as long as there are any, then random
/// numbers.
pub struct Decisions {
    tape: VecDeque<u8>,
    random: Random,
}

impl Decisions {
    pub fn random(seed: u64) -> Self {
        Self { tape: VecDeque::new(), random: Random::new(seed, 0) }
    }

    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self { tape: bytes.iter().copied().collect(), random: Random::new(bytes.len() as u64, 0) }
    }

    /// Whether all bytes have been used.
    pub fn is_spent(&self) -> bool {
        self.tape.is_empty()
    }

    /// A number below `n`, from two bytes or at random.
    pub fn below(&mut self, n: u64) -> u64 {
        match self.tape.pop_front() {
            Some(low) => u64::from(u16::from_le_bytes([low, self.tape.pop_front().unwrap_or_default()])) % n,
            None => self.random.below(n),
        }
    }

    pub fn index(&mut self, n: usize) -> usize {
        self.below(n as u64) as usize
    }

    /// True in `percent` of a hundred calls.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }
}

/// The most operations of one run.
const MOST: usize = 400;

/// Runs until the bytes are used up. The first byte selects the collector and
/// how eager it is.
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
