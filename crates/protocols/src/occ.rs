//! Optimistic concurrency control: H. Kung and J. Robinson, "On Optimistic Methods for Concurrency Control", TODS
//! 1981, 5 (parallel validation).
//!
//! Transactions are validated one at a time. One may commit if nothing that it has read was written
//! by one that was validated since it began, or is still publishing. There writes are private until
//! then; here they have locked their tuples when they were made. Ranges are looked at again instead
//! of being compared with what others have written.
//!
//! It reads no old version. For the collectors it keeps, by its slot, what it has been handed until it ends; write
//! sets that it compares are in its own memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use pantile_base::Timestamp;
use pantile_base::sync::Mutex;
use pantile_cc::{Committing, ConcurrencyControl, Item, Protocol, ProtocolDescription, Reads, Refusal, Txn};

use crate::by_slot::BySlot;

/// Kung and Robinson's optimistic concurrency control.
pub const OCC: Protocol = Protocol::new(&ProtocolDescription {
    name: "occ",
    about: "optimistic: what was read is compared with what others have written since",
    reads: Reads::Newest,
    orders_by_timestamp: true,
    build: || Box::new(Occ::default()),
});

type WriteSet = Arc<[Item]>;

#[derive(Default)]
struct Occ {
    validation: Mutex<Validation>,
    /// The number of the first write set that each has to look at.
    first: BySlot<u64>,
}

#[derive(Default)]
struct Validation {
    /// What those have written that have published, with their numbers.
    published: VecDeque<WriteSet>,
    /// The number of the first of these.
    first: u64,
    /// What those write that have been validated and not published yet.
    publishing: Vec<(Txn, WriteSet)>,
    /// Running transactions by the first number that they have to look at.
    running: BTreeMap<u64, usize>,
}

impl Validation {
    fn next(&self) -> u64 {
        self.first + self.published.len() as u64
    }

    fn begin(&mut self) -> u64 {
        let first = self.next();
        *self.running.entry(first).or_default() += 1;
        first
    }

    /// Forgets what nobody has to look at any more.
    fn end(&mut self, first: u64) {
        if let Some(count) = self.running.get_mut(&first) {
            *count -= 1;
            if *count == 0 {
                self.running.remove(&first);
            }
        }
        let needed = self.running.keys().next().copied().unwrap_or_else(|| self.next());
        while self.first < needed && self.published.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// Write sets that one with this first number has to look at.
    fn since(&self, first: u64) -> impl Iterator<Item = &WriteSet> {
        let published = self.published.iter().skip((first - self.first) as usize);
        published.chain(self.publishing.iter().map(|(_, set)| set))
    }
}

impl ConcurrencyControl for Occ {
    fn begin(&self, txn: Txn) {
        *self.first.of(txn) = self.validation.lock().begin();
    }

    fn validate(&self, commit: &dyn Committing) -> Result<Timestamp, Refusal> {
        let (txn, reads) = (commit.txn(), commit.reads());
        let writes: WriteSet = commit.writes().into();
        let first = *self.first.of(txn);
        let has_read = |item: &Item| reads.binary_search_by(|read| read.item.cmp(item)).is_ok();
        let is_row = |item: &&Item| matches!(item, Item::Tuple(..));
        let to = {
            let mut validation = self.validation.lock();
            if validation.since(first).any(|set| set.iter().filter(is_row).any(has_read)) {
                return Err(Refusal::ReadChanged);
            }
            if !writes.is_empty() {
                validation.publishing.push((txn, writes));
            }
            // In the order in which they are validated.
            commit.draw()
        };
        commit.ranges_hold(to)?;
        Ok(to)
    }

    fn end(&self, txn: Txn, has_written: bool) {
        let mut validation = self.validation.lock();
        if let Some(at) = validation.publishing.iter().position(|(of, _)| *of == txn) {
            let (_, set) = validation.publishing.swap_remove(at);
            if has_written {
                validation.published.push_back(set);
            }
        }
        let first = *self.first.of(txn);
        validation.end(first);
    }
}

#[cfg(test)]
mod tests {
    use pantile_base::{TableId, TupleId};

    use super::*;

    #[test]
    fn write_sets_are_kept_as_long_as_one_runs_that_began_before() {
        let mut validation = Validation::default();
        let set = |n| -> WriteSet { [Item::Tuple(TableId(1), TupleId(n))].into() };
        let old = validation.begin();
        validation.published.push_back(set(1));
        let new = validation.begin();
        validation.published.push_back(set(2));
        assert_eq!((validation.since(old).count(), validation.since(new).count()), (2, 1));
        validation.end(old);
        assert_eq!((validation.published.len(), validation.since(new).count()), (1, 1));
        assert_eq!(validation.since(new).next(), Some(&set(2)));
        validation.end(new);
        assert_eq!((validation.published.len(), validation.next()), (0, 2));
    }
}
