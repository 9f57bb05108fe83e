//! Waiting for another transaction, and refusing a wait that would close a cycle.

use std::time::Duration;

use pantile_base::Timestamp;
use pantile_base::control::{Control, is_removed};
use pantile_base::limits::TRANSACTION_SLOTS;
use pantile_base::sync::atomic::Ordering;
use pantile_base::sync::hint;

use crate::deadline::Deadline;
use crate::registry::{NOBODY, Registry, Slot};

impl Registry {
    /// Waits until `unblocked`, or until `holder` has another transaction or another bound than
    /// `bound`, at most for `limit`. Returns false if it took longer, and `None`
    /// if waiting would deadlock: of the transactions of a cycle, exactly one
    /// gets `None`. `holder` must call [`Registry::wake`] after it has changed its
    /// bound or made `unblocked` true.
    pub fn wait(
        &self,
        me: Slot,
        holder: Slot,
        bound: Timestamp,
        limit: Duration,
        mut unblocked: impl FnMut() -> bool,
    ) -> Option<bool> {
        let held_by = &self.slots[holder.index()].active;
        let waits_for = held_by.load(Ordering::SeqCst);
        // The next transaction in the slot may have locked the same again, with the same bound: it is
        // another one to wait for, and a cycle is found only through the one that is announced.
        let mut unblocked =
            || unblocked() || self.pending(holder) != bound || held_by.load(Ordering::SeqCst) != waits_for;
        for _ in 0..64 {
            if unblocked() {
                return Some(true);
            }
            hint::spin_loop();
        }
        if !self.announce_wait(me, waits_for, bound, &mut unblocked) {
            return None;
        }
        let free = unblocked() || self.park(holder, limit, unblocked);
        self.slots[me.index()].waits_for.store(NOBODY, Ordering::SeqCst);
        Some(free)
    }

    /// Announces whom `me` waits for. Returns false, and announces nothing, if
    /// that would close a cycle. Waits are announced one at a time, so of the
    /// waits of a cycle exactly one is the last, and only that one is refused.
    fn announce_wait(
        &self,
        me: Slot,
        waits_for: u64,
        bound: Timestamp,
        unblocked: &mut impl FnMut() -> bool,
    ) -> bool {
        let _alone = (!is_removed(Control::OneVictim)).then(|| self.announcing.lock());
        let state = &self.slots[me.index()];
        let mine = &state.waits_for;
        state.awaited_bound.store(bound.get(), Ordering::SeqCst);
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
            let bound = self.slots[at].awaited_bound.load(Ordering::SeqCst);
            // The low bits of a timestamp name its slot.
            at = waits_for as usize % TRANSACTION_SLOTS;
            let holder = &self.slots[at];
            let has_ended = holder.active.load(Ordering::SeqCst) != waits_for;
            if has_ended || holder.pending.load(Ordering::SeqCst) != bound {
                // That wait is over, and the waiter has yet to notice.
                return false;
            }
            if at == me.index() {
                return true;
            }
        }
        false
    }
}
