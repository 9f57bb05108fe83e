//! Tests that start this program again, under a limit or to kill it, and tests
//! that count the threads or files of the process.
//!
//! A child that is being started holds inherited locks until it runs its
//! program, so every test here opens its databases with `open_soon`.

mod collector_threads;
mod counted;
mod creation;
mod disk;
mod media;
mod memory;
mod moved;
mod open_once;
