//! Faults of the medium, one after another: each operation of a small workload,
//! and each operation of opening, fails once in some run.
//!
//! Each run is in one thread under simulated time, so that the n-th operation
//! is always the same. Each run has a thread of its own, so that a run that
//! hangs is named. Processes that run out of memory are in `tests/processes`.

mod for_good;
mod full;
mod killed;
mod opening;
mod script;
