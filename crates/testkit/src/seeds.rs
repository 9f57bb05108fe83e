//! Seeds of random tests, which the environment can change.

/// Set to replay a random test: `PANTILE_SEED=17 cargo test -p pantile`.
const SEED: &str = "PANTILE_SEED";

/// Set to run longer: this many times the usual number of seeds.
const ROUNDS: &str = "PANTILE_ROUNDS";

/// The number in an environment variable, or else `default`.
///
/// # Panics
/// If the variable is set and is not a number.
pub fn from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number in the environment"))
}

/// The seeds to run: `count` from `first` on, or the one to replay.
///
/// # Panics
/// If `PANTILE_SEED` or `PANTILE_ROUNDS` is not a number.
pub fn seeds(first: u64, count: u64) -> Vec<u64> {
    if std::env::var_os(SEED).is_some() {
        return vec![from_env(SEED, first)];
    }
    (first..first + count * from_env(ROUNDS, 1)).collect()
}

/// Prints the seed that a panic belongs to.
#[derive(Debug)]
pub struct SeedNote(pub u64);

impl Drop for SeedNote {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay with {SEED}={}", self.0);
        }
    }
}
