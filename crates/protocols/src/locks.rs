//! Strict two-phase locking (K. Eswaran et al., "The Notions of Consistency and Predicate Locks in a
//! Database System", CACM 1976): a lock for each item, held to the end. What is done with one that has to wait is
//! the [`Policy`]. Yu et al., "Staring into the Abyss", VLDB 2014, 2.1, has the three that are here.
//!
//! Instead of predicates, there is one item for the keys of an index. Those who look for keys that may be
//! absent share it, and so do those who change keys, but not with each other.
//!
//! It reads no old version. For the collectors it keeps, by its slot, what it has been handed until it ends, whatever
//! the policy; locks are in its own memory.

use foldhash::{HashMap, HashMapExt};
use pantile_base::sync::Mutex;
use pantile_base::{Padded, Timestamp};
use pantile_cc::{Access, Committing, ConcurrencyControl, Item, Refusal, Txn};
use smallvec::SmallVec;

use crate::by_slot::BySlot;

/// Parts of the table of locks, so that few meet in one.
const SHARDS: usize = 256;

/// What happens to a transaction that would have to wait for others.
pub(crate) trait Policy: Send + Sync {
    fn meet(txn: Txn, holders: impl Iterator<Item = Txn>) -> Access;
}

/// Modes in which a transaction holds an item.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Modes(u8);

const READS: Modes = Modes(1);
const WRITES: Modes = Modes(2);

impl Modes {
    fn has(self, other: Modes) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether others may not have the item in the mode `wanted` while one has it in these.
    fn excludes(self, item: Item, wanted: Modes) -> bool {
        match item {
            Item::Tuple(..) => self.has(WRITES) || wanted == WRITES,
            Item::Keys(..) => self != wanted,
        }
    }
}

#[derive(Clone, Copy)]
struct Holder {
    txn: Txn,
    modes: Modes,
}

type Holders = SmallVec<[Holder; 2]>;

type Shard = Mutex<HashMap<Item, Holders>>;

/// Two-phase locking with this policy.
pub(crate) struct TwoPhaseLocking<P> {
    shards: Box<[Padded<Shard>]>,
    held: BySlot<Vec<Item>>,
    policy: std::marker::PhantomData<P>,
}

impl<P> Default for TwoPhaseLocking<P> {
    fn default() -> Self {
        let shards = (0..SHARDS).map(|_| Padded(Mutex::new(HashMap::new()))).collect();
        Self { shards, held: BySlot::default(), policy: std::marker::PhantomData }
    }
}

impl<P: Policy> TwoPhaseLocking<P> {
    fn shard(&self, item: Item) -> &Shard {
        &self.shards[(item.hash() >> 48) as usize % SHARDS]
    }

    fn lock(&self, txn: Txn, item: Item, mode: Modes) -> Access {
        let mut shard = self.shard(item).lock();
        let holders = shard.entry(item).or_default();
        let mine = holders.iter().position(|holder| holder.txn == txn);
        if mine.is_some_and(|at| holders[at].modes.has(mode)) {
            return Access::Granted(0);
        }
        let in_the_way = |holder: &&Holder| holder.txn != txn && holder.modes.excludes(item, mode);
        if holders.iter().any(|holder| in_the_way(&holder)) {
            return P::meet(txn, holders.iter().filter(in_the_way).map(|holder| holder.txn));
        }
        match mine {
            Some(at) => holders[at].modes.0 |= mode.0,
            None => {
                holders.push(Holder { txn, modes: mode });
                drop(shard);
                self.held.of(txn).push(item);
            }
        }
        Access::Granted(0)
    }
}

impl<P: Policy> ConcurrencyControl for TwoPhaseLocking<P> {
    fn read(&self, txn: Txn, item: Item) -> Access {
        self.lock(txn, item, READS)
    }

    fn write(&self, txn: Txn, item: Item) -> Access {
        self.lock(txn, item, WRITES)
    }

    fn validate(&self, commit: &dyn Committing) -> Result<Timestamp, Refusal> {
        Ok(commit.draw())
    }

    fn end(&self, txn: Txn, _: bool) {
        for item in self.held.of(txn).drain(..) {
            let mut shard = self.shard(item).lock();
            if let Some(holders) = shard.get_mut(&item) {
                holders.retain(|holder| holder.txn != txn);
                if holders.is_empty() {
                    shard.remove(&item);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pantile_base::{TableId, TupleId};
    use pantile_cc::Slot;

    use super::*;
    use crate::deadlock_detection::Detect;

    const TUPLE: Item = Item::Tuple(TableId(1), TupleId(5));
    const KEYS: Item = Item::Keys(TableId(1), 0);

    fn txn(n: usize) -> Txn {
        Txn { slot: Slot::from_index(n), began: Timestamp::new(n as u64 + 1, n) }
    }

    #[test]
    fn readers_share_a_tuple_and_writers_do_not() {
        let locks = TwoPhaseLocking::<Detect>::default();
        let [a, b, c] = [0, 1, 2].map(txn);
        assert_eq!(locks.read(a, TUPLE), Access::Granted(0));
        assert_eq!(locks.read(b, TUPLE), Access::Granted(0));
        assert_eq!(locks.write(a, TUPLE), Access::WaitFor(b));
        assert_eq!(locks.write(c, TUPLE), Access::WaitFor(a));
        locks.end(b, false);
        assert_eq!(locks.write(a, TUPLE), Access::Granted(0));
        assert_eq!(locks.read(c, TUPLE), Access::WaitFor(a));
        assert_eq!(locks.read(a, TUPLE), Access::Granted(0));
        locks.end(a, true);
        assert_eq!(locks.write(c, TUPLE), Access::Granted(0));
    }

    #[test]
    fn those_who_look_for_keys_and_those_who_change_them_keep_apart() {
        let locks = TwoPhaseLocking::<Detect>::default();
        let [a, b, c] = [0, 1, 2].map(txn);
        assert_eq!(locks.write(a, KEYS), Access::Granted(0));
        assert_eq!(locks.write(b, KEYS), Access::Granted(0));
        assert_eq!(locks.read(c, KEYS), Access::WaitFor(a));
        assert_eq!(locks.read(a, KEYS), Access::WaitFor(b));
        locks.end(b, true);
        assert_eq!(locks.read(a, KEYS), Access::Granted(0));
        // It has both now, and nobody else has any.
        assert_eq!(locks.write(b, KEYS), Access::WaitFor(a));
        assert_eq!(locks.read(b, KEYS), Access::WaitFor(a));
    }
}
