//! What recovery leaves out of a damaged database that is opened to be read.
//! Anything that recovery would refuse otherwise is noted and left out.

use std::collections::{BTreeMap, HashSet};

use foldhash::fast::FixedState;
use pantile_base::{TableId, Timestamp, TupleId};

use crate::engine::anchor::Anchor;
use crate::engine::catalog;
use crate::engine::core::Core;
use crate::engine::index::IndexInner;
use crate::engine::pieces;
use crate::engine::sorted_keys::{Merge, SortedKeys};
use crate::engine::table::TableInner;
use crate::types::error::{Error, Result};
use crate::types::history::{Definition, MOST_OF_NAME};
use crate::types::key::Key;

/// Tuples that are left out.
pub(crate) type Skip = HashSet<u64, FixedState>;

impl Core {
    /// Leaves something out, or fails if the database is opened to be used.
    pub fn leave_out(&self, table: Option<TableId>, tuple: Option<TupleId>, error: Error) -> Result<()> {
        match (&self.options.salvage, error) {
            (Some(lost), Error::Damaged { place, detail }) => {
                let what = format!("{detail} ({place}); left out");
                lost.note(table.map(|id| id.0), tuple.map(|tuple| tuple.0), what);
                Ok(())
            }
            (_, error) => Err(error),
        }
    }

    /// Contents of a table that has no definition. Nothing is lost if it had one in this row of the
    /// catalog and the row is gone: then it was dropped.
    pub fn leave_out_table(&self, table: TableId, definition: Option<TupleId>) -> Result<()> {
        let Some(lost) = &self.options.salvage else { return Ok(()) };
        let catalog = self.tables.catalog()?.inner;
        let is_gone = |tuple| {
            let row = catalog.live_row(&self.store, tuple);
            row.is_none_or(|row| {
                row.shape_problem().is_none() && catalog::table_of(&row) != pieces::owner(table)
            })
        };
        if !definition.is_some_and(is_gone) {
            let what = "there are rows of a table that was dropped, or whose definition is lost; left out";
            lost.note(Some(table.0), None, what);
        }
        Ok(())
    }

    /// A table that was dropped comes back if the tombstone of its definition
    /// is lost, and one that was renamed has its old name if the newer definition is.
    /// Of two tables of one name the later one keeps it.
    pub fn rename_older(&self, definitions: &mut [(TableId, Definition)]) {
        let Some(lost) = &self.options.salvage else { return };
        let mut newest: BTreeMap<String, TableId> = BTreeMap::new();
        for (id, def) in definitions.iter() {
            let known = newest.entry(def.def.name.clone()).or_insert(*id);
            *known = (*known).max(*id);
        }
        for (id, definition) in definitions {
            let name = &mut definition.def.name;
            if newest[name] == *id {
                continue;
            }
            let free = free_name(name, *id, |name| newest.contains_key(name));
            let what = format!("a later table is called {name:?}, too, so this one is called {free:?} here");
            lost.note(Some(id.0), None, what);
            newest.insert(free.clone(), *id);
            *name = free;
        }
    }

    /// The tuples whose primary key belongs to a later version of another
    /// tuple: deleted ones whose tombstones are lost.
    pub fn older_of_one_key<'k>(
        &self,
        table: &TableInner,
        runs: impl Iterator<Item = &'k SortedKeys>,
    ) -> Skip {
        let why = "a later row has the same primary key, so this one had been deleted; left out";
        self.older_of(table, Merge::new(runs), why)
    }

    /// The tuples, without those that are `gone`, whose key of a unique index belongs to a later version
    /// of another tuple: what took the key from them is lost.
    pub fn older_of_unique_key<'k>(
        &self,
        table: &TableInner,
        index: &IndexInner,
        runs: impl Iterator<Item = &'k SortedKeys>,
        gone: &Skip,
    ) -> Skip {
        let mut key = Key::default();
        let mut must_differ = |tuple: u64| {
            let row = table.live_row(&self.store, TupleId(tuple));
            row.is_some_and(|row| index.set_key(&row, &mut key) && !key.has_null)
        };
        let entries = Merge::new(runs).filter(|(_, tuple)| !gone.contains(tuple) && must_differ(*tuple));
        // Behind the key is the tuple.
        let keys = entries.map(|(entry, tuple)| (&entry[..entry.len() - 1], tuple));
        let name = index.name();
        let why =
            format!("a later row has the same key of index {name:?}, so this one had given it up; left out");
        self.older_of(table, keys, &why)
    }

    /// Of keys in order with their tuples, the tuples whose key belongs to a later version of another one.
    fn older_of<'k>(
        &self,
        table: &TableInner,
        keys: impl Iterator<Item = (&'k [u64], u64)>,
        why: &str,
    ) -> Skip {
        let mut older = Skip::default();
        let mut last: Option<(&[u64], u64)> = None;
        for (key, tuple) in keys {
            let Some((_, before)) = last.filter(|(other, _)| *other == key) else {
                last = Some((key, tuple));
                continue;
            };
            let is_newer = self.begin_of(table, tuple) > self.begin_of(table, before);
            let (stays, goes) = if is_newer { (tuple, before) } else { (before, tuple) };
            older.insert(goes);
            last = Some((key, stays));
        }
        if let Some(lost) = &self.options.salvage {
            older.iter().for_each(|&tuple| lost.note(Some(table.id.0), Some(tuple), why));
        }
        older
    }

    fn begin_of(&self, table: &TableInner, tuple: u64) -> Timestamp {
        let newest = Anchor::load(table.anchor(TupleId(tuple))).newest();
        self.store.content_header(newest).timestamp()
    }
}

/// Another name for a table, like the one that it has, which none has yet.
fn free_name(name: &str, id: TableId, is_taken: impl Fn(&str) -> bool) -> String {
    let mut suffix = format!(" (table {})", id.0);
    loop {
        let most = (0..=MOST_OF_NAME - suffix.len()).rev().find(|&end| name.is_char_boundary(end));
        let free = format!("{}{suffix}", &name[..most.unwrap_or(0)]);
        if !is_taken(&free) {
            return free;
        }
        suffix.push('\'');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_name_is_no_longer_than_names_may_be() {
        assert_eq!(free_name("orders", TableId(16), |_| false), "orders (table 16)");
        assert_eq!(
            free_name("orders", TableId(16), |name| name == "orders (table 16)"),
            "orders (table 16)'"
        );
        let long = free_name(&"ö".repeat(127), TableId(16), |_| false);
        assert!(
            long.ends_with("ö (table 16)") && (MOST_OF_NAME - 1..=MOST_OF_NAME).contains(&long.len()),
            "{long}"
        );
    }
}
