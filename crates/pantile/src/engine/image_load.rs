//! Loading the indexes of a table that are still in an image.

use pantile_base::TupleId;
use pantile_base::control::{Control, is_removed};
use pantile_base::sync::atomic::Ordering;
use pantile_index::Index as Tree;

use crate::engine::core::Core;
use crate::engine::gate::Permit;
use crate::engine::image_run::Update;
use crate::engine::image_trees::StoredTrees;
use crate::engine::table::{PRIMARY, TableInner};
use crate::types::error::Result;
use crate::types::key::Key;

impl Core {
    /// Makes the indexes of a table usable: the first caller loads them. Everything
    /// but a lookup by the primary key needs them, above all every write, so a
    /// table does not change before. The caller holds a slot.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged) if the image cannot be read and
    /// the rows are damaged, too.
    #[inline]
    pub fn ready(&self, table: &TableInner) -> Result<()> {
        if table.primary().is_some() { Ok(()) } else { self.load(table, &|| true) }
    }

    /// As [`Core::ready`], for a caller without a slot.
    ///
    /// # Errors
    /// The same, [`Error::TableDropped`](crate::Error::TableDropped), and
    /// [`Error::TooManyTransactions`](crate::Error::TooManyTransactions).
    pub fn load_apart(&self, table: &TableInner) -> Result<()> {
        let _slot = self.visitor("loading indexes")?;
        // Announced before the look (I-37).
        self.tables.check_own(table)?;
        self.ready(table)
    }

    /// Looks a primary key up in the image in which the indexes still are. If it
    /// is there, the worker loads them meanwhile.
    #[cold]
    pub fn find_stored(&self, table: &TableInner, key: &[u64]) -> Option<u64> {
        let stored = table.stored()?;
        let is_first = !stored.is_used();
        let found = stored.find(key, self.rounds.has_worker());
        if is_first && self.rounds.has_worker() {
            self.wanted.store(true, Ordering::Relaxed);
            self.alarm.written();
        }
        // What the row says counts: a key has one row at a time.
        let is_of_row = |tuple: &u64| {
            let row = table.live_row(&self.store, TupleId(*tuple));
            row.is_some_and(|row| {
                let mut own = Key::default();
                own.set_primary(&row);
                own.words() == key
            })
        };
        found.filter(|tuple| !stored.has_changed(TupleId(*tuple)) || is_of_row(tuple))
    }

    /// Loads the indexes of tables that are being used, unless the database is being closed: a program that opens
    /// it for a few rows does not wait for them. A failure shows in whatever needs them.
    pub fn load_wanted(&self, _: &Permit) {
        if !self.wanted.swap(false, Ordering::Relaxed) {
            return;
        }
        let goes_on = || self.gate.is_open() && !self.alarm.has_ended();
        for table in self.tables.all() {
            if table.primary().is_none() && table.stored().is_some_and(|stored| stored.is_used()) {
                let _ = self.load(&table, &goes_on);
            }
        }
        // Closing may fail.
        if !goes_on() {
            self.wanted.store(true, Ordering::Relaxed);
        }
    }

    /// Loads the indexes of a table, or leaves them where they are once it no longer `goes_on`.
    #[cold]
    fn load(&self, table: &TableInner, goes_on: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        let Some(stored) = table.stored() else { return Ok(()) };
        let _turn = stored.loading.lock();
        if table.primary().is_some() {
            return Ok(());
        }
        let trees = match self.load_trees(table, &stored, goes_on) {
            Some(trees) => trees,
            None if !goes_on() => return Ok(()),
            // The image is damaged, and nobody has changed the table.
            None => self.trees_from_rows(table)?,
        };
        table.set_trees(trees);
        Ok(())
    }

    /// The primary tree and those of the indexes; `None` if one cannot be read, or if it no longer `goes_on`.
    fn load_trees(
        &self,
        table: &TableInner,
        stored: &StoredTrees,
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Option<Vec<Tree>> {
        let keys = table.keys_of(&table.indexes());
        let threads = self.threads_for(table);
        let Some(changes) = &stored.changes else {
            let load = |(n, keys)| stored.run(n)?.load(keys, &self.tables.arena, threads, None, goes_on);
            return (PRIMARY..).zip(keys).map(load).collect();
        };
        // The entries of what has changed come from the rows.
        let fresh = self.gather_changed(table, &changes.tuples).ok()?;
        let load = |(n, keys)| {
            let fresh = fresh.iter().map(|part| part.of_index(n as usize)).collect();
            let update = Update { changed: &changes.tuples, fresh };
            let tree = stored.run(n)?.load(keys, &self.tables.arena, threads, Some(update), goes_on)?;
            // Each row has one entry.
            let is_whole = tree.len() as i64 == changes.rows.tuples || is_removed(Control::ImageNotes);
            is_whole.then_some(tree)
        };
        (PRIMARY..).zip(keys).map(load).collect()
    }
}
