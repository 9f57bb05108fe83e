//! Two-phase locking with deadlock detection: a transaction waits, unless that would close a
//! cycle of transactions that wait for each other. The engine finds cycles when a wait begins
//! (`Registry::wait`).
//! The head of `locks.rs` says what all three keep for the collectors.

use pantile_cc::{Access, Protocol, ProtocolDescription, Reads, Txn};

use crate::locks::{Policy, TwoPhaseLocking};

/// Two-phase locking with deadlock detection.
pub const DEADLOCK_DETECTION: Protocol = Protocol::new(&ProtocolDescription {
    name: "2pl-detect",
    about: "two-phase locking with deadlock detection",
    reads: Reads::UnderLocks,
    orders_by_timestamp: true,
    build: || Box::new(TwoPhaseLocking::<Detect>::default()),
});

pub(crate) struct Detect;

impl Policy for Detect {
    /// It waits for one after the other.
    fn meet(_: Txn, mut holders: impl Iterator<Item = Txn>) -> Access {
        holders.next().map_or(Access::Granted(0), Access::WaitFor)
    }
}
