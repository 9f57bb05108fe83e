//! Faults of the medium and of memory, one after the other: each operation of
//! a small workload, and each of opening, fails once in some run.
//!
//! Runs are in one thread under simulated time, so that the n-th operation is
//! the same each time. Each has a thread and a deadline of its own.

#[path = "../crash_support/mod.rs"]
mod crash_support;

mod case;
mod for_good;
mod full;
mod medium;
mod memory;
mod opening;
mod script;
