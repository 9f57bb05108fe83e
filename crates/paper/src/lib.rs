//! The published results on this machine: reruns their experiments, gives
//! each a verdict, and writes a page.
//!
//! [`claims`] says what was published and when it holds, [`plan`] which runs
//! that takes, [`execute`] makes them, [`report`] writes them down. What the
//! method can show and what not is in `docs/experiments.md`.

pub mod claims;
pub mod engine;
mod error;
pub mod execute;
pub mod figure;
pub mod measurement;
pub mod numbers;
pub mod outlook;
pub mod plan;
pub mod report;
pub mod results;
pub mod size;
pub mod spec;
pub mod store;
pub mod svg;
pub mod verdict;
pub mod workload;

pub use error::{Error, Result};
