//! Transactions under a protocol of the laboratory (`pantile_cc::ConcurrencyControl`): asking it before
//! reads and writes, listing what was read, and its checks at the commit.
//!
//! They read and write as at one of the engine's isolation levels (`engine/under_protocol.rs`), and the
//! protocol adds what makes them serializable. docs/protocols.md describes it.

use std::cell::OnceCell;

use pantile_base::sync::hint;
use pantile_base::{TableId, Timestamp, TupleId};
use pantile_cc::{Access, Committing, ConcurrencyControl, Item, Read, Reads, Refusal, Txn};

use crate::engine::anchor::{Anchor, Owner};
use crate::engine::index::IndexInner;
use crate::engine::table::{PRIMARY, TableInner};
use crate::engine::under_protocol::UnderProtocol;
use crate::transactions::read::Seen;
use crate::transactions::transaction::Transaction;
use crate::types::error::{Conflict, Error, Result};
use crate::types::isolation::Isolation;

/// The version of a tuple that was found gone.
const GONE: Timestamp = Timestamp::MAX;

impl Transaction {
    fn control(&self) -> &dyn ConcurrencyControl {
        self.core.protocol.as_deref().expect("a transaction is under the database's protocol")
    }

    fn lists_reads(&self) -> bool {
        self.core.options.protocol.is_some_and(|protocol| protocol.reads().are_listed())
    }

    fn taking_part(&self) -> &UnderProtocol {
        self.under.as_deref().expect("the transaction is under a protocol")
    }

    /// Lists what has been read, if the protocol wants that.
    fn list(&self, read: Read) {
        let mut reads = self.taking_part().reads.borrow_mut();
        if self.lists_reads() && reads.last() != Some(&read) {
            reads.push(read);
        }
    }

    /// Asks until the protocol lets it go on.
    fn ask(&self, table: &TableInner, ask: impl Fn(&dyn ConcurrencyControl, Txn) -> Access) -> Result<u64> {
        let txn = self.taking_part().txn;
        loop {
            match ask(self.control(), txn) {
                Access::Granted(ticket) => return Ok(ticket),
                Access::Refused(refusal) => return Err(table.conflict(conflict_of(refusal))),
                Access::WaitFor(other) => {
                    // It may give up what it has before it ends.
                    let over = || ask(self.control(), txn) != Access::WaitFor(other);
                    let bound = self.core.registry.pending(other.slot);
                    self.wait_for(table, other.slot, bound, over)?;
                }
            }
        }
    }

    /// Asks to read a tuple.
    pub(super) fn ask_row(&self, table: &TableInner, tuple: TupleId) -> Result<u64> {
        self.looks_at(table.id, PRIMARY);
        let item = Item::Tuple(table.id, tuple);
        self.ask(table, |control, txn| control.read(txn, item))
    }

    fn looks_at(&self, table: TableId, index: u32) {
        let mut looked_at = self.taking_part().looked_at.borrow_mut();
        if looked_at.last() != Some(&(table, index)) && !looked_at.contains(&(table, index)) {
            looked_at.push((table, index));
        }
    }

    /// Makes sure that tables and indexes that it has read are there, since others do not ask for what
    /// has been dropped. In the order of beginnings they were dropped later.
    fn check_looked_at(&self) -> Result<()> {
        if self.isolation == Isolation::Serializable {
            return Ok(());
        }
        self.taking_part().looked_at.borrow().iter().try_for_each(|&(id, number)| {
            let table = self.table_again(id)?;
            let is_there = |index: &IndexInner| index.number == number && index.is_ready();
            match number == PRIMARY || table.indexes().iter().any(|index| is_there(index)) {
                true => Ok(()),
                false => Err(table.conflict(Conflict::ReadChanged)),
            }
        })
    }

    /// Lists that a version has been read. Returns whether that is the one of the ticket, so that
    /// it need not be read again.
    pub(super) fn has_read(&self, table: TableId, tuple: TupleId, version: Timestamp, ticket: u64) -> bool {
        let item = Item::Tuple(table, tuple);
        let is_it = self.control().has_read(item, ticket);
        if is_it {
            self.list(Read { item, version, ticket });
        }
        is_it
    }

    /// Reads a tuple as the protocol lets it.
    #[cold]
    pub(super) fn read_under_protocol<'t>(
        &'t self,
        table: &'t TableInner,
        tuple: TupleId,
        at: Timestamp,
    ) -> Result<Seen<'t>> {
        let reads_newest = self.core.options.protocol.is_some_and(|p| p.reads() == Reads::Newest);
        loop {
            let ticket = self.ask_row(table, tuple)?;
            let (seen, version) = self.look_at(table, tuple, at)?;
            if matches!(seen, Seen::Gone) {
                // An entry of the tuple's next life may be the one that it has followed, and then nobody looks at
                // the gap there (T8).
                self.has_read(table.id, tuple, GONE, ticket);
                return Ok(seen);
            }
            if reads_newest && !self.is_newest(table, tuple, version) {
                return Err(table.conflict(Conflict::ReadChanged));
            }
            if self.has_read(table.id, tuple, version, ticket) {
                return Ok(seen);
            }
            hint::spin_loop();
        }
    }

    /// Whether a version that it has read is still the newest one. If not, it could not commit.
    fn is_newest(&self, table: &TableInner, tuple: TupleId, version: Timestamp) -> bool {
        let _pin = self.core.registry.pin(self.slot);
        self.begin_of(Anchor::load(table.anchor(tuple)).newest()) == version
    }

    /// Asks to read which keys an index has, at `at`. What has been looked for there before is not what it
    /// has asked for.
    #[cold]
    pub(super) fn ask_keys(&self, table: &TableInner, index: u32, at: Timestamp) -> Result<()> {
        self.looks_at(table.id, index);
        let item = Item::Keys(table.id, index);
        let ticket = self.ask(table, |control, txn| control.read(txn, item))?;
        self.list(Read { item, version: at, ticket });
        Ok(())
    }

    /// Asks to lock a tuple, unless it has.
    #[cold]
    pub(super) fn ask_to_lock(&self, table: &TableInner, tuple: TupleId) -> Result<()> {
        if Anchor::load(table.anchor(tuple)).is_owned_by(self.slot) {
            return Ok(());
        }
        self.looks_at(table.id, PRIMARY);
        let item = Item::Tuple(table.id, tuple);
        self.ask(table, |control, txn| control.write(txn, item)).map(drop)
    }

    /// Asks to change which keys an index has.
    #[cold]
    pub(super) fn ask_to_change_keys(&self, table: &TableInner, index: u32) -> Result<()> {
        let item = Item::Keys(table.id, index);
        self.looks_at(table.id, PRIMARY);
        self.ask(table, |control, txn| control.write(txn, item))?;
        let mut keys = self.taking_part().keys.borrow_mut();
        if !keys.contains(&item) {
            keys.push(item);
        }
        Ok(())
    }

    /// The keys of an index told something that a transaction has taken back: that nobody had the one that it has
    /// entered. Its locks and its lists do not know of that.
    #[cold]
    pub(super) fn keep_keys_as_read(&self, table: TableId, index: u32) {
        // What it has looked for there is in its list of ranges.
        self.keep(Item::Keys(table, index), self.began);
    }

    /// What was read under a lock that is given up counts as read.
    #[cold]
    pub(super) fn keep_as_read(&self, table: TableId, tuple: TupleId, version: Timestamp) {
        // Locks of the protocol stay.
        if self.lists_reads() {
            self.keep(Item::Tuple(table, tuple), version);
        }
    }

    /// Asks to read an item, where nobody can wait.
    fn keep(&self, item: Item, version: Timestamp) {
        let under = self.taking_part();
        match self.control().read(under.txn, item) {
            Access::Granted(ticket) => self.list(Read { item, version, ticket }),
            Access::WaitFor(_) | Access::Refused(_) => under.has_lost.set(true),
        }
    }

    /// Where it commits, as its protocol says.
    #[cold]
    pub(super) fn validate_under_protocol(&self) -> Result<Timestamp> {
        let commit =
            Commit { txn: self, reads: OnceCell::new(), writes: OnceCell::new(), error: OnceCell::new() };
        let has_lost = self.taking_part().has_lost.get();
        let validated = if has_lost { Err(Refusal::ReadChanged) } else { self.control().validate(&commit) };
        let validated = validated.map_err(|refusal| {
            let conflict = Error::Conflict { table: self.any_table(), conflict: conflict_of(refusal) };
            commit.error.into_inner().unwrap_or(conflict)
        })?;
        self.check_looked_at().map(|()| validated)
    }

    /// A table that it has used, for an error.
    fn any_table(&self) -> String {
        let read = self.taking_part().reads.borrow().first().map(|read| match read.item {
            Item::Tuple(table, _) | Item::Keys(table, _) => table,
        });
        let table = read.or_else(|| self.buffers.tables.first().map(|used| used.table.id));
        table.and_then(|id| self.core.tables.in_use(id)).map(|table| table.name()).unwrap_or_default()
    }

    /// Leaves the protocol. `has_written` is as in [`ConcurrencyControl::end`].
    #[cold]
    pub(super) fn leave_protocol(&mut self, has_written: bool) {
        if let Some(under) = self.under.take() {
            self.control().end(under.txn, has_written);
        }
    }
}

fn conflict_of(refusal: Refusal) -> Conflict {
    match refusal {
        Refusal::Locked => Conflict::Locked,
        Refusal::ReadChanged | Refusal::Reported => Conflict::ReadChanged,
        Refusal::ReadByLater => Conflict::ReadByLater,
    }
}

/// A transaction that commits, for its protocol.
struct Commit<'t> {
    txn: &'t Transaction,
    reads: OnceCell<Vec<Read>>,
    writes: OnceCell<Vec<Item>>,
    error: OnceCell<Error>,
}

impl Commit<'_> {
    fn report(&self, outcome: Result<()>) -> Result<(), Refusal> {
        outcome.map_err(|error| {
            let _ = self.error.set(error);
            Refusal::Reported
        })
    }

    /// When it first looked for keys of an index, or before that.
    fn first_look(&self, keys: Item) -> Timestamp {
        let reads = self.reads();
        let first = reads.get(reads.partition_point(|read| read.item < keys));
        first.filter(|read| read.item == keys).map_or(self.txn.began, |read| read.version)
    }

    fn is_in_order(&self) -> bool {
        self.txn.isolation == Isolation::Serializable
    }

    /// Makes sure that a tuple's newest version, at `to` and from then on, is one that `is_same` takes.
    fn row_holds(
        &self,
        table: &TableInner,
        tuple: TupleId,
        to: Timestamp,
        is_same: impl Fn(Anchor) -> bool,
    ) -> Result<()> {
        let txn = self.txn;
        let (core, cell) = (&txn.core, table.anchor(tuple));
        if self.is_in_order() {
            core.marks.raise(table.id, tuple, to);
        }
        loop {
            let pin = core.registry.pin(txn.slot);
            let anchor = Anchor::load(cell);
            match anchor.owner() {
                Owner::Cleaner if !anchor.is_dead() => {
                    hint::spin_loop();
                    continue;
                }
                Owner::Transaction(holder) if holder != txn.slot => {
                    // It will find this mark, and fail.
                    let steps_back = self.is_in_order() && core.registry.will_look_at_marks(holder);
                    let bound = core.registry.pending(holder);
                    if Anchor::load(cell) != anchor {
                        hint::spin_loop();
                        continue;
                    }
                    if bound <= to && !steps_back {
                        drop(pin);
                        let steps_back = || self.is_in_order() && core.registry.will_look_at_marks(holder);
                        let over = || Anchor::load(cell) != anchor || steps_back();
                        txn.await_decided(table, holder, bound, over)?;
                        continue;
                    }
                }
                _ => {}
            }
            return if is_same(anchor) { Ok(()) } else { Err(table.conflict(Conflict::ReadChanged)) };
        }
    }
}

impl Committing for Commit<'_> {
    fn txn(&self) -> Txn {
        self.txn.taking_part().txn
    }

    fn reads_at(&self) -> Timestamp {
        self.txn.ts
    }

    fn reads(&self) -> &[Read] {
        self.reads.get_or_init(|| {
            let mut reads = self.txn.taking_part().reads.borrow().clone();
            reads.sort_unstable();
            reads.dedup();
            reads
        })
    }

    fn writes(&self) -> &[Item] {
        self.writes.get_or_init(|| {
            let txn = self.txn;
            let keys = txn.taking_part().keys.borrow();
            let tables = &txn.buffers.tables;
            let tuples = txn.buffers.writes.iter();
            let tuples = tuples.map(|write| Item::Tuple(tables[write.table as usize].table.id, write.tuple));
            let mut items: Vec<_> = tuples.chain(keys.iter().copied()).collect();
            items.sort_unstable();
            items.dedup();
            items
        })
    }

    fn draw(&self) -> Timestamp {
        let (txn, registry) = (self.txn, &self.txn.core.registry);
        if self.is_in_order() {
            return txn.ts;
        }
        if txn.buffers.writes.is_empty() {
            return registry.draw(txn.slot);
        }
        let to = registry.draw_commit(txn.slot, txn.newest_met.get());
        // Those who wait for it may be below its bound.
        registry.wake(txn.slot);
        registry.await_passed(to);
        to
    }

    fn rows_hold(&self, to: Timestamp) -> Result<(), Refusal> {
        let mut last = None;
        self.report(self.reads().iter().try_for_each(|read| {
            let Item::Tuple(id, tuple) = read.item else { return Ok(()) };
            let table = match last.take() {
                Some((known, table)) if known == id => table,
                _ => self.txn.table_again(id)?,
            };
            // The key of one that has gone since can be another tuple's. In the order of beginnings that may be an
            // earlier transaction's, which found neither a mark here nor one on the gap.
            let visible = |newest| match self.is_in_order() {
                // A later transaction may have written it since.
                true => self.txn.version_at(&table, newest, to).1,
                false => self.txn.begin_of(newest),
            };
            let is_same = |anchor: Anchor| match read.version {
                GONE => anchor.is_dead(),
                _ if anchor.is_dead() && self.is_in_order() => false,
                version => visible(anchor.newest()) == version,
            };
            let holds = self.row_holds(&table, tuple, to, is_same);
            last = Some((id, table));
            holds
        }))
    }

    fn ranges_hold(&self, to: Timestamp) -> Result<(), Refusal> {
        let txn = self.txn;
        let mark = self.is_in_order().then_some(to);
        self.report(txn.buffers.reads.ranges().iter().try_for_each(|range| {
            let table = txn.table_again(range.table)?;
            let first = self.first_look(Item::Keys(range.table, range.index));
            // What was there then has been come to, or lies behind what was taken from a scan. A tombstone that
            // is newer may have ended a row that came in before `to`.
            let was_there = |anchor: Anchor| txn.begin_of(anchor.newest()) <= first;
            txn.range_again(&table, range, mark, |table, tuple| self.row_holds(table, tuple, to, was_there))
        }))
    }

    fn marks_hold(&self) -> Result<(), Refusal> {
        let buffers = &self.txn.buffers;
        let is_marked = buffers.appends.iter().any(|&n| self.txn.has_later_mark(&buffers.writes[n as usize]));
        if is_marked { Err(Refusal::ReadByLater) } else { Ok(()) }
    }
}
