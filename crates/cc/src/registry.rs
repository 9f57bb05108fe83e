//! The running transactions, and the watermarks that follow from them.
//!
//! Each running transaction holds a slot, which is a cache line of its own.
//! Nothing else is written when a transaction begins or ends.

use std::time::Duration;

use pantile_base::Timestamp;
use pantile_base::control::{Control, is_removed};
use pantile_base::limits::TRANSACTION_SLOTS;
use pantile_base::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use pantile_base::sync::{Condvar, Instant, Mutex, MutexGuard, hint};
use smallvec::SmallVec;

use crate::clock::{Clock, MARGIN};
use crate::epoch::RunningSet;

/// `active` of a free slot.
const FREE: u64 = 0;
/// `active` of a slot whose transaction has not drawn its timestamp yet.
const ENTERING: u64 = 1;
/// `waits_for` of a transaction that does not wait.
const NOBODY: u64 = 0;

/// `appending` of a transaction that does not append.
const IDLE: u32 = 0;
/// `appending` of one that copies versions and publishes nothing.
const COPYING: u32 = 1;
/// `appending` of one that may be past its last check of the table definitions.
const COMMITTING: u32 = 2;
/// `appending` of one that commits and may be past its last look at the read
/// marks of what it has written.
const DECIDING: u32 = 3;
/// `appending` of one that moves to a later timestamp, which it is about to
/// announce.
const MOVING: u32 = 4;

/// How many times all slots are scanned to find the running transactions. A
/// safe reader may claim a slot behind the scan and take its timestamp from a
/// writer that ends before the scan reaches the writer's slot. Then an earlier
/// scan of all slots has found the writer, or the writer began after that scan.
const SCANS: usize = 2;

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
    /// Where it reads.
    pub reads_at: Timestamp,
    /// Whether it may read at any later time as well.
    pub by_statement: bool,
}

/// The transactions that were committing or copying at some moment, by slot and timestamp.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CommitsUnderWay(Vec<(usize, u64)>);

/// All transaction slots are in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

#[repr(align(128))]
#[derive(Debug)]
pub(crate) struct SlotState {
    /// FREE, ENTERING, or the timestamp at which the transaction reads.
    active: AtomicU64,
    /// The lowest timestamp at which the transaction may yet publish a version;
    /// MAX while it can publish none below the present.
    pending: AtomicU64,
    /// The last tick drawn in this slot. The ticks of a slot only rise.
    last_tick: AtomicU64,
    /// The transaction may read at any timestamp from `active` on.
    by_statement: AtomicBool,
    /// The transaction writes nothing.
    reads_only: AtomicBool,
    /// Odd while the transaction looks at versions that it may not see.
    pub(crate) pin: AtomicU64,
    /// IDLE, COPYING, COMMITTING, DECIDING or MOVING.
    appending: AtomicU32,
    /// `active` of the transaction that this one waits for.
    waits_for: AtomicU64,
    waiters: AtomicU32,
    door: Mutex<()>,
    changed: Condvar,
}

/// All slots and the clock they draw from.
#[derive(Debug)]
pub struct Registry {
    clock: Clock,
    pub(crate) slots: Box<[SlotState]>,
    /// The most slots ever used at once: scans stop here (T19).
    used: AtomicUsize,
    watermark: AtomicU64,
    writers: AtomicU64,
    /// The highest safe snapshot so far. Safe snapshots never fall.
    safe: AtomicU64,
    refreshed: AtomicU64,
    /// Held while a wait is announced.
    announcing: Mutex<()>,
    /// Threads that wait for a slot.
    wanting: AtomicU32,
    room: Mutex<()>,
    freed: Condvar,
}

/// The end of a wait. A time beyond what the clock can say never comes.
struct Deadline(Option<Instant>);

impl Deadline {
    fn after(limit: Duration) -> Self {
        Self(match is_removed(Control::FarDeadlines) {
            true => Some(Instant::now() + limit),
            false => Instant::now().checked_add(limit),
        })
    }

    /// Waits once; returns whether the time is over.
    fn wait<T>(&self, condition: &Condvar, guard: &mut MutexGuard<'_, T>) -> bool {
        match self.0 {
            Some(deadline) => condition.wait_until(guard, deadline).timed_out(),
            None => {
                condition.wait(guard);
                false
            }
        }
    }
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

impl Registry {
    /// A registry without running transactions.
    pub fn new(clock: Clock) -> Self {
        let slots = (0..TRANSACTION_SLOTS)
            .map(|_| SlotState {
                active: AtomicU64::new(FREE),
                pending: AtomicU64::new(u64::MAX),
                last_tick: AtomicU64::new(0),
                by_statement: AtomicBool::new(false),
                reads_only: AtomicBool::new(false),
                pin: AtomicU64::new(0),
                appending: AtomicU32::new(IDLE),
                waits_for: AtomicU64::new(NOBODY),
                waiters: AtomicU32::new(0),
                door: Mutex::new(()),
                changed: Condvar::new(),
            })
            .collect();
        Self {
            clock,
            slots,
            used: AtomicUsize::new(0),
            watermark: AtomicU64::new(2),
            writers: AtomicU64::new(2),
            safe: AtomicU64::new(0),
            refreshed: AtomicU64::new(0),
            announcing: Mutex::new(()),
            wanting: AtomicU32::new(0),
            room: Mutex::new(()),
            freed: Condvar::new(),
        }
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Takes a slot and a timestamp.
    ///
    /// The timestamp is above that of every transaction whose commit was
    /// acknowledged before the call, provided that [`Registry::await_passed`]
    /// preceded the acknowledgement. A safe reader is the exception: its
    /// timestamp is below that of every transaction that may yet write.
    pub fn begin(&self, how: Begin) -> Result<(Slot, Timestamp), Full> {
        let slot = self.claim()?;
        let state = &self.slots[slot.index()];
        let ts = match how {
            Begin::SafeReader => Timestamp::from_raw(self.safe_watermark(slot).get() - 1),
            Begin::WriterAtBegin | Begin::Reader | Begin::LateWriter | Begin::ByStatement => self.draw(slot),
        };
        let reads_only = matches!(how, Begin::Reader | Begin::SafeReader);
        if reads_only != state.reads_only.load(Ordering::Relaxed) {
            state.reads_only.store(reads_only, Ordering::Relaxed);
        }
        if (how == Begin::ByStatement) != state.by_statement.load(Ordering::Relaxed) {
            state.by_statement.store(how == Begin::ByStatement, Ordering::Relaxed);
        }
        if how == Begin::WriterAtBegin {
            state.pending.store(ts.get(), Ordering::SeqCst);
        }
        state.active.store(ts.get(), Ordering::SeqCst);
        Ok((slot, ts))
    }

    /// [`Registry::begin`], which waits for a slot at most for `limit`.
    pub fn begin_within(&self, how: Begin, limit: Duration) -> Result<(Slot, Timestamp), Full> {
        self.begin(how).or_else(|full| if limit.is_zero() { Err(full) } else { self.begin_later(how, limit) })
    }

    #[cold]
    fn begin_later(&self, how: Begin, limit: Duration) -> Result<(Slot, Timestamp), Full> {
        let deadline = Deadline::after(limit);
        let mut room = self.room.lock();
        // A transaction that frees its slot after the look that finds none sees this.
        self.wanting.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let mut over = false;
        let begun = loop {
            let begun = self.begin(how);
            if begun.is_ok() || over {
                break begun;
            }
            over = deadline.wait(&self.freed, &mut room);
        };
        self.wanting.fetch_sub(1, Ordering::SeqCst);
        begun
    }

    /// Draws a new timestamp for a running transaction.
    #[inline]
    pub fn draw(&self, slot: Slot) -> Timestamp {
        let state = &self.slots[slot.index()];
        let last = state.last_tick.load(Ordering::Relaxed);
        let tick = self.tick().max(last + 1);
        state.last_tick.store(tick, Ordering::Relaxed);
        Timestamp::new(tick, slot.index())
    }

    /// A tick for purposes other than a transaction's timestamp.
    #[inline]
    fn tick(&self) -> u64 {
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

    /// The time now, as a timestamp that no transaction has.
    pub fn now(&self) -> Timestamp {
        Timestamp::new(self.tick(), 0)
    }

    /// A timestamp above every one that any core has drawn before the call.
    pub fn after_all(&self) -> Timestamp {
        Timestamp::new(self.tick() + self.clock.skew() + 1, 0)
    }

    /// Draws the timestamp at which a late writer commits, or a serializable one
    /// that moves, above `newest`, the newest of the versions that it supersedes.
    /// The writer must hold all its locks. The timestamp is above that of every
    /// reader that finds a lock and no bound, or a bound above itself (I-6).
    pub fn draw_commit(&self, slot: Slot, newest: Timestamp) -> Timestamp {
        let state = &self.slots[slot.index()];
        let bound = self.draw(slot);
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
        state.appending.store(IDLE, Ordering::Relaxed);
        state.pending.store(u64::MAX, Ordering::Release);
        state.active.store(FREE, Ordering::Release);
        self.wake(slot);
        // After the fence of `wake`.
        if self.wanting.load(Ordering::Relaxed) > 0 {
            let _room = self.room.lock();
            self.freed.notify_one();
        }
    }

    /// Wakes the transactions that wait for a lock of this one, after it
    /// released locks.
    pub fn wake(&self, slot: Slot) {
        let state = &self.slots[slot.index()];
        fence(Ordering::SeqCst);
        if state.waiters.load(Ordering::Relaxed) > 0 {
            let _door = state.door.lock();
            state.changed.notify_all();
        }
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
    /// consistency). Almost never waits, because a commit takes longer than the
    /// clocks differ.
    #[inline]
    pub fn await_passed(&self, ts: Timestamp) {
        let passed = ts.tick() + self.clock.skew();
        while self.tick() <= passed {
            hint::spin_loop();
        }
    }

    fn claim(&self) -> Result<Slot, Full> {
        pantile_base::sync::thread_local!(static HINT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) });
        let hint = HINT.get();
        let index =
            std::iter::once(hint).chain(0..self.slots.len()).find(|&i| self.try_claim(i)).ok_or(Full)?;
        HINT.set(index);
        if index >= self.used.load(Ordering::Relaxed) {
            self.used.fetch_max(index + 1, Ordering::SeqCst);
        }
        Ok(Slot(index as u16))
    }

    fn try_claim(&self, index: usize) -> bool {
        let active = &self.slots[index].active;
        active.load(Ordering::Relaxed) == FREE
            && active.compare_exchange(FREE, ENTERING, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// The watermark as last computed. Every running or future transaction
    /// reads just below this timestamp or above it (I-4), so a version is
    /// obsolete once its successor's `begin_ts` is below it. The watermark only
    /// rises.
    #[inline]
    pub fn watermark(&self) -> Timestamp {
        Timestamp::from_raw(self.watermark.load(Ordering::Acquire))
    }

    /// Every running or future transaction that may write reads at this
    /// timestamp or above, as last computed with the watermark. Those that only
    /// read do not hold it up.
    #[inline]
    pub fn writers_watermark(&self) -> Timestamp {
        Timestamp::from_raw(self.writers.load(Ordering::Acquire))
    }

    /// Recomputes both watermarks if they were last computed at least `age` ago.
    pub fn refresh_watermark(&self, age: Duration) -> Timestamp {
        let now = self.tick();
        let last = self.refreshed.load(Ordering::Relaxed);
        if Clock::duration(now.saturating_sub(last)) < age
            || self.refreshed.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_err()
        {
            return self.watermark();
        }
        self.clock.raise_floor(now);
        let mut watermark = u64::MAX;
        for _ in 0..SCANS {
            let Some(lowest) = self.lowest(None, |_, active| active) else { return self.watermark() };
            // A safe reader that begins behind this scan may see the old watermark, but
            // it sees the new highest snapshot.
            self.safe.fetch_max(lowest, Ordering::SeqCst);
            watermark = watermark.min(lowest);
        }
        self.watermark.fetch_max(watermark, Ordering::AcqRel);
        let writes_from = |state: &SlotState, active| match state.reads_only.load(Ordering::Relaxed) {
            true => u64::MAX,
            false => active,
        };
        if let Some(writers) = self.lowest(None, writes_from) {
            self.writers.fetch_max(writers, Ordering::AcqRel);
        }
        self.watermark()
    }

    /// A timestamp at or below which no transaction but that of `except` will
    /// publish any more.
    fn safe_watermark(&self, except: Slot) -> Timestamp {
        // While the slot is ENTERING, no scan of the slots gets past it. A scan
        // that got past it earlier has raised `safe` to what this one may find.
        let lowest = self.lowest(Some(except), |s, _| s.pending.load(Ordering::SeqCst));
        let lowest = lowest.unwrap_or(0).max(self.watermark().get());
        Timestamp::from_raw(self.safe.fetch_max(lowest, Ordering::SeqCst).max(lowest))
    }

    /// The transactions at or below `ts` that may yet commit. All of them write
    /// at the timestamp at which they began, or at one that they will draw above
    /// the present, as late writers do. `ts` must be in the past. All other
    /// transactions at or below `ts` have ended, once those that were
    /// committing at `ts` or later have. Returns `None` if a transaction is
    /// just beginning.
    pub fn undecided(&self, ts: Timestamp) -> Option<Vec<Timestamp>> {
        fence(Ordering::SeqCst);
        let mut undecided = Vec::new();
        for state in self.slots_used() {
            match state.active.load(Ordering::SeqCst) {
                FREE => continue,
                ENTERING => return None,
                _ => {}
            }
            let pending = Timestamp::from_raw(state.pending.load(Ordering::SeqCst));
            if pending <= ts {
                undecided.push(pending);
            }
        }
        Some(undecided)
    }

    /// The transactions that are committing or copying now. Other transactions
    /// append later.
    pub fn commits_under_way(&self) -> CommitsUnderWay {
        fence(Ordering::SeqCst);
        let slots = self.slots_used().iter().enumerate();
        let committing = slots.filter(|(_, state)| state.appending.load(Ordering::SeqCst) != IDLE);
        let by_slot = committing.map(|(n, state)| (n, state.active.load(Ordering::SeqCst)));
        // Otherwise a commit that ended in between would be waited for until
        // its slot happens to be in use when someone asks.
        CommitsUnderWay(by_slot.filter(|(_, active)| *active != FREE).collect())
    }

    /// Whether all of them have ended.
    pub fn are_over(&self, commits: &CommitsUnderWay) -> bool {
        commits.0.iter().all(|&(n, active)| self.slots[n].active.load(Ordering::SeqCst) != active)
    }

    /// The smallest value of `of` over all slots in use, and of the time before
    /// the scan (I-4). Returns `None` if a transaction is ENTERING.
    fn lowest(&self, except: Option<Slot>, of: impl Fn(&SlotState, u64) -> u64) -> Option<u64> {
        let mut lowest = self.horizon().get();
        for (index, state) in self.slots[..self.used.load(Ordering::SeqCst)].iter().enumerate() {
            if except.is_some_and(|slot| slot.index() == index) {
                continue;
            }
            match state.active.load(Ordering::SeqCst) {
                FREE => {}
                ENTERING => return None,
                active => lowest = lowest.min(of(state, active)),
            }
        }
        Some(lowest)
    }

    /// Where the running transactions read. Returns `None` if one is just
    /// beginning, or about to announce where it will write; the caller may try
    /// again soon.
    ///
    /// A writer counts twice: where it reads, and just below where it may yet
    /// publish, since a safe reader that begins later reads there.
    pub fn running_set(&self) -> Option<RunningSet> {
        let horizon = self.horizon();
        // A safe reader that begins later may take `horizon` as its snapshot,
        // and then reads just below it.
        let below = Timestamp::from_raw(horizon.get().saturating_sub(1));
        let mut set = RunningSet { points: SmallVec::new(), open_from: Timestamp::MAX, horizon: below };
        for _ in 0..SCANS {
            let open = self.add_running(&mut set)?;
            // A safe reader that finds a transaction beginning takes the highest snapshot
            // so far, which must not be older than what this scan saw.
            self.safe.fetch_max(open.min(horizon).get(), Ordering::SeqCst);
        }
        set.points.sort_unstable();
        set.points.dedup();
        Some(set)
    }

    /// Returns the lowest timestamp at which a transaction may yet publish.
    fn add_running(&self, set: &mut RunningSet) -> Option<Timestamp> {
        let mut open = Timestamp::MAX;
        for state in self.slots_used() {
            let active = match state.active.load(Ordering::SeqCst) {
                FREE => continue,
                ENTERING => return None,
                active => Timestamp::from_raw(active),
            };
            set.points.push(active);
            if state.by_statement.load(Ordering::Relaxed) {
                set.open_from = set.open_from.min(active);
            }
            let pending = state.pending.load(Ordering::SeqCst);
            let appending = state.appending.load(Ordering::SeqCst);
            match pending {
                // It may have drawn the bound that it is about to announce, and a safe
                // reader that begins later would read just below that bound.
                u64::MAX if appending >= COMMITTING => return None,
                pending if pending == active.get() && appending == MOVING => return None,
                u64::MAX => {}
                pending => {
                    open = open.min(Timestamp::from_raw(pending));
                    set.points.push(Timestamp::from_raw(pending - 1));
                }
            }
        }
        Some(open)
    }

    /// A transaction that claims a slot from here on reads at this timestamp or
    /// above, or else at one that a running writer holds open.
    fn horizon(&self) -> Timestamp {
        let before = self.tick().saturating_sub(self.clock.skew() + MARGIN);
        fence(Ordering::SeqCst);
        Timestamp::new(before, 0)
    }

    /// The slots that have ever been used.
    pub(crate) fn slots_used(&self) -> &[SlotState] {
        &self.slots[..self.used.load(Ordering::SeqCst)]
    }

    /// Waits until `unblocked`, at most for `limit`. Returns false if it took
    /// longer, and `None` if waiting would deadlock: of the transactions of a
    /// cycle, exactly one gets `None`. `holder` must call [`Registry::wake`]
    /// after it makes `unblocked` true.
    pub fn wait(
        &self,
        me: Slot,
        holder: Slot,
        limit: Duration,
        mut unblocked: impl FnMut() -> bool,
    ) -> Option<bool> {
        for _ in 0..64 {
            if unblocked() {
                return Some(true);
            }
            hint::spin_loop();
        }
        if !self.announce_wait(me, holder, &mut unblocked) {
            return None;
        }
        let free = unblocked() || self.park(holder, limit, unblocked);
        self.slots[me.index()].waits_for.store(NOBODY, Ordering::SeqCst);
        Some(free)
    }

    /// Announces whom `me` waits for. Returns false, and announces nothing, if
    /// that would close a cycle. Waits are announced one at a time, so of the
    /// waits of a cycle exactly one is the last, and only that one is refused.
    fn announce_wait(&self, me: Slot, holder: Slot, unblocked: &mut impl FnMut() -> bool) -> bool {
        let waits_for = self.slots[holder.index()].active.load(Ordering::SeqCst);
        let _alone = (!is_removed(Control::OneVictim)).then(|| self.announcing.lock());
        let mine = &self.slots[me.index()].waits_for;
        mine.store(waits_for, Ordering::SeqCst);
        let refused = !unblocked() && self.closes_cycle(me);
        if refused {
            mine.store(NOBODY, Ordering::SeqCst);
        }
        !refused
    }

    fn park(&self, holder: Slot, limit: Duration, mut unblocked: impl FnMut() -> bool) -> bool {
        let state = &self.slots[holder.index()];
        let deadline = Deadline::after(limit);
        state.waiters.fetch_add(1, Ordering::SeqCst);
        let mut door = state.door.lock();
        let free = loop {
            if unblocked() {
                break true;
            }
            if deadline.wait(&state.changed, &mut door) {
                break unblocked();
            }
        };
        drop(door);
        state.waiters.fetch_sub(1, Ordering::SeqCst);
        free
    }

    /// Each transaction waits for at most one other, so following the pointers
    /// finds a cycle.
    fn closes_cycle(&self, me: Slot) -> bool {
        let mut at = me.index();
        for _ in 0..self.slots.len() {
            let waits_for = self.slots[at].waits_for.load(Ordering::SeqCst);
            if waits_for == NOBODY {
                return false;
            }
            // The low bits of a timestamp name its slot.
            at = waits_for as usize % TRANSACTION_SLOTS;
            if self.slots[at].active.load(Ordering::SeqCst) != waits_for {
                // The other transaction has ended, and its waiter has yet to notice.
                return false;
            }
            if at == me.index() {
                return true;
            }
        }
        false
    }

    /// DRAM used, in bytes.
    pub fn bytes(&self) -> u64 {
        size_of_val(&*self.slots) as u64
    }

    /// The transactions that have begun.
    pub fn open(&self) -> impl Iterator<Item = Open> {
        fence(Ordering::SeqCst);
        self.slots_used().iter().enumerate().filter_map(|(n, state)| {
            let active = state.active.load(Ordering::SeqCst);
            (active > ENTERING).then(|| Open {
                slot: Slot::from_index(n),
                reads_at: Timestamp::from_raw(active),
                by_statement: state.by_statement.load(Ordering::Relaxed),
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
