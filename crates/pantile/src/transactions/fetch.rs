//! Reading several rows at once, ahead of their use.

use pantile_base::{Timestamp, TupleId, prefetch};
use smallvec::SmallVec;

use crate::engine::anchor::Anchor;
use crate::engine::table::{Table, TableInner};
use crate::transactions::transaction::Transaction;
use crate::types::error::Result;
use crate::types::key::Key;
use crate::types::row::Row;
use crate::types::value::Value;

/// Rows whose contents the CPU brings in side by side.
const TOGETHER: usize = 16;

impl Transaction {
    /// The rows with these primary keys, in the order of the keys; `None` for a
    /// key that has no row. All are read at one moment, at every isolation
    /// level.
    ///
    /// The misses of the rows overlap. In memory that is about twice as fast as one
    /// [`get`](Transaction::get) after the other. If the database is larger than
    /// memory, the device reads the rows side by side.
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
        let keys: Vec<Key> =
            keys.iter().map(|key| self.point_key(inner, key.as_ref())).collect::<Result<_>>()?;
        let at = self.statement();
        let tree = inner.primary().filter(|_| keys.len() > 1);
        if let Some(tree) = tree.filter(|_| self.core.store.may_wait()) {
            self.fetch(inner, keys.iter().filter_map(|key| tree.get(key.words(), None)));
        }
        let mut rows = Vec::with_capacity(keys.len());
        for together in keys.chunks(TOGETHER) {
            if let Some(tree) = tree.filter(|_| !self.core.store.may_wait()) {
                let tuples = together.iter().filter_map(|key| tree.get(key.words(), None)).map(TupleId);
                let tuples: SmallVec<[TupleId; TOGETHER]> = tuples.collect();
                tuples.iter().for_each(|tuple| self.prefetch_tuple(inner, *tuple, at));
                tuples.iter().for_each(|tuple| self.prefetch_version(inner, *tuple));
            }
            for key in together {
                let found = self.find(inner, key.words(), at)?;
                rows.push(found.map(|(_, row)| self.row(table, row, at)));
            }
        }
        Ok(rows)
    }

    /// Lets the medium begin to read the newest versions of tuples. They are
    /// likely to be the ones that this transaction sees.
    #[cold]
    pub(crate) fn fetch(&self, table: &TableInner, tuples: impl Iterator<Item = u64>) {
        let newest = |tuple| Anchor::load(table.anchor(TupleId(tuple))).newest();
        let extents = {
            // The newest version may be too new for this transaction to protect (T6).
            let _pin = self.core.registry.pin(self.slot);
            self.core.store.extents(&mut tuples.map(newest).collect::<Vec<_>>())
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
