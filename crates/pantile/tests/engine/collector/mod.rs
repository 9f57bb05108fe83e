//! Reclaiming blocks: one or more tests for each trap that concerns it
//! (`docs/design.md`, "Traps and answers"), named after the trap.
//!
//! Committing threads do the collector's work. So a test that waits for the
//! collector commits transactions that change nothing until the expected state
//! is reached. No result depends on how long that takes.

mod crashes;
mod debts;
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
