//! What tests, workloads and the simulator share: random numbers, patience,
//! homes for databases, and media that fail.
//!
//! No application links this crate.

mod fails;
mod patience;
pub mod random;
mod seeds;

#[cfg(feature = "database")]
mod home;

#[cfg(feature = "database")]
pub use home::{Bed, Home, Place, copy_of, eager, open_soon};
pub use patience::{await_that, run_case, run_cases};
pub use random::{Random, mix};
pub use seeds::{SeedNote, from_env, seeds};
