//! H-Store's partitions: M. Stonebraker et al., "The End of an Architectural Era", VLDB 2007, 4; as Yu et
//! al. (VLDB 2014, 2.1) have it in a shared memory.
//!
//! A transaction has each partition that it touches for itself, and needs no other control. There
//! it says before it begins which ones these are. Here the first try finds out: one that needs a
//! partition out of order, which another has, is rolled back, and its next try takes all that it
//! came to at its beginning.
//!
//! It reads no old version. For the collectors it keeps, by its slot, what it has been handed until it ends.

use pantile_base::sync::Mutex;
use pantile_base::{Padded, Timestamp};
use pantile_cc::{
    Access, Committing, ConcurrencyControl, Item, Protocol, ProtocolDescription, Reads, Refusal, Txn,
};
use smallvec::SmallVec;

use crate::by_slot::BySlot;

/// H-Store's partitions.
pub const H_STORE: Protocol = Protocol::new(&ProtocolDescription {
    name: "h-store",
    about: "eight partitions, each for one transaction at a time",
    reads: Reads::UnderLocks,
    orders_by_timestamp: true,
    build: || Box::new(HStore::default()),
});

const PARTITIONS: usize = 8;

/// Tuples with ids in sequence that are in one partition.
const STRIPE: u64 = 1 << 12;

type Numbers = SmallVec<[usize; PARTITIONS]>;

#[derive(Default)]
struct Touched {
    /// In ascending order.
    held: Numbers,
    /// What a try came to that was rolled back.
    expected: Numbers,
    was_refused: bool,
}

impl Touched {
    fn expect(&mut self, numbers: &[usize]) {
        self.expected.extend_from_slice(numbers);
        self.expected.sort_unstable();
        self.expected.dedup();
    }
}

#[derive(Default)]
struct HStore {
    partitions: [Padded<Mutex<Option<Txn>>>; PARTITIONS],
    touched: BySlot<Touched>,
}

impl HStore {
    fn numbers(item: Item) -> Numbers {
        match item {
            Item::Tuple(table, tuple) => {
                let stripe = tuple.0 / STRIPE + u64::from(table.0);
                SmallVec::from_slice(&[stripe as usize % PARTITIONS])
            }
            // A key that is absent may be added anywhere.
            Item::Keys(..) => (0..PARTITIONS).collect(),
        }
    }

    fn take(&self, txn: Txn, item: Item) -> Access {
        let mut touched = self.touched.of(txn);
        let mut needed = std::mem::take(&mut touched.expected);
        needed.extend(Self::numbers(item));
        needed.sort_unstable();
        needed.dedup();
        for (at, &number) in needed.iter().enumerate() {
            let Err(place) = touched.held.binary_search(&number) else { continue };
            let mut partition = self.partitions[number].lock();
            match *partition {
                None => {
                    *partition = Some(txn);
                    touched.held.insert(place, number);
                }
                // All wait in ascending order.
                Some(other) if place == touched.held.len() => {
                    touched.expect(&needed[at..]);
                    return Access::WaitFor(other);
                }
                Some(_) => {
                    let held = std::mem::take(&mut touched.held);
                    touched.expect(&held);
                    touched.expect(&needed[at..]);
                    touched.held = held;
                    touched.was_refused = true;
                    return Access::Refused(Refusal::Locked);
                }
            }
        }
        Access::Granted(0)
    }
}

impl ConcurrencyControl for HStore {
    fn begin(&self, txn: Txn) {
        let mut touched = self.touched.of(txn);
        // Those of a transaction that has ended well are not those of the next.
        if !std::mem::take(&mut touched.was_refused) {
            touched.expected.clear();
        }
    }

    fn read(&self, txn: Txn, item: Item) -> Access {
        self.take(txn, item)
    }

    fn write(&self, txn: Txn, item: Item) -> Access {
        self.take(txn, item)
    }

    fn validate(&self, commit: &dyn Committing) -> Result<Timestamp, Refusal> {
        Ok(commit.draw())
    }

    fn end(&self, txn: Txn, _: bool) {
        let mut touched = self.touched.of(txn);
        for number in touched.held.drain(..) {
            *self.partitions[number].lock() = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use pantile_base::{TableId, TupleId};
    use pantile_cc::Slot;

    use super::*;

    #[test]
    fn one_that_was_refused_takes_all_at_its_next_beginning() {
        let [low, high] = [0, 5].map(|n| Item::Tuple(TableId(0), TupleId(n * STRIPE)));
        let h_store = HStore::default();
        let txn = |n: usize, tick| Txn { slot: Slot::from_index(n), began: Timestamp::new(tick, n) };
        let (a, b) = (txn(0, 1), txn(1, 2));
        h_store.begin(a);
        h_store.begin(b);
        assert_eq!(h_store.read(a, low), Access::Granted(0));
        assert_eq!(h_store.read(b, high), Access::Granted(0));
        assert_eq!(h_store.write(a, high), Access::WaitFor(b));
        assert_eq!(h_store.write(b, low), Access::Refused(Refusal::Locked));
        h_store.end(b, false);
        assert_eq!(h_store.write(a, high), Access::Granted(0));
        h_store.end(a, true);
        let again = txn(1, 3);
        h_store.begin(again);
        assert_eq!(h_store.read(again, high), Access::Granted(0));
        assert_eq!(h_store.read(a, low), Access::WaitFor(again));
    }

    #[test]
    fn keys_are_in_every_partition() {
        let h_store = HStore::default();
        let txn = |n: usize| Txn { slot: Slot::from_index(n), began: Timestamp::new(1, n) };
        assert_eq!(h_store.read(txn(0), Item::Tuple(TableId(0), TupleId(3 * STRIPE))), Access::Granted(0));
        assert_eq!(h_store.read(txn(1), Item::Keys(TableId(0), 0)), Access::WaitFor(txn(0)));
        h_store.end(txn(0), true);
        assert_eq!(h_store.read(txn(1), Item::Keys(TableId(0), 0)), Access::Granted(0));
        assert_eq!(h_store.touched.of(txn(1)).held.len(), PARTITIONS);
    }
}
