//! What a larger machine would make of a workload: throughput by threads,
//! predicted from costs that were measured on this one.
//!
//! [`calibrate`] turns runs with one client and with two into [`Costs`],
//! [`predict`] turns costs, a [`Machine`] and a number of threads into a
//! [`Prediction`], and [`validate`] puts predictions beside runs that were
//! not calibrated with. The equations, what is measured and what is assumed
//! are in `docs/scaling.md`.
//!
//! Every thread is a customer of a closed network of queues, solved by mean
//! value analysis. It holds a hardware thread for as long as its transaction
//! takes, waits for the medium included, so a thread without one takes part
//! in nothing. The processor is a delay; the medium's writes and reads, which
//! all threads share, are stations.

mod costs;
mod machine;
mod mva;
mod predict;
mod transfer;
mod validate;

pub use costs::{Costs, Io, Run, calibrate, calibrate_with};
pub use machine::{
    ASSUMED_FAR_TRANSFER, ASSUMED_SMT_YIELD, DRAM_BESIDE_OPTANE, Dram, Machine, Memory, Modules,
};
pub use mva::{Flow, Network};
pub use predict::{Prediction, predict};
pub use transfer::transfer_seconds;
pub use validate::{Measured, Row, beside, curve, validate};

#[cfg(test)]
#[path = "scaling_test.rs"]
mod tests;
