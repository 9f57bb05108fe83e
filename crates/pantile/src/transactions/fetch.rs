//! Reading several rows at once, ahead of their use.

use pantile_base::{Timestamp, TupleId, prefetch};
use pantile_index::{Finger, Index as Tree, Scan as Walk};
use smallvec::SmallVec;

use crate::engine::anchor::Anchor;
use crate::engine::index::IndexInner;
use crate::engine::table::{Index, Table, TableInner};
use crate::transactions::read::{key_word, set_point_key};
use crate::transactions::steps::{tree_of, walk};
use crate::transactions::transaction::Transaction;
use crate::types::error::Result;
use crate::types::key::Key;
use crate::types::range::Range;
use crate::types::row::Row;
use crate::types::value::Value;

/// Rows whose contents the CPU brings in side by side, as many as their keys.
pub(super) const TOGETHER: usize = pantile_index::SIDE_BY_SIDE;

/// Keys of rows, at most [`TOGETHER`], one behind the other.
#[derive(Default)]
pub(super) struct Keys {
    words: SmallVec<[u64; 2 * TOGETHER]>,
    ends: SmallVec<[usize; TOGETHER]>,
}

impl Keys {
    pub fn of<'v, K: AsRef<[Value<'v>]>>(table: &TableInner, values: &[K]) -> Result<Self> {
        let (mut words, mut ends) = (SmallVec::new(), SmallVec::new());
        let mut key = Key::default();
        for values in values {
            if let Some(word) = key_word(table, values.as_ref()) {
                words.push(word);
            } else {
                set_point_key(&mut key, table, values.as_ref())?;
                key.words().iter().for_each(|word| words.push(*word));
            }
            ends.push(words.len());
        }
        Ok(Self { words, ends })
    }

    pub fn push(&mut self, key: &[u64]) {
        key.iter().for_each(|word| self.words.push(*word));
        self.ends.push(self.words.len());
    }

    /// All of them; in place of those that are not there, none.
    fn slices(&self) -> [&[u64]; TOGETHER] {
        let mut keys: [&[u64]; TOGETHER] = [&[]; TOGETHER];
        keys.iter_mut().zip(self.iter()).for_each(|(place, key)| *place = key);
        keys
    }

    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &[u64]> {
        let mut start = 0;
        self.ends.iter().map(move |end| &self.words[std::mem::replace(&mut start, *end)..*end])
    }

    /// The tuples that an index has for them, looked up side by side.
    fn find_in(&self, tree: &Tree) -> [Option<TupleId>; TOGETHER] {
        let (count, mut found) = (self.ends.len(), [None; TOGETHER]);
        tree.get_many(&self.slices()[..count], &mut found[..count]);
        found.map(|tuple| tuple.map(TupleId))
    }

    /// Where they are to be inserted.
    pub fn fingers_in(&self, tree: &Tree) -> [Finger; TOGETHER] {
        let (count, fingers) = (self.ends.len(), std::array::from_fn(|_| Finger::default()));
        tree.put_fingers(&self.slices()[..count], &fingers[..count]);
        fingers
    }
}

impl Transaction {
    /// The rows with these primary keys, in the order of the keys; `None` for a
    /// key that has no row. All are read at one moment, at every isolation
    /// level.
    ///
    /// The cache misses of the rows overlap. In memory that is about twice as fast as one
    /// [`get`](Transaction::get) after the other. If the database is larger than memory, the device reads the
    /// rows side by side.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]))?;
    /// # db.run(|txn| txn.insert(&t, &[2u64.into(), 5i64.into()]))?;
    /// let txn = db.begin_read()?;
    /// let keys = [[Value::UInt(1)], [Value::UInt(2)]];
    /// let rows = txn.get_many(&t, &keys)?;
    /// assert!(rows[0].is_none());
    /// assert_eq!(rows[1].as_ref().expect("a row").get::<i64>("n")?, 5);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn get_many<'t, 'v, K: AsRef<[Value<'v>]>>(
        &'t self,
        table: &'t Table,
        keys: &[K],
    ) -> Result<Vec<Option<Row<'t>>>> {
        let inner = &*table.inner;
        self.check_table(inner)?;
        let at = self.statement();
        if self.core.store.may_wait() && keys.len() > 1 {
            self.fetch_keys(inner, keys)?;
        }
        let mut rows = Vec::with_capacity(keys.len());
        for together in keys.chunks(TOGETHER) {
            self.check_table(inner)?;
            let keys = Keys::of(inner, together)?;
            for (key, tuple) in keys.iter().zip(self.look_up(inner, &keys, at)) {
                let found = self.find_from(inner, tuple, key, at)?;
                rows.push(found.map(|(_, row)| self.row(table, row, at)));
            }
        }
        Ok(rows)
    }

    /// Prefetches rows that single calls will read soon.
    ///
    /// The rows come into the processor's caches, or into memory if the database is larger than that. A key
    /// may have no row. A key may also be the first values of primary keys; then at most 16 of the rows that
    /// begin with them are fetched.
    ///
    /// The call only saves time, where one [`get_many`](Transaction::get_many) is not possible. For isolation
    /// it counts as no read, and nothing keeps the fetched rows where they are.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]))?;
    /// # db.run(|txn| txn.insert(&t, &[2u64.into(), 5i64.into()]))?;
    /// let txn = db.begin_read()?;
    /// let keys = [[Value::UInt(1)], [Value::UInt(2)]];
    /// txn.fetch_ahead(&t, &keys)?;
    /// assert!(txn.get(&t, &keys[0])?.is_none() && txn.get(&t, &keys[1])?.is_some());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn fetch_ahead<'v, K: AsRef<[Value<'v>]>>(&self, table: &Table, keys: &[K]) -> Result<()> {
        let inner = &*table.inner;
        let whole = inner.schema().primary_key.len();
        if keys.iter().any(|key| key.as_ref().len() < whole) {
            return self.fetch_ranges(inner, None, keys);
        }
        self.check_table(inner)?;
        if self.core.store.may_wait() {
            return self.fetch_keys(inner, keys);
        }
        let at = self.statement();
        for together in keys.chunks(TOGETHER) {
            self.look_up(inner, &Keys::of(inner, together)?, at);
        }
        Ok(())
    }

    /// Prefetches rows by keys of a secondary index, or by their first values; see
    /// [`Transaction::fetch_ahead`].
    ///
    /// For each key it fetches at most the first 16 rows. A join does so with the keys of its next rows.
    ///
    /// # Errors
    /// As [`Transaction::scan_index`].
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let def = TableDef::new("orders").column("id", Type::U64).column("customer", Type::U64);
    /// # let t = db.create_table(def.primary_key(["id"]).index(IndexDef::new("customer", ["customer"])))?;
    /// # db.run(|txn| (0..100u64).try_for_each(|n| txn.insert(&t, &[n.into(), (n / 4).into()])))?;
    /// let (txn, of_customer) = (db.begin_read()?, t.index("customer")?);
    /// let customers = [[Value::UInt(3)], [Value::UInt(11)]];
    /// txn.fetch_ahead_index(&of_customer, &customers)?;
    /// for customer in customers {
    ///     assert_eq!(txn.scan_index(&of_customer, Range::prefix(&customer))?.count(), 4);
    /// }
    /// # Ok::<(), Error>(())
    /// ```
    pub fn fetch_ahead_index<'v, K: AsRef<[Value<'v>]>>(&self, index: &Index, keys: &[K]) -> Result<()> {
        self.fetch_ranges(&index.table.inner, Some(&index.inner), keys)
    }

    /// Fetches the first rows of each of these keys.
    fn fetch_ranges<'v, K: AsRef<[Value<'v>]>>(
        &self,
        table: &TableInner,
        index: Option<&IndexInner>,
        keys: &[K],
    ) -> Result<()> {
        self.check_table(table)?;
        self.core.ready(table)?;
        let (at, may_wait) = (self.statement(), self.core.store.may_wait());
        let mut tuples = Vec::new();
        for together in keys.chunks(TOGETHER) {
            let mut walks: SmallVec<[Walk; TOGETHER]> = SmallVec::new();
            for key in together {
                walks.push(walk(table, index, Range::prefix(key.as_ref()))?);
            }
            tree_of(table, index).first_values(&mut walks, TOGETHER, &mut tuples);
            if !may_wait {
                tuples.iter().for_each(|tuple| self.prefetch_tuple(table, TupleId(*tuple), at));
                tuples.drain(..).for_each(|tuple| self.prefetch_version(table, TupleId(tuple)));
            }
        }
        if may_wait {
            self.fetch(table, tuples.into_iter());
        }
        Ok(())
    }

    /// Looks up the keys of rows that are to be added, side by side. `None` if they do not tell
    /// their keys, or if no misses are to be expected: there is only one, or they come in the
    /// order of their keys behind one that has just been added.
    pub(super) fn look_up_rows<'v, R: AsRef<[Value<'v>]>>(
        &self,
        table: &Table,
        rows: &[R],
        at: Timestamp,
    ) -> Option<[Option<TupleId>; TOGETHER]> {
        let (inner, columns) = (&*table.inner, &*table.columns);
        if rows.len() < 2 || inner.primary().is_none() {
            return None;
        }
        let schema = inner.schema();
        if rows.iter().any(|row| row.as_ref().len() != columns.len()) {
            return None;
        }
        let key_of = |row: &R| -> SmallVec<[Value<'_>; 8]> {
            schema.primary_key.iter().map(|id| columns.value(row.as_ref(), schema, *id)).collect()
        };
        let mut last = Key::default();
        set_point_key(&mut last, inner, &key_of(rows.last()?)).ok()?;
        if self.is_near(inner, last.words()) {
            return None;
        }
        let keys: SmallVec<[_; TOGETHER]> = rows.iter().map(key_of).collect();
        let keys = Keys::of(inner, &keys).ok()?;
        Some(self.look_up(inner, &keys, at))
    }

    /// Lets the medium begin to read the rows with these keys, all of them.
    #[cold]
    fn fetch_keys<'v, K: AsRef<[Value<'v>]>>(&self, table: &TableInner, keys: &[K]) -> Result<()> {
        let Some(tree) = table.primary() else { return Ok(()) };
        let mut tuples = Vec::with_capacity(keys.len());
        for together in keys.chunks(TOGETHER) {
            tuples.extend(Keys::of(table, together)?.find_in(tree).into_iter().flatten());
        }
        self.fetch(table, tuples.into_iter().map(|tuple| tuple.0));
        Ok(())
    }

    /// Looks up keys side by side, and brings in what is looked at first when their rows are
    /// read at `at`, or written. No tuple gets another key as long as the transaction
    /// reads at `at`.
    pub(super) fn look_up(
        &self,
        table: &TableInner,
        keys: &Keys,
        at: Timestamp,
    ) -> [Option<TupleId>; TOGETHER] {
        let Some(tree) = table.primary().filter(|_| keys.ends.len() > 1) else { return [None; TOGETHER] };
        let tuples = keys.find_in(tree);
        if self.core.store.may_wait() {
            return tuples;
        }
        tuples.iter().flatten().for_each(|tuple| self.prefetch_tuple(table, *tuple, at));
        tuples.iter().flatten().for_each(|tuple| self.prefetch_version(table, *tuple));
        tuples
    }

    /// Lets the medium begin to read the newest versions of tuples. They are
    /// likely to be the ones that this transaction sees.
    #[cold]
    pub(crate) fn fetch(&self, table: &TableInner, tuples: impl Iterator<Item = u64>) {
        let newest = |tuple| Anchor::load(table.anchor(TupleId(tuple))).newest();
        let extents = {
            // The newest version may be too new for this transaction to protect (T6).
            let _pin = self.core.registry.pin(self.slot);
            let mut addresses: Vec<_> = tuples.map(newest).collect();
            addresses.retain(|address| !self.rows_in_use.has(&self.core, *address));
            self.core.store.extents(&mut addresses)
        };
        self.core.store.fetch(&extents);
    }

    /// Asks the CPU for what is looked at first when a tuple is read at `at`.
    #[inline]
    pub(super) fn prefetch_tuple(&self, table: &TableInner, tuple: TupleId, at: Timestamp) {
        if self.mark(at).is_some() {
            self.core.marks.prefetch(table.id, tuple);
        }
        prefetch(table.anchor(tuple));
    }

    /// Asks the CPU for the version that a tuple's anchor names.
    #[inline]
    pub(super) fn prefetch_version(&self, table: &TableInner, tuple: TupleId) {
        self.core.store.prefetch(Anchor::load(table.anchor(tuple)).newest());
    }
}
