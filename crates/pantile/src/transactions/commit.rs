//! The commit path, the only one there is: Validate, Append, Persist,
//! Publish, Retire.

use pantile_base::Timestamp;
use pantile_base::sync::atomic::AtomicU64;
use pantile_reclaim::{LongerChain, OldVersion};
use pantile_store::{
    Appended, ContentFlags, HEADER_BYTES, MAX_CONTENTS_PER_TRANSACTION, NewContent, StoreError, Urgency,
};

use crate::engine::anchor::Anchor;
use crate::engine::buffers::{Buffers, Pending, Write};
use crate::engine::counters::Change;
use crate::transactions::transaction::Transaction;
use crate::types::error::{Error, Result};
use crate::types::isolation::Isolation;

/// Each step of a commit consumes what the step before it returns, so that no
/// step can be left out or come twice.
struct Validated(Timestamp);

/// The contents are on the medium, but not yet durable.
struct OnMedium<'s> {
    appended: Appended<'s>,
    commit_ts: Timestamp,
}

struct Persisted(Timestamp);

struct Published {
    commit_ts: Timestamp,
    change: Change,
}

struct Retired {
    commit_ts: Timestamp,
    change: Change,
}

impl OnMedium<'_> {
    fn persist(self) -> Result<Persisted, StoreError> {
        self.appended.persist().map(|()| Persisted(self.commit_ts))
    }
}

impl Transaction {
    /// Makes the writes durable and visible, all or none, and returns the
    /// timestamp at which they are. Every transaction that begins after the
    /// call sees them.
    ///
    /// # Errors
    /// [`Error::StorageFull`], [`Error::Conflict`], [`Error::TableDropped`],
    /// [`Error::TransactionTooLarge`]: the transaction has been rolled back.
    /// [`Error::MediumFailed`]: it has been rolled back in memory; it may or
    /// may not be there when the database is next opened.
    pub fn commit(mut self) -> Result<Timestamp> {
        if self.buffers.writes.is_empty() {
            return Ok(self.end(Retired { commit_ts: self.ts, change: Change::default() }));
        }
        let validated = self.validate_commit()?;
        let appended = self.append(validated)?;
        // The contents of the transaction are durable after this line, in one
        // fence, and are their own evidence that it has committed.
        let persisted = appended.persist();
        let persisted = persisted.map_err(|e| self.core.store_error(e))?;
        let published = self.publish(persisted);
        let retired = self.retire(published);
        Ok(self.end(retired))
    }

    /// Looks at the table definitions for the last time and settles the
    /// timestamp. Conflicts with writers were found when the locks were taken.
    fn validate_commit(&mut self) -> Result<Validated> {
        self.core.check_open()?;
        self.announce();
        self.check_definitions()?;
        let buffers = &mut *self.buffers;
        let core = &self.core;
        buffers.appends.extend((0..buffers.writes.len() as u32).filter(|&n| {
            let write = &buffers.writes[n as usize];
            match write.pending {
                Pending::Nothing => false,
                Pending::Row { .. } => true,
                // A row that was inserted and deleted again needs no content.
                Pending::Tombstone => {
                    !write.base.is_none() && !core.store.content(write.base).flags().is_tombstone()
                }
            }
        }));
        if buffers.appends.len() as u64 > MAX_CONTENTS_PER_TRANSACTION {
            return Err(Error::TransactionTooLarge);
        }
        Ok(Validated(match self.isolation {
            Isolation::Serializable => self.settle()?,
            Isolation::Snapshot | Isolation::ReadCommitted => {
                self.core.registry.draw_commit(self.slot, self.newest_base())
            }
        }))
    }

    /// Announces the commit, before the last look at definitions and marks.
    fn announce(&self) {
        if self.moves {
            self.core.registry.set_deciding(self.slot);
        } else {
            self.core.registry.set_committing(self.slot);
        }
    }

    /// The newest timestamp of the versions that the commit supersedes.
    pub(super) fn newest_base(&self) -> Timestamp {
        self.buffers.writes.iter().map(|write| write.base_ts).max().unwrap_or(Timestamp::ZERO)
    }

    /// Writes one content for each tuple that has changed.
    fn append(&mut self, Validated(commit_ts): Validated) -> Result<OnMedium<'_>> {
        let Self { core, buffers, slot, starved, .. } = self;
        let Buffers { appends, addresses, writes, tables, rows, .. } = &mut **buffers;
        let contents = appends.iter().map(|&n| {
            let write = &writes[n as usize];
            let (flags, row) = match write.pending {
                Pending::Row { start, len } => (ContentFlags::ROW, &rows[start..start + len]),
                Pending::Nothing | Pending::Tombstone => (ContentFlags::TOMBSTONE, &rows[..0]),
            };
            NewContent {
                table: tables[write.table as usize].table.id,
                tuple: write.tuple,
                flags,
                since: write.has_chain().then_some(write.base_ts),
                timestamp: commit_ts,
                transaction_contents: appends.len() as u64,
                row,
            }
        });
        let deletes = |&n: &u32| matches!(writes[n as usize].pending, Pending::Tombstone);
        let urgency = if appends.iter().all(deletes) { Urgency::Delete } else { Urgency::Write };
        let registry = &core.registry;
        let appended = core.store.append(slot.index(), urgency, contents, || registry.draw(*slot), addresses);
        match appended {
            Ok(appended) => Ok(OnMedium { appended, commit_ts }),
            Err(e) => {
                let error = core.store_error(e);
                *starved = matches!(error, Error::StorageFull { .. });
                Err(error)
            }
        }
    }

    /// Makes the new versions visible, one tuple after the other. A transaction
    /// that reads at or above the timestamp waits at the tuples still locked,
    /// so none sees half a transaction.
    fn publish(&mut self, Persisted(commit_ts): Persisted) -> Published {
        let change = self.supersede(commit_ts);
        if self.core.reclaimer.wants_chains() {
            self.show_chains();
        }
        for (&n, &address) in self.buffers.appends.iter().zip(&self.buffers.addresses) {
            let write = &self.buffers.writes[n as usize];
            Anchor::publish(self.anchor_of(write), address);
        }
        if self.buffers.appends.len() < self.buffers.writes.len() {
            self.unlock_unchanged(commit_ts);
        }
        self.note_memory();
        Published { commit_ts, change }
    }

    /// Links the new versions to those that they supersede.
    fn supersede(&mut self, commit_ts: Timestamp) -> Change {
        let store = &self.core.store;
        let Buffers { appends, addresses, writes, tables, superseded, .. } = &mut *self.buffers;
        let mut change = Change::default();
        for (&n, &address) in appends.iter().zip(&*addresses) {
            let write = &writes[n as usize];
            if let Pending::Row { len, .. } = write.pending {
                change.tuples += 1;
                change.live_bytes += (len + HEADER_BYTES) as i64;
            }
            if write.base.is_none() {
                continue;
            }
            let old = store.content(write.base);
            assert!(old.timestamp() < commit_ts, "chains run from newest to oldest (I-2)");
            if write.has_chain() {
                store.set_link(address, write.base, old.timestamp());
            }
            superseded.push(OldVersion {
                table: tables[write.table as usize].table.id,
                tuple: write.tuple,
                address: write.base,
                begin_ts: old.timestamp(),
                end_ts: commit_ts,
                linked: write.has_chain(),
            });
            if !old.flags().is_tombstone() {
                change.tuples -= 1;
                change.live_bytes -= (old.row().len() + HEADER_BYTES) as i64;
            }
        }
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
    fn unlock_unchanged(&self, commit_ts: Timestamp) {
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
    fn retire(&mut self, Published { commit_ts, change }: Published) -> Retired {
        let buffers = &mut *self.buffers;
        let permit = self.permit.as_ref().expect("the transaction has not ended");
        // A state record covers what was done before it, whatever timestamp
        // that has.
        let now = self.core.registry.now().max(commit_ts);
        self.core.with_collector(permit, |collector, context| {
            buffers.superseded.iter().try_for_each(|old| collector.superseded(context, old, now))
        });
        self.core.stale.push_all(self.slot, commit_ts, buffers.stale.drain(..));
        Retired { commit_ts, change }
    }

    /// Acknowledges the commit.
    fn end(&mut self, Retired { commit_ts, change }: Retired) -> Timestamp {
        let wrote = !self.buffers.writes.is_empty();
        self.core.counters.committed(self.slot, change);
        if wrote {
            self.core.registry.await_passed(commit_ts);
            // As long as the transaction has its slot, nothing that upkeep
            // looks at is freed (T6).
            self.core.maintain(self.permit());
        }
        self.finish();
        commit_ts
    }

    /// Tables may have been dropped and indexes created since the writes were
    /// made. Keys of new indexes are entered now, before anything is visible.
    fn check_definitions(&mut self) -> Result<()> {
        let mut last = u32::MAX;
        for n in 0..self.buffers.writes.len() {
            let write = self.buffers.writes[n];
            let used = &self.buffers.tables[write.table as usize];
            if write.table != last {
                if used.table.is_dropped() {
                    return Err(Error::TableDropped(used.table.schema.name.clone()));
                }
                last = write.table;
            }
            if used.table.indexes_version() != used.indexes_version {
                // It may wait for others there, and readers must not wait for that.
                self.core.registry.set_committing(self.slot);
                self.enter_new_indexes(write)?;
                self.announce();
            }
        }
        Ok(())
    }
}
