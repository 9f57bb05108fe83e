//! What rows that are written again leave behind in the buffers of a transaction,
//! and taking it out. So the buffers grow with the rows that a transaction holds,
//! not with its writes.
//!
//! Pieces of values out of line are rows of which others know nothing until they are
//! committed. So those that were deleted again go altogether, see
//! `transactions/forgetting.rs`.

use crate::engine::buffers::{Buffers, Mark, Undo};
use crate::engine::stale::StaleEntry;
use crate::engine::writes::{Pending, Write};

/// Buffers of this size are squeezed for the first time. Smaller ones are kept for the
/// next transaction as they are. Unit tests squeeze all.
const SQUEEZED_FROM: usize = if cfg!(test) { 1 } else { 256 << 10 };

/// Stale entries of a tuple beyond which it pays to look for equal ones.
const STALE_OF_WRITE: usize = 4;

/// The rows to which these refer: their places, which can be changed, and lengths.
fn rows_of<'b>(
    writes: &'b mut [Write],
    undo: &'b mut [Undo],
) -> impl Iterator<Item = (&'b mut usize, usize)> {
    let earlier = undo.iter_mut().filter_map(|undo| match undo {
        Undo::Restore { pending, .. } => Some(pending),
        Undo::Unlock | Undo::Entry(_) => None,
    });
    let pending = writes.iter_mut().map(|write| &mut write.pending).chain(earlier);
    pending.filter_map(|pending| match pending {
        Pending::Row { start, len, .. } => Some((start, *len as usize)),
        Pending::Nothing | Pending::Tombstone => None,
    })
}

/// Gives memory back that a list is not soon to need again.
fn fit<T>(list: &mut Vec<T>) {
    let len = list.len().max(SQUEEZED_FROM / size_of::<T>());
    if list.capacity() > 4 * len {
        list.shrink_to(2 * len);
    }
}

impl Buffers {
    /// Bytes of what grows with each write, also with one of the same row.
    #[inline]
    fn written(&self) -> usize {
        self.rows.len() + self.undo.len() * size_of::<Undo>() + self.stale.len() * size_of::<StaleEntry>()
    }

    /// Notes the savepoint of this number.
    pub fn set_savepoint(&mut self, number: u64) {
        let (undo, rows) = (self.undo.len(), self.rows.len());
        match self.savepoints.last_mut() {
            // A loop that sets one and goes back to it holds one state.
            Some(last) if (last.undo, last.rows, last.last + 1) == (undo, rows, number) => last.last = number,
            _ => self.savepoints.push(Mark { first: number, last: number, undo, rows }),
        }
    }

    /// Whether they have doubled since they were squeezed.
    #[inline]
    pub fn is_swollen(&self) -> bool {
        self.written() >= self.squeeze_at
    }

    /// Takes out what nobody will ask for any more. Only between two statements: a
    /// statement knows by the lengths of the buffers what to undo if it fails.
    ///
    /// This takes time by what has been written since the last time, because the
    /// buffers must double in between.
    ///
    /// The caller has called [`Buffers::drop_states`].
    #[cold]
    pub fn squeeze(&mut self) {
        self.drop_rows();
        self.drop_entries();
        self.settle();
        let states = self.undo.iter().filter_map(|undo| match undo {
            Undo::Restore { pending: Pending::Row { len, .. }, .. } => Some(*len as usize),
            Undo::Restore { .. } => Some(0),
            Undo::Unlock | Undo::Entry(_) => None,
        });
        self.kept_states = states.map(|row| row + size_of::<Undo>()).sum();
    }

    /// Drops the states that no savepoint restores: all from before the first one, and
    /// of those in which a tuple has been since a savepoint, all but the first.
    pub fn drop_states(&mut self) {
        if !self.undo.iter().any(|undo| matches!(undo, Undo::Restore { .. })) {
            return;
        }
        // By tuple: the savepoints that come before the last of its states that stays,
        // or before its lock.
        let mut known = vec![0; self.writes.len()];
        let mut locked = 0;
        self.retain_undo(|undo, passed| match undo {
            Undo::Unlock => {
                known[locked] = passed;
                locked += 1;
                true
            }
            Undo::Restore { write, .. } => std::mem::replace(&mut known[*write as usize], passed) < passed,
            Undo::Entry(_) => true,
        });
    }

    /// Drops the changes that do not stay. `stays` is told how many savepoints' states
    /// come before each.
    pub fn retain_undo(&mut self, mut stays: impl FnMut(&mut Undo, usize) -> bool) {
        let savepoints = &mut self.savepoints;
        let (mut at, mut kept, mut passed) = (0, 0, 0);
        self.undo.retain_mut(|undo| {
            while savepoints.get(passed).is_some_and(|mark| mark.undo <= at) {
                savepoints[passed].undo = kept;
                passed += 1;
            }
            let stays = stays(undo, passed);
            at += 1;
            kept += usize::from(stays);
            stays
        });
        savepoints[passed..].iter_mut().for_each(|mark| mark.undo = kept);
    }

    /// Moves the rows together, if a quarter of their bytes or more are not needed. They
    /// stay in order, so that what was written after a savepoint lies behind it.
    fn drop_rows(&mut self) {
        let Self { writes, undo, rows, savepoints, .. } = self;
        let needed: usize = rows_of(writes, undo).map(|(_, len)| len).sum();
        if needed > rows.len() / 4 * 3 {
            return;
        }
        let mut places: Vec<_> = rows_of(writes, undo).collect();
        places.sort_unstable_by_key(|(start, _)| **start);
        let mut marks = savepoints.iter_mut().peekable();
        let mut end = 0;
        for (start, len) in places {
            while let Some(mark) = marks.next_if(|mark| mark.rows <= *start) {
                mark.rows = end;
            }
            assert!(end <= *start, "each row is needed once");
            rows.copy_within(*start..*start + len, end);
            *start = end;
            end += len;
        }
        marks.for_each(|mark| mark.rows = end);
        rows.truncate(end);
    }

    /// A key that comes and goes leaves the same entry behind each time, and a row whose
    /// writes were undone needs none.
    fn drop_entries(&mut self) {
        if self.stale.len() > STALE_OF_WRITE * self.writes.len() {
            let Self { stale, by_tuple, writes, tables, .. } = self;
            stale.retain(|entry| by_tuple.find((entry.table, entry.tuple), writes, tables).is_some());
            stale.sort_unstable();
            stale.dedup();
        }
    }

    /// Gives memory back, and settles when the buffers are squeezed next.
    fn settle(&mut self) {
        fit(&mut self.rows);
        fit(&mut self.undo);
        fit(&mut self.stale);
        self.squeeze_at = (2 * self.written()).max(SQUEEZED_FROM);
    }

    /// Everything since a savepoint has been undone: nobody needs its rows.
    pub fn cut(&mut self, savepoint: Mark) {
        self.rows.truncate(savepoint.rows);
        let due = self.squeeze_at;
        self.settle();
        self.squeeze_at = self.squeeze_at.min(due);
    }

    /// No savepoint is left, so nobody needs the states that were kept for one.
    pub fn release_states(&mut self) {
        let states = std::mem::take(&mut self.kept_states);
        self.squeeze_at = self.squeeze_at.saturating_sub(2 * states).max(SQUEEZED_FROM);
    }

    /// Begins a transaction, whose buffers are empty.
    #[inline]
    pub(super) fn begin_unsqueezed(&mut self) {
        self.squeeze_at = SQUEEZED_FROM;
        self.kept_states = 0;
    }
}
