//! Reading rows by primary key, and which version a reader sees.

use std::time::Duration;

use pantile_base::control::{Control, is_removed};
use pantile_base::sync::atomic::AtomicU64;
use pantile_base::sync::hint;
use pantile_base::{Address, TableId, Timestamp, TupleId, prefetch};
use pantile_cc::Slot;
use pantile_store::{Content, Link};

use crate::engine::anchor::{Anchor, Owner};
use crate::engine::read_set::Full;
use crate::engine::table::{PRIMARY, Table, TableInner};
use crate::engine::writes::Pending;
use crate::transactions::transaction::Transaction;
use crate::types::encoding::Encoded;
use crate::types::error::{Conflict, Error, Result};
use crate::types::isolation::Isolation;
use crate::types::key::{Key, PointKey, word_of};
use crate::types::row::Row;
use crate::types::transaction_options::ConflictPolicy;
use crate::types::value::Value;

/// A version that a transaction sees.
#[derive(Clone, Copy)]
pub(super) enum Seen<'t> {
    Absent,
    /// The tuple's primary entry is being or has been removed.
    Gone,
    Row(Encoded<'t>),
}

/// Whether an anchor lets a reader pass.
enum Passage {
    Free,
    /// The anchor is about to change: load it again.
    Changing,
    /// Locked by a transaction that may publish at this timestamp or above.
    Held(Slot, Timestamp),
}

impl Transaction {
    /// The timestamp at which a statement that begins now reads.
    #[inline]
    pub(super) fn statement(&self) -> Timestamp {
        match self.isolation {
            Isolation::ReadCommitted if !self.safe => self.statement_read_committed(),
            _ => self.ts,
        }
    }

    /// The mark that a read leaves on tuples, if any. A lock of the transaction protects what it reads at the end of time.
    /// A mark there would keep writers out for ever.
    #[inline]
    pub(super) fn mark(&self, at: Timestamp) -> Option<u64> {
        (!self.unmarked.get() && at < Timestamp::MAX).then_some(at.get())
    }

    /// The mark that it leaves in the gaps of an index.
    #[inline]
    pub(super) fn gap_mark(&self, at: Timestamp) -> Option<u64> {
        ((!self.unmarked.get() || self.marks_gaps) && at < Timestamp::MAX).then_some(at.get())
    }

    /// Before it reads many rows, a transaction that only reads looks whether anybody can
    /// still write where it reads. If not, there is nobody for whom to leave marks (I-33).
    #[inline]
    pub(super) fn look_past_writers(&self) {
        let is_at_one_moment = self.read_only && self.isolation != Isolation::ReadCommitted;
        if is_at_one_moment && !self.unmarked.get() {
            self.unmarked.set(self.core.registry.is_past_writers(self.slot, self.ts));
        }
    }

    #[inline]
    pub(super) fn check_table(&self, table: &TableInner) -> Result<()> {
        self.core.tables.check_own(table)?;
        self.check_ended()?;
        if table.is_newer_than(self.ts) { self.check_newer(table) } else { Ok(()) }
    }

    /// Its timestamp does not keep such a table, so it announces that it uses some before
    /// it looks whether this one has been dropped (I-37).
    #[cold]
    fn check_newer(&self, table: &TableInner) -> Result<()> {
        if self.minds_newer(table) {
            return is_newer(table);
        }
        self.core.registry.use_newer_tables(self.slot);
        self.core.tables.check_own(table)
    }

    /// Whether a table that was created after the moment at which it reads is none to
    /// this transaction. One that only reads finds it empty; but not if it has taken
    /// the place of another, which had rows at that moment. A late writer may write
    /// into it.
    fn minds_newer(&self, table: &TableInner) -> bool {
        match self.isolation {
            Isolation::Serializable if !self.read_only => true,
            Isolation::Serializable => !self.safe && table.replaces_another(),
            Isolation::Snapshot => self.read_only && !self.safe && table.replaces_another(),
            Isolation::ReadCommitted => false,
        }
    }

    /// The row with this primary key, or `None`.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the transaction may write, and an older running transaction has
    /// locked the row and does not end within the time that the conflict policy allows;
    /// [`Error::WrongType`] and similar if the key does not fit the table;
    /// [`Error::TableDropped`]; [`Error::TransactionEnded`]; [`Error::MediumFailed`] in a
    /// transaction that only reads, if a sync that it waits for fails;
    /// [`Error::MemoryFull`] in one that may write, if its notes of what it has read
    /// exceed the limit; [`Error::Damaged`] with
    /// [`Options::verify_reads`](crate::Options::verify_reads).
    pub fn get<'t>(&'t self, table: &'t Table, key: &[Value<'_>]) -> Result<Option<Row<'t>>> {
        let key = self.point_key(&table.inner, key)?;
        let at = self.statement();
        let found = self.find(&table.inner, key.words(), at)?;
        Ok(found.map(|(_, row)| self.row(table, row, at)))
    }

    #[inline]
    pub(super) fn point_key(&self, table: &TableInner, values: &[Value<'_>]) -> Result<PointKey> {
        self.check_table(table)?;
        match key_word(table, values) {
            Some(word) => Ok(PointKey::Word([word])),
            None => long_point_key(table, values),
        }
    }

    pub(super) fn row<'t>(&'t self, table: &'t Table, encoded: Encoded<'t>, at: Timestamp) -> Row<'t> {
        Row { encoded, columns: &table.columns, out_of_line: self, at }
    }

    /// The visible row with this primary key.
    pub(super) fn find<'t>(
        &'t self,
        table: &'t TableInner,
        key: &[u64],
        at: Timestamp,
    ) -> Result<Option<(TupleId, Encoded<'t>)>> {
        self.find_from(table, None, key, at)
    }

    /// The same, where the index had this tuple, if any, when the transaction read at `at`
    /// already.
    #[inline]
    pub(super) fn find_from<'t>(
        &'t self,
        table: &'t TableInner,
        looked_up: Option<TupleId>,
        key: &[u64],
        at: Timestamp,
    ) -> Result<Option<(TupleId, Encoded<'t>)>> {
        // Asked first, because handing a result on takes longer than finding it.
        match self.under {
            None => self.look_for(table, looked_up, key, at),
            Some(_) => self.find_or_ask(table, looked_up, key, at),
        }
    }

    /// The same under a protocol, which is asked before a key counts as absent.
    #[cold]
    fn find_or_ask<'t>(
        &'t self,
        table: &'t TableInner,
        looked_up: Option<TupleId>,
        key: &[u64],
        at: Timestamp,
    ) -> Result<Option<(TupleId, Encoded<'t>)>> {
        match self.look_for(table, looked_up, key, at) {
            Ok(None) => {
                self.ask_keys(table, PRIMARY, at)?;
                self.look_for(table, None, key, at)
            }
            outcome => outcome,
        }
    }

    #[inline(always)]
    fn look_for<'t>(
        &'t self,
        table: &'t TableInner,
        mut looked_up: Option<TupleId>,
        key: &[u64],
        at: Timestamp,
    ) -> Result<Option<(TupleId, Encoded<'t>)>> {
        let mut absent = None;
        loop {
            let found = match (looked_up.take(), table.primary()) {
                (Some(tuple), _) => Some(tuple),
                (None, Some(tree)) => tree.get(key, self.gap_mark(at)).map(TupleId),
                (None, None) => self.find_stored(table, key, at)?.map(TupleId),
            };
            let Some(tuple) = found else {
                self.note_absent(table, key)?;
                return Ok(None);
            };
            match self.read_tuple(table, tuple, at)? {
                Seen::Row(row) => {
                    self.note_read(table.id, tuple)?;
                    return Ok(Some((tuple, row)));
                }
                Seen::Gone => hint::spin_loop(),
                // The key may have lost its entry before the tuple had the mark of this read, and
                // then has neither that mark nor one on its gap. It has the one that counts if
                // the entry is still there, or if a look finds that there is none (I-5).
                Seen::Absent if absent == Some(tuple) || is_removed(Control::AbsentAgain) => {
                    self.note_absent(table, key)?;
                    return Ok(None);
                }
                Seen::Absent => absent = Some(tuple),
            }
        }
    }

    /// Notes that it has read a tuple.
    ///
    /// # Errors
    /// [`Error::MemoryFull`]. The tuple does not count as read then.
    #[inline]
    pub(super) fn note_read(&self, table: TableId, tuple: TupleId) -> Result<()> {
        if self.moves && !self.buffers.reads.try_note(table, tuple) {
            self.make_room_for_reads(Full::Points)?;
            self.buffers.reads.note(table, tuple);
        }
        Ok(())
    }

    /// Notes that it has found no row with this primary key. To note the tuple
    /// would not do: another one may get the key.
    ///
    /// # Errors
    /// As [`Transaction::note_read`].
    pub(super) fn note_absent(&self, table: &TableInner, key: &[u64]) -> Result<()> {
        self.make_room_for_range()?;
        if self.notes_ranges {
            self.buffers.reads.note_absent(table.id, key);
        }
        Ok(())
    }

    /// Makes room to note that it has read a range.
    ///
    /// # Errors
    /// [`Error::MemoryFull`].
    #[inline]
    pub(super) fn make_room_for_range(&self) -> Result<()> {
        match self.notes_ranges && !self.buffers.reads.has_room_for_range() {
            true => self.make_room_for_reads(Full::Ranges),
            false => Ok(()),
        }
    }

    /// The tuple of a key, from the image in which the indexes still are if it
    /// is there. If it is not, the read must leave a mark.
    #[cold]
    fn find_stored(&self, table: &TableInner, key: &[u64], at: Timestamp) -> Result<Option<u64>> {
        if let Some(tuple) = self.core.find_stored(table, key) {
            return Ok(Some(tuple));
        }
        self.core.ready(table)?;
        Ok(table.tree().get(key, self.gap_mark(at)))
    }

    /// The version of a tuple that is visible at `at`: **this is where
    /// visibility is decided**.
    // Inlined because what it returns takes longer to hand on than to find.
    #[inline(always)]
    pub(super) fn read_tuple<'t>(
        &'t self,
        table: &'t TableInner,
        tuple: TupleId,
        at: Timestamp,
    ) -> Result<Seen<'t>> {
        let cell = table.anchor(tuple);
        if self.mark(at).is_some() {
            // The mark must be made first. The anchor's cache line is fetched
            // meanwhile.
            prefetch(cell);
            self.core.marks.raise(table.id, tuple, at);
        }
        match self.newest_at(table, tuple, cell, at) {
            Some(row) => Ok(row),
            None => self.read_tuple_of(table, tuple, at),
        }
    }

    /// The newest version of a tuple, if it is plain that it is the one that is visible at
    /// `at`: nobody has locked the tuple, and nothing is to be waited for. Most reads end
    /// here.
    #[inline(always)]
    fn newest_at<'t>(
        &'t self,
        table: &'t TableInner,
        tuple: TupleId,
        cell: &AtomicU64,
        at: Timestamp,
    ) -> Option<Seen<'t>> {
        let store = &self.core.store;
        if store.may_wait() || self.is_careful {
            return None;
        }
        // Until it is known that the timestamp protects the version (T6).
        let _pin = self.core.registry.pin(self.slot);
        let anchor = Anchor::load(cell);
        if !anchor.is_row() || !store.is_of(anchor.newest(), tuple) {
            return None;
        }
        let content = store.content(anchor.newest());
        let version = content.timestamp();
        if version > at || content.flags().is_tombstone() || self.core.flights.may_have(version) {
            return None;
        }
        self.versions_read.set(self.versions_read.get() + 1);
        Some(Seen::Row(table.row_of(content)))
    }

    /// The same whatever there is at the anchor.
    #[inline(never)]
    fn read_tuple_of<'t>(&'t self, table: &'t TableInner, tuple: TupleId, at: Timestamp) -> Result<Seen<'t>> {
        match self.under {
            Some(_) => self.read_under_protocol(table, tuple, at),
            None => self.look_at(table, tuple, at).map(|(seen, _)| seen),
        }
    }

    /// The same without a question to a protocol, with the `begin_ts` of the version.
    #[inline]
    pub(super) fn look_at<'t>(
        &'t self,
        table: &'t TableInner,
        tuple: TupleId,
        at: Timestamp,
    ) -> Result<(Seen<'t>, Timestamp)> {
        let cell = table.anchor(tuple);
        // Up to where the medium has said so.
        let mut durable = None;
        loop {
            // The timestamp protects the versions that this transaction sees.
            // The one that the anchor names may be newer, and then only the pin
            // protects it (T6).
            let pin = self.core.registry.pin(self.slot);
            let anchor = Anchor::load(cell);
            if anchor.is_owned_by(self.slot)
                && let Some(own) = self.own_version(table, tuple)
            {
                // Only a protocol asks what it supersedes.
                let base = if self.under.is_some() { anchor.newest() } else { Address::NONE };
                return Ok((own, self.begin_of(base)));
            }
            if anchor.is_dead() {
                return Ok((Seen::Gone, Timestamp::ZERO));
            }
            match self.passage(cell, anchor, at) {
                Passage::Free => {
                    let newest = anchor.newest();
                    let content = self.newest_content(newest, tuple)?;
                    if self.core.options.verify_reads {
                        self.verify_version(newest, at)?;
                    }
                    let (seen, version) = self.version_from(table, newest, content, at);
                    if matches!(seen, Seen::Absent) {
                        self.verify_absent(newest, at)?;
                    }
                    match self.meet(version) {
                        Some(point) if durable < Some(point) => {
                            drop(pin);
                            self.await_point(point)?;
                            durable = Some(point);
                        }
                        _ => return Ok((seen, version)),
                    }
                }
                Passage::Changing => hint::spin_loop(),
                Passage::Held(holder, bound) => {
                    drop(pin);
                    self.wait_to_read(table, holder, bound, || Anchor::load(cell) != anchor)?;
                }
            }
        }
    }

    /// What this transaction has written to a tuple, or `None` if it has only locked it.
    pub(super) fn own_version<'t>(&'t self, table: &'t TableInner, tuple: TupleId) -> Option<Seen<'t>> {
        let write = self.buffers.write_of(table.id, tuple)?;
        match self.buffers.writes[write as usize].pending {
            Pending::Nothing => None,
            Pending::Row { start, len, layout } => {
                Some(Seen::Row(table.row_in(layout, &self.buffers.rows[start..start + len as usize])))
            }
            Pending::Tombstone => Some(Seen::Absent),
        }
    }

    /// Whether a reader at `at` can rely on the anchor.
    #[inline]
    fn passage(&self, cell: &AtomicU64, anchor: Anchor, at: Timestamp) -> Passage {
        match anchor.owner() {
            Owner::Nobody => Passage::Free,
            _ if self.safe => Passage::Free,
            Owner::Cleaner => Passage::Changing,
            Owner::Transaction(slot) if slot == self.slot => Passage::Free,
            Owner::Transaction(slot) => {
                let registry = &self.core.registry;
                // A writer that finds this reader's mark moves behind it (I-21).
                let is_marked = at < Timestamp::MAX;
                let passes = self.reads_pass && is_marked && registry.will_look_at_marks(slot);
                // Both belong to the holder only if the anchor has not changed.
                let bound = registry.pending(slot);
                if Anchor::load(cell) != anchor {
                    Passage::Changing
                } else if bound > at || passes {
                    Passage::Free
                } else {
                    Passage::Held(slot, bound)
                }
            }
        }
    }

    /// Waits before a read. The conflict policy is about locks: it counts for those of transactions that do not end by
    /// themselves soon.
    fn wait_to_read(
        &self,
        table: &TableInner,
        holder: Slot,
        bound: Timestamp,
        over: impl Fn() -> bool,
    ) -> Result<()> {
        // One that passes waits only for those that are committing, or prepared.
        match self.reads_pass && !self.await_commit(table, holder, bound, &over)? {
            true => Ok(()),
            false => self.wait_for(table, holder, bound, over),
        }
    }

    /// Waits for another transaction: until `over`, or until the holder's slot has another
    /// transaction or another bound.
    pub(super) fn wait_for(
        &self,
        table: &TableInner,
        holder: Slot,
        bound: Timestamp,
        over: impl Fn() -> bool,
    ) -> Result<()> {
        match self.policy {
            ConflictPolicy::Wait(limit) => self.wait_within(table, holder, bound, limit, over),
            ConflictPolicy::Abort => Err(table.conflict(Conflict::Locked)),
        }
    }

    /// Waits for one that is committing, which does not take long: it waits for nobody. Returns true
    /// if it is prepared instead, and may stay so for any time.
    pub(super) fn await_commit(
        &self,
        table: &TableInner,
        holder: Slot,
        bound: Timestamp,
        over: impl Fn() -> bool,
    ) -> Result<bool> {
        let registry = &self.core.registry;
        let is_prepared = || registry.is_prepared(holder);
        // It may have to do more before it commits, or be prepared first, and can be passed meanwhile.
        let can_be_passed = || self.reads_pass && registry.will_look_at_marks(holder);
        let is_over = || over() || is_prepared() || can_be_passed();
        self.wait_within(table, holder, bound, Duration::MAX, is_over)?;
        Ok(is_prepared() && !over())
    }

    /// Waits at most for `limit`.
    fn wait_within(
        &self,
        table: &TableInner,
        holder: Slot,
        bound: Timestamp,
        limit: Duration,
        over: impl Fn() -> bool,
    ) -> Result<()> {
        let registry = &self.core.registry;
        let over = || over() || registry.is_asked_to_end(self.slot);
        let (outcome, is_stopped) = match &self.stop {
            None => (registry.wait(self.slot, holder, bound, limit, over), false),
            Some(stop) => self.wait_stoppable(holder, bound, limit, stop, over),
        };
        match outcome {
            Some(true) => self.check_ended(),
            Some(false) if is_stopped => Err(table.conflict(Conflict::Interrupted)),
            Some(false) => Err(table.conflict(Conflict::TimedOut)),
            None => Err(table.conflict(Conflict::Deadlock)),
        }
    }

    /// The version that is visible at `at`, searched from the newest on, with its
    /// timestamp. The caller has pinned its slot or locked the tuple.
    #[inline]
    pub(super) fn version_at<'t>(
        &'t self,
        table: &'t TableInner,
        newest: Address,
        at: Timestamp,
    ) -> (Seen<'t>, Timestamp) {
        let content = (!newest.is_none()).then(|| self.content(newest));
        self.version_from(table, newest, content, at)
    }

    /// The same, where what is at `newest` has been read.
    #[inline]
    fn version_from<'t>(
        &'t self,
        table: &'t TableInner,
        newest: Address,
        content: Option<Content<'t>>,
        at: Timestamp,
    ) -> (Seen<'t>, Timestamp) {
        let Some(content) = content else { return (Seen::Absent, Timestamp::ZERO) };
        self.versions_read.set(self.versions_read.get() + 1);
        let version = content.timestamp();
        if version <= at {
            return (seen(table, content), version);
        }
        self.older_version(table, newest, version, at)
    }

    /// What is at an address that the caller has pinned.
    #[inline]
    fn content<'t>(&'t self, address: Address) -> Content<'t> {
        let store = &self.core.store;
        if !self.rows_in_use.is_cached {
            if store.may_wait() {
                store.fetch_across(address);
            }
            store.prefetch(address);
        }
        self.rows_in_use.content(&self.core, address)
    }

    /// The version that a tuple's anchor names, if there is one. Fails if it is not one of that tuple.
    /// Reads do not look at checksums, but a damaged content header must not make a
    /// row look as if it were not there.
    #[inline]
    fn newest_content<'t>(&'t self, newest: Address, tuple: TupleId) -> Result<Option<Content<'t>>> {
        if newest.is_none() {
            return Ok(None);
        }
        let content = self.content(newest);
        if content.tuple() == tuple { Ok(Some(content)) } else { Err(self.rotten(newest)) }
    }

    /// Fails if the version that a tuple's anchor names is not one of that tuple. Reads its header only.
    #[inline]
    pub(super) fn check_newest(&self, newest: Address, tuple: TupleId) -> Result<()> {
        if newest.is_none() || self.rows_in_use.is_of(&self.core, newest, tuple) {
            return Ok(());
        }
        Err(self.rotten(newest))
    }

    #[cold]
    fn rotten(&self, newest: Address) -> Error {
        self.core.store_error(self.core.store.rotten(newest))
    }

    /// Looks at the checksum of a row that has not the key by which it was found. Its entry is stale, as is usual, or
    /// the row is damaged, and must not look as if it were not there.
    #[cold]
    pub(super) fn verify_other_key(&self, table: &TableInner, tuple: TupleId, at: Timestamp) -> Result<()> {
        if self.own_version(table, tuple).is_some() {
            return Ok(());
        }
        let _pin = self.core.registry.pin(self.slot);
        let anchor = Anchor::load(table.anchor(tuple));
        if anchor.is_dead() { Ok(()) } else { self.verify_version(anchor.newest(), at) }
    }

    /// Looks at the checksum of a version that makes a row absent. One that has come after the snapshot is common, and
    /// may be long: it is believed unless it has a timestamp that nobody can have drawn yet.
    #[cold]
    fn verify_absent(&self, newest: Address, at: Timestamp) -> Result<()> {
        if newest.is_none() || self.rows_in_use.has(&self.core, newest) {
            return Ok(());
        }
        let begin = self.begin_of(newest);
        match begin > at && begin <= self.core.registry.after_all() {
            true => Ok(()),
            false => self.verify_version(newest, at),
        }
    }

    /// Looks at the checksum of a newest version, unless it is read from the row cache: its copies were verified when
    /// they were made.
    #[cold]
    pub(super) fn verify_newest(&self, newest: Address) -> Result<()> {
        if newest.is_none() || self.rows_in_use.has(&self.core, newest) {
            return Ok(());
        }
        self.core.store.verify_mapped(newest).map(drop).map_err(|error| self.core.store_error(error))
    }

    /// Looks at the checksums of what [`Transaction::version_at`] reads.
    #[cold]
    pub(super) fn verify_version(&self, newest: Address, at: Timestamp) -> Result<()> {
        if newest.is_none() {
            return Ok(());
        }
        let store = &self.core.store;
        let verify =
            |address| store.verify_mapped(address).map(drop).map_err(|error| self.core.store_error(error));
        verify(newest)?;
        let begin = store.content_header(newest).timestamp();
        if begin <= at {
            return Ok(());
        }
        self.older_link((newest, begin), at, || {}).map_or(Ok(()), |link| verify(link.address))
    }

    /// Follows links, and reads only the content of the version that is
    /// visible, because other contents may be gone (T13).
    #[cold]
    fn older_version<'t>(
        &'t self,
        table: &'t TableInner,
        newest: Address,
        begin: Timestamp,
        at: Timestamp,
    ) -> (Seen<'t>, Timestamp) {
        let count = || self.versions_read.set(self.versions_read.get() + 1);
        let visible = self.older_link((newest, begin), at, count);
        let visible = visible
            .map(|link| (seen(table, self.rows_in_use.content(&self.core, link.address)), link.begin_ts));
        visible.unwrap_or((Seen::Absent, Timestamp::ZERO))
    }

    /// The link to the version that is visible at `at`, behind the newest one and its
    /// `begin_ts`; `walked` is called for each on the way.
    fn older_link(
        &self,
        (newest, begin): (Address, Timestamp),
        at: Timestamp,
        walked: impl Fn(),
    ) -> Option<Link> {
        let links = self.core.store.links(newest, begin).map(|(link, _)| link);
        links.inspect(|_| walked()).find(|link| link.begin_ts <= at)
    }
}

/// The word that is the key of a row, if it is one, from the values of its primary key.
#[inline]
pub(super) fn key_word(table: &TableInner, values: &[Value<'_>]) -> Option<u64> {
    match (values, table.schema().only_key) {
        ([value], Some(ty)) => word_of(ty, value),
        _ => None,
    }
}

// Apart, so that keys of one word do not make room for it.
#[inline(never)]
fn long_point_key(table: &TableInner, values: &[Value<'_>]) -> Result<PointKey> {
    let mut key = Key::default();
    set_point_key(&mut key, table, values)?;
    Ok(PointKey::Words(key))
}

/// Builds the key of a row from the values of its primary key.
#[inline]
pub(super) fn set_point_key(key: &mut Key, table: &TableInner, values: &[Value<'_>]) -> Result<()> {
    let schema = table.schema();
    let columns = &schema.primary_key;
    if values.len() != columns.len() {
        return Err(Error::WrongArity { table: table.name(), expected: columns.len(), got: values.len() });
    }
    key.set_values(schema, columns, values)
}

#[cold]
fn is_newer(table: &TableInner) -> Result<()> {
    Err(table.conflict(Conflict::TableIsNewer))
}

#[inline]
fn seen<'t>(table: &'t TableInner, content: Content<'t>) -> Seen<'t> {
    if content.flags().is_tombstone() { Seen::Absent } else { Seen::Row(table.row_of(content)) }
}
