//! Which write of a transaction is of which tuple.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use foldhash::fast::FixedState;
use pantile_base::{TableId, TupleId};
use pantile_index::SIDE_BY_SIDE;

use crate::engine::writes::{TableUse, Write};

type Tuple = (TableId, TupleId);

/// As many writes are searched one after the other: most transactions write no more, and look
/// only for tuples that they have locked. Unit tests have more.
const FEW: usize = if cfg!(test) { 2 } else { 16 };

/// Numbers of writes by tuple, where there are many. They are entered when somebody asks for one,
/// which a load never does.
#[derive(Default)]
pub(crate) struct ByTuple {
    map: RefCell<HashMap<Tuple, u32, FixedState>>,
    /// How many of the writes, from the first on, are in the map.
    entered: Cell<usize>,
}

impl ByTuple {
    /// The write of a tuple, among those of a transaction that writes to these tables.
    #[inline]
    pub fn find(&self, tuple: Tuple, writes: &[Write], tables: &[TableUse]) -> Option<u32> {
        if writes.len() > FEW {
            let is_newest = writes.last().is_some_and(|newest| is_of(newest, tuple, tables));
            let newest = is_newest.then(|| writes.len() as u32 - 1);
            return newest.or_else(|| self.find_among_many(tuple, writes, tables));
        }
        writes.iter().position(|write| is_of(write, tuple, tables)).map(|n| n as u32)
    }

    /// The same where it is likely to be one of the newest, as what is taken back is: to enter all for
    /// that would take memory when there may be none.
    pub fn find_newest(&self, tuple: Tuple, writes: &[Write], tables: &[TableUse]) -> Option<u32> {
        let newest = writes.iter().rev().take(SIDE_BY_SIDE).position(|write| is_of(write, tuple, tables));
        let found = newest.map(|n| (writes.len() - 1 - n) as u32);
        found.or_else(|| self.find(tuple, writes, tables))
    }

    fn find_among_many(&self, tuple: Tuple, writes: &[Write], tables: &[TableUse]) -> Option<u32> {
        let mut map = self.map.borrow_mut();
        let entered = self.entered.replace(writes.len());
        let more = (entered..).zip(&writes[entered..]);
        map.extend(more.map(|(n, write)| ((tables[write.table as usize].table.id, write.tuple), n as u32)));
        map.get(&tuple).copied()
    }

    /// The newest write, which was of this tuple, has been taken back. This many are left.
    pub fn forget_newest(&mut self, tuple: Tuple, left: usize) {
        if self.entered.get() > left {
            self.map.get_mut().remove(&tuple);
            self.entered.set(left);
        }
    }

    /// Forgets all. Clearing a map takes time by its capacity, and one large transaction
    /// must not slow down all that follow.
    #[inline]
    pub fn clear(&mut self, writes: usize) {
        self.entered.set(0);
        let map = self.map.get_mut();
        if map.capacity() > 64 * (writes + FEW) {
            *map = HashMap::default();
        } else if !map.is_empty() {
            map.clear();
        }
    }

    /// Places of the map.
    #[inline]
    pub fn capacity(&mut self) -> usize {
        self.map.get_mut().capacity()
    }

    /// Bytes of the map. It fills seven eighths of a power of two of places, each with a byte
    /// of its own.
    pub fn bytes(&self) -> usize {
        let capacity = self.map.borrow().capacity();
        let places = if capacity == 0 { 0 } else { (capacity * 8 / 7).next_power_of_two() };
        places * (size_of::<(Tuple, u32)>() + 1)
    }
}

fn is_of(write: &Write, (table, tuple): Tuple, tables: &[TableUse]) -> bool {
    write.tuple == tuple && tables[write.table as usize].table.id == table
}
