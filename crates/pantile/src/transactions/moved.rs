//! Rows that a transaction moves in an index, by changes of what the index is over, while its cursors are in it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use foldhash::fast::FixedState;
use pantile_base::sync::Mutex;
use pantile_base::{TableId, TupleId};

use crate::engine::stale::StaleEntry;

/// The entries that rows had in an index before they were moved away, and moved on.
type Moves = Mutex<HashMap<TupleId, StaleEntry, FixedState>>;

/// The cursors of a transaction that learn of its moves.
#[derive(Default)]
pub(super) struct Told(RefCell<Vec<(TableId, u32, Weak<Moves>)>>);

impl Told {
    /// A cursor over an index of a table begins.
    pub fn begin(&self, table: TableId, index: u32) -> Moved {
        let moved = Moved::default();
        let mut all = self.0.borrow_mut();
        if all.len() == all.capacity() {
            all.retain(|(.., moves)| moves.strong_count() > 0);
        }
        all.push((table, index, Arc::downgrade(&moved.moves)));
        moved
    }

    /// A row loses this entry.
    #[inline]
    pub fn tell(&self, entry: &StaleEntry) {
        if !self.0.borrow().is_empty() {
            self.tell_all(entry);
        }
    }

    #[inline(never)]
    fn tell_all(&self, entry: &StaleEntry) {
        for (table, index, moves) in &*self.0.borrow() {
            if (*table, *index) == (entry.table, entry.index)
                && let Some(moves) = moves.upgrade()
            {
                moves.lock().entry(entry.tuple).or_insert_with(|| entry.clone());
            }
        }
    }
}

/// What one cursor has learned.
#[derive(Default)]
pub(super) struct Moved {
    moves: Arc<Moves>,
    /// Of rows that have been moved: whether the cursor had come to them before.
    rows: HashMap<TupleId, bool, FixedState>,
}

impl Moved {
    /// Looks at the moves since the last call. `had_come` says whether the cursor has come to the row of an entry; it
    /// has stood at one place meanwhile. What counts is the first move since the cursor came to the row last.
    pub fn look(&mut self, had_come: impl Fn(&StaleEntry) -> bool) {
        for (tuple, entry) in self.moves.lock().drain() {
            self.rows.entry(tuple).or_insert_with(|| had_come(&entry));
        }
    }

    /// Whether the cursor has come to this row already, where it was before.
    #[inline]
    pub fn is_met_again(&self, tuple: TupleId) -> bool {
        !self.rows.is_empty() && self.rows.get(&tuple) == Some(&true)
    }

    /// The cursor has come to a row.
    #[inline]
    pub fn has_come(&mut self, tuple: TupleId) {
        if !self.rows.is_empty() {
            self.rows.remove(&tuple);
        }
    }
}
