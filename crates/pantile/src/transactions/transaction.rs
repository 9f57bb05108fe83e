//! Transactions: beginning, reading, ending.
//!
//! Writes are in `write.rs`, scans in `scan.rs`, the commit path in `commit.rs`.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::FixedState;
use pantile_base::sync::atomic::AtomicU64;
use pantile_base::sync::{Instant, hint};
use pantile_base::{Address, TableId, Timestamp, TupleId, prefetch};
use pantile_cc::{Begin, Clock, Slot};
use pantile_reclaim::OldVersion;
use pantile_store::Content;

use crate::engine::anchor::{Anchor, Owner};
use crate::engine::cleanup::{self, StaleEntry};
use crate::engine::core::Core;
use crate::engine::table::{Indexes, Table, TableInner};
use crate::types::error::{Conflict, Error, Result};
use crate::types::key::Key;
use crate::types::options::{ConflictPolicy, Isolation, TransactionOptions};
use crate::types::row::{Encoded, Row};
use crate::types::value::Value;

/// What a transaction will make of a tuple that it has locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pending {
    /// Locked only.
    Nothing,
    /// A row, in the buffer.
    Row { start: usize, len: usize },
    /// Its deletion.
    Tombstone,
}

/// A tuple that a transaction has locked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    /// Index into [`Buffers::tables`].
    pub table: u32,
    pub tuple: TupleId,
    /// The newest committed version.
    pub base: Address,
    pub pending: Pending,
    /// Its primary entry was ours and has been taken back.
    pub gone: bool,
    /// The tuple is new; its base, if any, is the tombstone of an earlier life of its id.
    pub is_new: bool,
    /// It is new, and a later reader had marked its id before.
    pub found_by_later: bool,
}

impl Write {
    /// Whether what it writes goes on a chain.
    pub fn has_chain(&self) -> bool {
        !self.base.is_none() && !self.is_new
    }
}

/// A change that a savepoint can take back.
pub(crate) enum Undo {
    /// Forget the newest write: it was made by locking a tuple.
    Unlock,
    /// Restore what was pending.
    Restore { write: u32, pending: Pending },
    /// Clean up an index entry that was inserted.
    Entry(StaleEntry),
}

/// A table that a transaction writes to.
pub(crate) struct TableUse {
    pub table: Arc<TableInner>,
    pub indexes: Indexes,
    pub indexes_version: u64,
}

/// A transaction's private memory, kept for the next one in the same slot.
#[derive(Default)]
pub(crate) struct Buffers {
    /// Kept from one transaction to the next, so that reference counts are
    /// not a place where cores meet.
    pub tables: Vec<TableUse>,
    pub writes: Vec<Write>,
    pub by_tuple: HashMap<(TableId, TupleId), u32, FixedState>,
    /// Rows to be written, one after the other.
    pub rows: Vec<u8>,
    pub undo: Vec<Undo>,
    /// Entries that the commit makes stale, if it happens.
    pub stale: Vec<StaleEntry>,
    /// Which writes append a content, and the addresses they get.
    pub appends: Vec<u32>,
    pub addresses: Vec<Address>,
    /// The versions that the commit supersedes.
    pub superseded: Vec<OldVersion>,
    pub scratch: Vec<u8>,
}

/// The buffers of a transaction that has not ended.
pub(crate) struct InUse(Option<Box<Buffers>>);

impl std::ops::Deref for InUse {
    type Target = Buffers;

    #[inline]
    fn deref(&self) -> &Buffers {
        self.0.as_ref().expect("the transaction has not ended")
    }
}

impl std::ops::DerefMut for InUse {
    #[inline]
    fn deref_mut(&mut self) -> &mut Buffers {
        self.0.as_mut().expect("the transaction has not ended")
    }
}

/// Tables that buffers hold on to at most.
const TABLES_KEPT: usize = 64;

impl Buffers {
    fn clear(&mut self) {
        // Clearing a map costs by its capacity, and one transaction that
        // wrote much must not slow down all that follow.
        if self.by_tuple.capacity() > 64 * (self.writes.len() + 16) {
            self.by_tuple = HashMap::default();
        } else {
            self.by_tuple.clear();
        }
        self.writes.clear();
        self.rows.clear();
        self.undo.clear();
        self.stale.clear();
        self.appends.clear();
        self.addresses.clear();
        self.superseded.clear();
        if self.tables.len() > TABLES_KEPT || self.tables.iter().any(|t| t.table.is_dropped()) {
            self.tables.clear();
        }
        if self.rows.capacity() > 1 << 20 {
            self.rows = Vec::new();
        }
    }
}

/// A transaction. Dropping it rolls it back.
///
/// It belongs to one thread at a time. Rows that it returns borrow from it,
/// so they are gone before it ends or writes.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// let table = db.create_table(
///     TableDef::new("counters").column("id", Type::U32).column("n", Type::I64).primary_key(["id"]),
/// )?;
/// let mut txn = db.begin()?;
/// txn.insert(&table, &[1u32.into(), 0i64.into()])?;
/// txn.modify(&table, &[1u32.into()], |row| {
///     let n: i64 = row.get(1)?;
///     row.set(1, (n + 1).into())?;
///     Ok(true)
/// })?;
/// txn.commit()?;
/// # Ok::<(), Error>(())
/// ```
pub struct Transaction {
    pub(crate) core: Arc<Core>,
    pub(crate) slot: Slot,
    /// Where it reads (if read-committed: where it began), and for
    /// serializable transactions where it writes.
    pub(crate) ts: Timestamp,
    pub(crate) isolation: Isolation,
    pub(crate) read_only: bool,
    /// Reads leave no marks and meet no locks.
    pub(crate) safe: bool,
    pub(crate) policy: ConflictPolicy,
    pub(crate) buffers: InUse,
    pub(crate) finished: bool,
    /// Numbers of the savepoints that can be gone back to, in order.
    savepoints: Vec<u64>,
    savepoints_taken: u64,
    /// Also keeps two threads from using, and pinning, one slot.
    versions_read: Cell<u64>,
    /// There was no space for what it wrote.
    pub(crate) starved: bool,
}

/// A point in a transaction to which it can go back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Savepoint {
    transaction: Timestamp,
    number: u64,
    undo: usize,
}

/// A version that a transaction sees.
#[derive(Clone, Copy)]
pub(crate) enum Seen<'t> {
    Absent,
    /// The tuple's primary entry is being or has been removed.
    Gone,
    Row(&'t [u8]),
}

/// What a reader finds at an anchor.
enum Passage {
    Free,
    /// It is about to change: look again.
    Changing,
    /// Locked by a transaction that may publish at or above this timestamp.
    Held(Slot, Timestamp),
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction")
            .field("ts", &self.ts)
            .field("isolation", &self.isolation)
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}

impl Transaction {
    pub(crate) fn begin(core: Arc<Core>, options: TransactionOptions) -> Result<Self> {
        core.check_open()?;
        if !options.safe_snapshot {
            core.stage.pass();
        }
        let how = match options {
            TransactionOptions { safe_snapshot: true, .. } => Begin::SafeReader,
            TransactionOptions { isolation: Isolation::Serializable, read_only: false, .. } => {
                Begin::WriterAtBegin
            }
            TransactionOptions { isolation: Isolation::ReadCommitted, .. } => Begin::ByStatement,
            _ => Begin::ReaderOrLateWriter,
        };
        let limit = pantile_base::limits::TRANSACTION_SLOTS;
        let (slot, ts) = core.registry.begin(how).map_err(|_| Error::TooManyTransactions { limit })?;
        Ok(Self {
            slot,
            ts,
            isolation: options.isolation,
            read_only: options.read_only,
            safe: options.safe_snapshot,
            policy: options.conflict.unwrap_or(core.options.conflict),
            buffers: InUse(Some(core.take_buffers(slot))),
            finished: false,
            savepoints: Vec::new(),
            savepoints_taken: 0,
            versions_read: Cell::new(0),
            starved: false,
            core,
        })
    }

    /// Its place in the serial order: where it reads and, if serializable, writes.
    pub fn timestamp(&self) -> Timestamp {
        self.ts
    }

    /// How old the state is that it reads.
    pub fn age(&self) -> Duration {
        Clock::duration(self.core.registry.now().tick().saturating_sub(self.ts.tick()))
    }

    /// How strictly it is kept apart from others.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Whether it refuses writes.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The timestamp at which a statement that begins now reads.
    #[inline]
    pub(crate) fn statement(&self) -> Timestamp {
        match self.isolation {
            Isolation::ReadCommitted if !self.safe => self.core.registry.draw(self.slot),
            _ => self.ts,
        }
    }

    /// The mark that a read leaves in the gaps of an index and on tuples, if
    /// any. What is read at the end of time is protected by a lock that the
    /// transaction holds; a mark there would keep writers out for ever.
    #[inline]
    pub(crate) fn mark(&self, at: Timestamp) -> Option<u64> {
        (!self.safe && at < Timestamp::MAX).then_some(at.get())
    }

    pub(crate) fn check_table(&self, table: &TableInner) -> Result<()> {
        self.core.check_own(table)
    }

    /// The row with this primary key, or `None`.
    ///
    /// # Errors
    /// [`Error::Conflict`] if an older transaction that is still running has
    /// written the row and does not end in time; [`Error::WrongType`] and the
    /// like for a key that does not fit; [`Error::TableDropped`].
    pub fn get<'t>(&'t self, table: &'t Table, key: &[Value<'_>]) -> Result<Option<Row<'t>>> {
        let table = &*table.0;
        let key = self.point_key(table, key)?;
        let at = self.statement();
        let found = self.find(table, key.words(), at)?;
        Ok(found.map(|(_, bytes)| self.row(table, bytes, at)))
    }

    pub(crate) fn point_key(&self, table: &TableInner, values: &[Value<'_>]) -> Result<Key> {
        self.check_table(table)?;
        let columns = &table.schema.primary_key;
        if values.len() != columns.len() {
            return Err(Error::WrongArity {
                table: table.schema.name.clone(),
                expected: columns.len(),
                got: values.len(),
            });
        }
        let mut key = Key::default();
        key.set_values(&table.schema, columns, values)?;
        Ok(key)
    }

    pub(crate) fn row<'t>(&'t self, table: &'t TableInner, bytes: &'t [u8], at: Timestamp) -> Row<'t> {
        Row { encoded: Encoded { schema: &table.schema, bytes }, out_of_line: self, at }
    }

    /// The visible row with this primary key.
    pub(crate) fn find<'t>(
        &'t self,
        table: &'t TableInner,
        key: &[u64],
        at: Timestamp,
    ) -> Result<Option<(TupleId, &'t [u8])>> {
        loop {
            let Some(tuple) = table.primary.get(key, self.mark(at)) else {
                return Ok(None);
            };
            let tuple = TupleId(tuple);
            match self.read_tuple(table, tuple, at)? {
                Seen::Row(bytes) => return Ok(Some((tuple, bytes))),
                Seen::Absent => return Ok(None),
                Seen::Gone => hint::spin_loop(),
            }
        }
    }

    /// The version of a tuple that is visible at `at`: **this is where
    /// visibility is decided**.
    #[inline]
    pub(crate) fn read_tuple<'t>(
        &'t self,
        table: &'t TableInner,
        tuple: TupleId,
        at: Timestamp,
    ) -> Result<Seen<'t>> {
        let cell = table.anchor(tuple);
        if self.mark(at).is_some() {
            // The mark must be made first; the anchor's line comes meanwhile.
            prefetch(cell);
            self.core.marks.raise(table.id, tuple, at);
        }
        loop {
            // What the anchor names may be too new for us, and then only the
            // pin keeps it; what we see our timestamp keeps (T6).
            let pin = self.core.registry.pin(self.slot);
            let anchor = Anchor::load(cell);
            if anchor.is_owned_by(self.slot)
                && let Some(own) = self.own_version(table, tuple)
            {
                return Ok(own);
            }
            if anchor.is_dead() {
                return Ok(Seen::Gone);
            }
            match self.passage(cell, anchor, at) {
                Passage::Free => return Ok(self.version_at(anchor.newest(), at)),
                Passage::Changing => hint::spin_loop(),
                Passage::Held(holder, bound) => {
                    drop(pin);
                    self.wait_for(table, holder, bound, || Anchor::load(cell) != anchor)?;
                }
            }
        }
    }

    /// What this transaction has made of a tuple, or `None` if it has only locked it.
    pub(crate) fn own_version(&self, table: &TableInner, tuple: TupleId) -> Option<Seen<'_>> {
        let write = self.buffers.by_tuple.get(&(table.id, tuple))?;
        match self.buffers.writes[*write as usize].pending {
            Pending::Nothing => None,
            Pending::Row { start, len } => Some(Seen::Row(&self.buffers.rows[start..start + len])),
            Pending::Tombstone => Some(Seen::Absent),
        }
    }

    /// Whether what the anchor says holds for a reader at `at`.
    #[inline]
    fn passage(&self, cell: &AtomicU64, anchor: Anchor, at: Timestamp) -> Passage {
        match anchor.owner() {
            Owner::Nobody => Passage::Free,
            _ if self.safe => Passage::Free,
            Owner::Cleaner => Passage::Changing,
            Owner::Transaction(slot) if slot == self.slot => Passage::Free,
            Owner::Transaction(slot) => {
                // The bound belongs to the holder only if the anchor still says so.
                let bound = self.core.registry.pending(slot);
                if Anchor::load(cell) != anchor {
                    Passage::Changing
                } else if bound > at {
                    Passage::Free
                } else {
                    Passage::Held(slot, bound)
                }
            }
        }
    }

    /// Waits for another transaction as the policy says: until `over`, or until
    /// the holder's slot belongs to another transaction or has another bound.
    pub(crate) fn wait_for(
        &self,
        table: &TableInner,
        holder: Slot,
        bound: Timestamp,
        over: impl Fn() -> bool,
    ) -> Result<()> {
        let ConflictPolicy::Wait(limit) = self.policy else {
            return Err(conflict(table, Conflict::Locked));
        };
        let registry = &self.core.registry;
        let over = || over() || registry.pending(holder) != bound;
        match registry.wait(self.slot, holder, Instant::now() + limit, over) {
            Some(true) => Ok(()),
            Some(false) => Err(conflict(table, Conflict::TimedOut)),
            None => Err(conflict(table, Conflict::Deadlock)),
        }
    }

    /// The version that is visible at `at`, from the newest on. The caller has
    /// pinned its slot, or holds the tuple.
    #[inline]
    pub(crate) fn version_at(&self, newest: Address, at: Timestamp) -> Seen<'_> {
        if newest.is_none() {
            return Seen::Absent;
        }
        self.core.store.prefetch(newest);
        let content = self.core.store.content(newest);
        self.versions_read.set(self.versions_read.get() + 1);
        if content.txn_id() <= at {
            return seen(content);
        }
        self.older_version(newest, at)
    }

    /// Goes by what links say, and touches the content only of the version
    /// that is visible: those of others may be gone (T13).
    #[cold]
    fn older_version(&self, newest: Address, at: Timestamp) -> Seen<'_> {
        let store = &self.core.store;
        let mut next = store.link(newest);
        while let Some(link) = next {
            self.versions_read.set(self.versions_read.get() + 1);
            if link.begin_ts <= at {
                return seen(store.content(link.address));
            }
            next = store.older(link);
        }
        Seen::Absent
    }

    /// Marks a point to which [`Transaction::rollback_to`] goes back.
    pub fn savepoint(&mut self) -> Savepoint {
        self.savepoints_taken += 1;
        self.savepoints.push(self.savepoints_taken);
        Savepoint { transaction: self.ts, number: self.savepoints_taken, undo: self.buffers.undo.len() }
    }

    /// Takes back every write since the savepoint, which stays valid. Rows
    /// that were read stay read.
    ///
    /// # Errors
    /// [`Error::UnknownSavepoint`] if it is of another transaction or was
    /// taken after one that has been gone back to.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        let found = self.savepoints.binary_search(&savepoint.number);
        let Some(at) = found.ok().filter(|_| savepoint.transaction == self.ts) else {
            return Err(Error::UnknownSavepoint);
        };
        self.savepoints.truncate(at + 1);
        self.undo_to(savepoint.undo);
        Ok(())
    }

    /// Takes back writes until `len` changes are left.
    pub(crate) fn undo_to(&mut self, len: usize) {
        let mut unlocked = false;
        while self.buffers.undo.len() > len {
            match self.buffers.undo.pop() {
                Some(Undo::Unlock) => {
                    unlocked = true;
                    self.unlock_last();
                }
                Some(Undo::Restore { write, pending }) => {
                    self.buffers.writes[write as usize].pending = pending
                }
                Some(Undo::Entry(entry)) => self.undo_entry(entry),
                None => break,
            }
        }
        if unlocked {
            self.core.registry.wake(self.slot);
        }
    }

    /// Takes back an index entry. That of a tuple that never had a version is
    /// needed by nobody and goes at once, under our lock; others the cleaner
    /// looks at.
    fn undo_entry(&mut self, entry: StaleEntry) {
        let at = self.buffers.by_tuple.get(&(entry.table, entry.tuple)).copied();
        let table = self.core.table_by_id(entry.table);
        match (at.map(|at| &mut self.buffers.writes[at as usize]), table) {
            (Some(write), Some(table)) if write.is_new || write.base.is_none() => {
                self.core.marks.raise(table.id, entry.tuple, self.ts);
                write.gone |= cleanup::remove_entry(&self.core, &table, &entry);
            }
            _ => self.core.cleanup.push(self.slot, self.core.registry.now(), entry),
        }
    }

    fn unlock_last(&mut self) {
        let Some(write) = self.buffers.writes.pop() else { return };
        let Buffers { tables, by_tuple, .. } = &mut *self.buffers;
        let table = &tables[write.table as usize].table;
        by_tuple.remove(&(table.id, write.tuple));
        // What was read under the lock stays read.
        self.core.marks.raise(table.id, write.tuple, self.ts);
        if write.gone {
            Anchor::bury(table.anchor(write.tuple), write.base);
            self.core.counters.buried(self.slot, write.base);
            self.core.cleanup.bury(self.slot, self.core.registry.now(), table.id, write.tuple);
        } else {
            Anchor::publish(table.anchor(write.tuple), write.base);
        }
    }

    /// Takes everything back and ends the transaction.
    pub fn rollback(mut self) {
        self.abort();
    }

    pub(crate) fn abort(&mut self) {
        if !self.finished {
            self.undo_to(0);
            self.core.counters.aborted(self.slot);
            self.core.clean(self.slot);
            self.finish();
            if self.starved {
                self.core.make_room();
            }
        }
    }

    /// Leaves the registry; every lock has been released.
    pub(crate) fn finish(&mut self) {
        self.finished = true;
        if let Some(mut buffers) = self.buffers.0.take() {
            buffers.clear();
            self.core.keep_buffers(self.slot, buffers);
        }
        self.core.counters.read(self.slot, self.versions_read.get());
        self.core.registry.release(self.slot);
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.abort();
    }
}

#[inline]
fn seen(content: Content<'_>) -> Seen<'_> {
    if content.flags().is_tombstone() { Seen::Absent } else { Seen::Row(content.row()) }
}

pub(crate) fn conflict(table: &TableInner, conflict: Conflict) -> Error {
    Error::Conflict { conflict, table: table.schema.name.clone() }
}
