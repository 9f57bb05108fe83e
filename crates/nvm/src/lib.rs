//! Emulated persistent memory, a medium for the laboratory.
//!
//! Contents are in DRAM, or in a file mapped into it, and the emulator makes
//! writers and readers wait as a slower device would. A file keeps its
//! contents when the process is killed, as persistent memory would. It loses
//! them if the machine stops.
//!
//! ```
//! use pantile_media::{Medium, MediumExt};
//! use pantile_nvm::{NvmConfig, NvmMedium};
//! let medium = NvmMedium::anonymous(NvmConfig::OPTANE)?;
//! medium.grow(4096)?;
//! // SAFETY: nobody else has the medium.
//! unsafe { medium.write(0, &[1; 1000])? };
//! medium.flush(0, 1000);
//! medium.fence()?;
//! assert_eq!(medium.stats().units_written, 4);
//! # Ok::<(), pantile_media::MediumError>(())
//! ```
//!
//! An [`NvmConfig`] is a factory of media: `pantile`'s `Options::custom_medium`
//! takes one and keeps a database on the memory that it describes.
//!
//! # The model
//! B is this machine's DRAM bandwidth for sequential stores, or loads, of one
//! core on huge pages over more than its caches. It is measured once in a
//! process, when the first emulated memory is made.
//!
//! **Writes.** `write` stores through the CPU's cache and costs what that
//! costs. `flush` writes the lines back with the best instruction the CPU has
//! and hands them to the device. A device would take writes of 2 KiB or more
//! past the cache; for those `flush` only does the accounting, since the DRAM
//! that stands in for the device would be the limit otherwise.
//!
//! Lines flushed near each other merge into one write unit in a
//! write-combining buffer of 16 KB (64 units of 256 B), in sets of eight of
//! which the least recent is replaced first. Each flushing thread has a
//! buffer of its own, so that it needs no lock; only threads beyond the 64th
//! share one and lock it. Threads gain a little over real modules, which
//! share theirs. A unit counts as written when it *enters* the buffer: the
//! total is right at every moment, and the transaction that caused the write
//! pays for it, not the one that pushes the unit out. What joins a unit that
//! is still there is free, so that appends that fill a unit in several
//! transactions cost one unit. Real modules read a unit before they write a
//! part of it; that is not charged.
//!
//! A unit takes the device `unit_bytes / W` seconds, with W the write bandwidth
//! of the configuration: a share of B, or bytes a second for each core. All
//! threads share one device: a time until which it is busy, advanced by every
//! flush. Device and CPU work in parallel: flushing does not wait. `fence`
//! waits for the CPU's own stores and then until the device has done the last
//! unit that this thread gave it. A device as fast as DRAM thus costs nothing
//! beyond what the CPU takes anyway, unless threads together exceed it.
//!
//! **Reads.** Each thread has a direct-mapped array of tags for 8 MiB of
//! units, an estimate of what it finds in the CPU's caches. A unit that is
//! not there counts as read and owes
//! `unit_bytes * (1 / R - 1 / B)` seconds, with R the read bandwidth, beyond what the load
//! itself took. Debts are paid once they reach 300 ns. A thread's own short
//! writes stay cached; those of other threads and long writes do not, which
//! charges too much rather than too little. Readers do not share the device:
//! loads of two cores hardly share DRAM's bandwidth either.
//!
//! Latency is modelled only as far as it follows from bandwidth.
//!
//! **Designs.** A configuration may name a [`Design`] that Zen+ compares, as in `optane-40+mmdb:4`. The
//! engine works as ever, and the emulator charges what an engine of that design would do to the
//! memory for the same reads, writes and commits, with DRAM of a fourth of the medium's size. It is a
//! model of costs and no second engine: nothing is lost or recovered in another way. What it leaves
//! out favours the designs that Zen is compared with:
//! - *mmdb*: no checkpoints. A log record is as long as what is written of the tuple. Metadata of a
//!   tuple that the CPU has cached is not written, and no commit waits for what it evicts itself, only
//!   for what was evicted before it.
//! - *wbl*: no log entries. Metadata that lie beside one another in a unit are written once as long as
//!   the unit is in the write-combining buffer. Several looks at one tuple in a row count as one.
//! - *foedus*: a new snapshot is written once for each byte that was logged, though FOEDUS writes whole
//!   pages, and again no commit waits for its own. No page is ever written back when it is evicted.
//! - *zen-naive*, which is Zen with another allocator: one line of metadata for each slot that is taken, and no
//!   latency of its own for making it durable.
//! - Copies in DRAM are charged DRAM's bandwidth for storing them and nothing for finding them. The time that the emulator takes
//!   to look for them is the same for all designs.
//!
//! What the engine writes for itself (copies of its collector, a line for each block, state records) is
//! charged as if the design wrote it, too: that is little, but *mmdb* and *foedus* pay twice for it.
//!
//! **Nodes.** A configuration may say that the machine has two nodes, as in
//! `optane-40+nodes:naive:2.5`. Each thread belongs to one ([`join_node`]), and a [`Placement`] says which
//! node has a byte. Each node's memory is a device with a queue of its own, as fast as the configuration says. What a
//! thread reads from the other node, and what it writes there, takes as many times as long as the
//! configuration says. The node of the first byte counts for a read or a flush. What is left out favours placements with much
//! remote memory: the engine's indexes and its other data in DRAM cost the same everywhere.

// Storing through a mapping, and a place for each thread without a lock, need
// `unsafe`. Every block names what makes it sound.
#![allow(unsafe_code)]

mod cache;
mod calibrate;
mod charges;
mod clock;
mod combine;
mod config;
mod design;
mod dram_cache;
mod measure;
mod medium;
mod model;
mod nodes;
mod per_thread;

pub use config::{Bandwidth, NvmConfig, Speed};
pub use design::{Design, Kind as DesignKind};
pub use measure::{DEVIATION_BOUND, Measured, Reached, measure};
pub use medium::NvmMedium;
pub use nodes::{
    MOST_REMOTE_COST, NODES, NodeConfig, PUBLISHED_REMOTE_COST, Placement, join_node, node_here,
};
