//! Silo: S. Tu et al., "Speedy Transactions in Multicore In-Memory Databases", SOSP 2013, 4.4.
//!
//! A transaction reads the newest versions, and looks at its commit whether they still are. Silo locks
//! what it writes at the commit, in order; here writes have locked it when they were made. Its
//! timestamps are of epochs; here they are of the engine's clock.
//!
//! It reads no old version. For the collectors it keeps, by its slot, what it has been handed until it ends.

use pantile_base::Timestamp;
use pantile_cc::{Committing, ConcurrencyControl, Protocol, ProtocolDescription, Reads, Refusal};

/// Silo.
pub const SILO: Protocol = Protocol::new(&ProtocolDescription {
    name: "silo",
    about: "optimistic: newest versions, looked at again by the commit",
    reads: Reads::Newest,
    orders_by_timestamp: true,
    build: || Box::new(Silo),
});

struct Silo;

impl ConcurrencyControl for Silo {
    fn validate(&self, commit: &dyn Committing) -> Result<Timestamp, Refusal> {
        // A transaction that locks something from here on commits later.
        let to = commit.draw();
        commit.reads_hold(to)?;
        Ok(to)
    }
}
