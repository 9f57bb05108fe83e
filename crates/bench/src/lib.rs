//! Workloads for Pantile, and what runs and measures them.
//!
//! [`tpcc`], [`ch`] and [`ycsb`] are the workloads, [`experiment`] runs them variant
//! by variant, [`record`] is what comes out, [`scaling`] says what a larger
//! machine would make of it. The same seed gives the same data and the same
//! transactions of each client.

pub mod baseline;
pub mod ch;
pub mod cpu;
pub mod error;
pub mod experiment;
pub mod latency;
pub mod load;
pub mod long_readers;
pub mod machine;
pub mod place;
pub mod record;
pub mod runner;
mod sample;
pub mod scaling;
pub mod settings;
pub mod tpcc;
pub mod workload;
pub mod ycsb;

pub use error::{Error, Result};
