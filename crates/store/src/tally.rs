//! A sum that all commits add to, and that all of them read.

use pantile_base::Padded;
use pantile_base::sync::atomic::{AtomicU64, Ordering};

/// What all places together keep to themselves, before they add it to what all look at, and the
/// least that one does.
const KEPT: u64 = 64 << 10;
const LEAST_KEPT: u64 = 1 << 10;

/// A sum that only grows. Each stream adds in a place of its own, so that commits take no line from
/// each other, except once in some kilobytes.
#[derive(Debug)]
pub(crate) struct Tally {
    total: Padded<AtomicU64>,
    kept: Box<[Padded<AtomicU64>]>,
    /// What a place keeps at most.
    most: u64,
}

impl Tally {
    /// Zero, with this many places.
    pub fn new(places: usize) -> Self {
        let kept = (0..places).map(|_| Padded::default()).collect();
        Self { total: Padded::default(), kept, most: (KEPT / places as u64).max(LEAST_KEPT) }
    }

    pub fn add(&self, hint: usize, by: u64) {
        let kept = &self.kept[hint % self.kept.len()];
        if kept.fetch_add(by, Ordering::Relaxed) + by >= self.most {
            self.total.fetch_add(kept.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// About the sum: too little by about [`KEPT`] at most.
    pub fn about(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// The sum, as long as nobody adds. While somebody does, it lacks what a place kept for a moment.
    pub fn sum(&self) -> u64 {
        let kept = self.kept.iter().map(|kept| kept.load(Ordering::Relaxed));
        self.about() + kept.sum::<u64>()
    }
}
