//! Reading tuples outside of a transaction, to build indexes and to measure.

use std::panic::Location;
use std::time::Duration;

use pantile_base::{Address, TupleId};
use pantile_cc::{Begin, Slot};

use crate::engine::anchor::{Anchor, Owner};
use crate::engine::core::Core;
use crate::engine::gate::Permit;
use crate::engine::holders::{Holder, Purpose};
use crate::engine::stale::StaleEntry;
use crate::engine::table::TableInner;
use crate::types::error::{Error, Result};
use crate::types::stats::Chains;

/// How long the visitor waits for a commit that is under way.
const SETTLE_WAIT: Duration = Duration::from_secs(10);

/// Holds a slot of the registry, so that what it reads stays meanwhile.
pub(crate) struct Visitor<'c> {
    core: &'c Core,
    slot: Slot,
    permit: Option<Permit>,
}

impl Drop for Visitor<'_> {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            self.core.buffers.leave(self.slot);
            self.core.leave(permit);
        }
    }
}

impl Core {
    /// `work` says to people what it is for.
    #[track_caller]
    pub fn visitor(&self, work: &'static str) -> Result<Visitor<'_>> {
        let (permit, ts) = self.enter(Begin::LateWriter)?;
        let holder = Holder::new(Purpose::Work(work), ts, None, Location::caller());
        self.buffers.occupy(permit.slot(), holder);
        Ok(Visitor { core: self, slot: permit.slot(), permit: Some(permit) })
    }
}

impl Visitor<'_> {
    /// The slot that it holds.
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// Reads the newest committed version of a tuple, once no transaction that
    /// has missed a new index can still publish one. Writers that look at the
    /// table's definition later enter their keys themselves. Tries again while
    /// `look` returns `None`.
    ///
    /// # Errors
    /// [`Error::Timeout`] if it has waited for other transactions too long. The
    /// limit holds for each wait, however many tuples there are.
    pub fn settled<R>(
        &self,
        table: &TableInner,
        tuple: TupleId,
        look: impl Fn(Address) -> Option<R>,
    ) -> Result<R> {
        let registry = &self.core.registry;
        let cell = table.anchor(tuple);
        let mut deadline = None;
        loop {
            let pin = registry.pin(self.slot);
            let anchor = Anchor::load(cell);
            let blocked = match anchor.owner() {
                Owner::Nobody => false,
                Owner::Cleaner => !anchor.is_dead(),
                // One that is prepared has changed nothing in a table whose definition changes (I-32).
                Owner::Transaction(slot) => {
                    registry.is_committing(slot) && !registry.is_prepared(slot)
                        || Anchor::load(cell) != anchor
                }
            };
            if !blocked && let Some(seen) = look(anchor.newest()) {
                return Ok(seen);
            }
            drop(pin);
            let now = registry.clock().elapsed();
            if now >= *deadline.get_or_insert(now + SETTLE_WAIT) {
                return Err(Error::Timeout(SETTLE_WAIT));
            }
            registry.clock().yield_now();
        }
    }

    /// Hands an index entry to the cleaner.
    pub fn hand_over(&self, entry: StaleEntry) {
        self.core.stale.push(self.slot, self.core.registry.now(), entry);
    }

    /// Looks at the checksum of the newest version of a tuple. Returns its bytes,
    /// 0 if it is not a row.
    pub fn verify(&self, table: &TableInner, tuple: TupleId) -> Result<u64> {
        let _pin = self.core.registry.pin(self.slot);
        let newest = Anchor::load(table.anchor(tuple)).newest();
        if newest.is_none() {
            return Ok(0);
        }
        let store = &self.core.store;
        let bytes = store.verify(newest).map_err(|error| self.core.store_error(error))?;
        Ok(if store.content_header(newest).flags().is_tombstone() { 0 } else { bytes })
    }

    /// Adds to `chains` the chain of every `step`th tuple of a table.
    pub fn measure_chains(&self, table: &TableInner, step: u64, chains: &mut Chains) {
        let store = &self.core.store;
        let mut versions = 0;
        for tuple in (0..table.tuples_end()).step_by(step as usize).map(TupleId) {
            let _pin = self.core.registry.pin(self.slot);
            let newest = Anchor::load(table.anchor(tuple)).newest();
            if !store.is_row(newest) {
                continue;
            }
            let length = store.chain_length(newest);
            versions += length;
            chains.tuples += 1;
            chains.max = chains.max.max(length);
        }
        chains.mean += versions as f64;
    }
}

#[cfg(test)]
#[path = "visitor_test.rs"]
mod tests;
