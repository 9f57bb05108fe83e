//! Tuples as collectors see them.

use std::cell::RefCell;
use std::sync::Arc;

use pantile_base::control::{Control, is_removed};
use pantile_base::{Address, TableId, Timestamp, TupleId, prefetch};
use pantile_cc::Slot;
use pantile_reclaim::{Tuples, Visit};
use pantile_store::DEPENDENCIES;

use crate::engine::anchor::Anchor;
use crate::engine::core::Core;
use crate::engine::table::TableInner;

/// The tuples, for a collector that works under this slot.
pub(crate) struct View<'c> {
    core: &'c Core,
    slot: Slot,
    /// The table of the last call, which is often that of the next.
    last: RefCell<Option<Arc<TableInner>>>,
}

impl<'c> View<'c> {
    pub fn new(core: &'c Core, slot: Slot) -> Self {
        Self { core, slot, last: RefCell::default() }
    }

    /// `None` if the table has been dropped.
    fn table(&self, id: TableId) -> Option<Arc<TableInner>> {
        let mut last = self.last.borrow_mut();
        if last.as_ref().is_none_or(|table| table.id != id) {
            *last = self.core.tables.by_id(id);
        }
        last.clone()
    }

    /// Changes an anchor that names `from` and is not locked.
    fn change(
        &self,
        (table, tuple): (TableId, TupleId),
        from: Address,
        to: Address,
        is_it: impl Fn(Anchor) -> bool,
    ) -> bool {
        let Some(table) = self.table(table) else { return false };
        let cell = table.anchor(tuple);
        let anchor = Anchor::load(cell);
        let fits = anchor.is_at_rest() && anchor.newest() == from && is_it(anchor);
        fits && anchor.try_move(cell, to)
    }
}

impl Tuples for View<'_> {
    fn exists(&self, table: TableId) -> bool {
        // Those that list dependencies have no tuples, and their blocks are freed like all others.
        table == DEPENDENCIES || self.core.tables.by_id(table).is_some()
    }

    fn prefetch(&self, table: TableId, tuple: TupleId) {
        if let Some(table) = self.table(table) {
            prefetch(table.anchor(tuple));
        }
    }

    fn is_newest(&self, table: TableId, tuple: TupleId, address: Address) -> bool {
        let Some(table) = self.table(table) else { return false };
        let anchor = Anchor::load(table.anchor(tuple));
        anchor.is_at_rest() && anchor.newest() == address
    }

    fn relocate(&self, table: TableId, tuple: TupleId, from: Address, to: Address) -> bool {
        self.change((table, tuple), from, to, |_| true)
    }

    fn visit_chain(&self, table: TableId, tuple: TupleId, visit: &mut dyn FnMut(Address)) -> Visit {
        let Some(table) = self.table(table) else { return Visit::Dropped };
        let cell = table.anchor(tuple);
        let anchor = Anchor::load(cell);
        let Some(_lock) = anchor.try_lock_for_cleaning(cell) else { return Visit::Busy };
        if !anchor.newest().is_none() {
            visit(anchor.newest());
        }
        Visit::Done
    }

    fn drop_tombstone(&self, table: TableId, tuple: TupleId, address: Address, begin: Timestamp) -> bool {
        // What an anchor names lies where it says, and stays while this is pinned.
        let is_it = |anchor: Anchor| {
            anchor.is_dead()
                && (is_removed(Control::SameTombstone)
                    || self.core.store.content_header(address).timestamp() == begin)
        };
        let dropped = self.change((table, tuple), address, Address::NONE, is_it);
        if dropped {
            self.core.counters.exhumed(self.slot, address);
        }
        dropped
    }

    fn waiting_tombstones(&self) -> u64 {
        self.core.counters.waiting_tombstones()
    }

    fn live_bytes(&self) -> u64 {
        self.core.counters.live_bytes()
    }
}

#[cfg(test)]
#[path = "view_test.rs"]
mod tests;
