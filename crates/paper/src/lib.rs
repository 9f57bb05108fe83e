//! Published results on this machine. Reruns the experiments, gives each claim
//! a verdict, and writes a page.
//!
//! [`claims`] says what was published and when it holds. [`plan`] decides which
//! runs that takes. [`execute`] executes them, and [`report`] writes the
//! results. `docs/experiments.md` says what the method can show and what it
//! cannot.

pub mod agreement;
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
pub mod server;
pub mod size;
pub mod space;
pub mod spec;
pub mod store;
pub mod svg;
pub mod verdict;
pub mod workload;

pub use error::{Error, Result};
