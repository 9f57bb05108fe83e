//! Waiting for another transaction, and refusing a wait that would close a cycle.

use std::time::Duration;

use pantile_base::Timestamp;
use pantile_base::control::{Control, is_removed};
use pantile_base::limits::TRANSACTION_SLOTS;
use pantile_base::sync::atomic::Ordering;
use pantile_base::sync::hint;

use crate::deadline::Deadline;
use crate::registry::{NOBODY, Registry, Slot};

/// What a transaction waits for.
#[derive(Clone, Copy)]
struct Awaited {
    /// `active` of the holder.
    active: u64,
    /// `pending` of the holder.
    bound: Timestamp,
    /// `wakes` of the holder, read before the look that finds the waiter blocked. What the holder
    /// releases after that look raises it.
    wakes: u64,
}

impl Registry {
    /// Waits until `unblocked`, or until `holder` has another transaction or another bound than
    /// `bound`, at most for `limit`. Returns false if it took longer, and `None`
    /// if waiting would deadlock: of the transactions of a cycle, exactly one
    /// gets `None`. `holder` must call [`Registry::wake`] after it has changed its
    /// bound or made `unblocked` true, and before it waits itself.
    pub fn wait(
        &self,
        me: Slot,
        holder: Slot,
        bound: Timestamp,
        limit: Duration,
        mut unblocked: impl FnMut() -> bool,
    ) -> Option<bool> {
        let held_by = &self.slots[holder.index()];
        let active = held_by.active.load(Ordering::SeqCst);
        // The next transaction in the slot may have locked the same again, with the same bound: it is
        // another one to wait for, and a cycle is found only through the one that is announced.
        let mut unblocked = || {
            unblocked() || self.pending(holder) != bound || held_by.active.load(Ordering::SeqCst) != active
        };
        for _ in 0..64 {
            if unblocked() {
                return Some(true);
            }
            hint::spin_loop();
        }
        let deadline = Deadline::after(limit);
        let outcome = loop {
            let awaited = Awaited { active, bound, wakes: held_by.wakes.load(Ordering::SeqCst) };
            match self.announce_wait(me, awaited, &mut unblocked) {
                Some(false) => {}
                over => break over,
            }
            // Once more without the door, which `holder` needs to wake others.
            if unblocked() {
                break Some(true);
            }
            if let over @ Some(_) = self.park(holder, awaited.wakes, &deadline, &mut unblocked) {
                break over;
            }
        };
        self.slots[me.index()].waits_for.store(NOBODY, Ordering::SeqCst);
        outcome
    }

    /// Announces what `me` waits for, and returns `Some(false)`. Announces nothing, and returns what
    /// [`Registry::wait`] returns, if `me` is `unblocked` or if that would close a
    /// cycle. Waits are announced one at a time, so of the
    /// waits of a cycle exactly one is the last, and only that one is refused.
    fn announce_wait(
        &self,
        me: Slot,
        awaited: Awaited,
        unblocked: &mut impl FnMut() -> bool,
    ) -> Option<bool> {
        let _alone = (!is_removed(Control::OneVictim)).then(|| self.announcing.lock());
        let state = &self.slots[me.index()];
        state.awaited_bound.store(awaited.bound.get(), Ordering::SeqCst);
        state.awaited_wakes.store(awaited.wakes, Ordering::SeqCst);
        state.waits_for.store(awaited.active, Ordering::SeqCst);
        let outcome = if unblocked() {
            Some(true)
        } else if self.closes_cycle(me) {
            None
        } else {
            return Some(false);
        };
        // Before another wait is announced, which would count this one.
        state.waits_for.store(NOBODY, Ordering::SeqCst);
        outcome
    }

    /// Sleeps until `unblocked`, and returns true, or until the time is over. Returns `None` if `holder` has
    /// released something else: the announced wait no longer counts.
    fn park(
        &self,
        holder: Slot,
        wakes: u64,
        deadline: &Deadline,
        unblocked: &mut impl FnMut() -> bool,
    ) -> Option<bool> {
        let state = &self.slots[holder.index()];
        state.waiters.fetch_add(1, Ordering::SeqCst);
        let mut door = state.door.lock();
        let outcome = loop {
            if unblocked() {
                break Some(true);
            }
            if state.wakes.load(Ordering::SeqCst) != wakes {
                break None;
            }
            if deadline.wait(&state.changed, &mut door) {
                break Some(unblocked());
            }
        };
        drop(door);
        state.waiters.fetch_sub(1, Ordering::SeqCst);
        outcome
    }

    /// Each transaction waits for at most one other, so following the pointers
    /// finds a cycle.
    fn closes_cycle(&self, me: Slot) -> bool {
        let mut at = me.index();
        for _ in 0..self.slots.len() {
            let waiter = &self.slots[at];
            let waits_for = waiter.waits_for.load(Ordering::SeqCst);
            if waits_for == NOBODY {
                return false;
            }
            // The low bits of a timestamp name its slot.
            at = waits_for as usize % TRANSACTION_SLOTS;
            let holder = &self.slots[at];
            let is_over = holder.active.load(Ordering::SeqCst) != waits_for
                || holder.pending.load(Ordering::SeqCst) != waiter.awaited_bound.load(Ordering::SeqCst)
                || holder.wakes.load(Ordering::SeqCst) != waiter.awaited_wakes.load(Ordering::SeqCst);
            if is_over {
                // That wait is over, and the waiter has yet to notice. Or it is still blocked: then it has yet to
                // wake and to announce that again, and this wait counts when it does.
                return false;
            }
            if at == me.index() {
                return true;
            }
        }
        false
    }
}
