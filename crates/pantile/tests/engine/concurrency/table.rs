//! The table that most tests use.

use pantile::{
    Database, Index, IndexDef, Isolation, Range, Result, Row, Table, TableDef, Transaction,
    TransactionOptions, Type,
};

/// A table `things (id, name, size)`.
#[derive(Clone)]
pub struct Things {
    pub db: Database,
    pub table: Table,
}

pub type Thing = (u64, u64, i64);

pub fn thing(row: Result<Row<'_>>) -> Result<Thing> {
    row.and_then(|row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
}

impl Things {
    pub fn new(db: &Database, indexes: &[IndexDef]) -> Self {
        let def = TableDef::new("things")
            .column("id", Type::U64)
            .column("name", Type::U64)
            .column("size", Type::I64)
            .primary_key(["id"]);
        let def = indexes.iter().fold(def, |def, index| def.index(index.clone()));
        Self { db: db.clone(), table: db.create_table(def).expect("a table") }
    }

    pub fn index(&self, name: &str) -> Index {
        self.table.index(name).expect("the index")
    }

    pub fn fill(&self, things: impl Iterator<Item = Thing>) {
        let mut txn = self.db.begin().expect("a transaction");
        for (id, name, size) in things {
            self.insert(&mut txn, id, name, size).expect("no conflict");
        }
        txn.commit().expect("no conflict");
    }

    pub fn insert(&self, txn: &mut Transaction, id: u64, name: u64, size: i64) -> Result<()> {
        txn.insert(&self.table, &[id.into(), name.into(), size.into()])
    }

    pub fn size(&self, txn: &Transaction, id: u64) -> Result<Option<i64>> {
        txn.get(&self.table, &[id.into()])?.map(|row| row.get(2)).transpose()
    }

    pub fn resize(&self, txn: &mut Transaction, id: u64, size: i64) -> Result<bool> {
        txn.update(&self.table, &[id.into()], &[(2, size.into())])
    }

    pub fn rename(&self, txn: &mut Transaction, id: u64, name: u64) -> Result<bool> {
        txn.update(&self.table, &[id.into()], &[(1, name.into())])
    }

    pub fn delete(&self, txn: &mut Transaction, id: u64) -> Result<bool> {
        txn.delete(&self.table, &[id.into()])
    }

    pub fn all(&self, txn: &Transaction) -> Result<Vec<Thing>> {
        txn.scan(&self.table, Range::all())?.map(thing).collect()
    }

    /// Everything that an index holds, in the order of the primary key.
    pub fn indexed(&self, txn: &Transaction, index: &Index) -> Result<Vec<Thing>> {
        let mut things: Vec<Thing> =
            txn.scan_index(index, Range::all())?.map(thing).collect::<Result<_>>()?;
        things.sort_unstable();
        Ok(things)
    }

    pub fn begin(&self, level: Isolation) -> Transaction {
        self.db.begin_with(TransactionOptions::new().isolation(level)).expect("a transaction")
    }
}
