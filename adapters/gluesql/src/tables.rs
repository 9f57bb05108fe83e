//! The tables of the database that hold everything of SQL, and what is stored of a table of SQL's.
//!
//! Definitions are rows, too, so that a transaction can change them and be rolled back.

use std::borrow::Cow;

use gluesql_core::chrono::{NaiveDateTime, Utc};
use gluesql_core::data::{Key, Schema, SchemaIndex, Value};
use gluesql_core::error::Error;
use pantile::{Database, Index, IndexDef, Range, Row, Table, TableDef, Transaction, Type};
use serde::{Deserialize, Serialize};

use crate::expression::Expression;
use crate::failed::Outcome;
use crate::order;

/// Most bytes of a key. One of a table of Pantile's takes 3,064 bytes at most, and bytes in it may take twice their
/// length.
pub const MOST_OF_KEY: usize = 1500;
const KEY: Type = Type::Bytes(MOST_OF_KEY as u32);
const NAME: Type = Type::String(1500);
const ANY: Type = Type::Bytes(u32::MAX);

#[derive(Debug)]
pub struct Tables {
    pub schemas: Table,
    pub rows: Table,
    pub entries: Table,
    pub by_value: Index,
    pub functions: Table,
    pub numbers: Table,
}

impl Tables {
    pub fn open(db: &Database) -> pantile::Result<Self> {
        let entries = db.open_or_create(
            TableDef::new("gluesql_entries")
                .column("index", Type::U64)
                .column("key", KEY)
                .column("value", KEY)
                .primary_key(["index", "key"])
                .index(IndexDef::new("by_value", ["index", "value"])),
        )?;
        Ok(Self {
            schemas: db.open_or_create(named("gluesql_schemas", "schema"))?,
            rows: db.open_or_create(
                TableDef::new("gluesql_rows")
                    .column("table", Type::U64)
                    .column("key", KEY)
                    .column("row", ANY)
                    .primary_key(["table", "key"]),
            )?,
            by_value: entries.index("by_value")?,
            entries,
            functions: db.open_or_create(named("gluesql_functions", "function"))?,
            numbers: db.open_or_create(
                TableDef::new("gluesql_numbers")
                    .column("id", Type::U8)
                    .column("next", Type::U64)
                    .primary_key(["id"]),
            )?,
        })
    }
}

fn named(table: &str, content: &str) -> TableDef {
    TableDef::new(table).column("name", NAME).column(content, ANY).primary_key(["name"])
}

/// What is stored in `column` of a row.
pub fn unpacked<T: for<'a> Deserialize<'a>>(row: &Row<'_>, column: usize) -> Outcome<T> {
    Ok(postcard::from_bytes(&row.get::<Cow<'_, [u8]>>(column)?)?)
}

/// A table of SQL's.
#[derive(Serialize, Deserialize)]
pub struct Stored {
    pub schema: Schema,
    /// By which its rows know it, whatever its name.
    pub id: u64,
    /// By which the entries of its indexes know them, in the order of the schema.
    pub indexes: Vec<u64>,
    pub created: NaiveDateTime,
}

/// What may be under the key of a row that is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// Nothing.
    New,
    /// Another row, which it replaces.
    NewOrOther,
}

impl Stored {
    pub fn load(tables: &Tables, txn: &Transaction, name: &str) -> Outcome<Option<Self>> {
        let row = txn.get(&tables.schemas, &[name.into()])?;
        row.map(|row| unpacked(&row, 1)).transpose()
    }

    pub fn all(tables: &Tables, txn: &Transaction) -> Outcome<Vec<Self>> {
        let rows = txn.scan(&tables.schemas, Range::all())?;
        rows.map(|row| unpacked(&row?, 1)).collect()
    }

    fn save(&self, tables: &Tables, txn: &mut Transaction) -> Outcome<()> {
        let packed = postcard::to_stdvec(self)?;
        txn.upsert(&tables.schemas, &[self.schema.table_name.as_str().into(), packed.as_slice().into()])?;
        Ok(())
    }

    /// Stores the definition of a table that is there or not. Indexes that it does not have any more are emptied, and
    /// new ones are filled. `first` and as many numbers behind it as the schema has indexes are free.
    pub fn define(tables: &Tables, txn: &mut Transaction, schema: &Schema, first: u64) -> Outcome<()> {
        let old = Self::load(tables, txn, &schema.table_name)?;
        let kept =
            |index: &SchemaIndex| old.as_ref()?.index(|old| old.name == index.name && old.expr == index.expr);
        let ids: Vec<_> = schema.indexes.iter().map(kept).collect();
        for gone in old.iter().flat_map(|old| &old.indexes).filter(|id| !ids.contains(&Some(**id))) {
            txn.delete_range(&tables.entries, Range::prefix(&[(*gone).into()]))?;
        }
        let new = Self {
            id: old.as_ref().map_or(first, |old| old.id),
            created: old.as_ref().map_or_else(|| Utc::now().naive_utc(), |old| old.created),
            indexes: (first + 1..).zip(&ids).map(|(new, kept)| kept.unwrap_or(new)).collect(),
            schema: schema.clone(),
        };
        new.save(tables, txn)?;
        let added = new.expressions().into_iter().zip(ids).filter(|(_, kept)| kept.is_none());
        new.fill(tables, txn, &added.map(|(added, _)| added).collect::<Vec<_>>())
    }

    /// The number of the first index of this kind.
    pub fn index(&self, is: impl Fn(&SchemaIndex) -> bool) -> Option<u64> {
        let at = self.schema.indexes.iter().position(is)?;
        Some(self.indexes[at])
    }

    /// Renames the table; its rows and entries stay where they are. Saving would replace a table that has the name, and
    /// nothing could find its rows again.
    pub fn rename(mut self, tables: &Tables, txn: &mut Transaction, name: &str) -> Outcome<()> {
        if name != self.schema.table_name && Self::load(tables, txn, name)?.is_some() {
            let taken = format!("there is already a table {name:?}; nothing was changed");
            return Err(Error::StorageMsg(taken).into());
        }
        txn.delete(&tables.schemas, &[self.schema.table_name.as_str().into()])?;
        name.clone_into(&mut self.schema.table_name);
        self.save(tables, txn)
    }

    pub fn drop(self, tables: &Tables, txn: &mut Transaction) -> Outcome<()> {
        txn.delete_range(&tables.rows, Range::prefix(&[self.id.into()]))?;
        for id in self.indexes {
            txn.delete_range(&tables.entries, Range::prefix(&[id.into()]))?;
        }
        txn.delete(&tables.schemas, &[self.schema.table_name.as_str().into()])?;
        Ok(())
    }

    pub fn expressions(&self) -> Vec<(u64, Expression)> {
        let ids = self.indexes.iter().copied();
        ids.zip(self.schema.indexes.iter().map(|index| Expression::new(&self.schema, index))).collect()
    }

    fn fill(&self, tables: &Tables, txn: &mut Transaction, indexes: &[(u64, Expression)]) -> Outcome<()> {
        if indexes.is_empty() {
            return Ok(());
        }
        let mut cursor = txn.cursor(&tables.rows, Range::prefix(&[self.id.into()]))?;
        while let Some(row) = cursor.next(txn)? {
            let (key, values): (Key, Vec<Value>) = unpacked(&row, 2)?;
            enter(tables, txn, indexes, &order::bytes_of(&key), &values)?;
        }
        Ok(())
    }

    /// Stores rows, and enters them into the indexes.
    pub fn put(
        &self,
        tables: &Tables,
        txn: &mut Transaction,
        rows: impl IntoIterator<Item = (Key, Vec<Value>)>,
        put: Put,
    ) -> Outcome<()> {
        let indexes = self.expressions();
        for row in rows {
            let key = order::bytes_of(&row.0);
            let packed = postcard::to_stdvec(&row)?;
            let stored = [self.id.into(), key.as_slice().into(), packed.as_slice().into()];
            match put {
                Put::New => txn.insert(&tables.rows, &stored)?,
                Put::NewOrOther => _ = txn.upsert(&tables.rows, &stored)?,
            }
            enter(tables, txn, &indexes, &key, &row.1)?;
        }
        Ok(())
    }

    pub fn delete(&self, tables: &Tables, txn: &mut Transaction, keys: &[Key]) -> Outcome<()> {
        for key in keys.iter().map(order::bytes_of) {
            txn.delete(&tables.rows, &[self.id.into(), key.as_slice().into()])?;
            for index in &self.indexes {
                txn.delete(&tables.entries, &[(*index).into(), key.as_slice().into()])?;
            }
        }
        Ok(())
    }
}

fn enter(
    tables: &Tables,
    txn: &mut Transaction,
    indexes: &[(u64, Expression)],
    key: &[u8],
    values: &[Value],
) -> Outcome<()> {
    for (index, expression) in indexes {
        let value = order::bytes_of(&Key::try_from(expression.value(values)?)?);
        txn.upsert(&tables.entries, &[(*index).into(), key.into(), value.as_slice().into()])?;
    }
    Ok(())
}
