//! Faults of the medium, one after the other: each operation of
//! a small workload, and each of opening, fails once in some run.
//!
//! Runs are in one thread under simulated time, so that the n-th operation is
//! the same each time. Each has a thread of its own, so that one that hangs is
//! named. Processes without memory are in `tests/processes`.

mod for_good;
mod full;
mod opening;
mod script;
