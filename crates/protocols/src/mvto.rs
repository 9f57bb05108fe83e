//! Multi-version timestamp ordering: P. Bernstein and N. Goodman, "Concurrency Control in Distributed Database
//! Systems", ACM Computing Surveys 1981, 4.4. What Yu et al. and Zen+ call MVCC.
//!
//! A transaction reads and writes at the moment at which it began. A read leaves a mark, and
//! nobody writes below it. The engine does all of this; its own protocol differs in that writers
//! may move behind readers.
//!
//! For the collectors it keeps versions from its transactions' beginnings on; each read leaves a mark at once.

use pantile_base::Timestamp;
use pantile_cc::{Committing, ConcurrencyControl, Protocol, ProtocolDescription, Reads, Refusal};

/// Multi-version timestamp ordering.
pub const MVTO: Protocol = Protocol::new(&ProtocolDescription {
    name: "mvto",
    about: "multi-version timestamp ordering: reads mark what they read",
    reads: Reads::InOrder { marks: true },
    orders_by_timestamp: true,
    build: || Box::new(Mvto),
});

struct Mvto;

impl ConcurrencyControl for Mvto {
    fn validate(&self, commit: &dyn Committing) -> Result<Timestamp, Refusal> {
        Ok(commit.reads_at())
    }
}
