//! What the tests of crashes share.

// Each test binary uses a part of it.
#![allow(dead_code)]

pub mod cut_medium;
pub mod fails;
pub mod fixture;
pub mod image_file;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use pantile::{Database, Error, Options, Result};

/// Opens a database that was closed a moment ago. A process that another test
/// is just starting may hold its lock until it lets go of inherited files.
pub fn open_soon(options: &Options, path: &Path) -> Result<Database> {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        match options.clone().open(path) {
            Err(Error::AlreadyOpen(_)) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(1))
            }
            outcome => return outcome,
        }
    }
}

/// A stream of numbers that a seed determines.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// Spreads the bits of a number (the finalizer of SplitMix64).
pub fn mix(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

/// The number in an environment variable, or else `default`.
pub fn from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
