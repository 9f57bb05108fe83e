//! The state: keys and values.

use pantile::{Database, Table, TableDef, Transaction, Type};
use pantile_openraft::StateMachine;
use serde::{Deserialize, Serialize};

openraft::declare_raft_types!(
    /// Requests are puts; the answer is what was there before.
    pub Types: D = Put, R = Option<String>, SnapshotData = tokio::fs::File
);

/// In bytes.
const LONGEST_KEY: u32 = 200;

/// Puts a value in the place of that of a key. Doing it again changes nothing, so a client may ask again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Put {
    pub key: String,
    pub value: String,
}

impl Put {
    /// Whether the table takes it. One that it does not take must not get into the log: no node could apply it.
    pub fn fits(&self) -> bool {
        self.key.len() <= LONGEST_KEY as usize
    }
}

/// The table of keys and values.
#[derive(Clone)]
pub struct Values(Table);

impl Values {
    pub fn open(db: &Database) -> pantile::Result<Self> {
        let def = TableDef::new("values")
            .column("key", Type::String(LONGEST_KEY))
            .column("value", Type::String(u32::MAX))
            .primary_key(["key"]);
        db.open_or_create(def).map(Self)
    }

    pub fn get(&self, txn: &Transaction, key: &str) -> pantile::Result<Option<String>> {
        txn.get(&self.0, &[key.into()])?.map(|row| row.get("value")).transpose()
    }
}

impl StateMachine<Types> for Values {
    fn tables(&self) -> Vec<Table> {
        vec![self.0.clone()]
    }

    fn apply(&self, txn: &mut Transaction, put: &Put) -> pantile::Result<Option<String>> {
        let before = self.get(txn, &put.key)?;
        txn.upsert(&self.0, &[put.key.as_str().into(), put.value.as_str().into()])?;
        Ok(before)
    }
}
