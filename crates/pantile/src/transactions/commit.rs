//! The commit path, the only one that there is: Validate, Append, Publish, Persist, Retire.
//!
//! On a medium where each thread fences for itself, the fence comes before Publish. On a medium
//! where threads share syncs, a commit has only got its sync point by then. It is in flight until
//! that point is durable (`engine/flights.rs`).

use std::time::Duration;

use pantile_base::Timestamp;
use pantile_base::sync::atomic::AtomicU64;
use pantile_media::SyncPoint;
use pantile_reclaim::{LongerChain, OldVersion};
use pantile_store::{Appended, MAX_CONTENTS_PER_TRANSACTION, StoreError, Urgency};

use crate::engine::anchor::Anchor;
use crate::engine::buffers::Buffers;
use crate::engine::counters::Change;
use crate::engine::flights::Flight;
use crate::engine::stale::StaleEntry;
use crate::engine::writes::{Pending, Write};
use crate::transactions::contents::Contents;
use crate::transactions::depends::listed_version;
use crate::transactions::transaction::Transaction;
use crate::types::error::{Error, Result};
use crate::types::isolation::Isolation;

/// Each step of a commit consumes what the step before it returns, so that no
/// step can be left out or come twice.
pub(super) struct Validated(pub(super) Timestamp);

/// The contents are on the medium, but not yet durable.
struct OnMedium<'s> {
    appended: Appended<'s>,
    commit_ts: Timestamp,
}

/// It will be durable at the point, or is.
struct Joined {
    commit_ts: Timestamp,
    point: Option<SyncPoint>,
}

pub(crate) struct Published {
    joined: Joined,
    change: Change,
}

struct Persisted {
    commit_ts: Timestamp,
    change: Change,
}

struct Retired {
    commit_ts: Timestamp,
    change: Change,
    /// Index entries that have become stale.
    stale: usize,
}

impl Published {
    /// Where it is visible.
    pub fn timestamp(&self) -> Timestamp {
        self.joined.commit_ts
    }

    /// When it will be durable; `None` if it is.
    pub fn point(&self) -> Option<SyncPoint> {
        self.joined.point
    }
}

impl OnMedium<'_> {
    fn join(self) -> Result<Joined, StoreError> {
        let Self { appended, commit_ts } = self;
        appended.begin_persist().map(|point| Joined { commit_ts, point })
    }
}

impl Transaction {
    /// Makes the writes durable and visible, all or none, and returns their timestamp.
    ///
    /// Every transaction that begins after the call sees them.
    ///
    /// # Errors
    /// [`Error::StorageFull`], [`Error::Conflict`], [`Error::TableDropped`],
    /// [`Error::TransactionTooLarge`], [`Error::TransactionEnded`], and [`Error::DuplicateKey`] of a
    /// unique index that was created beside the transaction: the transaction has been rolled back.
    ///
    /// [`Error::MediumFailed`]: the commit may or may not be there when the database is next
    /// opened. If the write failed, the transaction has been rolled back in memory. If the sync
    /// failed, its writes stay, and others may have seen them. Nobody can commit on top of them,
    /// and a transaction that only reads gets the same error when it reads them.
    pub fn commit(mut self) -> Result<Timestamp> {
        let began = self.when_timed();
        let published = self.make_visible()?;
        let landed = self.land(published);
        if let Some(began) = began {
            let took = self.core.registry.clock().elapsed().saturating_sub(began);
            self.core.insight.latencies.note(self.slot, took);
        }
        landed
    }

    /// Now, if the commit writes and is one of those that are timed.
    fn when_timed(&self) -> Option<Duration> {
        let is_timed = !self.buffers.writes.is_empty() && self.core.counters.is_timed(self.slot);
        is_timed.then(|| self.core.registry.clock().elapsed())
    }

    /// All that comes before the transaction is visible. Without writes there is
    /// nothing to be seen, and only what it has read may not be durable yet.
    pub(crate) fn make_visible(&mut self) -> Result<Published> {
        if self.prepared.is_none() {
            self.check_ended()?;
        }
        if self.buffers.writes.is_empty() {
            if self.under.is_some() {
                self.ts = self.validate_under_protocol()?;
            }
            let joined = Joined { commit_ts: self.ts, point: self.last_met() };
            return Ok(Published { joined, change: Change::default() });
        }
        if self.prepared.is_some() {
            self.core.registry.set_told_to_commit(self.slot);
        }
        let validated = match self.settled_before() {
            Some(at) => {
                // After a rollback that failed, its record is another's.
                self.list_appends()?;
                Validated(at)
            }
            None => self.validate_commit()?,
        };
        let joined = if self.buffers.appends.is_empty() {
            // It has only locked rows. Like one without writes it waits for what it has read.
            Joined { commit_ts: validated.0, point: self.last_met() }
        } else {
            let appended = self.append(validated)?;
            // All that the transaction wrote is durable with one fence, and is its own
            // evidence that it has committed.
            let joined = appended.join();
            joined.map_err(|e| self.core.store_error(e))?
        };
        Ok(self.publish_writes(joined))
    }

    /// All that comes after it is visible.
    pub(crate) fn land(&mut self, published: Published) -> Result<Timestamp> {
        let persisted = self.persist(published)?;
        let retired = self.retire(persisted);
        Ok(self.end(retired))
    }

    /// Looks at the table definitions for the last time and settles the
    /// timestamp. Conflicts with writers were found when the locks were taken.
    pub(super) fn validate_commit(&mut self) -> Result<Validated> {
        self.core.check_open()?;
        self.read_ahead();
        self.announce();
        // Those of a prepared transaction's tables have stayed since (I-32).
        if self.prepared.is_none() {
            self.check_definitions()?;
        }
        self.list_appends()?;
        Ok(Validated(match self.isolation {
            _ if self.under.is_some() => self.validate_under_protocol()?,
            Isolation::Serializable => self.settle()?,
            Isolation::Snapshot | Isolation::ReadCommitted => {
                self.core.registry.draw_commit(self.slot, self.newest_met.get())
            }
        }))
    }

    /// Lists the writes that append a content.
    pub(super) fn list_appends(&mut self) -> Result<()> {
        let buffers = &mut *self.buffers;
        let (core, rows_in_use) = (&self.core, &self.rows_in_use);
        // One that is prepared may have tried before, in vain.
        buffers.appends.clear();
        buffers.appends.extend((0..buffers.writes.len() as u32).filter(|&n| {
            let write = &buffers.writes[n as usize];
            match write.pending {
                Pending::Nothing => false,
                Pending::Row { .. } => true,
                // A row that was inserted and deleted again needs no content.
                Pending::Tombstone => rows_in_use.is_row(core, write.base),
            }
        }));
        if buffers.appends.len() as u64 > MAX_CONTENTS_PER_TRANSACTION {
            return Err(Error::TransactionTooLarge);
        }
        Ok(())
    }

    /// Announces the commit, before the last look at definitions and marks.
    pub(super) fn announce(&self) {
        if self.moves || self.marks_gaps {
            self.core.registry.set_deciding(self.slot);
        } else {
            self.core.registry.set_committing(self.slot);
        }
    }

    /// Writes one content for each tuple that has changed.
    fn append(&mut self, Validated(commit_ts): Validated) -> Result<OnMedium<'_>> {
        self.list_dependencies()?;
        let Self { core, buffers, slot, starved, prepared, frees, .. } = self;
        let Buffers { appends, addresses, writes, tables, rows, dependencies, .. } = &mut **buffers;
        let contents = Contents {
            appends: appends.iter(),
            list: dependencies,
            writes,
            tables,
            rows,
            timestamp: commit_ts,
            of_transaction: appends.len() as u64 + u64::from(!dependencies.is_empty()),
        };
        let deletes = |&n: &u32| matches!(writes[n as usize].pending, Pending::Tombstone);
        let urgency = match *frees || appends.iter().all(deletes) {
            _ if prepared.is_some() => Urgency::Promised,
            true => Urgency::Delete,
            false => Urgency::Write,
        };
        let registry = &core.registry;
        let now = || registry.draw_unread(*slot);
        match core.store.append(slot.index(), urgency, contents, now, addresses) {
            Ok(appended) => Ok(OnMedium { appended, commit_ts }),
            Err(e) => {
                let error = core.name_holder(core.store_error(e), *slot);
                *starved = matches!(error, Error::StorageFull { .. });
                Err(error)
            }
        }
    }

    /// Makes the new versions visible, one tuple after the other. A transaction
    /// that reads at or above the timestamp waits at the tuples still locked,
    /// so none sees half a transaction.
    fn publish_writes(&mut self, joined: Joined) -> Published {
        let Joined { commit_ts, point } = joined;
        let change = self.supersede(commit_ts);
        if self.core.reclaimer.wants_chains() {
            self.show_chains();
        }
        if let Some(point) = point {
            self.core.flights.enter(Flight { timestamp: commit_ts, point });
        }
        for (&n, &address) in self.buffers.appends.iter().zip(&self.buffers.addresses) {
            let write = &self.buffers.writes[n as usize];
            Anchor::publish(self.anchor_of(write), address);
        }
        if self.buffers.appends.len() < self.buffers.writes.len() {
            self.unlock_unchanged(commit_ts);
        }
        if self.under.is_some() {
            self.leave_protocol(true);
        }
        // Not only at the end: before that come a sync, or a step of the collector.
        self.core.registry.wake(self.slot);
        self.is_visible = true;
        self.note_memory();
        Published { joined, change }
    }

    /// Waits until the transaction is durable, and so all that it depends on: they
    /// have got an earlier point or the same.
    fn persist(&mut self, Published { joined, change }: Published) -> Result<Persisted> {
        let Joined { commit_ts, point } = joined;
        if let Some(point) = point {
            // If that fails, the commit stays in flight: what others see cannot be
            // taken back.
            self.await_point(point)?;
            self.core.flights.land(commit_ts);
        }
        Ok(Persisted { commit_ts, change })
    }

    /// Links the new versions to those that they supersede.
    fn supersede(&mut self, commit_ts: Timestamp) -> Change {
        let (core, rows_in_use) = (&self.core, &self.rows_in_use);
        let store = &core.store;
        let cache = core.row_cache.as_ref().filter(|_| rows_in_use.is_cached);
        let Buffers { appends, addresses, writes, tables, superseded, .. } = &mut *self.buffers;
        let mut change = Change::default();
        // What the last table has more than before.
        let (slot, mut table, mut more) = (self.slot.index(), 0, Change::default());
        let mut count = |of: u32, by: Change| {
            if of != table {
                tables[table as usize].table.rows.change(slot, std::mem::take(&mut more));
                table = of;
            }
            more += by;
            change += by;
        };
        for (&n, &address) in appends.iter().zip(&*addresses) {
            let write = &writes[n as usize];
            let now = match write.pending {
                Pending::Row { len, .. } => Change::of_row(len as usize),
                Pending::Nothing | Pending::Tombstone => Change::default(),
            };
            if write.base.is_none() {
                count(write.table, now);
                continue;
            }
            let (old_ts, was_row, old_len) = rows_in_use
                .look(core, write.base, |old| (old.timestamp(), !old.flags().is_tombstone(), old.row_len()));
            assert!(old_ts < commit_ts, "chains run from newest to oldest (I-2)");
            if write.has_chain() {
                store.set_link(address, write.base, old_ts);
            }
            superseded.push(OldVersion {
                table: tables[write.table as usize].table.id,
                tuple: write.tuple,
                address: write.base,
                begin_ts: old_ts,
                end_ts: commit_ts,
                linked: write.has_chain(),
            });
            let before = match was_row {
                true => tables[write.table as usize].table.counted(old_ts, old_len),
                false => Change::default(),
            };
            count(write.table, now - before);
            if let Some(cache) = cache {
                store.keep_successor(cache, write.base, address);
            }
        }
        tables[table as usize].table.rows.change(slot, more);
        change
    }

    /// Shows the chains that have become longer to a collector that asks for them.
    #[cold]
    fn show_chains(&self) {
        let Buffers { appends, addresses, writes, superseded, .. } = &*self.buffers;
        let versions = appends.iter().map(|&n| &writes[n as usize]).zip(addresses);
        let new = versions.filter(|(write, _)| !write.base.is_none()).map(|(_, address)| *address);
        let pairs = new.zip(superseded).filter(|(_, old)| old.linked);
        let chains: Vec<_> = pairs.map(|(newest, &old)| LongerChain { newest, old }).collect();
        self.core.with_collector(self.permit(), |collector, context| {
            collector.extended(context, &chains);
            Ok(())
        });
    }

    fn anchor_of(&self, write: &Write) -> &AtomicU64 {
        self.buffers.tables[write.table as usize].table.anchor(write.tuple)
    }

    /// Unlocks tuples that were locked and not changed. They count as read.
    fn unlock_unchanged(&mut self, commit_ts: Timestamp) {
        let Buffers { appends, by_tuple, writes, tables, stale, .. } = &mut *self.buffers;
        // Rows that were inserted and deleted again. Their anchors may name tombstones
        // of earlier rows, and an image takes such an anchor for that of a row unless
        // an entry waits.
        let has_content = |n: &u32| appends.binary_search(n).is_ok();
        let is_of_none = |entry: &mut StaleEntry| {
            by_tuple.find((entry.table, entry.tuple), writes, tables).is_some_and(|n| !has_content(&n))
        };
        let gone: Vec<_> = stale.extract_if(.., is_of_none).collect();
        for entry in &gone {
            if let Some(table) = self.core.tables.in_use(entry.table) {
                self.mark_gap(&table, entry);
            }
        }
        self.core.stale.push_all(self.slot, commit_ts, gone.into_iter());
        if self.buffers.writes.len() > self.buffers.appends.len() {
            // The transaction that locks such a row next learns nothing of this commit from it, and yet begins its next
            // statement after it.
            self.core.registry.await_passed(commit_ts);
        }
        let mut appends = self.buffers.appends.iter().peekable();
        for (n, write) in self.buffers.writes.iter().enumerate() {
            if appends.next_if(|&&a| a as usize == n).is_none() {
                let table = &self.buffers.tables[write.table as usize].table;
                self.core.marks.raise(table.id, write.tuple, commit_ts);
                Anchor::publish(table.anchor(write.tuple), write.base);
            }
        }
    }

    /// Hands superseded versions to the collector and stale entries to the cleaner.
    fn retire(&mut self, Persisted { commit_ts, change }: Persisted) -> Retired {
        if self.buffers.writes.is_empty() {
            return Retired { commit_ts, change, stale: 0 };
        }
        let buffers = &mut *self.buffers;
        let permit = self.permit.as_ref().expect("the transaction has not ended");
        if !buffers.dependencies.is_empty() {
            let address = *buffers.addresses.last().expect("the list has been appended");
            buffers.superseded.push(listed_version(address, commit_ts));
        }
        // Nobody begins below it any more (external consistency). And a state record covers what was done before it,
        // whatever timestamp that has.
        let now = self.core.registry.await_passed(commit_ts);
        self.core.with_collector(permit, |collector, context| {
            buffers.superseded.iter().try_for_each(|old| collector.superseded(context, old, now))
        });
        let stale = buffers.stale.len();
        self.core.stale.push_all(self.slot, commit_ts, buffers.stale.drain(..));
        Retired { commit_ts, change, stale }
    }

    /// Acknowledges the commit.
    fn end(&mut self, Retired { commit_ts, change, stale }: Retired) -> Timestamp {
        let wrote = !self.buffers.writes.is_empty();
        self.core.counters.committed(self.slot, change);
        if wrote {
            // As long as the transaction has its slot, nothing that upkeep
            // looks at is freed (T6).
            self.core.maintain(self.permit(), stale);
        }
        self.finish();
        commit_ts
    }

    /// Tables may have been dropped and indexes created since the writes were
    /// made. Keys of new indexes are entered now, before anything is visible.
    pub(super) fn check_definitions(&mut self) -> Result<()> {
        let mut last = u32::MAX;
        for n in 0..self.buffers.writes.len() {
            let write = self.buffers.writes[n];
            let used = &self.buffers.tables[write.table as usize];
            if write.table != last {
                if used.table.is_dropped() {
                    return Err(Error::TableDropped(used.table.name()));
                }
                last = write.table;
            }
            if used.table.indexes_version() != used.indexes_version {
                // It may wait for others there, and readers must not wait for that: nor those that do
                // already.
                self.core.registry.set_committing(self.slot);
                self.core.registry.wake(self.slot);
                self.enter_new_indexes(write)?;
                self.announce();
            }
        }
        Ok(())
    }
}
