//! Locking tuples, and checking that a write to them is allowed.

use pantile_base::control::{Control, is_removed};
use pantile_base::sync::hint;
use pantile_base::{Address, Timestamp, TupleId};
use pantile_index::{Finger, Index as Tree, Insert};

use crate::engine::anchor::{Anchor, Owner};
use crate::engine::buffers::{Buffers, Undo};
use crate::engine::pieces::is_hidden;
use crate::engine::stale::StaleEntry;
use crate::engine::table::{PRIMARY, TableInner};
use crate::engine::writes::{Pending, TableUse, Write};
use crate::transactions::read::Seen;
use crate::transactions::transaction::Transaction;
use crate::types::error::{Conflict, Error, Result};
use crate::types::isolation::Isolation;
use crate::types::key::Key;
use crate::types::row_id::RowId;

/// How often a transaction begins again in one call, before the call fails.
const MOST_BEGINNINGS: u32 = 8;

/// Which row to write.
#[derive(Clone, Copy)]
pub(super) enum Which<'k> {
    /// The one with this primary key. The tuple is where the index had it, if that is known, at
    /// the moment at which the transaction reads.
    Key(&'k [u64], Option<TupleId>),
    /// The one at this place.
    Row(RowId),
}

/// A tuple that the transaction has locked.
#[derive(Clone, Copy)]
pub(super) struct Held {
    pub write: u32,
    /// This statement has locked it.
    pub fresh: bool,
}

impl Transaction {
    /// Locks the tuple of a key, and enters the key into the index if it is not
    /// there. `None` if a row with the key is visible and must not be replaced.
    ///
    /// `looked_up` is what the index had, if that is known, at the moment at which the
    /// transaction reads now.
    pub(super) fn hold_key(
        &mut self,
        table: &TableInner,
        key: &Key,
        mut looked_up: Option<Option<TupleId>>,
        at: Timestamp,
        replace: bool,
    ) -> Result<Option<Held>> {
        self.core.ready(table)?;
        if looked_up.is_none() && !replace && self.is_near(table, key.words()) {
            // Most likely it is a new one, and if not, its own insert says so.
            looked_up = Some(None);
        }
        loop {
            let look = || table.tree().get(key.words(), None).map(TupleId);
            if let Some(tuple) = looked_up.take().unwrap_or_else(look) {
                if !replace && self.is_in_the_way(table, tuple, at)? {
                    self.note_read(table.id, tuple)?;
                    return Ok(None);
                }
                match self.hold(table, tuple)? {
                    Some(held) => return Ok(Some(held)),
                    None => continue,
                }
            }
            if let Some(held) = self.hold_new(table, key)? {
                return Ok(Some(held));
            }
        }
    }

    /// Whether a row is in the way of a new one with its key, as far as can be said without the
    /// tuple's lock. To say so is a read. Below Serializable it is one of the newest row as well,
    /// which the new one would follow: a transaction that has it locked may be deleting it.
    fn is_in_the_way(&self, table: &TableInner, tuple: TupleId, at: Timestamp) -> Result<bool> {
        if self.isolation != Isolation::Serializable {
            let _pin = self.core.registry.pin(self.slot);
            let anchor = Anchor::load(table.anchor(tuple));
            if !anchor.is_row() || !self.core.store.is_row(anchor.newest()) {
                return Ok(false);
            }
        }
        Ok(matches!(self.read_tuple(table, tuple, at)?, Seen::Row(_)))
    }

    /// Whether a key belongs beside the last one that the slot has entered into the primary
    /// index, so that it takes no descent to enter it.
    pub(super) fn is_near(&self, table: &TableInner, key: &[u64]) -> bool {
        let used = self.buffers.tables.iter().find(|used| used.table.id == table.id);
        used.is_some_and(|used| table.tree().is_near(&used.finger, key))
    }

    /// Makes a tuple for a key that has none. `None` if the key has one.
    fn hold_new(&mut self, table: &TableInner, key: &Key) -> Result<Option<Held>> {
        if self.under.is_some() {
            self.ask_to_change_keys(table, PRIMARY)?;
        }
        self.return_freed();
        let used = self.use_table(table);
        let tuple = table.take_tuple(self.slot.index());
        if self.under.is_some()
            && let Err(error) = self.ask_to_lock(table, tuple)
        {
            table.return_tuple(self.slot.index(), tuple);
            return Err(error);
        }
        self.core.marks.prefetch(table.id, tuple);
        let buried = self.create_locked(table, tuple);
        let insert_ts = self.new_key_ts(table);
        let finger = &self.buffers.tables[used as usize].finger;
        match self.insert_at(table.tree(), finger, key.words(), tuple, insert_ts) {
            Insert::Inserted => {
                let base_ts = self.begin_of(buried);
                let held = self.add_write(used, tuple, buried, base_ts);
                // The id may have been used before, and an entry of that time may
                // still be there. The mark of a reader that followed it is on
                // the tuple and not in the gap (T8). A reader that comes from
                // here on finds the lock.
                let found_by_later = self.isolation == Isolation::Serializable
                    && self.core.marks.highest(table.id, tuple) > self.ts
                    && self.moves_behind_readers().is_err();
                let write = &mut self.buffers.writes[held.write as usize];
                write.is_new = true;
                write.found_by_later = found_by_later;
                self.entry_inserted(StaleEntry::new(table, PRIMARY, tuple, key.words()));
                if self.isolation == Isolation::Snapshot && insert_ts != self.new_key_ts(table) {
                    // An entry was removed meanwhile, perhaps this key's.
                    return Err(table.conflict(Conflict::ChangedSinceSnapshot));
                }
                Ok(Some(held))
            }
            other => {
                Anchor::bury(table.anchor(tuple), buried);
                self.core.counters.buried(self.slot, buried);
                table.return_tuple(self.slot.index(), tuple);
                // An entry of an earlier life of the id may have led somebody to the lock.
                self.core.registry.wake(self.slot);
                match other {
                    Insert::Forbidden(_) if self.isolation == Isolation::Snapshot => {
                        Err(table.conflict(Conflict::ChangedSinceSnapshot))
                    }
                    Insert::Forbidden(_) => Err(table.conflict(Conflict::ReadByLater)),
                    _ => Ok(None),
                }
            }
        }
    }

    /// The timestamp against which the read mark of a new primary key's gap is
    /// checked. No version tells a snapshot writer of a key that was inserted
    /// and deleted after its snapshot and has lost its entry; the gap's mark,
    /// which the deletion raised, does. A reader may have raised the mark as
    /// well, so it counts only if entries of such keys have been removed.
    fn new_key_ts(&self, table: &TableInner) -> u64 {
        match self.isolation {
            // Numbers of values are used once, and nobody looks for one that is not there.
            _ if is_hidden(table.id) => u64::MAX,
            Isolation::Snapshot if table.is_cleaned_after(self.ts) => self.ts.get(),
            _ => self.insert_ts(),
        }
    }

    /// Locks a new tuple. Returns the tombstone that its anchor kept.
    fn create_locked(&self, table: &TableInner, tuple: TupleId) -> Address {
        let cell = table.anchor(tuple);
        let mut anchor = Anchor::load(cell);
        while !anchor.try_create(cell, self.slot) {
            hint::spin_loop();
            anchor = Anchor::load(cell);
        }
        let buried = anchor.newest();
        self.core.counters.exhumed(self.slot, buried);
        buried
    }

    /// Whether it will draw the timestamp at which it writes.
    pub(super) fn writes_late(&self) -> bool {
        self.isolation != Isolation::Serializable
            || (self.must_move.get() && !is_removed(Control::MovedAreLate))
    }

    /// The timestamp against which the marks of gaps are checked. Writers that
    /// draw theirs at commit publish above every mark.
    pub(super) fn insert_ts(&self) -> u64 {
        if self.writes_late() { u64::MAX } else { self.ts.get() }
    }

    /// Enters a key into an index. If a later reader has found the key absent,
    /// the transaction will move behind that reader, or the key is refused.
    pub(super) fn insert_entry(&self, tree: &Tree, key: &[u64], tuple: TupleId) -> Insert {
        self.insert_at(tree, &Finger::default(), key, tuple, self.insert_ts())
    }

    pub(super) fn insert_at(
        &self,
        tree: &Tree,
        finger: &Finger,
        key: &[u64],
        tuple: TupleId,
        ts: u64,
    ) -> Insert {
        match tree.insert_near(finger, key, tuple.0, ts) {
            Insert::Forbidden(mark) if self.moves && self.moves_behind_readers().is_ok() => {
                self.come_behind(Timestamp::from_raw(mark));
                tree.insert_near(finger, key, tuple.0, u64::MAX)
            }
            outcome => outcome,
        }
    }

    /// Locks the tuple of a key that exists in the index. A transaction that comes
    /// too late for it begins again if it can, instead of failing.
    ///
    /// `looked_up` is where the index had the key, if that is known, at the moment at which
    /// the transaction reads now.
    pub(super) fn hold_existing(
        &mut self,
        table: &TableInner,
        key: &[u64],
        looked_up: Option<TupleId>,
    ) -> Result<Option<Held>> {
        match self.under {
            None => self.hold_found(table, key, looked_up),
            Some(_) => self.hold_or_ask(table, key, looked_up),
        }
    }

    /// The same under a protocol, which is asked before a key counts as absent.
    #[cold]
    fn hold_or_ask(
        &mut self,
        table: &TableInner,
        key: &[u64],
        looked_up: Option<TupleId>,
    ) -> Result<Option<Held>> {
        match self.hold_found(table, key, looked_up) {
            Ok(None) => {
                self.ask_keys(table, PRIMARY, self.statement())?;
                self.hold_found(table, key, None)
            }
            outcome => outcome,
        }
    }

    #[inline(always)]
    fn hold_found(
        &mut self,
        table: &TableInner,
        key: &[u64],
        mut looked_up: Option<TupleId>,
    ) -> Result<Option<Held>> {
        self.core.ready(table)?;
        let mut beginnings = 0;
        loop {
            let at = self.statement();
            let found = looked_up.take().map(|tuple| tuple.0);
            let Some(tuple) = found.or_else(|| table.tree().get(key, self.gap_mark(at))) else {
                self.note_absent(table, key)?;
                return Ok(None);
            };
            // One that comes too late again and again shall have the exclusive stage.
            let is_fresh = beginnings < MOST_BEGINNINGS && self.is_fresh();
            match self.hold_or_wait(table, TupleId(tuple), is_fresh) {
                Err(Error::Conflict { conflict: Conflict::WrittenByLater, .. }) if is_fresh => {
                    beginnings += 1;
                    self.begin_again();
                    // Nobody needs to know any more that it had begun before.
                    self.check_write(table)?;
                }
                Ok(None) => {}
                outcome => return outcome,
            }
        }
    }

    /// Locks a tuple unless this transaction has locked it already. `None` if
    /// the index no longer leads to it.
    pub(super) fn hold(&mut self, table: &TableInner, tuple: TupleId) -> Result<Option<Held>> {
        self.hold_or_wait(table, tuple, false)
    }

    /// The same; waits for transactions that will publish above this one, too, if it
    /// can begin again behind them. **This is where writes are validated.**
    fn hold_or_wait(
        &mut self,
        table: &TableInner,
        tuple: TupleId,
        can_begin_again: bool,
    ) -> Result<Option<Held>> {
        if self.under.is_some() {
            self.ask_to_lock(table, tuple)?;
        }
        let cell = table.anchor(tuple);
        self.core.marks.prefetch(table.id, tuple);
        loop {
            let anchor = Anchor::load(cell);
            self.core.store.prefetch(anchor.newest());
            if self.core.store.may_wait() {
                // The version may be too new for this transaction to protect (T6).
                let _pin = self.core.registry.pin(self.slot);
                let newest = Anchor::load(cell).newest();
                if !self.rows_in_use.has(&self.core, newest) {
                    self.core.store.fetch_across(newest);
                }
            }
            if anchor.is_owned_by(self.slot) {
                let write = self.buffers.write_of(table.id, tuple).expect("locked tuples have writes");
                return Ok(Some(Held { write, fresh: false }));
            }
            if anchor.is_dead() {
                return Ok(None);
            }
            match anchor.owner() {
                Owner::Nobody if anchor.try_lock(cell, self.slot) => {
                    self.core.store.prefetch_block(anchor.newest());
                    let newest = anchor.newest();
                    if let Err(damage) =
                        self.check_newest(newest, tuple).and_then(|()| self.verify_base(newest))
                    {
                        Anchor::publish(cell, anchor.newest());
                        self.core.registry.wake(self.slot);
                        return Err(damage);
                    }
                    let begin_ts = self.begin_of(anchor.newest());
                    if let Err(why) = self.validate(table, tuple, begin_ts) {
                        Anchor::publish(cell, anchor.newest());
                        self.core.registry.wake(self.slot);
                        return Err(table.conflict(why));
                    }
                    let used = self.use_table(table);
                    return Ok(Some(self.add_write(used, tuple, anchor.newest(), begin_ts)));
                }
                Owner::Transaction(holder) => {
                    let bound = self.core.registry.pending(holder);
                    if Anchor::load(cell) == anchor {
                        let is_above = self.isolation == Isolation::Serializable && bound > self.ts;
                        if is_above && !can_begin_again {
                            // Waiting cannot help.
                            return Err(table.conflict(Conflict::Locked));
                        }
                        self.wait_for(table, holder, bound, || Anchor::load(cell) != anchor)?;
                    }
                }
                Owner::Nobody | Owner::Cleaner => hint::spin_loop(),
            }
        }
    }

    /// Looks at the checksum of the committed row that is read to be changed. The version that is made from it
    /// gets a checksum of its own, which would hide damage for ever.
    pub(super) fn verify_held(&mut self, held: Held) -> Result<()> {
        let write = &mut self.buffers.writes[held.write as usize];
        // The transaction's own row does not come from there, and copies in the row cache were verified when they
        // were made.
        let is_other =
            !matches!(write.pending, Pending::Nothing) || self.rows_in_use.has(&self.core, write.base);
        if !write.is_verified && !is_other {
            self.core.store.verify_mapped(write.base).map_err(|error| self.core.store_error(error))?;
            write.is_verified = true;
        }
        Ok(())
    }

    /// Looks at the checksum of the version that a write supersedes, if reads do, or if it is no row, or newer than the
    /// clock: that may be damage.
    fn verify_base(&self, newest: Address) -> Result<()> {
        let is_no_row = || !newest.is_none() && self.rows_in_use.is_tombstone(&self.core, newest);
        let is_too_new = || {
            let begin = self.begin_of(newest);
            begin > self.ts && begin > self.core.registry.after_all()
        };
        if self.core.options.verify_reads || is_no_row() || is_too_new() {
            self.verify_newest(newest)?;
        }
        Ok(())
    }

    /// Timestamp ordering: no later transaction has written the tuple, nor read
    /// it, unless this one can move behind the reader when it commits. At snapshot
    /// level: none has committed it since the snapshot.
    fn validate(&self, table: &TableInner, tuple: TupleId, newest: Timestamp) -> Result<(), Conflict> {
        if self.isolation == Isolation::ReadCommitted {
            return Ok(());
        }
        let serializable = self.isolation == Isolation::Serializable;
        if newest > self.ts {
            return Err(if serializable { Conflict::WrittenByLater } else { Conflict::ChangedSinceSnapshot });
        }
        match serializable && self.core.marks.highest(table.id, tuple) > self.ts {
            true => self.moves_behind_readers(),
            false => Ok(()),
        }
    }

    /// A later transaction has read what this one writes, or has looked there for
    /// a key that must be unique: this one will move behind it, if it can.
    fn moves_behind_readers(&self) -> Result<(), Conflict> {
        self.must_move.set(self.moves);
        if self.moves { Ok(()) } else { Err(Conflict::ReadByLater) }
    }

    /// The `begin_ts` of a version; zero if there is none.
    pub(super) fn begin_of(&self, version: Address) -> Timestamp {
        match version.is_none() {
            true => Timestamp::ZERO,
            false => self.rows_in_use.look(&self.core, version, |content| content.timestamp()),
        }
    }

    fn add_write(&mut self, used: u32, tuple: TupleId, base: Address, base_ts: Timestamp) -> Held {
        self.meet_newest(base_ts);
        let write = self.buffers.writes.len() as u32;
        self.buffers.writes.push(Write {
            table: used,
            tuple,
            base,
            base_ts,
            is_new: false,
            pending: Pending::Nothing,
            // With `verify_reads`, `verify_base` has looked.
            is_verified: base.is_none() || self.core.options.verify_reads,
            gone: false,
            found_by_later: false,
        });
        self.buffers.undo.push(Undo::Unlock);
        Held { write, fresh: true }
    }

    /// The table's place in the buffers, with its current list of indexes.
    fn use_table(&mut self, table: &TableInner) -> u32 {
        let version = table.indexes_version();
        let Buffers { tables, writes, .. } = &mut *self.buffers;
        if let Some(at) = tables.iter().position(|used| used.table.id == table.id) {
            // The commit enters older writes into new indexes.
            if tables[at].indexes_version != version && !writes.iter().any(|w| w.table as usize == at) {
                tables[at].indexes_version = version;
                tables[at].indexes = Some(table.indexes());
            }
            return at as u32;
        }
        let table = self.core.tables.in_use(table.id).expect("a table stays while a transaction uses it");
        let finger = Finger::default();
        let indexes = Some(table.indexes());
        tables.push(TableUse { indexes, indexes_version: version, finger, table });
        tables.len() as u32 - 1
    }

    /// Whether [`Transaction::current`] is a row. Only that is looked at.
    pub(super) fn is_row(&self, held: Held) -> bool {
        let write = &self.buffers.writes[held.write as usize];
        match write.pending {
            Pending::Nothing => self.rows_in_use.is_row(&self.core, write.base),
            Pending::Row { .. } => true,
            Pending::Tombstone => false,
        }
    }

    /// The row as it is now: as this transaction has written it, or else the
    /// newest committed version, which validation has found to be visible.
    pub(super) fn current<'t>(&'t self, table: &'t TableInner, held: Held) -> Seen<'t> {
        let write = &self.buffers.writes[held.write as usize];
        debug_assert!(write.tuple.0 < table.tuples_end());
        match write.pending {
            Pending::Nothing => self.version_at(table, write.base, Timestamp::MAX).0,
            Pending::Row { start, len, layout } => {
                Seen::Row(table.row_in(layout, &self.buffers.rows[start..start + len as usize]))
            }
            Pending::Tombstone => Seen::Absent,
        }
    }
}
