//! The operations of one transaction, each compared with the model.

use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

use pantile::{Error, Index, Range, Result, Transaction, Value};

use super::rows::{EXTRA, Key, LARGE, LAYOUTS, RowVal, Shape, Val, pick, values};
use super::runner::{Access, Open, Runner};
use super::state::{Query, Seen, Span, changed};
use crate::support::{is_conflict, is_duplicate};

/// A write.
#[derive(Debug)]
enum Write {
    Insert(RowVal),
    Upsert(RowVal),
    Update(Key, Vec<(usize, Val)>),
    Modify(Key, Vec<(usize, Val)>, Keep),
    Delete(Key),
    Lock(Key),
    /// A change of the primary key, which is refused.
    Rename(Key),
}

/// What the closure of a modification returns.
#[derive(Clone, Copy, Debug)]
enum Keep {
    Yes,
    No,
    Fail,
}

/// The expected outcome of a write.
#[derive(Debug, PartialEq)]
enum Want {
    Done(bool),
    Duplicate(&'static str),
    KeyChanged,
    Failed,
}

impl Runner {
    pub fn operate(&mut self, n: usize) {
        if self.rng.percent(50) {
            self.read(n);
        } else {
            self.write(n);
        }
    }

    fn random_table(&mut self) -> usize {
        if self.rng.percent(8) { LARGE } else { self.rng.index(LARGE) }
    }

    pub fn random_query(&mut self) -> Query {
        let table = self.random_table();
        let layout = LAYOUTS[table];
        if self.rng.percent(35) {
            return Query::Get { table, key: layout.random_key(&mut self.rng) };
        }
        let extra = self.extra.iter().filter(|_| table == 0).map(|_| EXTRA);
        let indexes: Vec<Shape> = layout.indexes.iter().copied().chain(extra).collect();
        let index = self.rng.percent(60).then(|| *self.rng.pick(&indexes));
        let columns = index.map_or(layout.key, |i| i.columns);
        let mut range = Span::prefix(layout.random_prefix(columns, &mut self.rng));
        if self.rng.percent(60) {
            range.lower = layout.random_bound(columns, &mut self.rng);
            range.upper = layout.random_bound(columns, &mut self.rng);
        }
        range.reverse = self.rng.percent(50);
        range.limit = self.rng.percent(40).then(|| self.rng.index(6));
        Query::Scan { table, index, range }
    }

    fn read(&mut self, n: usize) {
        let query = self.random_query();
        let open = &self.open[n];
        match self.ask(&open.txn, &query) {
            Ok(got) => {
                let expected = self.model.answer(&query, open.view(), &open.own);
                self.model.check(&query, &expected, &got, &open.txn);
                let own = Rc::clone(&open.own);
                self.open[n].seen.push(Seen { query, own, rows: got });
            }
            Err(error) => self.refused(n, &error, &query),
        }
    }

    /// Only conflicts are an excuse, and only beside other transactions.
    fn refused(&self, n: usize, error: &Error, what: &dyn std::fmt::Debug) {
        let open = &self.open[n];
        assert!(is_conflict(error), "{what:?}: {error}");
        assert!(open.access != Access::Safe && !open.alone, "{what:?} in {:?}: {error}", open.txn);
    }

    fn index(&self, table: usize, shape: &Shape) -> Index {
        match &self.extra {
            Some(extra) if shape.name == EXTRA.name => extra.clone(),
            _ => self.tables[table].index(shape.name).expect("the index is there"),
        }
    }

    pub fn ask(&self, txn: &Transaction, query: &Query) -> Result<Vec<RowVal>> {
        match query {
            Query::Get { table, key } => {
                let row = txn.get(&self.tables[*table], &values(key))?;
                row.iter().map(|r| LAYOUTS[*table].read(r).map(Arc::new)).collect()
            }
            Query::Scan { table, index: Some(shape), range } if is_point(shape, range) => {
                let Bound::Included(key) = &range.lower else { unreachable!("a point") };
                let index = self.index(*table, shape);
                let row = txn.get_by_index(&index, &values(key))?;
                row.iter().map(|r| LAYOUTS[*table].read(r).map(Arc::new)).collect()
            }
            Query::Scan { table, index, range } => {
                let (lower, upper) = (bound_values(&range.lower), bound_values(&range.upper));
                let mut wanted =
                    Range::all().from(borrowed(&lower, &range.lower)).to(borrowed(&upper, &range.upper));
                if range.reverse {
                    wanted = wanted.reverse();
                }
                if let Some(limit) = range.limit {
                    wanted = wanted.limit(limit);
                }
                let layout = LAYOUTS[*table];
                match index {
                    None => {
                        let rows = txn.scan(&self.tables[*table], wanted)?;
                        rows.map(|r| layout.read(&r?).map(Arc::new)).collect()
                    }
                    Some(shape) => {
                        let index = self.index(*table, shape);
                        let rows = txn.scan_index(&index, wanted)?;
                        rows.map(|r| layout.read(&r?).map(Arc::new)).collect()
                    }
                }
            }
        }
    }

    fn random_write(&mut self, table: usize) -> Write {
        let layout = LAYOUTS[table];
        let rng = &mut self.rng;
        let key = layout.random_key(rng);
        let free: Vec<usize> = layout.columns().filter(|c| !layout.key.contains(c)).collect();
        let mut changes = Vec::new();
        for _ in 0..=rng.below(2) {
            let column = *rng.pick(&free);
            changes.push((column, layout.random(column, rng)));
        }
        match rng.below(100) {
            0..25 => Write::Insert(layout.random_row(rng)),
            25..40 => Write::Upsert(layout.random_row(rng)),
            40..60 => Write::Update(key, changes),
            60..70 => Write::Modify(key, changes, Keep::Yes),
            70..74 => Write::Modify(key, changes, Keep::No),
            74..78 => Write::Modify(key, changes, Keep::Fail),
            78..92 => Write::Delete(key),
            92..98 => Write::Lock(key),
            _ => Write::Rename(key),
        }
    }

    fn write(&mut self, n: usize) {
        let table = self.random_table();
        let write = self.random_write(table);
        let handle = self.tables[table].clone();
        let result = perform(&mut self.open[n].txn, &handle, table, &write);
        let open = &self.open[n];
        if open.access != Access::ReadWrite {
            assert!(matches!(result, Err(Error::ReadOnly)), "{write:?}: {result:?}");
            return;
        }
        let key = key_of(table, &write);
        let now = self.model.get(table, &key, open.view(), &open.own);
        let (want, new) = self.expect(open, table, &write, &key, now.as_ref());
        let got = match result {
            Ok(locked) => {
                if let (Write::Lock(_), Some(row)) = (&write, &now) {
                    assert_eq!(locked.1.as_ref(), Some(row), "{write:?}");
                }
                Want::Done(locked.0)
            }
            Err(Error::DuplicateKey { index, .. }) => {
                let name = LAYOUTS[table].indexes.iter().map(|i| i.name).find(|i| *i == index);
                Want::Duplicate(name.unwrap_or("primary"))
            }
            Err(Error::PrimaryKeyChanged { .. }) => Want::KeyChanged,
            Err(Error::UnknownSavepoint) => Want::Failed,
            Err(error) => return self.refused(n, &error, &write),
        };
        assert_eq!(got, want, "{write:?} in {:?}", open.txn);
        self.note_reads(n, table, key.clone(), now, new.clone());
        if let Some(new) = new
            && matches!(want, Want::Done(_))
        {
            Rc::make_mut(&mut self.open[n].own).0[table].insert(key, new);
        }
    }

    /// The expected outcome of the write, and the row that it leaves, if any.
    fn expect(
        &self,
        open: &Open,
        table: usize,
        write: &Write,
        key: &Key,
        now: Option<&RowVal>,
    ) -> (Want, Option<Option<RowVal>>) {
        let new = match (write, now) {
            (Write::Insert(_), Some(_)) => return (Want::Duplicate("primary"), None),
            (Write::Insert(row) | Write::Upsert(row), _) => Arc::clone(row),
            (_, None) => return (Want::Done(false), None),
            (Write::Update(_, changes) | Write::Modify(_, changes, Keep::Yes), Some(row)) => {
                changed(row, changes)
            }
            (Write::Modify(_, _, Keep::No), _) => return (Want::Done(false), None),
            (Write::Modify(_, _, Keep::Fail), _) => return (Want::Failed, None),
            (Write::Delete(_), _) => return (Want::Done(true), Some(None)),
            (Write::Lock(_), _) => return (Want::Done(true), None),
            (Write::Rename(_), _) => return (Want::KeyChanged, None),
        };
        match self.model.clashes(table, key, &new, open.unique_view(), &open.own) {
            Some(index) => (Want::Duplicate(index.name), Some(Some(new))),
            None => (Want::Done(now.is_some()), Some(Some(new))),
        }
    }

    /// A write reads its row, and the keys that must be unique.
    fn note_reads(
        &mut self,
        n: usize,
        table: usize,
        key: Key,
        now: Option<RowVal>,
        new: Option<Option<RowVal>>,
    ) {
        let open = &mut self.open[n];
        let own = Rc::clone(&open.own);
        if let Some(Some(new)) = &new
            && open.is_serializable()
        {
            for index in LAYOUTS[table].indexes.iter().filter(|i| i.unique) {
                let wanted = pick(new, index.columns);
                if wanted.contains(&Val::Null)
                    || now.as_ref().is_some_and(|r| pick(r, index.columns) == wanted)
                {
                    continue;
                }
                let query = Query::Scan { table, index: Some(*index), range: Span::prefix(wanted) };
                let rows = self.model.answer(&query, open.view(), &own);
                let clash = !rows.is_empty();
                open.seen.push(Seen { query, own: Rc::clone(&own), rows });
                if clash {
                    break; // the next were not looked at
                }
            }
        }
        open.seen.push(Seen { query: Query::Get { table, key }, own, rows: now.into_iter().collect() });
    }
}

fn key_of(table: usize, write: &Write) -> Key {
    match write {
        Write::Insert(row) | Write::Upsert(row) => LAYOUTS[table].key_of(row),
        Write::Update(key, _) | Write::Modify(key, _, _) => key.clone(),
        Write::Delete(key) | Write::Lock(key) | Write::Rename(key) => key.clone(),
    }
}

/// The engine's part: whether the row existed, and which row for locks.
fn perform(
    txn: &mut Transaction,
    handle: &pantile::Table,
    table: usize,
    write: &Write,
) -> Result<(bool, Option<RowVal>)> {
    let layout = LAYOUTS[table];
    let done = match write {
        Write::Insert(row) => txn.insert(handle, &values(row)).map(|()| false),
        Write::Upsert(row) => txn.upsert(handle, &values(row)),
        Write::Update(key, changes) => {
            let changes: Vec<_> = changes.iter().map(|(c, v)| (*c, v.value())).collect();
            txn.update(handle, &values(key), &changes)
        }
        Write::Modify(key, changes, keep) => txn.modify(handle, &values(key), |row| {
            let mut expected = layout.read(&row.row())?;
            for (column, value) in changes {
                row.set(*column, value.value())?;
                expected[*column] = value.clone();
            }
            assert_eq!(layout.read(&row.row())?, expected, "a row under change");
            match keep {
                Keep::Yes => Ok(true),
                Keep::No => Ok(false),
                Keep::Fail => Err(Error::UnknownSavepoint),
            }
        }),
        Write::Delete(key) => txn.delete(handle, &values(key)),
        Write::Lock(key) => {
            let row = txn.get_for_update(handle, &values(key))?;
            let row = row.map(|r| layout.read(&r)).transpose()?.map(Arc::new);
            return Ok((row.is_some(), row));
        }
        Write::Rename(key) => {
            let other = match &key[0] {
                Val::UInt(v) => Val::UInt(v ^ 1),
                Val::Str(v) => Val::Str(format!("{v}x")),
                other => other.clone(),
            };
            txn.update(handle, &values(key), &[(0, other.value())])
        }
    };
    debug_assert!(!matches!(&done, Err(e) if is_duplicate(e) && e.is_retryable()));
    done.map(|done| (done, None))
}

/// The query of [`Transaction::get_by_index`].
fn is_point(shape: &Shape, range: &Span) -> bool {
    range.limit == Some(1)
        && !range.reverse
        && matches!(&range.lower, Bound::Included(k) if k.len() == shape.columns.len())
        && range.lower == range.upper
}

fn bound_values(bound: &Bound<Key>) -> Vec<Value<'_>> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => values(key),
        Bound::Unbounded => Vec::new(),
    }
}

fn borrowed<'a>(values: &'a [Value<'a>], like: &Bound<Key>) -> Bound<&'a [Value<'a>]> {
    match like {
        Bound::Included(_) => Bound::Included(values),
        Bound::Excluded(_) => Bound::Excluded(values),
        Bound::Unbounded => Bound::Unbounded,
    }
}
