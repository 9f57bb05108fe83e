//! Tests that start this program again, under a limit or to kill it, and tests
//! that count the threads or files of the process.

mod backup;
mod collector_threads;
mod counted;
mod creation;
mod disk;
mod full_device;
mod limits;
mod media;
mod memory;
mod moved;
mod open_once;
mod readers;
