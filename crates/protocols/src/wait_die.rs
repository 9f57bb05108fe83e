//! Two-phase locking in which the older of two transactions waits and the younger one is rolled back
//! (D. Rosenkrantz et al., "System Level Concurrency Control for Distributed Database Systems", TODS 1978). There
//! one that begins again keeps its age; here it is as old as its new beginning.
//! The head of `locks.rs` says what all three keep for the collectors.

use pantile_cc::{Access, Protocol, ProtocolDescription, Reads, Refusal, Txn};

use crate::locks::{Policy, TwoPhaseLocking};

/// Two-phase locking with wait-die.
pub const WAIT_DIE: Protocol = Protocol::new(&ProtocolDescription {
    name: "2pl-wait-die",
    about: "two-phase locking in which only older transactions wait",
    reads: Reads::UnderLocks,
    orders_by_timestamp: true,
    build: || Box::new(TwoPhaseLocking::<WaitDie>::default()),
});

pub(crate) struct WaitDie;

impl Policy for WaitDie {
    fn meet(txn: Txn, holders: impl Iterator<Item = Txn>) -> Access {
        match holders.min_by_key(|holder| holder.began) {
            Some(oldest) if oldest.began < txn.began => Access::Refused(Refusal::Locked),
            Some(oldest) => Access::WaitFor(oldest),
            None => Access::Granted(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use pantile_base::Timestamp;
    use pantile_cc::Slot;

    use super::*;

    #[test]
    fn the_older_waits_and_the_younger_dies() {
        let [a, b, c] =
            [1, 2, 3].map(|n| Txn { slot: Slot::from_index(n), began: Timestamp::new(n as u64, n) });
        assert_eq!(WaitDie::meet(a, [c, b].into_iter()), Access::WaitFor(b));
        assert_eq!(WaitDie::meet(b, [c, a].into_iter()), Access::Refused(Refusal::Locked));
    }
}
