//! Changing definitions beside running transactions.

use std::sync::Arc;
use std::time::Duration;

use pantile_base::sync::atomic::Ordering;
use pantile_base::{Address, TableId, Timestamp, TupleId};
use pantile_index::{Batch, Direction, Insert, Scan};

use crate::api::database::Database;
use crate::engine::catalog;
use crate::engine::core::{Core, Dropped};
use crate::engine::table::{Index, IndexInner, Table, TableInner};
use crate::engine::visitor::Visitor;
use crate::transactions::transaction::Transaction;
use crate::transactions::write::duplicate;
use crate::types::error::{Error, Result};
use crate::types::key::Key;
use crate::types::options::TransactionOptions;
use crate::types::row::Encoded;
use crate::types::schema::{IndexDef, Schema, TableDef};
use crate::types::value::Value;

/// How long building an index waits for a commit that is on its way.
pub(crate) const BUILD_WAIT: Duration = Duration::from_secs(10);

impl Database {
    /// Makes a table. It is durable when the call returns.
    ///
    /// # Errors
    /// [`Error::TableExists`], [`Error::InvalidDefinition`], and errors of the
    /// commit; nothing has been made then.
    pub fn create_table(&self, def: TableDef) -> Result<Table> {
        let core = &self.core;
        let _ddl = core.ddl.lock();
        core.check_open()?;
        if core.tables.read().contains_key(&def.name) {
            return Err(Error::TableExists(def.name));
        }
        let stored = catalog::encode(&def)?;
        let id = TableId(core.next_table.load(Ordering::Relaxed) as u32);
        let table = core.build_table(id, def)?;
        let mut txn = self.catalog_transaction()?;
        txn.insert(&core.catalog()?, &[Value::UInt(id.0.into()), Value::Bytes(&stored)])?;
        txn.commit()?;
        core.next_table.fetch_add(1, Ordering::Relaxed);
        core.add_table(table.clone());
        Ok(table)
    }

    /// Drops a table. Transactions that have written to it fail to commit,
    /// others get [`Error::TableDropped`] when they next use it; its space is
    /// given back once none of them runs.
    ///
    /// # Errors
    /// [`Error::UnknownTable`], and errors of the commit; the table stays then.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        let core = &self.core;
        let _ddl = core.ddl.lock();
        let table = core.table(name)?;
        let visitor = core.visitor()?;
        let mut txn = self.catalog_transaction()?;
        txn.delete(&core.catalog()?, &catalog::key(table.0.id))?;
        txn.commit()?;
        core.tables.write().remove(name);
        table.0.set_dropped();
        let (at, id) = (core.registry.now(), table.0.id);
        let in_use = Some(Arc::clone(&table.0));
        core.dropped.lock().push(Dropped { at, unused_since: None, table: id, in_use });
        core.by_id.write().remove(&id);
        visitor.forget_rows(&table.0);
        core.forget_buffers();
        Ok(())
    }

    /// Makes a secondary index of a table that may be in use and filled.
    ///
    /// # Errors
    /// [`Error::IndexExists`], [`Error::InvalidDefinition`];
    /// [`Error::DuplicateKey`] if the index is to be unique and is not;
    /// [`Error::Timeout`] if a commit took very long; errors of the commit.
    /// There is no index then.
    pub fn create_index(&self, table: &Table, def: IndexDef) -> Result<Index> {
        let core = &self.core;
        let _ddl = core.ddl.lock();
        core.check_open()?;
        let inner = &table.0;
        core.check_own(inner)?;
        if inner.indexes().iter().any(|i| i.def.name == def.name) {
            return Err(Error::IndexExists { table: inner.schema.name.clone(), index: def.name });
        }
        let mut whole = table.definition();
        whole.indexes.push(def.clone());
        Schema::new(&whole)?;
        let stored = catalog::encode(&whole)?;
        let number = inner.next_index_number();
        let index = Arc::new(IndexInner::new(def, number, &inner.schema, &core.arena)?);
        // From here on writers enter their keys; the build adds what was there.
        inner.change_indexes(|list| list.push(Arc::clone(&index)));
        let made = core.fill_index(inner, &index).and_then(|()| self.store_definition(inner, &stored));
        if let Err(error) = made {
            inner.change_indexes(|list| list.retain(|i| i.number != number));
            return Err(error);
        }
        index.set_ready();
        Ok(Index { table: Arc::clone(inner), inner: index })
    }

    /// Drops a secondary index. Scans that have begun go on.
    ///
    /// # Errors
    /// [`Error::UnknownIndex`], and errors of the commit; the index stays then.
    pub fn drop_index(&self, table: &Table, name: &str) -> Result<()> {
        let _ddl = self.core.ddl.lock();
        self.core.check_open()?;
        self.core.check_own(&table.0)?;
        let index = table.index(name)?;
        let mut whole = table.definition();
        whole.indexes.retain(|i| i.name != name);
        self.store_definition(&table.0, &catalog::encode(&whole)?)?;
        // Nobody begins to scan it once writers no longer keep it up.
        index.inner.set_dropped();
        table.0.change_indexes(|list| list.retain(|i| i.number != index.inner.number));
        Ok(())
    }

    fn catalog_transaction(&self) -> Result<Transaction> {
        Transaction::begin(Arc::clone(&self.core), TransactionOptions::default())
    }

    fn store_definition(&self, table: &TableInner, stored: &[u8]) -> Result<()> {
        let mut txn = self.catalog_transaction()?;
        txn.update(&self.core.catalog()?, &catalog::key(table.id), &[(1, Value::Bytes(stored))])?;
        txn.commit().map(|_| ())
    }
}

impl Core {
    pub fn catalog(&self) -> Result<Table> {
        self.table_by_id(catalog::CATALOG).map(Table).ok_or(Error::Closed)
    }

    /// A table with its indexes, all of them empty.
    pub fn build_table(&self, id: TableId, def: TableDef) -> Result<Table> {
        let table = TableInner::new(id, self.id, def, &self.arena)?;
        let mut list = Vec::new();
        for def in &table.def.indexes {
            let index = IndexInner::new(def.clone(), table.next_index_number(), &table.schema, &self.arena)?;
            index.set_ready();
            list.push(Arc::new(index));
        }
        table.change_indexes(|indexes| *indexes = list);
        Ok(Table(Arc::new(table)))
    }

    /// Makes a table known, under its name if it is a user's.
    pub fn add_table(&self, table: Table) {
        self.by_id.write().insert(table.0.id, Arc::clone(&table.0));
        if table.0.id.0 >= catalog::FIRST_USER_TABLE {
            self.tables.write().insert(table.name().to_owned(), table);
        }
    }

    /// Enters the keys of every version that somebody may see.
    fn fill_index(&self, table: &TableInner, index: &IndexInner) -> Result<()> {
        let visitor = self.visitor()?;
        let deadline = self.registry.clock().elapsed() + BUILD_WAIT;
        for tuple in (0..table.tuples_end()).map(TupleId) {
            visitor
                .settled(table, tuple, deadline, |newest| self.enter_versions(table, index, tuple, newest))?;
        }
        if index.def.unique {
            // Writers that have looked for duplicates in the unfinished index
            // and not begun to commit look again; we wait for the others.
            table.change_indexes(|_| {});
            self.check_built(&visitor, table, index, deadline)?;
        }
        Ok(())
    }

    /// `None` if it cannot be told just now who may see what.
    fn enter_versions(
        &self,
        table: &TableInner,
        index: &IndexInner,
        tuple: TupleId,
        newest: Address,
    ) -> Option<()> {
        let running = self.registry.running_set()?;
        for address in self.needed_versions(newest, &running) {
            let content = self.store.content(address);
            if content.flags().is_tombstone() {
                continue;
            }
            let mut key = Key::default();
            key.set_row(&Encoded { schema: &table.schema, bytes: content.row() }, &index.columns);
            key.push_tuple(tuple.0);
            let inserted = index.tree.insert(key.words(), tuple.0, Timestamp::MAX.get());
            debug_assert!(!matches!(inserted, Insert::Forbidden(_)));
        }
        Some(())
    }

    /// Whether no two rows have the same key.
    fn check_built(
        &self,
        visitor: &Visitor<'_>,
        table: &TableInner,
        index: &IndexInner,
        deadline: Duration,
    ) -> Result<()> {
        let mut scan = Scan::new(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded, Direction::Forward);
        let mut batch = Batch::new();
        let mut last = Key::default();
        while scan.next_batch(&index.tree, None, &mut batch) {
            for (entry, tuple) in batch.iter() {
                let key = visitor.settled(table, TupleId(tuple), deadline, |newest| {
                    Some(self.key_of(table, index, TupleId(tuple), newest, entry))
                })?;
                let Some(key) = key else { continue };
                if last.words() == key.words() {
                    return Err(duplicate(table, &index.def.name));
                }
                last = key;
            }
        }
        Ok(())
    }

    /// The key of a tuple's newest version, if it is the one of the entry and
    /// must be unique.
    fn key_of(
        &self,
        table: &TableInner,
        index: &IndexInner,
        tuple: TupleId,
        newest: Address,
        entry: &[u64],
    ) -> Option<Key> {
        let content = (!newest.is_none()).then(|| self.store.content(newest))?;
        if content.flags().is_tombstone() {
            return None;
        }
        let mut key = Key::default();
        key.set_row(&Encoded { schema: &table.schema, bytes: content.row() }, &index.columns);
        let mut whole = key.clone();
        whole.push_tuple(tuple.0);
        (whole.words() == entry && !key.has_null).then_some(key)
    }
}
