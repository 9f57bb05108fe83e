//! Reading and writing tables.

use std::collections::BTreeMap;

use gluesql_core::data::{Key, Schema, Value};
use gluesql_core::error::{Error, Result};
use gluesql_core::store::{MetaIter, Metadata, RowIter, Store, StoreMut};
use pantile::Range;

use crate::PantileStorage;
use crate::failed::Outcome;
use crate::order;
use crate::rows::Rows;
use crate::tables::{MOST_OF_KEY, Put, Stored, unpacked};

impl Store for PantileStorage {
    fn fetch_schema(&self, table_name: &str) -> Result<Option<Schema>> {
        let stored = self.read(|tables, txn| Stored::load(tables, txn, table_name))?;
        Ok(stored.map(|stored| stored.schema))
    }

    fn fetch_all_schemas(&self) -> Result<Vec<Schema>> {
        let stored = self.read(Stored::all)?;
        Ok(stored.into_iter().map(|stored| stored.schema).collect())
    }

    fn fetch_data(&self, table_name: &str, key: &Key) -> Result<Option<Vec<Value>>> {
        self.read(|tables, txn| {
            let Some(stored) = Stored::load(tables, txn, table_name)? else { return Ok(None) };
            let key = order::bytes_of(key);
            // No row has such a key.
            if key.len() > MOST_OF_KEY {
                return Ok(None);
            }
            let Some(row) = txn.get(&tables.rows, &[stored.id.into(), key.as_slice().into()])? else {
                return Ok(None);
            };
            let (_, values): (Key, _) = unpacked(&row, 2)?;
            Ok(Some(values))
        })
    }

    fn scan_data<'a>(&'a self, table_name: &str) -> Result<RowIter<'a>> {
        let rows = self.rows_of(table_name);
        let rows = self.noted(rows)?;
        Ok(Box::new(rows.into_iter().flatten()))
    }
}

impl PantileStorage {
    fn rows_of(&self, table: &str) -> Outcome<Option<Rows<'_>>> {
        let txn = self.reading()?;
        let Some(stored) = Stored::load(&self.tables, &txn, table)? else { return Ok(None) };
        let cursor = txn.cursor(&self.tables.rows, Range::prefix(&[stored.id.into()]))?;
        Ok(Some(Rows { storage: self, txn, cursor, indexed: None, filter: None }))
    }

    fn put(
        &mut self,
        table: &str,
        rows: impl IntoIterator<Item = (Key, Vec<Value>)>,
        put: Put,
    ) -> Result<()> {
        self.write(|tables, txn| {
            Stored::load(tables, txn, table)?.ok_or_else(|| gone(table))?.put(tables, txn, rows, put)
        })
    }
}

fn gone(table: &str) -> Error {
    Error::StorageMsg(format!("there is no table {table:?}; nothing was changed"))
}

impl StoreMut for PantileStorage {
    fn insert_schema(&mut self, schema: &Schema) -> Result<()> {
        let first = self.take_numbers(1 + schema.indexes.len() as u64)?;
        self.write(|tables, txn| Stored::define(tables, txn, schema, first))
    }

    fn delete_schema(&mut self, table_name: &str) -> Result<()> {
        self.write(|tables, txn| match Stored::load(tables, txn, table_name)? {
            Some(stored) => stored.drop(tables, txn),
            None => Ok(()),
        })
    }

    fn append_data(&mut self, table_name: &str, rows: Vec<Vec<Value>>) -> Result<()> {
        let first = self.take_numbers(rows.len() as u64)?;
        self.put(table_name, (first..).map(Key::U64).zip(rows), Put::New)
    }

    fn insert_data(&mut self, table_name: &str, rows: Vec<(Key, Vec<Value>)>) -> Result<()> {
        self.put(table_name, rows, Put::NewOrOther)
    }

    fn delete_data(&mut self, table_name: &str, keys: Vec<Key>) -> Result<()> {
        self.write(|tables, txn| {
            Stored::load(tables, txn, table_name)?.ok_or_else(|| gone(table_name))?.delete(tables, txn, &keys)
        })
    }
}

impl Metadata for PantileStorage {
    fn scan_table_meta(&self) -> Result<MetaIter> {
        let created = |stored: Stored| {
            let created = Value::Timestamp(stored.created);
            Ok((stored.schema.table_name, BTreeMap::from([("CREATED".to_owned(), created)])))
        };
        Ok(Box::new(self.read(Stored::all)?.into_iter().map(created)))
    }
}
