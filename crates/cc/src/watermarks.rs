//! What is derived from the running transactions: watermarks, safe snapshots, undecided
//! transactions, and commits under way.

use std::time::Duration;

use pantile_base::Timestamp;
use pantile_base::control::{Control, is_removed};
use pantile_base::sync::atomic::{Ordering, fence};
use pantile_base::sync::{hint, thread};
use smallvec::SmallVec;

use crate::clock::{Clock, MARGIN};
use crate::epoch::RunningSet;
use crate::registry::{
    COMMITTING, CommitsUnderWay, ENTERING, ENTERING_SAFELY, FREE, IDLE, MOVING, Reading, Registry, Slot,
    SlotState,
};

/// How many times all slots are scanned to find the running transactions. A
/// safe reader may claim a slot behind the scan and take its timestamp from a
/// writer that ends before the scan reaches the writer's slot. Then an earlier
/// scan of all slots has found the writer, or the writer began after that scan.
const SCANS: usize = 2;

/// As often a transaction that is just beginning is looked at before others are let run, and before the thread sleeps.
const LOOKS: u32 = 64;
const YIELDS: u32 = 128;
const NAP: Duration = Duration::from_micros(50);

/// As many slots may ever have been used at once for a look at all of them to be short.
const FEW_SLOTS: usize = 32;

impl SlotState {
    /// Whether the slot's transaction may have appended what it has not published yet.
    fn may_have_appended(&self) -> bool {
        self.appending.load(Ordering::SeqCst) != IDLE && !self.prepared.load(Ordering::SeqCst)
    }

    /// Whether the slot's transaction may have drawn the bound that it is about to announce. One that commits and has
    /// not come to that will draw above the present, like one that does not commit yet.
    fn may_have_drawn(&self) -> bool {
        self.appending.load(Ordering::SeqCst) > COMMITTING
    }

    /// Whether something done in the slot may use a table that was created after the slot's
    /// transaction began. To a commit belongs upkeep, which comes to any table (I-37).
    fn may_use_newer_tables(&self) -> bool {
        self.uses_newer_tables.load(Ordering::SeqCst) || self.may_have_appended()
    }
}

impl Registry {
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
            // A safe reader that begins behind this scan may have a clock that is behind.
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

    /// Every transaction but that of `except`, running or future, reads at this
    /// timestamp or above. Zero while another one is just beginning.
    pub fn watermark_of_others(&self, except: Slot) -> Timestamp {
        Timestamp::from_raw(self.lowest(Some(except), |_, active| active).unwrap_or(0))
    }

    /// A timestamp below which no transaction will publish any more: `called`, which the clocks of all cores have passed,
    /// or above, unless a transaction that is running may still publish further down.
    ///
    /// The caller's slot is ENTERING_SAFELY. Meanwhile no scan for a watermark gets past it, and one that
    /// got past it earlier has raised `safe` to what this one may find.
    pub(crate) fn safe_watermark(&self, called: Timestamp) -> Timestamp {
        // A set of running transactions that was taken before the slot was claimed may reach up to the present.
        let mut lowest = self.before_all().max(called).get();
        for state in self.slots_used() {
            match self.once_begun(state) {
                // A safe reader publishes nothing. It may wait here, too.
                FREE | ENTERING | ENTERING_SAFELY => {}
                _ => lowest = lowest.min(state.pending.load(Ordering::SeqCst)),
            }
        }
        Timestamp::from_raw(self.safe.fetch_max(lowest, Ordering::SeqCst).max(lowest))
    }

    /// `active`, which is ENTERING for as long as it takes to draw a timestamp, unless the system takes the processor
    /// from the thread.
    fn once_begun(&self, state: &SlotState) -> u64 {
        let mut looks = 0;
        loop {
            let active = state.active.load(Ordering::SeqCst);
            if active != ENTERING || is_removed(Control::SafeAwaits) {
                return active;
            }
            looks += 1;
            match looks {
                ..LOOKS => hint::spin_loop(),
                LOOKS..YIELDS => thread::yield_now(),
                // Its thread may have a lower priority.
                _ => thread::sleep(NAP),
            }
        }
    }

    /// Whether no other transaction will publish at or below `ts` any more, as far as a
    /// short look tells. The caller's transaction reads at `ts` and writes nothing.
    pub fn is_past_writers(&self, slot: Slot, ts: Timestamp) -> bool {
        if self.used.load(Ordering::Relaxed) > FEW_SLOTS {
            return false;
        }
        // A transaction that claims a slot behind the scan, or draws a bound behind it, draws above `ts`.
        if !is_removed(Control::PastWritersWait) {
            self.await_passed(ts);
        }
        fence(Ordering::SeqCst);
        self.slots_used().iter().enumerate().filter(|(n, _)| *n != slot.index()).all(|(_, state)| {
            match state.active.load(Ordering::SeqCst) {
                FREE | ENTERING_SAFELY => true,
                ENTERING => false,
                _ => {
                    // In this order: a bound that it draws after this look is above `ts`.
                    let is_drawing = state.may_have_drawn();
                    match state.pending.load(Ordering::SeqCst) {
                        u64::MAX => !is_drawing,
                        pending => pending > ts.get(),
                    }
                }
            }
        })
    }

    /// The transactions at or below `ts` that may yet commit, once `commits`, those that were
    /// committing at `ts` or later, are over; `None` before that, and if a transaction is just
    /// beginning. `ts` must be in the past.
    ///
    /// None of those listed has published. Otherwise one that has read from it could have
    /// ended and not be listed: where only what is decided counts, after a power failure under
    /// relaxed durability, it would stay without what it had read. So the answer is `None` also while one of them
    /// commits.
    ///
    /// All of them write at the timestamp at which they began, at the one at which they were prepared,
    /// or at one that they will draw above the present, as late writers do. All other transactions at or
    /// below `ts` have ended.
    pub fn undecided(&self, ts: Timestamp, commits: &CommitsUnderWay) -> Option<Vec<Timestamp>> {
        // First: one that has been prepared meanwhile is then listed where it will publish.
        if !self.are_over(commits) {
            return None;
        }
        fence(Ordering::SeqCst);
        let mut listed = Vec::new();
        for state in self.slots_used() {
            let active = state.active.load(Ordering::SeqCst);
            match active {
                FREE | ENTERING_SAFELY => continue,
                ENTERING => return None,
                _ => {}
            }
            let pending = Timestamp::from_raw(state.pending.load(Ordering::SeqCst));
            if pending <= ts {
                listed.push((state, active, pending));
            }
        }
        // A transaction may have published after the loop had come to it, and another one have read from it and
        // ended before the loop came to that. So those listed are looked at again.
        let has_not_published = |(state, active, pending): &(&SlotState, u64, Timestamp)| {
            // In this order: `release` changes `appending` after `pending` and before `active`.
            !state.may_have_appended()
                && state.pending.load(Ordering::SeqCst) == pending.get()
                && state.active.load(Ordering::SeqCst) == *active
        };
        let pending = |(_, _, pending): &(&SlotState, u64, Timestamp)| *pending;
        listed.iter().all(has_not_published).then(|| listed.iter().map(pending).collect())
    }

    /// The transactions that are committing or copying now. Other transactions
    /// append later, and so do those that are prepared.
    pub fn commits_under_way(&self) -> CommitsUnderWay {
        fence(Ordering::SeqCst);
        let slots = self.slots_used().iter().enumerate();
        let committing = slots.filter(|(_, state)| state.may_have_appended());
        let by_slot = committing.map(|(n, state)| (n, state.active.load(Ordering::SeqCst)));
        // Otherwise a commit that ended in between would be waited for until
        // its slot happens to be in use when someone asks.
        CommitsUnderWay(by_slot.filter(|(_, active)| *active != FREE).collect())
    }

    /// Whether all of them have ended, or have given up: one that has been prepared, or whose commit
    /// failed while it stays so, appends when it is told to commit.
    pub(crate) fn are_over(&self, commits: &CommitsUnderWay) -> bool {
        commits.0.iter().all(|&(n, active)| {
            let state = &self.slots[n];
            state.active.load(Ordering::SeqCst) != active || !state.may_have_appended()
        })
    }

    /// The smallest value of `of` over all slots in use, and of the time before
    /// the scan (I-4). Of a transaction that reads no more, what it may yet publish
    /// counts. Returns `None` if a transaction is just beginning, or such a one is about
    /// to announce where it will write.
    fn lowest(&self, except: Option<Slot>, of: impl Fn(&SlotState, u64) -> u64) -> Option<u64> {
        let mut lowest = self.before_all().get();
        for (index, state) in self.slots[..self.used.load(Ordering::SeqCst)].iter().enumerate() {
            if except.is_some_and(|slot| slot.index() == index) {
                continue;
            }
            match state.active.load(Ordering::SeqCst) {
                FREE => {}
                ENTERING | ENTERING_SAFELY => return None,
                _ if state.reads_nothing.load(Ordering::SeqCst) => match Self::publishes_from(state)? {
                    u64::MAX => {}
                    pending => lowest = lowest.min(of(state, pending)),
                },
                active => lowest = lowest.min(of(state, active)),
            }
        }
        Some(lowest)
    }

    /// The lowest timestamp at which a transaction that began before may yet publish,
    /// above the present if it is MAX. Returns `None` if the transaction may have drawn
    /// the bound that it is about to announce: a safe reader that begins later would read
    /// just below that bound.
    fn publishes_from(state: &SlotState) -> Option<u64> {
        let pending = state.pending.load(Ordering::SeqCst);
        if pending == u64::MAX && state.may_have_drawn() { None } else { Some(pending) }
    }

    /// Where the running transactions read. Returns `None` if one is just
    /// beginning, or about to announce where it will write; the caller may try
    /// again soon.
    ///
    /// A writer counts twice: where it reads, and just below where it may yet
    /// publish, since a safe reader that begins later reads there.
    pub fn running_set(&self) -> Option<RunningSet> {
        let horizon = self.before_all();
        // A safe reader that begins later may take `horizon` as its snapshot,
        // and then reads just below it.
        let below = Timestamp::from_raw(horizon.get().saturating_sub(1));
        let mut set = RunningSet {
            points: SmallVec::new(),
            began: SmallVec::new(),
            open_from: Timestamp::MAX,
            newer_from: Timestamp::MAX,
            horizon: below,
        };
        for _ in 0..SCANS {
            let open = self.add_running(&mut set)?;
            // A safe reader that begins behind this scan may have a clock that is behind.
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
                ENTERING | ENTERING_SAFELY => return None,
                active => Timestamp::from_raw(active),
            };
            let from = match state.reading(active) {
                Reading::Entering => return None,
                Reading::Nothing => None,
                Reading::At { from, or_later } => {
                    set.points.push(from);
                    if or_later {
                        set.open_from = set.open_from.min(from);
                    }
                    Some(from)
                }
            };
            if from != Some(active) && !state.reads_nothing.load(Ordering::SeqCst) {
                set.began.push(active);
            }
            if state.may_use_newer_tables() {
                set.newer_from = set.newer_from.min(active);
            }
            let pending = Self::publishes_from(state)?;
            let appending = state.appending.load(Ordering::SeqCst);
            match pending {
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

    /// A timestamp below every one that any core draws after the call.
    ///
    /// A transaction that claims a slot from here on reads at this timestamp or
    /// above, or else at one that a running writer holds open.
    pub fn before_all(&self) -> Timestamp {
        let before = self.tick().saturating_sub(self.clock.skew() + MARGIN);
        fence(Ordering::SeqCst);
        Timestamp::new(before, 0)
    }
}
