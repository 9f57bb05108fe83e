//! Transactions: beginning and ending. The other files of this directory hold what a transaction
//! does in between; the commit path is in `commit.rs`.

use std::cell::Cell;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use pantile_base::Timestamp;
use pantile_base::control::{Control, is_removed};
use pantile_cc::{Begin, Clock, Protocol, Reads, Slot};
use pantile_index::SIDE_BY_SIDE;
use smallvec::SmallVec;

use crate::engine::buffers::Buffers;
use crate::engine::gate::Permit;
use crate::engine::holders::{Holder, Purpose};
use crate::engine::memory::Nodes;
use crate::engine::memory_limit::Adds;
use crate::engine::pieces::TablesOfPieces;
use crate::engine::prepared::Prepared;
use crate::engine::read_set::Full;
use crate::engine::seats::Seat;
use crate::engine::stage::{Play, TURN};
use crate::engine::table::TableInner;
use crate::engine::under_protocol::{UnderProtocol, isolation_of};
use crate::transactions::moved::Told;
use crate::transactions::retry::note_in_vain;
use crate::transactions::rows_in_use::RowsInUse;
use crate::types::error::Result;
use crate::types::isolation::Isolation;
use crate::types::running::TransactionId;
use crate::types::transaction_options::{ConflictPolicy, TransactionOptions};

/// Buffers of this size double rarely. When they do, the memory of the database
/// is checked at once.
const LARGE_BUFFERS: u64 = 1 << 20;
/// Stands for the unchecked writes of a transaction whose buffers have doubled, or to which memory was
/// refused: the next write is checked whatever the table may take.
const DUE: u32 = u32::MAX;

/// Asks whether a wait for the transaction of this number is to end.
pub(super) type Stop = Arc<dyn Fn(Option<u64>) -> bool + Send + Sync>;

/// The buffers of a transaction that has not ended.
pub(super) struct InUse(Option<Box<Buffers>>);

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

/// A transaction. Dropping it rolls it back.
///
/// It belongs to one thread at a time. The rows that it returns borrow from it,
/// so the compiler lets none of them outlive its next write or its end.
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
    pub(super) core: Seat,
    pub(super) slot: Slot,
    /// Where it reads (at read committed: where it began), and, if it is
    /// serializable, where it writes.
    pub(super) ts: Timestamp,
    /// Where it began, by which its savepoints and cursors know it.
    pub(super) began: Timestamp,
    /// Where its statement reads, at read committed.
    pub(super) statement_at: Option<Timestamp>,
    /// At read committed: versions are kept for it, because it may have read since its last statement ended.
    pub(super) is_reading: Cell<bool>,
    /// It reads at its snapshot, and its cursors may read what it has read before (`take_snapshot`).
    pub(super) reads_wider: bool,
    /// The newest version that it has locked, or whose key it has compared with one of its own. Statements and snapshots
    /// that come later show it, and the commit is above it.
    pub(super) newest_met: Cell<Timestamp>,
    /// How many of its statements have ended, with their cursors.
    pub(super) statements: u64,
    /// Ends its waits.
    pub(super) stop: Option<Stop>,
    pub(super) isolation: Isolation,
    pub(super) read_only: bool,
    /// It reads at a safe snapshot: its reads leave no marks and meet no locks.
    pub(super) safe: bool,
    /// Nobody writes any more where it reads, so that its reads leave no marks (I-33).
    pub(super) unmarked: Cell<bool>,
    /// A serializable writer that may write at a later timestamp than the one at
    /// which it reads. So it notes what it reads.
    pub(super) moves: bool,
    /// It notes the ranges that it reads.
    pub(super) notes_ranges: bool,
    /// Its reads leave marks in the gaps of indexes, and on tuples only when it commits.
    pub(super) marks_gaps: bool,
    /// What stands at an anchor is not enough for its reads: they verify checksums, look into the cache of rows, or are
    /// under a protocol of the laboratory.
    pub(super) is_careful: bool,
    pub(super) under: Option<Box<UnderProtocol>>,
    /// Its reads go past writers that will move behind it, or past all. It only reads, or it is not serializable: what it
    /// writes is validated when it locks that.
    pub(super) reads_pass: bool,
    /// While several rows are added in one call: the new ones, whose keys are yet to be entered into
    /// the secondary indexes.
    pub(super) gathered: Option<SmallVec<[u32; SIDE_BY_SIDE]>>,
    /// A later transaction has found a key absent that it has entered, so it
    /// must move.
    pub(super) must_move: Cell<bool>,
    /// The program knows something of its timestamp that left no note: the timestamp
    /// itself, or that there is no row at a place. So it does not begin again.
    pub(super) is_known: Cell<bool>,
    pub(super) policy: ConflictPolicy,
    pub(super) buffers: InUse,
    /// Given back when the transaction ends.
    pub(super) permit: Option<Permit>,
    id: TransactionId,
    pub(super) savepoints_taken: u64,
    /// A `Cell`, which also keeps two threads from using, and pinning, one slot.
    pub(super) versions_read: Cell<u64>,
    /// Its commit found no space.
    pub(super) starved: bool,
    /// It makes changes again that were prepared when the database was last open. They have been promised,
    /// so that no limit refuses them.
    pub(super) repeats: bool,
    /// Its changes, which are few and small, let more be freed than they take. So no limit refuses them,
    /// and they may use the space that is kept for deletions.
    pub(crate) frees: bool,
    /// Its cursors may know rows by their places.
    pub(super) has_cursors: Cell<bool>,
    /// Cursors over indexes, which learn what it moves.
    pub(super) told: Told,
    pub(super) tables_of_pieces: TablesOfPieces,
    pub(super) rows_in_use: RowsInUse,
    /// It has the exclusive stage.
    on_stage: bool,
    /// It has asked for it before.
    has_asked: bool,
    /// Others see what it has written, so that it cannot be undone.
    pub(super) is_visible: bool,
    /// Its commit cannot fail any more but for the medium (I-32).
    pub(super) prepared: Option<Prepared>,
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
    pub(crate) fn begin(
        core: Seat,
        options: TransactionOptions,
        place: &'static Location<'static>,
    ) -> Result<Self> {
        let is_mine = core.stage.is_mine();
        // Those who wait for the one on stage may have all slots of writers.
        let takes_any = options.read_only || options.safe_snapshot || is_mine;
        Self::begin_as(core, options, place, takes_any, false)
    }

    /// A transaction within another one, which may have the last slot of writers. It does
    /// not wait for the one on stage, which may wait for the locks of the other one.
    #[track_caller]
    pub(crate) fn begin_within(core: Seat, options: TransactionOptions) -> Result<Self> {
        Self::begin_as(core, options, Location::caller(), true, true)
    }

    fn begin_as(
        core: Seat,
        options: TransactionOptions,
        place: &'static Location<'static>,
        takes_any: bool,
        is_within: bool,
    ) -> Result<Self> {
        let protocol = core.options.protocol.filter(|_| !options.safe_snapshot);
        let reads = protocol.map(Protocol::reads);
        let marks_gaps = reads == Some(Reads::InOrder { marks: false });
        let isolation = protocol.map_or(options.isolation, isolation_of);
        let may_move = !core.options.writers_stay && protocol.is_none();
        // Where writers move, a transaction that only reads is in nobody's way.
        let passes = options.read_only && (may_move || options.safe_snapshot);
        if !passes && !is_within {
            core.stage.pass(core.options.wait_to_begin());
        }
        let how = match options {
            TransactionOptions { safe_snapshot: true, .. } => Begin::SafeReader,
            _ if isolation == Isolation::ReadCommitted => Begin::ByStatement,
            // An id must not be used again before its commit has looked at the tuple.
            TransactionOptions { read_only: true, .. } if !marks_gaps => Begin::Reader,
            _ if isolation == Isolation::Serializable => Begin::WriterAtBegin,
            _ => Begin::LateWriter,
        };
        let (permit, ts) = core.enter_apart(how, takes_any)?;
        let slot = permit.slot();
        let purpose = Purpose::Transaction { isolation: options.isolation, read_only: options.read_only };
        let mut holder = Holder::new(purpose, ts, options.name, place);
        holder.number = options.number;
        let (buffers, turn) = core.buffers.take(slot, holder);
        holder.turn = turn;
        core.alarm.begun();
        let moves = may_move && !options.read_only && isolation == Isolation::Serializable;
        let rows_in_use = RowsInUse::new(&core);
        let is_careful = core.options.verify_reads || rows_in_use.is_cached || protocol.is_some();
        let under = protocol.map(|_| Box::new(UnderProtocol::begin(&core, ts, slot)));
        Ok(Self {
            slot,
            ts,
            began: ts,
            // What is locked stays.
            statement_at: (reads == Some(Reads::UnderLocks)).then_some(Timestamp::MAX),
            newest_met: Cell::new(Timestamp::ZERO),
            stop: None,
            isolation,
            read_only: options.read_only,
            safe: options.safe_snapshot,
            unmarked: Cell::new(options.safe_snapshot || marks_gaps),
            moves,
            notes_ranges: moves || matches!(reads, Some(Reads::Newest | Reads::AtBegin)),
            marks_gaps,
            is_careful,
            under,
            reads_pass: passes || may_move && isolation != Isolation::Serializable,
            gathered: None,
            must_move: Cell::new(false),
            is_known: Cell::new(false),
            is_reading: Cell::new(true),
            reads_wider: false,
            statements: 0,
            policy: options.conflict.unwrap_or(core.options.conflict),
            buffers: InUse(Some(buffers)),
            permit: Some(permit),
            id: holder.id(slot),
            savepoints_taken: 0,
            versions_read: Cell::new(0),
            starved: false,
            repeats: false,
            frees: false,
            has_cursors: Cell::new(false),
            told: Told::default(),
            tables_of_pieces: TablesOfPieces::default(),
            rows_in_use,
            on_stage: false,
            has_asked: false,
            is_visible: false,
            prepared: None,
            core,
        })
    }

    /// The same, which reads contents where they lie and leaves the cache of rows as it is.
    pub(crate) fn past_the_cache(mut self) -> Self {
        self.rows_in_use.is_cached = false;
        self
    }

    /// Its id, for [`Database::end_transaction`](crate::Database::end_transaction). No other
    /// transaction of the open database has the same one.
    pub fn id(&self) -> TransactionId {
        self.id
    }

    /// Fails once the transaction has been asked to end.
    #[inline]
    pub(super) fn check_ended(&self) -> Result<()> {
        if self.core.registry.is_asked_to_end(self.slot) { self.has_been_ended() } else { Ok(()) }
    }

    #[cold]
    fn has_been_ended(&self) -> Result<()> {
        Err(self.core.error_of_ended(self.slot, self.id))
    }

    /// The timestamp at which it reads; at read committed, the one at which it began.
    ///
    /// A serializable transaction also writes at this timestamp, unless it has to move to a later
    /// one; [`Transaction::commit`] returns the timestamp of its writes.
    ///
    /// A transaction that has read and written nothing may begin again, at a later timestamp, when
    /// it locks its first row. After this call it no longer does.
    pub fn timestamp(&self) -> Timestamp {
        self.is_known.set(true);
        self.ts
    }

    /// The age of the state that it reads.
    pub fn age(&self) -> Duration {
        Clock::duration(self.core.registry.now().tick().saturating_sub(self.ts.tick()))
    }

    /// Its isolation level.
    pub fn isolation(&self) -> Isolation {
        if self.under.is_some() { Isolation::Serializable } else { self.isolation }
    }

    /// Whether it rejects writes.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Undoes all writes and ends the transaction.
    pub fn rollback(mut self) {
        self.abort();
    }

    fn abort(&mut self) {
        if self.permit.is_some() {
            if self.is_visible {
                return self.finish();
            }
            if self.read_only && self.reads_pass && self.under.is_none() {
                // Nothing is to be undone, and nobody comes before it.
                self.core.counters.aborted(self.slot);
                note_in_vain(self.accessed(), Duration::ZERO);
                return self.finish();
            }
            // What is undone has been in vain as well.
            let (written, accessed) = (self.buffers.writes.len(), self.accessed());
            // It reads nothing again, so of what it gives up nothing need be known.
            self.notes_ranges = false;
            self.moves = false;
            self.undo_to(0);
            self.core.counters.aborted(self.slot);
            let length = self.core.registry.now().tick().saturating_sub(self.began.tick());
            note_in_vain(accessed, Clock::duration(length));
            if written > 0 {
                self.core.alarm.written();
            }
            // The cleaner may come to any table.
            self.core.registry.use_newer_tables(self.slot);
            self.core.clean(self.slot, written);
            self.finish();
            if self.starved {
                self.core.make_room();
            }
        }
    }

    /// Rows that it has read and written.
    #[inline]
    pub(super) fn accessed(&self) -> u64 {
        self.versions_read.get() + self.buffers.writes.len() as u64
    }

    /// Takes the exclusive stage if it has accessed so much that others must not
    /// come in its way any more.
    #[inline]
    pub(super) fn claim_stage(&mut self) {
        if self.accessed() >= self.core.options.exclusive.accessed && !self.on_stage {
            // With its locks it waits once only: who is on stage may want one of them.
            let limit = if std::mem::replace(&mut self.has_asked, true) { Duration::ZERO } else { TURN };
            self.on_stage = self.core.stage.take(Play::Whole, limit);
        }
    }

    pub(super) fn leave_stage(&mut self) {
        if std::mem::take(&mut self.on_stage) {
            self.core.stage.leave();
        }
    }

    /// At the beginning of a statement that writes, and not of one that another one
    /// makes: that knows by lengths of the buffers what to undo.
    #[inline]
    pub(super) fn begin_write(&mut self) {
        if self.buffers.is_swollen() && !is_removed(Control::Squeezing) {
            self.squeeze();
        }
    }

    /// Notes what the transaction's buffers take, if they have grown.
    #[inline(always)]
    pub(super) fn note_memory(&mut self) {
        if let Some(bytes) = self.buffers.grown() {
            self.core.buffers.note(self.slot, bytes);
            if bytes >= LARGE_BUFFERS {
                self.buffers.unchecked = DUE;
            }
        }
    }

    /// Makes room in the read set. Notes may be shared while rows are, so the buffers
    /// cannot be added up here.
    ///
    /// # Errors
    /// [`Error::MemoryFull`].
    #[cold]
    pub(super) fn make_room_for_reads(&self, full: Full) -> Result<()> {
        let reads = &self.buffers.reads;
        if reads.compact(full) {
            if self.core.buffers.bytes_of(self.slot) >= LARGE_BUFFERS {
                self.core.check_memory(self.slot, Nodes::None, Adds::Version)?;
            }
            reads.grow(full);
        }
        self.core.buffers.add(self.slot, reads.count_growth());
        Ok(())
    }

    /// Fails if the database has no memory for a statement that adds this to a table.
    #[inline]
    pub(super) fn check_memory(&mut self, table: &TableInner, adds: Adds) -> Result<()> {
        if !self.core.memory.is_due(self.buffers.unchecked) {
            self.buffers.unchecked += 1;
            return Ok(());
        }
        self.check_memory_now(table, adds)
    }

    #[cold]
    fn check_memory_now(&mut self, table: &TableInner, adds: Adds) -> Result<()> {
        let is_allowed = || self.buffers.unchecked != DUE && self.core.memory.take(&table.allowance, adds);
        if !self.repeats && !self.frees && !is_allowed() {
            self.buffers.unchecked = DUE;
            self.core.check_memory(self.slot, Nodes::Rows(table), adds)?;
        }
        self.buffers.unchecked = 0;
        Ok(())
    }

    pub(super) fn permit(&self) -> &Permit {
        self.permit.as_ref().expect("the transaction has not ended")
    }

    /// Leaves the registry; every lock has been released.
    pub(super) fn finish(&mut self) {
        let registry = &self.core.registry;
        // Nobody who begins after it reads what was before that (external consistency). Where no core was seen
        // behind another, word of it takes longer than they differ. Commits that write have waited.
        if registry.clock().skew() > 1 && self.versions_read.get() > 0 {
            registry.await_passed(if self.reads_by_statement() { registry.now() } else { self.ts });
        }
        if self.buffers.0.is_some() {
            self.bury_freed();
        }
        if let Some(buffers) = self.buffers.0.take() {
            self.core.buffers.keep(self.slot, buffers, || self.core.registry.has_ended(self.slot));
        }
        self.core.counters.read(self.slot, self.versions_read.get());
        if self.under.is_some() {
            self.leave_protocol(self.is_visible);
        }
        self.leave_stage();
        self.end_promise();
        if let Some(permit) = self.permit.take() {
            self.core.leave(permit);
            self.core.alarm.ended();
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.abort();
    }
}
