//! Workloads for Pantile, and the runner that measures them.
//!
//! [`tpcc`], [`ch`] and [`ycsb`] are the workloads. [`experiment`] runs them variant
//! by variant and returns a [`record`] of each run. [`scaling`] predicts the
//! throughput of a larger machine. The same seed gives the same data and the
//! same transactions of each client.

pub mod baseline;
pub mod ch;
pub mod cpu;
pub mod error;
pub mod experiment;
pub mod latency;
pub mod load;
pub mod long_readers;
pub mod machine;
pub mod memory;
pub mod partition;
pub mod place;
pub mod record;
pub mod runner;
mod sample;
pub mod scaling;
pub mod settings;
pub mod space;
pub mod tpcc;
pub mod workload;
pub mod ycsb;

pub use error::{Error, Result};
