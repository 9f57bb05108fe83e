//! Reclamation: what happens to versions that nobody can see any more.
//!
//! Collectors stand behind one seam, [`Reclaimer`]. The engine tells them
//! what has been superseded; they decide what to free. They cannot lose data:
//! the store frees a block only where the watermark and the durable state
//! allow it.

mod none;

pub use none::NoGc;

use pantile_base::{Address, Timestamp};

/// A collector.
pub trait Reclaimer: Send + Sync {
    /// The name by which commands and records know it.
    fn name(&self) -> &'static str;

    /// A committed transaction has superseded the version at `old` at `at`:
    /// transactions from `at` on do not see it.
    fn superseded(&self, old: Address, at: Timestamp);
}
