//! The commit path, the only one there is: Validate, Append, Persist,
//! Publish, Retire.

use pantile_base::sync::atomic::AtomicU64;
use pantile_base::{Address, Timestamp};
use pantile_reclaim::OldVersion;
use pantile_store::{
    Age, Appended, ContentFlags, HEADER_BYTES, Layout, MAX_CONTENTS_PER_TRANSACTION, NewContent, Store,
    Urgency,
};

use crate::engine::anchor::Anchor;
use crate::engine::buffers::{Buffers, Pending, Write};
use crate::engine::counters::Change;
use crate::transactions::transaction::Transaction;
use crate::types::error::{Error, Result};
use crate::types::options::Isolation;

impl Transaction {
    /// Makes the writes durable and visible, all or none, and tells at which
    /// timestamp. Once it returns, every transaction that begins sees them.
    ///
    /// # Errors
    /// [`Error::StorageFull`], [`Error::Conflict`], [`Error::TableDropped`],
    /// [`Error::TransactionTooLarge`]: the transaction has been rolled back.
    /// [`Error::MediumFailed`]: it has been rolled back in memory, and whether
    /// it is found when the database is next opened is open.
    pub fn commit(mut self) -> Result<Timestamp> {
        if self.buffers.writes.is_empty() {
            return Ok(self.end(self.ts, Change::default()));
        }
        let commit_ts = self.validate_commit()?;
        // The contents of the transaction are durable after this line, in one
        // fence, and are their own evidence that it has committed.
        let persisted = self.append(commit_ts)?.persist();
        persisted.map_err(|e| self.core.store_error(e))?;
        let change = self.publish(commit_ts);
        self.retire(commit_ts);
        Ok(self.end(commit_ts, change))
    }

    /// Looks at the table definitions for the last time and settles the
    /// timestamp. Conflicts were found when the locks were taken.
    fn validate_commit(&mut self) -> Result<Timestamp> {
        self.core.check_open()?;
        self.core.registry.set_committing(self.slot);
        self.check_definitions()?;
        let buffers = &mut *self.buffers;
        let core = &self.core;
        buffers.appends.extend((0..buffers.writes.len() as u32).filter(|&n| {
            let write = &buffers.writes[n as usize];
            match write.pending {
                Pending::Nothing => false,
                Pending::Row { .. } => true,
                // Inserted and deleted again: there is nothing to say.
                Pending::Tombstone => {
                    !write.base.is_none() && !core.store.content(write.base).flags().is_tombstone()
                }
            }
        }));
        if buffers.appends.len() as u64 > MAX_CONTENTS_PER_TRANSACTION {
            return Err(Error::TransactionTooLarge);
        }
        Ok(match self.isolation {
            Isolation::Serializable => self.ts,
            Isolation::Snapshot | Isolation::ReadCommitted => self.core.registry.draw_commit(self.slot),
        })
    }

    fn append(&mut self, commit_ts: Timestamp) -> Result<Appended<'_>> {
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
                age: if write.base.is_none() || write.is_new { Age::First } else { Age::Later },
                txn_id: commit_ts,
                transaction_contents: appends.len() as u64,
                row,
            }
        });
        let deletes = |&n: &u32| matches!(writes[n as usize].pending, Pending::Tombstone);
        let urgency = if appends.iter().all(deletes) { Urgency::Delete } else { Urgency::Write };
        // In delta storage what is superseded is appended beside. What is only
        // deleted stays where it lies, or a full medium could take no deletes (T14).
        let is_copied = core.store.layout() == Layout::Delta && urgency == Urgency::Write;
        let copied = if is_copied { &appends[..] } else { &[] };
        let base = |n: &u32| (&writes[*n as usize], writes[*n as usize].base);
        let copies = copied.iter().map(base).filter(|(write, _)| write.has_chain()).map(|(write, base)| {
            let old = core.store.content(base);
            NewContent {
                table: tables[write.table as usize].table.id,
                tuple: write.tuple,
                flags: old.flags().superseded(),
                age: Age::Superseded,
                txn_id: old.txn_id(),
                transaction_contents: old.transaction_contents(),
                row: old.row(),
            }
        });
        let contents = contents.chain(copies);
        let registry = &core.registry;
        let appended = core.store.append(slot.index(), urgency, contents, || registry.draw(*slot), addresses);
        appended.map_err(|e| {
            let error = core.store_error(e);
            *starved = matches!(error, Error::StorageFull { .. });
            error
        })
    }

    /// Makes the new versions visible, one tuple after the other. Whoever
    /// reads at or above the timestamp waits at the tuples still locked, so
    /// nobody sees half a transaction.
    fn publish(&mut self, commit_ts: Timestamp) -> Change {
        let store = &self.core.store;
        let prunes = self.core.reclaimer.prunes();
        // Addresses of copies, if there are any, come after those of versions.
        let mut next_copy = self.buffers.appends.len();
        let mut change = Change::default();
        for n in 0..self.buffers.appends.len() {
            let address = self.buffers.addresses[n];
            let write = self.buffers.writes[self.buffers.appends[n] as usize];
            if let Pending::Row { len, .. } = write.pending {
                change.tuples += 1;
                change.live_bytes += (len + HEADER_BYTES) as i64;
            }
            if !write.base.is_none() {
                let old = store.content(write.base);
                debug_assert!(old.txn_id() < commit_ts, "chains run from newest to oldest (I-2)");
                let copy = self.buffers.addresses.get(next_copy).filter(|_| write.has_chain());
                next_copy += usize::from(copy.is_some());
                let copy = copy.copied().unwrap_or(Address::NONE);
                let superseded = OldVersion {
                    table: self.buffers.tables[write.table as usize].table.id,
                    tuple: write.tuple,
                    address: write.base,
                    begin_ts: old.txn_id(),
                    end_ts: commit_ts,
                    copy,
                    linked: write.has_chain(),
                };
                if superseded.linked {
                    link(store, address, &superseded);
                    if prunes {
                        self.core.with_collector(self.slot, |collector, context| {
                            collector.extended(context, address, &superseded);
                            Ok(())
                        });
                    }
                }
                self.buffers.superseded.push(superseded);
                if !old.flags().is_tombstone() {
                    change.tuples -= 1;
                    change.live_bytes -= (old.row().len() + HEADER_BYTES) as i64;
                }
            }
            Anchor::publish(self.anchor_of(&write), address);
        }
        if self.buffers.appends.len() < self.buffers.writes.len() {
            self.unlock_unchanged();
        }
        change
    }

    fn anchor_of(&self, write: &Write) -> &AtomicU64 {
        self.buffers.tables[write.table as usize].table.anchor(write.tuple)
    }

    /// Unlocks tuples that were locked and not changed; they stay read.
    fn unlock_unchanged(&self) {
        let mut appends = self.buffers.appends.iter().peekable();
        for (n, write) in self.buffers.writes.iter().enumerate() {
            if appends.next_if(|&&a| a as usize == n).is_none() {
                let table = &self.buffers.tables[write.table as usize].table;
                self.core.marks.raise(table.id, write.tuple, self.ts);
                Anchor::publish(table.anchor(write.tuple), write.base);
            }
        }
    }

    /// Hands what has been superseded to the collector and to the cleaner.
    fn retire(&mut self, commit_ts: Timestamp) {
        let buffers = &mut *self.buffers;
        // What is durable is counted by when it was done, not by timestamps.
        let now = self.core.registry.now().max(commit_ts);
        self.core.with_collector(self.slot, |collector, context| {
            buffers.superseded.iter().try_for_each(|old| collector.superseded(context, old, now))
        });
        self.core.stale.push_all(self.slot, commit_ts, buffers.stale.drain(..));
    }

    /// Acknowledges.
    fn end(&mut self, commit_ts: Timestamp, change: Change) -> Timestamp {
        let wrote = !self.buffers.writes.is_empty();
        self.core.counters.committed(self.slot, change);
        if wrote {
            self.core.registry.await_passed(commit_ts);
            // While the slot is ours, nothing that is looked at can go (T6).
            self.core.maintain(self.slot);
        }
        self.finish();
        commit_ts
    }

    /// Tables may have been dropped and indexes made since the writes were
    /// made; keys of the latter are entered now, before anything is visible.
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
                self.enter_new_indexes(write)?;
            }
        }
        Ok(())
    }
}

/// Links a new version to the one before it, or to the copy of that.
fn link(store: &Store, newest: Address, old: &OldVersion) {
    let mut older = old.address;
    if !old.copy.is_none() {
        older = old.copy;
        if let Some(link) = store.link(old.address) {
            store.copy_link(older, link);
        }
    }
    store.set_link(newest, older, old.begin_ts);
}
