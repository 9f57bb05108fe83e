//! Hekaton's optimistic transactions: P. Larson et al., "High-Performance Concurrency Control Mechanisms for
//! Main-Memory Databases", VLDB 2012, 3.
//!
//! A transaction reads the versions of the moment at which it began, and the first writer of a row
//! wins. At its end it gets a second timestamp and looks whether it would read the same there. One that only
//! reads needs none of that. In Hekaton others may read what a transaction that is about to commit
//! has written, and depend on it; here they wait.
//!
//! For the collectors it keeps versions from its transactions' beginnings on, which a commit also reads again.

use pantile_base::Timestamp;
use pantile_cc::{Committing, ConcurrencyControl, Protocol, ProtocolDescription, Reads, Refusal};

/// Hekaton.
pub const HEKATON: Protocol = Protocol::new(&ProtocolDescription {
    name: "hekaton",
    about: "optimistic: versions of its beginning, looked at again at its end",
    reads: Reads::AtBegin,
    orders_by_timestamp: true,
    build: || Box::new(Hekaton),
});

struct Hekaton;

impl ConcurrencyControl for Hekaton {
    fn validate(&self, commit: &dyn Committing) -> Result<Timestamp, Refusal> {
        if commit.writes().is_empty() {
            return Ok(commit.reads_at());
        }
        let end = commit.draw();
        commit.reads_hold(end)?;
        Ok(end)
    }
}
