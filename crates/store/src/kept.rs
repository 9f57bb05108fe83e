//! Which uncertain transactions recovery keeps: those whose contents are all there, and whose
//! predecessors are kept or were durable (I-8, I-25).

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use pantile_base::control::{Control, is_removed};
use pantile_base::{TableId, Timestamp};

use crate::content::Content;
use crate::format::{DEPENDENCIES, u64_at};

/// Transactions that are whole.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    whole: HashSet<Timestamp, FixedState>,
    /// The transactions that depend on one.
    dependents: HashMap<Timestamp, Vec<Timestamp>, FixedState>,
}

impl Kept {
    /// Adds the transaction of a content, which is whole.
    pub fn add(&mut self, table: TableId, content: &Content<'_>) {
        let dependent = content.timestamp();
        self.whole.insert(dependent);
        if table == DEPENDENCIES && !is_removed(Control::Dependencies) {
            let row = content.row();
            for at in (0..row.len() / 8).map(|n| n * 8) {
                let predecessor = Timestamp::from_raw(u64_at(row, at));
                self.dependents.entry(predecessor).or_default().push(dependent);
            }
        }
    }

    /// Leaves the greatest set in which every predecessor is in the set or
    /// `is_over`.
    pub fn drop_dependent(&mut self, is_over: impl Fn(Timestamp) -> bool) {
        let is_lost = |one: &Timestamp| !self.whole.contains(one) && !is_over(*one);
        let mut lost: Vec<_> = self.dependents.keys().copied().filter(is_lost).collect();
        while let Some(predecessor) = lost.pop() {
            for dependent in self.dependents.remove(&predecessor).into_iter().flatten() {
                if self.whole.remove(&dependent) {
                    lost.push(dependent);
                }
            }
        }
    }

    /// Whether a transaction is kept.
    pub fn has(&self, transaction: Timestamp) -> bool {
        self.whole.contains(&transaction)
    }
}
