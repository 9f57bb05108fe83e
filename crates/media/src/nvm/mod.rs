//! Emulated persistent memory.
//!
//! Contents lie in DRAM, or in a file mapped into it, and the emulator makes
//! writers and readers wait as a slower device would. A file keeps its
//! contents when the process is killed, as persistent memory would; only the
//! machine must not stop.
//!
//! # The model
//! B is this machine's DRAM bandwidth for sequential stores, or loads, of one
//! core on huge pages over more than its caches; it is measured once in a
//! process, when the first emulated memory is made.
//!
//! **Writes.** `write` stores through the CPU's cache and costs what that
//! costs. `flush` writes the lines back with the best instruction the CPU has
//! and hands them to the device; for writes of 2 KiB or more, which a device
//! would take past the cache, it only does the accounting, or the DRAM that
//! stands in for the device would be the limit. Lines flushed near each other merge into one write unit in a
//! write-combining buffer of 16 KB (64 units of 256 B) in sets of eight with
//! the least recent replaced first. There is a buffer for each flushing
//! thread, so that it needs no lock; only threads beyond the 64th living one
//! share a buffer and lock it. Threads gain a little over real modules,
//! which share theirs. A unit counts as written when it *enters* the buffer:
//! the total is right at every moment, and the transaction that caused the
//! write pays for it, not the one that happens to push it out. What joins a
//! unit that is still there is free, so that appends that fill a unit in
//! several transactions cost one. That a part of a unit must be read before
//! it is written, as on real modules, is not charged.
//!
//! A unit takes the device `unit_bytes / (write_share * B)` seconds. All
//! threads share one device: a time until which it is busy, advanced by every
//! flush. Device and CPU work side by side: flushing does not wait. `fence`
//! waits for the CPU's own stores and then until the device has done the last
//! unit that this thread gave it. A device as fast as DRAM thus costs nothing
//! beyond what the CPU takes anyway, unless threads together exceed it.
//!
//! **Reads.** Each thread has a direct-mapped array of tags for 8 MiB of
//! units, an estimate of what it finds in the CPU's caches. A unit that is
//! not there counts as read and owes
//! `unit_bytes * (1 / (read_share * B) - 1 / B)` seconds beyond what the load
//! itself took; debts are paid once they come to 300 ns. A thread's own short
//! writes stay cached; those of other threads and long writes do not, which
//! charges rather too much than too little. Readers do not share the device:
//! loads of two cores hardly share DRAM's bandwidth either.
//!
//! Latency is modelled only as far as it follows from bandwidth.

mod cache;
mod calibrate;
mod clock;
mod combine;
mod config;
mod medium;
mod model;

pub use calibrate::{Measured, measure};
pub use config::NvmConfig;
pub use medium::NvmMedium;
