//! Two-phase locking in which nobody waits: a transaction that meets a lock is rolled back.
//! The head of `locks.rs` says what all three keep for the collectors.

use pantile_cc::{Access, Protocol, ProtocolDescription, Reads, Refusal, Txn};

use crate::locks::{Policy, TwoPhaseLocking};

/// Two-phase locking without waiting.
pub const NO_WAIT: Protocol = Protocol::new(&ProtocolDescription {
    name: "2pl-no-wait",
    about: "two-phase locking in which a transaction that meets a lock is rolled back",
    reads: Reads::UnderLocks,
    orders_by_timestamp: true,
    build: || Box::new(TwoPhaseLocking::<NoWait>::default()),
});

pub(crate) struct NoWait;

impl Policy for NoWait {
    fn meet(_: Txn, _: impl Iterator<Item = Txn>) -> Access {
        Access::Refused(Refusal::Locked)
    }
}
