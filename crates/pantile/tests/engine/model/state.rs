//! The model: every version of every row, by timestamp.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

use super::rows::{Key, LAYOUTS, RowVal, Shape, Val, pick};

/// What a transaction has written itself, by table.
#[derive(Clone, Default)]
pub struct Own(pub [BTreeMap<Key, Option<RowVal>>; 3]);

/// A read.
#[derive(Clone, Debug)]
pub enum Query {
    Get { table: usize, key: Key },
    Scan { table: usize, index: Option<Shape>, range: Span },
}

/// A range of keys.
#[derive(Clone, Debug)]
pub struct Span {
    pub lower: Bound<Key>,
    pub upper: Bound<Key>,
    pub reverse: bool,
    pub limit: Option<usize>,
}

impl Span {
    pub fn prefix(key: Key) -> Self {
        Self { lower: Bound::Included(key.clone()), upper: Bound::Included(key), reverse: false, limit: None }
    }

    /// A bound that is the first part of a key stands for all keys that begin
    /// with it.
    fn contains(&self, key: &[Val]) -> bool {
        let above = match &self.lower {
            Bound::Unbounded => true,
            Bound::Included(bound) => key[..bound.len()] >= bound[..],
            Bound::Excluded(bound) => key[..bound.len()] > bound[..],
        };
        let below = match &self.upper {
            Bound::Unbounded => true,
            Bound::Included(bound) => key[..bound.len()] <= bound[..],
            Bound::Excluded(bound) => key[..bound.len()] < bound[..],
        };
        above && below
    }
}

/// A read that a transaction has done, with what it saw.
#[derive(Clone)]
pub struct Seen {
    pub query: Query,
    pub own: Rc<Own>,
    pub rows: Vec<RowVal>,
}

/// The versions of a key, oldest first; `None` is a deletion.
type Chain = Vec<(u64, Option<RowVal>)>;

/// All committed versions.
#[derive(Default)]
pub struct Model([BTreeMap<Key, Chain>; 3]);

impl Model {
    pub fn get(&self, table: usize, key: &Key, at: u64, own: &Own) -> Option<RowVal> {
        if let Some(own) = own.0[table].get(key) {
            return own.clone();
        }
        let chain = self.0[table].get(key)?;
        chain.iter().rev().find(|(ts, _)| *ts <= at).and_then(|(_, row)| row.clone())
    }

    /// All rows of a table in the order of their keys.
    pub fn rows(&self, table: usize, at: u64, own: &Own) -> Vec<RowVal> {
        let mut keys: Vec<&Key> = self.0[table].keys().chain(own.0[table].keys()).collect();
        keys.sort();
        keys.dedup();
        keys.into_iter().filter_map(|key| self.get(table, key, at, own)).collect()
    }

    pub fn answer(&self, query: &Query, at: u64, own: &Own) -> Vec<RowVal> {
        match query {
            Query::Get { table, key } => self.get(*table, key, at, own).into_iter().collect(),
            Query::Scan { table, index, range } => {
                let columns = index.map_or(LAYOUTS[*table].key, |i| i.columns);
                let mut rows = self.rows(*table, at, own);
                rows.retain(|row| range.contains(&pick(row, columns)));
                rows.sort_by_key(|row| pick(row, columns));
                if range.reverse {
                    rows.reverse();
                }
                rows
            }
        }
    }

    /// Whether `got` answers the query: rows with the same index key come in
    /// any order, and a limit takes the first.
    pub fn check(&self, query: &Query, expected: &[RowVal], got: &[RowVal], who: &dyn Debug) {
        let Query::Scan { table, index, range } = query else {
            assert!(expected == got, "{query:?} in {who:?}: expected {}, got {}", show(expected), show(got));
            return;
        };
        let columns = index.map_or(LAYOUTS[*table].key, |i| i.columns);
        let len = range.limit.map_or(expected.len(), |limit| limit.min(expected.len()));
        let keys = |rows: &[RowVal]| rows.iter().map(|r| pick(r, columns)).collect::<Vec<_>>();
        let rest = |rows: &[RowVal]| rows.iter().cloned().collect::<std::collections::BTreeSet<_>>();
        let fits = got.len() == len
            && keys(&expected[..len]) == keys(got)
            && rest(got).is_subset(&rest(expected))
            && rest(got).len() == len;
        assert!(fits, "{query:?} in {who:?}: expected {}, got {}", show(expected), show(got));
    }

    /// Whether another row has the key that `row` would have in a unique index.
    pub fn clashes(&self, table: usize, key: &Key, row: &[Val], at: u64, own: &Own) -> Option<Shape> {
        let unique = LAYOUTS[table].indexes.iter().filter(|i| i.unique);
        let mut wanted = unique.map(|i| (*i, pick(row, i.columns))).filter(|(_, k)| !k.contains(&Val::Null));
        let rows = self.rows(table, at, own);
        wanted
            .find(|(index, k)| {
                rows.iter().any(|r| LAYOUTS[table].key_of(r) != *key && pick(r, index.columns) == *k)
            })
            .map(|(index, _)| index)
    }

    /// A transaction commits.
    pub fn commit(&mut self, ts: u64, own: &Own) {
        for (table, writes) in own.0.iter().enumerate() {
            for (key, row) in writes {
                let chain = self.0[table].entry(key.clone()).or_default();
                if row.is_none() && chain.last().is_none_or(|(_, newest)| newest.is_none()) {
                    continue; // inserted and deleted again
                }
                assert!(chain.last().is_none_or(|(newest, _)| *newest < ts), "versions are in order");
                chain.push((ts, row.clone()));
            }
        }
    }

    /// The highest timestamp of all versions.
    pub fn highest(&self) -> u64 {
        self.0.iter().flat_map(BTreeMap::values).filter_map(|c| c.last()).map(|v| v.0).max().unwrap_or(0)
    }

    /// The number of all rows, those of out-of-line values included.
    pub fn tuples(&self) -> u64 {
        let rows = |t| self.rows(t, u64::MAX, &Own::default());
        (0..LAYOUTS.len()).flat_map(|t| rows(t).into_iter().map(move |r| 1 + LAYOUTS[t].pieces(&r))).sum()
    }
}

/// Rows, one per line.
fn show(rows: &[RowVal]) -> String {
    rows.iter().fold(format!("{} rows:", rows.len()), |text, row| format!("{text}\n    {row:?}"))
}

/// A row with some columns replaced.
pub fn changed(row: &RowVal, changes: &[(usize, Val)]) -> RowVal {
    let mut new = Vec::clone(row);
    for (column, value) in changes {
        new[*column] = value.clone();
    }
    Arc::new(new)
}
