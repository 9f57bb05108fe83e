//! Cicada: H. Lim et al., "Cicada: Dependably Fast Multi-Core In-Memory Transactions", SIGMOD 2017, 3.4.
//!
//! Timestamp ordering in which reads leave their marks only at the commit: then the transaction
//! marks what it has read, looks whether that is still what it would read, and whether anybody later has
//! marked what it writes. Cicada puts its versions into the chains at the commit, sorted by
//! contention; here writes have locked their tuples when they were made. Gaps of indexes
//! are marked by the reads.
//!
//! For the collectors it keeps versions from its transactions' beginnings on; marks come with the commit.

use pantile_base::Timestamp;
use pantile_cc::{Committing, ConcurrencyControl, Protocol, ProtocolDescription, Reads, Refusal};

/// Cicada.
pub const CICADA: Protocol = Protocol::new(&ProtocolDescription {
    name: "cicada",
    about: "multi-version timestamp ordering: commits mark what was read",
    reads: Reads::InOrder { marks: false },
    orders_by_timestamp: true,
    build: || Box::new(Cicada),
});

struct Cicada;

impl ConcurrencyControl for Cicada {
    fn validate(&self, commit: &dyn Committing) -> Result<Timestamp, Refusal> {
        let at = commit.reads_at();
        // A reader that marks later than this look finds the lock, and waits for the outcome.
        commit.marks_hold()?;
        commit.rows_hold(at)?;
        Ok(at)
    }
}
