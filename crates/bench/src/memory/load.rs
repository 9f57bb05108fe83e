//! What is measured.

use std::time::{Duration, Instant};

use pantile_testkit::Random;
use serde::{Deserialize, Serialize};

use super::engine::{Failure, Rows};
use crate::ycsb::keys::Keys;

/// What a transaction does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Reads rows by key.
    Read,
    /// Reads rows by key, changes a tenth of each, and writes them.
    Update,
    /// Reads a hundred rows in the order of their keys.
    Scan,
}

/// Operations with a distribution of keys.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Load {
    /// What a transaction does.
    pub operation: Operation,
    /// Rows of a transaction; of a scan, a hundred times as many.
    pub rows: usize,
    /// Skew of the keys (Zipf); 0 is uniform.
    pub theta: f64,
}

/// Rows of a scan.
const SCANNED: usize = 100;

/// An update changes one of this many parts of a value.
const PARTS: usize = 10;

impl Load {
    /// The name in tables.
    pub fn name(self) -> String {
        let keys = if self.theta == 0.0 { "uniform".into() } else { format!("zipf {}", self.theta) };
        match (self.operation, self.rows) {
            (Operation::Scan, _) => format!("scans of {SCANNED}"),
            (Operation::Read, 1) => format!("reads, {keys}"),
            (Operation::Read, rows) => format!("{rows} reads, {keys}"),
            (Operation::Update, 1) => format!("updates, {keys}"),
            (Operation::Update, rows) => format!("{rows} updates, {keys}"),
        }
    }

    /// Runs transactions for some time on rows `0..n`. Returns the rows that
    /// they read or wrote.
    pub(super) fn run(
        self,
        rows: &mut dyn Rows,
        n: u64,
        (time, seed): (Duration, u64),
    ) -> Result<u64, Failure> {
        let (keys, mut random) = (Keys::new(n, self.theta, false), Random::new(seed, 1));
        let (began, mut done, mut sum) = (Instant::now(), 0, 0u64);
        while began.elapsed() < time {
            let drawn: Vec<u64> = (0..self.rows).map(|_| keys.draw(&mut random, n)).collect();
            sum = sum.wrapping_add(self.transaction(rows, &drawn, n, &mut random)?);
            done += if self.operation == Operation::Scan { SCANNED } else { self.rows } as u64;
        }
        std::hint::black_box(sum);
        Ok(done)
    }

    fn transaction(
        self,
        rows: &mut dyn Rows,
        keys: &[u64],
        n: u64,
        random: &mut Random,
    ) -> Result<u64, Failure> {
        match self.operation {
            Operation::Read => rows.read(keys),
            Operation::Update => rows
                .update(keys, &mut |value| {
                    let changed = value.len() / PARTS;
                    let at = random.index(value.len() - changed);
                    random.fill_letters(&mut value[at..at + changed]);
                })
                .map(|()| 0),
            Operation::Scan => rows.scan(keys[0].min(n.saturating_sub(SCANNED as u64)), SCANNED),
        }
    }
}

/// The value of this many bytes that a row is loaded with: nothing that could be compressed.
pub(super) fn value(key: u64, bytes: usize) -> Vec<u8> {
    let mut random = Random::new(key, 0);
    let mut value = vec![0; bytes];
    for word in value.chunks_mut(8) {
        word.copy_from_slice(&random.word().to_le_bytes()[..word.len()]);
    }
    value
}
