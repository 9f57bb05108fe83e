//! What tests, workloads and the simulator share: random numbers, patience,
//! homes for databases, and media that fail.
//!
//! No application links this crate.

mod done;
mod fails;
mod patience;
mod random;
mod seeds;
mod space;

#[cfg(feature = "database")]
pub mod cut;
#[cfg(feature = "database")]
mod fault;
#[cfg(feature = "database")]
mod gate;
#[cfg(feature = "database")]
mod heard;
#[cfg(feature = "database")]
mod home;

pub use done::SaysDone;
#[cfg(feature = "database")]
pub use fault::{Fault, FaultMedium, How, Operation};
#[cfg(feature = "database")]
pub use gate::GatedMedium;
#[cfg(feature = "database")]
pub use heard::{Heard, HeardMedium};
#[cfg(feature = "database")]
pub use home::{Bed, Home, ScratchDir, copy_all, copy_of, eager, exact_memory};
pub use patience::{Patience, await_that, run_case, run_cases};
pub use random::{Random, mix};
pub use seeds::{SeedNote, from_env, seeds};
pub use space::SpaceGauge;
