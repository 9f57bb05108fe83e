//! Filling an index of a table that is in use.

use std::iter::once;
use std::ops::{Bound, ControlFlow};

use pantile_base::control::{Control, is_removed};
use pantile_base::{Address, Timestamp, TupleId};
use pantile_index::{Batch, Direction, Insert, Scan};
use smallvec::SmallVec;

use crate::engine::anchor::Anchor;
use crate::engine::core::Core;
use crate::engine::index::IndexInner;
use crate::engine::memory::Nodes;
use crate::engine::memory_limit::Adds;
use crate::engine::stale::StaleEntry;
use crate::engine::table::TableInner;
use crate::engine::visitor::Visitor;
use crate::types::error::{Error, Result};
use crate::types::index_progress::IndexProgress;
use crate::types::key::Key;

/// Rows that are looked at between two looks at the memory that is left, and at whether
/// to go on.
const CHECKED_EVERY: u64 = 4096;

impl Core {
    /// Enters the keys of every version that a transaction may see. The entries
    /// of versions that are no longer the newest are handed to the cleaner. `announce`
    /// is to call what it is called with, once nobody is prepared who has looked for
    /// duplicates in the unfinished index; it asks now and then whether to go on. `progress` says whether to go on.
    pub fn fill_index(
        &self,
        table: &TableInner,
        index: &IndexInner,
        announce: impl FnOnce(&dyn Fn(), &mut dyn FnMut() -> Result<()>) -> Result<()>,
        progress: &mut dyn FnMut(IndexProgress) -> ControlFlow<()>,
    ) -> Result<()> {
        let visitor = self.visitor("the creation of an index")?;
        let end = table.tuples_end();
        let total = if index.unique { 2 * end } else { end };
        let mut go_on = |done: u64| match progress(IndexProgress { done: done.min(total), total }) {
            ControlFlow::Break(()) => Err(Error::Cancelled),
            ControlFlow::Continue(()) if !self.gate.is_open() => Err(Error::Closed),
            ControlFlow::Continue(()) => Ok(()),
        };
        for tuple in (0..end).map(TupleId) {
            if tuple.0 % CHECKED_EVERY == 0 {
                self.check_memory(visitor.slot(), Nodes::Entries(index), Adds::Row)?;
                go_on(tuple.0)?;
            }
            visitor.settled(table, tuple, |newest| {
                self.enter_versions(&visitor, table, index, tuple, newest)
            })??;
        }
        if index.unique {
            // Writers that have looked for duplicates in the unfinished index
            // look again if they have not begun to commit. The check waits for
            // the others.
            announce(&|| drop(table.change_indexes(|_| {})), &mut || go_on(end))?;
            self.check_built(&visitor, table, index, |looked_at| go_on(end + looked_at))?;
        }
        go_on(total)
    }

    /// `None` if a transaction is just beginning, so that it is not known what
    /// it may see. Fails if a version is damaged: its key is not known.
    fn enter_versions(
        &self,
        visitor: &Visitor<'_>,
        table: &TableInner,
        index: &IndexInner,
        tuple: TupleId,
        newest: Address,
    ) -> Option<Result<()>> {
        // Of most rows there is one version, which is needed whatever transactions run.
        let has_older = !newest.is_none() && self.store.links(newest, Timestamp::ZERO).next().is_some();
        let needed = match has_older {
            true => self.needed_versions(newest, &self.registry.running_set()?),
            false => once(newest).filter(|newest| !newest.is_none()).collect(),
        };
        let mut entered = SmallVec::<[(Address, Key); 1]>::new();
        for address in needed {
            if let Err(damaged) = self.store.verify_mapped(address) {
                return Some(Err(self.store_error(damaged)));
            }
            let content = self.store.content(address);
            if content.flags().is_tombstone() {
                continue;
            }
            let mut key = Key::default();
            if !index.set_key(&table.row_of(content), &mut key) {
                continue;
            }
            key.push_tuple(tuple.0);
            let inserted = index.tree().insert(key.words(), tuple.0, Timestamp::MAX.get());
            debug_assert!(!matches!(inserted, Insert::Forbidden(_)));
            entered.push((address, key));
        }
        // A writer that has published meanwhile may have had its old entry
        // cleaned before it was entered here. One that publishes from here on
        // hands over its old entry after it was entered (I-17).
        let still = Anchor::load(table.anchor(tuple)).newest();
        let is_old = |address: Address| address != still && !is_removed(Control::BuiltEntries);
        for (_, key) in entered.iter().filter(|(address, _)| is_old(*address)) {
            visitor.hand_over(StaleEntry::new(table, index.number, tuple, key.words()));
        }
        Some(Ok(()))
    }

    /// Checks that no two rows have the same key at one moment. Rows may pass keys on meanwhile.
    fn check_built(
        &self,
        visitor: &Visitor<'_>,
        table: &TableInner,
        index: &IndexInner,
        mut go_on: impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded, Direction::Forward);
        let mut batch = Batch::new();
        let look = |tuple, entry: &[u64]| {
            visitor.settled(table, tuple, |newest| Some(self.key_of(table, index, tuple, newest, entry)))
        };
        let (mut last, mut looked_at): (Option<KeyOf>, u64) = (None, 0);
        while scan.next_batch(index.tree(), None, &mut batch) {
            for (entry, tuple) in batch.iter() {
                looked_at += 1;
                if looked_at % CHECKED_EVERY == 0 {
                    go_on(looked_at)?;
                }
                let tuple = TupleId(tuple);
                let mut found = look(tuple, entry)?;
                while let (Some(one), Some(other)) = (&last, &found)
                    && one.key.words() == other.key.words()
                {
                    // If the other row got the key in between, the first one has given it up.
                    if visitor.settled(table, one.tuple, |newest| Some(newest == one.version))? {
                        return Err(table.duplicate(&index.name()));
                    }
                    let mut whole = one.key.clone();
                    whole.push_tuple(one.tuple.0);
                    last = look(one.tuple, whole.words())?;
                    found = look(tuple, entry)?;
                }
                last = found.or(last);
            }
        }
        Ok(())
    }

    /// The key of a tuple's newest version, if the entry is of that version and
    /// the key must be unique.
    fn key_of(
        &self,
        table: &TableInner,
        index: &IndexInner,
        tuple: TupleId,
        newest: Address,
        entry: &[u64],
    ) -> Option<KeyOf> {
        let content = (!newest.is_none()).then(|| self.store.content(newest))?;
        if content.flags().is_tombstone() {
            return None;
        }
        let mut key = Key::default();
        if !index.set_key(&table.row_of(content), &mut key) {
            return None;
        }
        let mut whole = key.clone();
        whole.push_tuple(tuple.0);
        (whole.words() == entry && !key.has_null).then_some(KeyOf { key, tuple, version: newest })
    }
}

/// A key, and the version of a tuple that has it.
struct KeyOf {
    key: Key,
    tuple: TupleId,
    version: Address,
}
