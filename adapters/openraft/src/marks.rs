//! Single values that a store keeps: the vote, and how far things have come.

use pantile::{Database, Result, Table, TableDef, Transaction, Type};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failed::Outcome;

/// A table of values by name.
#[derive(Clone, Debug)]
pub struct Marks(Table);

impl Marks {
    pub fn open(db: &Database) -> Result<Self> {
        let def = TableDef::new("raft_marks")
            .column("name", Type::String(16))
            .column("value", Type::Bytes(u32::MAX))
            .primary_key(["name"]);
        db.open_or_create(def).map(Self)
    }

    pub fn get<T: DeserializeOwned>(&self, txn: &Transaction, name: &str) -> Outcome<Option<T>> {
        let Some(row) = txn.get(&self.0, &[name.into()])? else { return Ok(None) };
        Ok(Some(rmp_serde::from_slice(&row.get::<Vec<u8>>("value")?)?))
    }

    pub fn set<T: Serialize>(&self, txn: &mut Transaction, name: &str, value: &T) -> Outcome<()> {
        txn.upsert(&self.0, &[name.into(), packed(value)?.as_slice().into()])?;
        Ok(())
    }
}

/// Fields go by their names, so that a program with more of them reads what an older one has written.
pub fn packed<T: Serialize>(value: &T) -> Outcome<Vec<u8>> {
    Ok(rmp_serde::to_vec_named(value)?)
}
