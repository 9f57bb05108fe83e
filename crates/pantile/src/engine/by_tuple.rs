//! Which write of a transaction is of which tuple.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use pantile_base::{TableId, TupleId};
use smallvec::SmallVec;

type Tuple = (TableId, TupleId);

/// As many are searched one after the other: most transactions write no more, and look
/// only for tuples that they have locked.
const FEW: usize = 16;

/// Numbers of writes by tuple: a list while there are few, then a map.
#[derive(Default)]
pub(crate) struct ByTuple {
    few: SmallVec<[(Tuple, u32); FEW]>,
    many: HashMap<Tuple, u32, FixedState>,
}

impl ByTuple {
    /// The write of a tuple.
    #[inline]
    pub fn get(&self, tuple: Tuple) -> Option<u32> {
        match self.many.is_empty() {
            true => self.few.iter().find(|(of, _)| *of == tuple).map(|(_, write)| *write),
            false => self.many.get(&tuple).copied(),
        }
    }

    /// Notes the write of a tuple that has none yet.
    #[inline]
    pub fn insert(&mut self, tuple: Tuple, write: u32) {
        debug_assert!(self.get(tuple).is_none(), "a tuple is locked once");
        if self.many.is_empty() && self.few.len() < FEW {
            self.few.push((tuple, write));
        } else {
            if !self.few.is_empty() {
                self.many.extend(self.few.drain(..));
            }
            self.many.insert(tuple, write);
        }
    }

    pub fn remove(&mut self, tuple: Tuple) {
        self.few.retain(|(of, _)| *of != tuple);
        self.many.remove(&tuple);
    }

    /// Calls `change` with the number of each write.
    pub fn for_each(&mut self, change: impl FnMut(&mut u32)) {
        self.few.iter_mut().map(|(_, write)| write).chain(self.many.values_mut()).for_each(change);
    }

    /// Forgets all. Clearing a map takes time by its capacity, and one large transaction
    /// must not slow down all that follow.
    #[inline]
    pub fn clear(&mut self, writes: usize) {
        self.few.clear();
        if self.many.capacity() > 64 * (writes + FEW) {
            self.many = HashMap::default();
        } else if !self.many.is_empty() {
            self.many.clear();
        }
    }

    /// Places of the map.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.many.capacity()
    }

    /// Bytes of the map. It fills seven eighths of a power of two of places, each with a byte
    /// of its own.
    pub fn bytes(&self) -> usize {
        let capacity = self.many.capacity();
        let places = if capacity == 0 { 0 } else { (capacity * 8 / 7).next_power_of_two() };
        places * (size_of::<(Tuple, u32)>() + 1)
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.few.len() + self.many.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_are_found_alike() {
        let tuple = |n: u32| (TableId(7), TupleId(u64::from(n)));
        let mut by_tuple = ByTuple::default();
        for count in [0, 1, FEW as u32, FEW as u32 + 1, 100] {
            (0..count).for_each(|n| by_tuple.insert(tuple(n), n));
            by_tuple.for_each(|write| *write += 1);
            assert_eq!(by_tuple.len(), count as usize);
            assert!((0..count).all(|n| by_tuple.get(tuple(n)) == Some(n + 1)));
            assert!(by_tuple.get((TableId(8), TupleId(0))).is_none());
            (0..count).step_by(2).for_each(|n| by_tuple.remove(tuple(n)));
            assert!((0..count).all(|n| by_tuple.get(tuple(n)).is_some() == (n % 2 == 1)));
            by_tuple.clear(count as usize);
            assert_eq!((by_tuple.len(), by_tuple.get(tuple(1))), (0, None));
        }
    }
}
