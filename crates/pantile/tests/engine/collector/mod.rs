//! Reclaiming blocks: a test or a few for each trap that has to do with it
//! (`docs/design.md`, "Traps and answers"), named after the trap.
//!
//! Committing threads do the collector's work, so a test that waits for it
//! keeps committing transactions that change nothing until it sees what it
//! waits for. Nothing is decided by how long that takes.

mod crashes;
mod events;
mod evidence;
pub mod filled;
mod full;
mod indexes;
mod long_readers;
mod pacing;
mod placement;
mod readers;
pub mod rows;
mod space;
mod statistics;
mod threads;
mod tiles;
mod tombstones;
mod uncommitted;
