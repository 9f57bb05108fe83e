//! The registry of running transactions: beginning, announcing and ending.
//!
//! Each running transaction holds a slot, which shares no cache line with other slots. Usually
//! nothing else is written when a transaction begins or ends. A safe reader also raises the newest
//! safe snapshot, and the first use of a slot raises the number of used slots.

use std::time::Duration;

use pantile_base::control::{Control, is_removed};
use pantile_base::limits::{TRANSACTION_SLOTS, WRITER_SLOTS};
use pantile_base::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use pantile_base::sync::{Condvar, Mutex, hint};
use pantile_base::{Padded, Timestamp};

use crate::clock::Clock;
use crate::deadline::Deadline;

/// `active` of a free slot.
pub(crate) const FREE: u64 = 0;
/// `active` of a slot whose transaction has not drawn its timestamp yet.
pub(crate) const ENTERING: u64 = 1;
/// The same of a safe reader, which looks at all slots meanwhile.
pub(crate) const ENTERING_SAFELY: u64 = 2;
/// `reads_from` of a transaction that reads where it began.
const WHERE_IT_BEGAN: u64 = 0;
/// `reads_from` of one that reads nothing until it reads again.
const NOWHERE: u64 = u64::MAX;
/// `waits_for` of a transaction that does not wait.
pub(crate) const NOBODY: u64 = 0;

/// `appending` of a transaction that does not append.
pub(crate) const IDLE: u32 = 0;
/// `appending` of one that copies versions and publishes nothing.
const COPYING: u32 = 1;
/// `appending` of one that may be past its last check of the table definitions.
pub(crate) const COMMITTING: u32 = 2;
/// `appending` of one that commits and may be past its last look at the read
/// marks of what it has written.
const DECIDING: u32 = 3;
/// `appending` of one that draws the timestamp at which it writes, late or moving to a later one, and is about to
/// announce it.
pub(crate) const MOVING: u32 = 4;

/// How a transaction reads and writes, as far as other transactions must know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begin {
    /// Writes at the timestamp at which it reads: serializable read-write.
    WriterAtBegin,
    /// Reads at its timestamp and writes nothing.
    Reader,
    /// Reads at its timestamp. If it writes, it writes at a timestamp drawn at
    /// commit.
    LateWriter,
    /// Reads at a new timestamp in each statement. Writes as a late writer.
    ByStatement,
    /// Reads at the newest safe snapshot.
    SafeReader,
}

/// A transaction that has begun and not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Open {
    /// Its slot.
    pub slot: Slot,
    /// Where it began to read. No other transaction in the slot has the same one.
    pub reads_at: Timestamp,
    /// Where versions are kept for it, if it reads at all now.
    pub keeps: Option<Timestamp>,
    /// Whether it may read at any time after `keeps` as well.
    pub by_statement: bool,
    /// Whether it reads no more, and keeps nothing for itself.
    pub reads_nothing: bool,
    /// Whether it may use tables that were created after it began.
    pub uses_newer_tables: bool,
}

/// The transactions that were committing or copying at some moment, by slot and timestamp.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CommitsUnderWay(pub(crate) Vec<(usize, u64)>);

/// All slots that the transaction could have are in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

#[repr(align(128))]
#[derive(Debug)]
pub(crate) struct SlotState {
    /// FREE, ENTERING (at the beginning, or as long as it begins again),
    /// ENTERING_SAFELY, or the timestamp at which the transaction reads.
    pub(crate) active: AtomicU64,
    /// The lowest timestamp at which the transaction may yet publish a version;
    /// MAX while it can publish none below the present.
    pub(crate) pending: AtomicU64,
    /// The last tick drawn in this slot. The ticks of a slot only rise.
    last_tick: AtomicU64,
    /// Where the transaction reads: WHERE_IT_BEGAN, ENTERING as long as it draws another timestamp, that
    /// timestamp, or NOWHERE.
    reads_from: AtomicU64,
    /// The transaction may read at any timestamp from there on.
    by_statement: AtomicBool,
    /// The transaction writes nothing.
    pub(crate) reads_only: AtomicBool,
    /// The transaction reads no more, and comes to no tables but those that it has changed; it may yet publish.
    pub(crate) reads_nothing: AtomicBool,
    /// The transaction may use tables that were created after `active` (I-37).
    pub(crate) uses_newer_tables: AtomicBool,
    /// The transaction is prepared, and stays as it is until somebody decides.
    pub(crate) prepared: AtomicBool,
    /// Odd while the transaction looks at versions that it may not see.
    pub(crate) pin: AtomicU64,
    /// The transaction is to end, and has not noticed or not ended yet.
    pub(crate) ending: AtomicBool,
    /// IDLE, COPYING, COMMITTING, DECIDING or MOVING.
    pub(crate) appending: AtomicU32,
    /// `active` of the transaction that this one waits for.
    pub(crate) waits_for: AtomicU64,
    /// `pending` of that transaction when the wait began.
    pub(crate) awaited_bound: AtomicU64,
    /// `wakes` of that transaction before this one last found itself blocked.
    pub(crate) awaited_wakes: AtomicU64,
    /// How often transactions in this slot have called [`Registry::wake`].
    pub(crate) wakes: AtomicU64,
    pub(crate) waiters: AtomicU32,
    pub(crate) door: Mutex<()>,
    pub(crate) changed: Condvar,
}

/// All slots and the clock they draw from.
#[derive(Debug)]
pub struct Registry {
    pub(crate) clock: Clock,
    /// All threads read these all the time, and nobody writes them: apart from what follows.
    pub(crate) slots: Padded<Box<[SlotState]>>,
    /// The most slots ever used at once: scans stop here (T19).
    pub(crate) used: Padded<AtomicUsize>,
    pub(crate) watermark: AtomicU64,
    pub(crate) writers: AtomicU64,
    /// The highest safe snapshot so far. Safe snapshots never fall.
    pub(crate) safe: AtomicU64,
    pub(crate) refreshed: AtomicU64,
    /// Held while a wait is announced.
    pub(crate) announcing: Mutex<()>,
    /// Transactions that have been asked to end.
    asked: AtomicUsize,
    /// Threads that wait for a slot, and those among them that take any.
    wanting: AtomicU32,
    wanting_any: AtomicU32,
    room: Mutex<()>,
    freed: Condvar,
}

/// A running transaction's slot in the registry. Release it exactly once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot(u16);

impl Slot {
    /// The number of the slot, below [`TRANSACTION_SLOTS`].
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The slot with this number.
    #[inline]
    pub fn from_index(index: usize) -> Self {
        debug_assert!(index < TRANSACTION_SLOTS);
        Self(index as u16)
    }
}

/// A safe reader may read just below, which must not look like a slot that is free or just beginning.
fn first_watermark(clock: &Clock) -> Timestamp {
    Timestamp::new(clock.start(), 0).max(Timestamp::from_raw(ENTERING_SAFELY + 2))
}

/// Where a transaction reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reading {
    /// It is about to draw the timestamp.
    Entering,
    Nothing,
    At {
        from: Timestamp,
        /// Perhaps at any later time as well.
        or_later: bool,
    },
}

impl SlotState {
    /// Where the transaction reads that began at `active`.
    pub(crate) fn reading(&self, active: Timestamp) -> Reading {
        if self.reads_nothing.load(Ordering::SeqCst) {
            return Reading::Nothing;
        }
        // First: once it is off, `reads_from` stays as it is.
        let or_later = self.by_statement.load(Ordering::SeqCst);
        match self.reads_from.load(Ordering::SeqCst) {
            ENTERING => Reading::Entering,
            NOWHERE => Reading::Nothing,
            WHERE_IT_BEGAN => Reading::At { from: active, or_later },
            from => Reading::At { from: Timestamp::from_raw(from), or_later },
        }
    }
}

impl Registry {
    /// A registry without running transactions.
    pub fn new(clock: Clock) -> Self {
        let start = first_watermark(&clock).get();
        let slots = (0..TRANSACTION_SLOTS)
            .map(|_| SlotState {
                active: AtomicU64::new(FREE),
                pending: AtomicU64::new(u64::MAX),
                last_tick: AtomicU64::new(0),
                reads_from: AtomicU64::new(WHERE_IT_BEGAN),
                by_statement: AtomicBool::new(false),
                reads_only: AtomicBool::new(false),
                reads_nothing: AtomicBool::new(false),
                uses_newer_tables: AtomicBool::new(false),
                prepared: AtomicBool::new(false),
                pin: AtomicU64::new(0),
                ending: AtomicBool::new(false),
                appending: AtomicU32::new(IDLE),
                waits_for: AtomicU64::new(NOBODY),
                awaited_bound: AtomicU64::new(0),
                awaited_wakes: AtomicU64::new(0),
                wakes: AtomicU64::new(0),
                waiters: AtomicU32::new(0),
                door: Mutex::new(()),
                changed: Condvar::new(),
            })
            .collect();
        Self {
            clock,
            slots: Padded(slots),
            used: Padded(AtomicUsize::new(0)),
            watermark: AtomicU64::new(start),
            writers: AtomicU64::new(start),
            safe: AtomicU64::new(start),
            refreshed: AtomicU64::new(0),
            announcing: Mutex::new(()),
            asked: AtomicUsize::new(0),
            wanting: AtomicU32::new(0),
            wanting_any: AtomicU32::new(0),
            room: Mutex::new(()),
            freed: Condvar::new(),
        }
    }

    /// A timestamp above everything that was found on the medium, at or below which nobody will write.
    pub fn start(&self) -> Timestamp {
        first_watermark(&self.clock)
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Takes a slot of all and a timestamp.
    ///
    /// The timestamp is above that of every transaction whose commit was
    /// acknowledged before the call, provided that [`Registry::await_passed`]
    /// preceded the acknowledgement. A safe reader is the exception: its
    /// timestamp is below that of every transaction that may yet write. What was
    /// acknowledged before the call is at or below it all the same, unless a transaction
    /// that is running may still write further down ([`Registry::shows_all`]).
    pub fn begin(&self, how: Begin) -> Result<(Slot, Timestamp), Full> {
        self.begin_among(how, TRANSACTION_SLOTS)
    }

    fn begin_among(&self, how: Begin, slots: usize) -> Result<(Slot, Timestamp), Full> {
        let (slot, ts) = match how {
            Begin::SafeReader => {
                let called = self.now();
                // From here on nobody draws a timestamp below, on any core.
                self.await_passed(called);
                let slot = self.claim(slots, ENTERING_SAFELY)?;
                (slot, Timestamp::from_raw(self.safe_watermark(called).get() - 1))
            }
            Begin::WriterAtBegin | Begin::Reader | Begin::LateWriter | Begin::ByStatement => {
                let slot = self.claim(slots, ENTERING)?;
                (slot, self.draw(slot))
            }
        };
        let state = &self.slots[slot.index()];
        let reads_only = matches!(how, Begin::Reader | Begin::SafeReader);
        if reads_only != state.reads_only.load(Ordering::Relaxed) {
            state.reads_only.store(reads_only, Ordering::Relaxed);
        }
        if state.reads_from.load(Ordering::Relaxed) != WHERE_IT_BEGAN {
            state.reads_from.store(WHERE_IT_BEGAN, Ordering::Relaxed);
        }
        if (how == Begin::ByStatement) != state.by_statement.load(Ordering::Relaxed) {
            state.by_statement.store(how == Begin::ByStatement, Ordering::Relaxed);
        }
        if state.reads_nothing.load(Ordering::Relaxed) {
            state.reads_nothing.store(false, Ordering::Relaxed);
        }
        if state.uses_newer_tables.load(Ordering::Relaxed) {
            state.uses_newer_tables.store(false, Ordering::Relaxed);
        }
        if state.prepared.load(Ordering::Relaxed) {
            state.prepared.store(false, Ordering::Relaxed);
        }
        if how == Begin::WriterAtBegin {
            state.pending.store(ts.get(), Ordering::SeqCst);
        }
        state.active.store(ts.get(), Ordering::SeqCst);
        Ok((slot, ts))
    }

    /// Lets a serializable writer begin later: it reads and writes at a new
    /// timestamp, as if it began now. It holds no locks, and nothing depends on
    /// what it has read.
    pub fn begin_again(&self, slot: Slot) -> Timestamp {
        let state = &self.slots[slot.index()];
        // A look at the slots between the draw and the announcement has to be
        // repeated later, as when a transaction begins.
        if !is_removed(Control::EntersAgain) {
            state.active.store(ENTERING, Ordering::SeqCst);
        }
        let ts = self.draw(slot);
        state.pending.store(ts.get(), Ordering::SeqCst);
        state.active.store(ts.get(), Ordering::SeqCst);
        ts
    }

    /// The transaction, which reads by statement, reads nothing until [`Registry::read_again`]. Meanwhile no version
    /// is kept for it but what it has locked. Tables and ids stay as they do for one that began when it did.
    pub fn read_nothing_for_now(&self, slot: Slot) {
        self.slots[slot.index()].reads_from.store(NOWHERE, Ordering::SeqCst);
    }

    /// The transaction, which reads by statement and nothing for now, reads at the new timestamp or later.
    pub fn read_again(&self, slot: Slot) -> Timestamp {
        let reads_from = &self.slots[slot.index()].reads_from;
        // A look at the slots between the draw and the announcement has to be
        // repeated later, as when a transaction begins.
        if !is_removed(Control::ReadsAgain) {
            reads_from.store(ENTERING, Ordering::SeqCst);
        }
        let ts = self.draw(slot);
        reads_from.store(ts.get(), Ordering::SeqCst);
        ts
    }

    /// The transaction, which may have read anywhere from some time before `ts` on, reads at `ts` only from now on.
    pub fn read_at(&self, slot: Slot, ts: Timestamp) {
        let state = &self.slots[slot.index()];
        state.reads_from.store(ts.get(), Ordering::SeqCst);
        state.by_statement.store(false, Ordering::SeqCst);
    }

    /// The transaction reads no more: nothing is kept for it but what it has locked. It may
    /// yet commit as a late writer.
    pub fn reads_no_more(&self, slot: Slot) {
        let state = &self.slots[slot.index()];
        state.reads_nothing.store(true, Ordering::SeqCst);
        // It comes to no tables but those that it has changed, and these are not dropped (I-32).
        state.uses_newer_tables.store(false, Ordering::SeqCst);
    }

    /// Announces that the slot's transaction may use tables that were created after it
    /// began, until it ends. The caller looks afterwards whether the table has been
    /// dropped (I-37).
    #[inline]
    pub fn use_newer_tables(&self, slot: Slot) {
        let announced = &self.slots[slot.index()].uses_newer_tables;
        if !announced.load(Ordering::Relaxed) && !is_removed(Control::NewerTables) {
            announced.store(true, Ordering::SeqCst);
        }
    }

    /// The transaction will publish exactly at `ts`, if it does: no lower than it has announced.
    /// From now on it is so listed as undecided, and readers below do not wait for it.
    pub fn settle_at(&self, slot: Slot, ts: Timestamp) {
        debug_assert!(self.pending(slot) <= ts);
        self.slots[slot.index()].pending.store(ts.get(), Ordering::SeqCst);
    }

    /// The transaction is prepared: it commits or rolls back when it is told to, perhaps never.
    /// Wakes those that wait for it because they thought that it was about to commit.
    pub fn set_prepared(&self, slot: Slot) {
        self.slots[slot.index()].prepared.store(true, Ordering::SeqCst);
        self.wake(slot);
    }

    /// The transaction, which was prepared, is about to commit.
    pub fn set_told_to_commit(&self, slot: Slot) {
        self.slots[slot.index()].prepared.store(false, Ordering::SeqCst);
    }

    /// Whether some transaction is prepared.
    pub fn has_prepared(&self) -> bool {
        let is_prepared = |state: &SlotState| {
            state.prepared.load(Ordering::Relaxed) && state.active.load(Ordering::Relaxed) != FREE
        };
        self.slots_used().iter().any(is_prepared)
    }

    /// Whether the slot's transaction is prepared.
    pub fn is_prepared(&self, slot: Slot) -> bool {
        self.slots[slot.index()].prepared.load(Ordering::SeqCst)
    }

    /// [`Registry::begin`], which takes one of the first `slots`, and waits for it at
    /// most for `limit`. [`WRITER_SLOTS`] leave some to others.
    pub fn begin_within(&self, how: Begin, slots: usize, limit: Duration) -> Result<(Slot, Timestamp), Full> {
        let begun = self.begin_among(how, slots);
        begun.or_else(|full| if limit.is_zero() { Err(full) } else { self.begin_later(how, slots, limit) })
    }

    #[cold]
    fn begin_later(&self, how: Begin, slots: usize, limit: Duration) -> Result<(Slot, Timestamp), Full> {
        let deadline = Deadline::after(limit);
        let takes_any = u32::from(slots > WRITER_SLOTS);
        let mut room = self.room.lock();
        // A transaction that frees its slot after the look that finds none sees this.
        self.wanting.fetch_add(1, Ordering::SeqCst);
        self.wanting_any.fetch_add(takes_any, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let mut over = false;
        let begun = loop {
            let begun = self.begin_among(how, slots);
            if begun.is_ok() || over {
                break begun;
            }
            over = deadline.wait(&self.freed, &mut room);
        };
        self.wanting.fetch_sub(1, Ordering::SeqCst);
        self.wanting_any.fetch_sub(takes_any, Ordering::SeqCst);
        begun
    }

    /// Draws a new timestamp at which a transaction reads. It is not ahead of the
    /// clock (I-6).
    #[inline]
    pub fn draw(&self, slot: Slot) -> Timestamp {
        let state = &self.slots[slot.index()];
        let last = state.last_tick.load(Ordering::Relaxed);
        let mut tick = self.tick();
        // A commit that was refused may have drawn a tick that no clock has reached.
        while tick <= last {
            if is_removed(Control::NotAhead) {
                tick = last + 1;
                break;
            }
            hint::spin_loop();
            tick = self.tick();
        }
        state.last_tick.store(tick, Ordering::Relaxed);
        Timestamp::new(tick, slot.index())
    }

    /// Draws a timestamp that no other has, at which nobody reads. It may be ahead
    /// of the clock.
    #[inline]
    pub fn draw_unread(&self, slot: Slot) -> Timestamp {
        let state = &self.slots[slot.index()];
        let last = state.last_tick.load(Ordering::Relaxed);
        let tick = self.tick().max(last + 1);
        state.last_tick.store(tick, Ordering::Relaxed);
        Timestamp::new(tick, slot.index())
    }

    /// A tick for purposes other than a transaction's timestamp.
    #[inline]
    pub(crate) fn tick(&self) -> u64 {
        match self.clock.try_tick() {
            Some(tick) => tick,
            None => self.leave_cycle_counter(),
        }
    }

    #[cold]
    fn leave_cycle_counter(&self) -> u64 {
        let drawn = self.slots.iter().map(|s| s.last_tick.load(Ordering::SeqCst)).max().unwrap_or(0);
        self.clock.fall_back(drawn);
        self.clock.try_tick().unwrap_or(drawn + 1)
    }

    /// The time now, as a timestamp that no transaction has. What has been acknowledged is below.
    pub fn now(&self) -> Timestamp {
        Timestamp::new(self.tick(), 0)
    }

    /// Whether a transaction that reads at `ts` sees everything that had been acknowledged when
    /// [`Registry::now`] returned `called`.
    pub fn shows_all(ts: Timestamp, called: Timestamp) -> bool {
        ts.get() + 1 >= called.get()
    }

    /// A timestamp above every one that any core has drawn before the call.
    pub fn after_all(&self) -> Timestamp {
        Timestamp::new(self.tick() + self.clock.skew() + 1, 0)
    }

    /// Draws the timestamp at which a late writer commits, or a serializable one
    /// that moves, above `newest`, the newest of the versions that it supersedes or whose
    /// keys it has found free.
    /// The writer must hold all its locks. The timestamp is above that of every
    /// reader that finds a lock and no bound, or a bound above itself (I-6).
    pub fn draw_commit(&self, slot: Slot, newest: Timestamp) -> Timestamp {
        let state = &self.slots[slot.index()];
        // Until here it may have looked at definitions for long, and waited for others.
        if state.appending.load(Ordering::Relaxed) == COMMITTING {
            state.appending.store(MOVING, Ordering::SeqCst);
        }
        let bound = self.draw_unread(slot);
        state.pending.store(bound.get(), Ordering::SeqCst);
        // A reader that found no bound drew before the store, on a clock that
        // was at most the skew ahead of this one. So the clock is read again,
        // after the store.
        let above_readers =
            if is_removed(Control::ClockAfterBound) { 0 } else { self.tick() + self.clock.skew() + 1 };
        let newest = if is_removed(Control::AboveSuperseded) { Timestamp::ZERO } else { newest };
        let tick = above_readers.max(bound.tick() + 1).max(newest.tick() + 1);
        state.last_tick.store(tick, Ordering::Relaxed);
        Timestamp::new(tick, slot.index())
    }

    /// Announces that the transaction is about to check the table definitions
    /// for the last time.
    pub fn set_committing(&self, slot: Slot) {
        self.slots[slot.index()].appending.store(COMMITTING, Ordering::SeqCst);
    }

    /// Takes such an announcement back: it will look again.
    pub fn set_idle(&self, slot: Slot) {
        self.slots[slot.index()].appending.store(IDLE, Ordering::SeqCst);
    }

    /// Takes back that a late writer commits: it will draw another timestamp, above all
    /// who have found no bound or one above themselves.
    pub fn withdraw_commit(&self, slot: Slot) {
        let state = &self.slots[slot.index()];
        state.pending.store(u64::MAX, Ordering::SeqCst);
        state.appending.store(IDLE, Ordering::SeqCst);
        self.wake(slot);
    }

    /// Announces that the transaction is about to look at the read marks of what
    /// it has written, for the last time. What [`Registry::set_committing`] says
    /// holds as well.
    pub fn set_deciding(&self, slot: Slot) {
        let announced = if is_removed(Control::Deciding) { COMMITTING } else { DECIDING };
        self.slots[slot.index()].appending.store(announced, Ordering::SeqCst);
    }

    /// Announces that a transaction that was deciding is about to draw another
    /// timestamp, by [`Registry::draw_commit`].
    pub fn set_moving(&self, slot: Slot) {
        self.slots[slot.index()].appending.store(MOVING, Ordering::SeqCst);
    }

    /// Whether a reader above the slot's bound, whose mark lies on a tuple that
    /// the slot's transaction has locked, can go past the lock. The transaction
    /// will find the mark and move above it (I-21).
    #[inline]
    pub fn will_look_at_marks(&self, slot: Slot) -> bool {
        let state = &self.slots[slot.index()];
        state.appending.load(Ordering::SeqCst) < DECIDING && !self.writes_late(slot)
    }

    /// Announces that the slot's transaction is about to copy versions that
    /// others have committed. It must publish none of its own. Like commits,
    /// copies belong to what is under way.
    pub fn set_copying(&self, slot: Slot) {
        self.slots[slot.index()].appending.store(COPYING, Ordering::SeqCst);
    }

    /// Whether the slot's transaction may be past its last check of the table
    /// definitions.
    pub fn is_committing(&self, slot: Slot) -> bool {
        self.slots[slot.index()].appending.load(Ordering::SeqCst) >= COMMITTING
    }

    /// Ends the transaction, after its last publication.
    pub fn release(&self, slot: Slot) {
        let state = &self.slots[slot.index()];
        // A transaction that has published is never seen as one that has not begun to commit.
        state.pending.store(u64::MAX, Ordering::Release);
        state.appending.store(IDLE, Ordering::Release);
        state.active.store(FREE, Ordering::Release);
        // Those that wait see that it has ended. `wakes` may belong to the next transaction by now.
        self.wake_waiters(slot);
        // After the fence of `wake_waiters`.
        let wanting = if slot.index() < WRITER_SLOTS { &self.wanting } else { &self.wanting_any };
        if wanting.load(Ordering::Relaxed) > 0 {
            let _room = self.room.lock();
            // Not everybody can have it.
            self.freed.notify_all();
        }
    }

    /// Wakes the transactions that wait for this one, after it has released locks or changed its
    /// bound, and before it waits itself. Only the slot's own transaction may call this.
    pub fn wake(&self, slot: Slot) {
        let wakes = &self.slots[slot.index()].wakes;
        // After the release of the locks: one that reads the new count finds them free.
        wakes.store(wakes.load(Ordering::Relaxed) + 1, Ordering::Release);
        self.wake_waiters(slot);
    }

    fn wake_waiters(&self, slot: Slot) {
        let state = &self.slots[slot.index()];
        fence(Ordering::SeqCst);
        if state.waiters.load(Ordering::Relaxed) > 0 {
            let _door = state.door.lock();
            state.changed.notify_all();
        }
    }

    /// Asks the slot's transaction to end, and wakes it if it waits for a lock.
    /// The caller sees to it that the slot does not change hands meanwhile.
    pub fn ask_to_end(&self, slot: Slot) {
        let state = &self.slots[slot.index()];
        if !state.ending.swap(true, Ordering::SeqCst) {
            self.asked.fetch_add(1, Ordering::SeqCst);
        }
        // It announces its wait before it looks whether it is asked to end, so one of
        // the two sees the other.
        let waits_for = state.waits_for.load(Ordering::SeqCst);
        if is_removed(Control::EndedStay) {
            state.active.store(self.now().get(), Ordering::SeqCst);
        }
        if waits_for != NOBODY && !is_removed(Control::EndedWake) {
            self.wake_waiters(Slot::from_index(waits_for as usize % TRANSACTION_SLOTS));
        }
    }

    /// Takes that back, for the next transaction in the slot.
    pub fn has_ended(&self, slot: Slot) {
        if self.slots[slot.index()].ending.swap(false, Ordering::SeqCst) {
            self.asked.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Transactions that have been asked to end and have not ended.
    #[inline]
    pub fn asked_to_end(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Whether the slot's transaction has been asked to end.
    #[inline]
    pub fn is_asked_to_end(&self, slot: Slot) -> bool {
        // Almost always nobody has, and then the slot need not be looked at.
        self.asked_to_end() != 0 && self.slots[slot.index()].ending.load(Ordering::SeqCst)
    }

    /// The lowest timestamp at which the slot's transaction may yet publish.
    #[inline]
    pub fn pending(&self, slot: Slot) -> Timestamp {
        Timestamp::from_raw(self.slots[slot.index()].pending.load(Ordering::SeqCst))
    }

    /// Whether the slot's transaction writes at a timestamp that it draws at
    /// commit, or has moved, rather than at the one at which it reads.
    #[inline]
    pub fn writes_late(&self, slot: Slot) -> bool {
        let state = &self.slots[slot.index()];
        state.pending.load(Ordering::SeqCst) != state.active.load(Ordering::SeqCst)
    }

    /// Waits until the clocks of all cores are past `ts` (external
    /// consistency), and returns what [`Registry::now`] would. Almost never waits, because a commit
    /// takes longer than the clocks differ.
    #[inline]
    pub fn await_passed(&self, ts: Timestamp) -> Timestamp {
        let passed = ts.tick() + self.clock.skew();
        loop {
            let tick = self.tick();
            if tick > passed {
                return Timestamp::new(tick, 0);
            }
            hint::spin_loop();
        }
    }

    /// Takes one of the first `slots`. Where writers may be short of slots, those who can
    /// leave them theirs.
    fn claim(&self, slots: usize, entering: u64) -> Result<Slot, Full> {
        pantile_base::sync::thread_local!(static HINT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) });
        let used = self.used.load(Ordering::Relaxed);
        let apart = if used < WRITER_SLOTS { 0..0 } else { WRITER_SLOTS..slots };
        let hint = Some(HINT.get()).filter(|hint| *hint < slots);
        let index = apart.chain(hint).chain(0..slots).find(|&i| self.try_claim(i, entering)).ok_or(Full)?;
        HINT.set(index);
        if index >= used {
            self.used.fetch_max(index + 1, Ordering::SeqCst);
        }
        Ok(Slot(index as u16))
    }

    fn try_claim(&self, index: usize, entering: u64) -> bool {
        let active = &self.slots[index].active;
        active.load(Ordering::Relaxed) == FREE
            && active.compare_exchange(FREE, entering, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// The slots that have ever been used.
    pub(crate) fn slots_used(&self) -> &[SlotState] {
        &self.slots[..self.used.load(Ordering::SeqCst)]
    }

    /// DRAM used, in bytes.
    pub fn bytes(&self) -> u64 {
        size_of_val(&**self.slots) as u64
    }

    /// The transactions that have begun.
    pub fn open(&self) -> impl Iterator<Item = Open> {
        fence(Ordering::SeqCst);
        self.slots_used().iter().enumerate().filter_map(|(n, state)| {
            let active = Timestamp::from_raw(state.active.load(Ordering::SeqCst));
            let (keeps, by_statement) = match state.reading(active) {
                Reading::At { from, or_later } => (Some(from), or_later),
                Reading::Entering | Reading::Nothing => (None, false),
            };
            (active.get() > ENTERING_SAFELY).then(|| Open {
                slot: Slot::from_index(n),
                reads_at: active,
                keeps,
                by_statement,
                reads_nothing: state.reads_nothing.load(Ordering::Relaxed),
                uses_newer_tables: state.uses_newer_tables.load(Ordering::Relaxed),
            })
        })
    }

    /// The number of running transactions.
    pub fn running(&self) -> usize {
        fence(Ordering::SeqCst);
        self.slots_used().iter().filter(|s| s.active.load(Ordering::SeqCst) != FREE).count()
    }
}

#[cfg(test)]
#[path = "registry_test.rs"]
mod tests;
