//! What a transaction does when it meets a version whose commit is in flight.
//!
//! One that writes goes on, and its contents will say on which commits it
//! depends (I-25). One that only reads waits, so what it returns stays.

use pantile_base::control::{Control, is_removed};
use pantile_base::{Address, Timestamp, TupleId};
use pantile_media::SyncPoint;
use pantile_reclaim::OldVersion;
use pantile_store::{ContentFlags, DEPENDENCIES, MAX_CONTENTS_PER_TRANSACTION, NewContent};

use crate::engine::failure::from_medium;
use crate::engine::flights::Flight;
use crate::transactions::transaction::Transaction;
use crate::types::error::Result;

/// Commits that a content lists, at most. A transaction that depends on more
/// waits for them.
const MOST_LISTED: usize = 30;

/// Commits that a transaction has met from which on it forgets those that have become durable.
const MANY_MET: usize = 64;

/// The tuple that contents with dependencies are versions of. No index leads to
/// it and no anchor names them.
const NO_TUPLE: TupleId = TupleId(0);

impl Transaction {
    /// Notes that the transaction has met a version. If it only reads and must
    /// wait first, returns until when.
    #[inline]
    pub(super) fn meet(&self, version: Timestamp) -> Option<SyncPoint> {
        match self.core.flights.may_have(version) {
            true => self.meet_in_flight(version),
            false => None,
        }
    }

    /// The same of the newest version of a tuple, whatever the transaction shows.
    #[inline]
    pub(super) fn meet_newest(&self, version: Timestamp) {
        // Only transactions that write get here, and they need not wait.
        let met = self.meet(version);
        debug_assert!(met.is_none());
        self.come_behind(version);
    }

    /// If it draws the timestamp of its commit, that will be above this one.
    pub(super) fn come_behind(&self, other: Timestamp) {
        self.newest_met.set(self.newest_met.get().max(other));
    }

    #[cold]
    fn meet_in_flight(&self, version: Timestamp) -> Option<SyncPoint> {
        let flight = self.core.flights.find(version, |point| self.is_durable(point))?;
        if self.read_only {
            let last = self.core.flights.last_at(self.ts).max(Some(flight.point));
            return last.filter(|_| !is_removed(Control::ReadsAwait));
        }
        self.depend_on(flight);
        None
    }

    pub(super) fn depend_on(&self, flight: Flight) {
        let mut depends = self.buffers.depends.borrow_mut();
        // A long transaction meets many, and few of them are still in flight.
        if depends.len() == depends.capacity() && depends.len() >= MANY_MET {
            self.core.flights.retain(&mut depends, |point| self.is_durable(point));
        }
        if !depends.contains(&flight) && !is_removed(Control::ReadsDepend) {
            depends.push(flight);
        }
    }

    fn is_durable(&self, point: SyncPoint) -> bool {
        self.core.store.medium().is_durable(point)
    }

    /// Waits until a point is durable.
    pub(super) fn await_point(&self, point: SyncPoint) -> Result<()> {
        self.core.store.medium().end_fence(point).map_err(from_medium)
    }

    /// Waits until all is durable that the transaction has met.
    pub(super) fn await_met(&mut self) -> Result<()> {
        self.last_met().map_or(Ok(()), |point| self.await_point(point))
    }

    /// When all is durable that the transaction has met.
    pub(super) fn last_met(&mut self) -> Option<SyncPoint> {
        self.buffers.depends.get_mut().iter().map(|flight| flight.point).max()
    }

    /// Writes down the commits on which it depends, as the row of a content. Those
    /// that are durable by now need not be listed: what they depended on is
    /// durable too.
    pub(super) fn list_dependencies(&mut self) -> Result<()> {
        if self.buffers.depends.get_mut().is_empty() {
            return Ok(());
        }
        let Self { core, buffers, .. } = self;
        core.flights.retain(buffers.depends.get_mut(), |point| core.store.medium().is_durable(point));
        // The list is one content more.
        let is_full = self.buffers.appends.len() as u64 >= MAX_CONTENTS_PER_TRANSACTION;
        if self.buffers.depends.get_mut().len() > MOST_LISTED || is_full {
            self.await_met()?;
            self.buffers.depends.get_mut().clear();
        }
        let buffers = &mut *self.buffers;
        buffers.dependencies.clear();
        for flight in buffers.depends.get_mut() {
            buffers.dependencies.extend_from_slice(&flight.timestamp.get().to_le_bytes());
        }
        Ok(())
    }
}

/// The content that lists dependencies.
pub(super) fn listing(row: &[u8], timestamp: Timestamp, transaction_contents: u64) -> NewContent<'_> {
    NewContent {
        table: DEPENDENCIES,
        tuple: NO_TUPLE,
        flags: ContentFlags::ROW,
        layout: 0,
        since: None,
        timestamp,
        transaction_contents,
        row,
    }
}

/// The content that lists dependencies, as a version that nobody needs: its
/// transaction is durable.
pub(super) fn listed_version(address: Address, timestamp: Timestamp) -> OldVersion {
    OldVersion {
        table: DEPENDENCIES,
        tuple: NO_TUPLE,
        address,
        begin_ts: timestamp,
        end_ts: timestamp,
        linked: false,
    }
}
