//! Ending transactions from outside (I-28), and those that hold back too much.

use std::time::Duration;

use pantile_base::Timestamp;
use pantile_base::limits::TRANSACTION_SLOTS;
use pantile_cc::{Clock, Open, Slot};
use pantile_store::{Held, Reader};

use crate::engine::core::Core;
use crate::engine::holders::{Holder, Purpose};
use crate::engine::still_open::describe;
use crate::types::error::{Error, Holding, Result};
use crate::types::running::{EndedBy, OnPinned, PinnedLimits, TransactionId};

/// How often the limits on what transactions hold back are looked at, at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What helps besides where a database with rows is full.
pub(crate) const OR_DELETE_ROWS: &str = " or delete rows";

/// What one transaction holds back.
pub(crate) struct HeldBy {
    pub open: Open,
    pub holder: Holder,
    pub held: Held,
}

impl Core {
    /// Asks a transaction to end. From here on its calls fail, and so does a commit
    /// that has not begun; what it holds goes when its program drops it.
    pub fn end_transaction(&self, id: TransactionId, by: EndedBy) -> Result<()> {
        let slot = Slot::from_index(id.get() as usize % TRANSACTION_SLOTS);
        // The lock keeps the slot from changing hands: the next holder is not asked.
        let asked = self.buffers.with_holder(slot, |holder| {
            let is_it = holder.id(slot) == id && matches!(holder.purpose, Purpose::Transaction { .. });
            if !is_it {
                return Err(Error::UnknownTransaction(id));
            }
            if holder.is_prepared {
                return Err(Error::TransactionPrepared(id));
            }
            if holder.ended.is_none() {
                holder.ended = Some(by);
                self.registry.ask_to_end(slot);
            }
            Ok(())
        });
        asked.unwrap_or(Err(Error::UnknownTransaction(id)))
    }

    /// From here on nothing ends the transaction but its name (I-32).
    pub fn note_prepared(&self, slot: Slot, id: TransactionId) -> Result<()> {
        let noted = self.buffers.with_holder(slot, |holder| {
            holder.is_prepared = holder.ended.is_none();
            holder.is_prepared
        });
        if noted == Some(true) { Ok(()) } else { Err(self.error_of_ended(slot, id)) }
    }

    /// What the calls of a transaction that was asked to end return.
    pub fn error_of_ended(&self, slot: Slot, id: TransactionId) -> Error {
        let by = self.buffers.holder(slot).and_then(|holder| holder.ended);
        Error::TransactionEnded { id, by: by.expect("it was asked to end") }
    }

    /// Names the transaction that keeps most from being freed, in an error of a
    /// medium that is full. `except` is the slot of the transaction that failed.
    pub fn name_holder(&self, error: Error, except: Slot) -> Error {
        match error {
            Error::StorageFull { detail, .. } => {
                let holder = self.largest_holder(except);
                let by_holder = holder.as_ref().map_or(0, |holder| holder.bytes);
                let detail = detail + OR_DELETE_ROWS;
                let readers = self.reading_processes().into_iter().filter(|r| r.held_bytes > by_holder);
                let detail = match readers.max_by_key(|reader| reader.held_bytes) {
                    Some(reader) => format!("{detail}; {reader}"),
                    None => detail,
                };
                Error::StorageFull { detail, holder: holder.map(Box::new) }
            }
            other => other,
        }
    }

    /// The same for an error that names a holder already, of a transaction that worked for
    /// the one in `except`.
    pub fn name_another_holder(&self, error: Error, except: Slot) -> Error {
        match error {
            Error::StorageFull { detail, holder: Some(_) } => {
                Error::StorageFull { detail, holder: self.largest_holder(except).map(Box::new) }
            }
            other => other,
        }
    }

    fn largest_holder(&self, except: Slot) -> Option<Holding> {
        let holders = self.holders();
        let failed = self.buffers.holder(except);
        let is_other =
            |h: &&HeldBy| h.open.slot != except && !failed.is_some_and(|f| f.is_called_as(&h.holder));
        let others = holders.iter().filter(is_other).filter(|h| h.held.bytes > 0);
        let HeldBy { open, holder, held } = others.max_by_key(|h| h.held.bytes)?;
        Some(Holding::new(describe(open, Some(*holder), self.registry.now()), held.bytes))
    }

    /// What is open and has a name for people, the oldest first, and what each
    /// holds back. Visits every block.
    pub fn holders(&self) -> Vec<HeldBy> {
        self.holders_and_all().0
    }

    /// The same, and the bytes on the medium that any of them holds back.
    pub fn holders_and_all(&self) -> (Vec<HeldBy>, u64) {
        let known = |open: Open| self.holder_of(&open).map(|holder| (open, holder));
        let mut open: Vec<_> = self.registry.open().filter_map(known).collect();
        open.sort_by_key(|(open, _)| open.reads_at);
        // What reads nothing is above everything.
        let reader = |open: &Open| Reader {
            at: open.keeps.unwrap_or(Timestamp::MAX),
            by_statement: open.by_statement,
            began: if open.reads_nothing { Timestamp::MAX } else { open.reads_at },
            uses_newer_tables: open.uses_newer_tables,
        };
        let readers: Vec<_> = open.iter().map(|(open, _)| reader(open)).collect();
        let (held, by_any) = self.store.held(&readers, &self.tables.waiting());
        let named = open.into_iter().zip(held).map(|((open, holder), held)| HeldBy { open, holder, held });
        (named.collect(), by_any)
    }

    /// Warns of transactions that hold back too much, or ends them, as the options
    /// say. Returns when to look again.
    pub fn watch_holders(&self) -> Option<Duration> {
        let limits = *self.pinned.lock();
        let every = match (limits.age, limits.bytes) {
            (None, None) => return None,
            (Some((age, _)), _) => LOOK_EVERY.min(age / 4).max(self.options.gc.epoch),
            (None, Some(_)) => LOOK_EVERY,
        };
        let ends = [limits.age.map(|limit| limit.1), limits.bytes.map(|limit| limit.1)];
        let ends = ends.contains(&Some(OnPinned::End));
        let may_matter = |open: Open| {
            let holder = self.holder_of(&open);
            holder.is_some_and(|h| !is_settled(&h) && (!h.is_noted || ends && !h.is_prepared))
        };
        if !self.registry.open().any(may_matter) {
            return None;
        }
        if self.counters.is_time_to_watch(self.registry.clock().elapsed(), every) {
            self.holders().iter().for_each(|held| self.judge(held, limits));
        }
        Some(every)
    }

    /// Changes the limits. Transactions that were warned of before are looked at
    /// again.
    pub fn limit_pinned(&self, change: impl FnOnce(&mut PinnedLimits)) {
        change(&mut self.pinned.lock());
        for open in self.registry.open() {
            self.buffers.with_holder(open.slot, |holder| holder.is_noted = false);
        }
        self.alarm.look();
    }

    fn judge(&self, by: &HeldBy, limits: PinnedLimits) {
        let HeldBy { open, holder, held } = by;
        if held.bytes == 0 && held.dram == 0 || is_settled(holder) {
            return;
        }
        // Tables that have been dropped are kept since it began, versions since it has read.
        let since = open.keeps.filter(|_| !held.has_dropped).unwrap_or(open.reads_at).tick();
        let age = Clock::duration(self.registry.now().tick().saturating_sub(since));
        let too_old = limits.age.filter(|(limit, _)| age >= *limit);
        let too_large = limits.bytes.filter(|(limit, _)| held.bytes >= *limit);
        let too_old = too_old.map(|(limit, then)| (EndedBy::Age(limit), then));
        let too_large = too_large.map(|(limit, then)| (EndedBy::Bytes(limit), then));
        let broken = [too_old, too_large].into_iter().flatten();
        let Some((limit, then)) = broken.max_by_key(|(_, then)| *then == OnPinned::End) else { return };
        // What is prepared is not for the database to end.
        let then = if holder.is_prepared { OnPinned::Warn } else { then };
        // One warning is enough, but may be followed by the end.
        if then == OnPinned::End || !holder.is_noted {
            self.act(by, limit, then);
        }
    }

    fn act(&self, HeldBy { open, holder, held }: &HeldBy, limit: EndedBy, then: OnPinned) {
        let id = holder.id(open.slot);
        let note = self.buffers.with_holder(open.slot, |now| {
            let is_it = now.id(open.slot) == id && now.reads_at == holder.reads_at;
            now.is_noted |= is_it;
            is_it
        });
        let is_over = note != Some(true) || then == OnPinned::End && self.end_transaction(id, limit).is_err();
        if is_over {
            return;
        }
        self.counters.pinned_too_much(then);
        let transaction = describe(open, Some(*holder), self.registry.now());
        let (bytes, dram) = (held.bytes, held.dram);
        match then {
            OnPinned::Warn => {
                tracing::warn!(%transaction, bytes, dram, "it holds back more than allowed by {limit}");
            }
            OnPinned::End => tracing::warn!(%transaction, bytes, dram, "it has been ended by {limit}"),
        }
    }
}

/// Whether nothing more is to be done about it.
fn is_settled(holder: &Holder) -> bool {
    holder.ended.is_some() || matches!(holder.purpose, Purpose::Work(_))
}
