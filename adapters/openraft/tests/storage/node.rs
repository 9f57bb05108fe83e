//! A node's stores, and a state with values of all kinds.

use std::path::Path;

use openraft::storage::RaftLogStorageExt;
use openraft::{CommittedLeaderId, Entry, EntryPayload, LogId};
use pantile::{Database, Decimal, Error, OwnedValue, Range, Table, TableDef, Transaction, Type, Value};
use pantile_openraft::{LogStore, StateMachine, StateStore};
use pantile_tokio::AsyncDatabase;
use serde::{Deserialize, Serialize};

openraft::declare_raft_types!(
    pub Types: D = Put, R = Option<u64>, SnapshotData = tokio::fs::File
);

/// Puts a value of so many bytes, all the same, in the place of that of a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Put {
    pub key: u64,
    pub fill: u8,
    pub len: usize,
    /// Makes the entry itself large.
    pub ballast: Vec<u8>,
}

impl Put {
    pub fn new(key: u64, fill: u8, len: usize) -> Self {
        Self { key, fill, len, ballast: Vec::new() }
    }
}

pub struct Machine {
    values: Table,
    /// Counts the puts of a key.
    counts: Table,
}

impl Machine {
    pub fn open(db: &Database) -> pantile::Result<Self> {
        let values = TableDef::new("values")
            .column("key", Type::U64)
            .column("value", Type::Bytes(u32::MAX))
            .column("text", Type::String(20))
            .nullable("none", Type::I32)
            .column("half", Type::F64)
            .column("price", Type::Decimal { precision: 38, scale: 2 })
            .column("odd", Type::Bool)
            .column("when", Type::Timestamp)
            .primary_key(["key"]);
        let counts =
            TableDef::new("counts").column("key", Type::I64).column("puts", Type::U32).primary_key(["key"]);
        Ok(Self { values: db.open_or_create(values)?, counts: db.open_or_create(counts)? })
    }
}

impl StateMachine<Types> for Machine {
    fn tables(&self) -> Vec<Table> {
        vec![self.values.clone(), self.counts.clone()]
    }

    fn apply(&self, txn: &mut Transaction, put: &Put) -> Result<Option<u64>, Error> {
        let count = [(-(put.key as i64)).into()];
        let before = txn.get(&self.counts, &count)?.map(|row| row.get::<u64>("puts")).transpose()?;
        let price = Decimal::new(-i128::from(u64::MAX) * i128::from(put.key), 2);
        let text = format!("key {}", put.key);
        let values: [Value<'_>; 8] = [
            put.key.into(),
            Value::Bytes(&vec![put.fill; put.len]),
            text.as_str().into(),
            Value::Null,
            (put.key as f64 / 2.0).into(),
            Value::Decimal(price),
            (put.key % 2 == 1).into(),
            Value::Timestamp(put.key as i64),
        ];
        txn.upsert(&self.values, &values)?;
        txn.upsert(&self.counts, &[count[0], (before.unwrap_or(0) + 1).into()])?;
        Ok(before)
    }
}

/// What a process has of a node.
pub struct Node {
    pub db: AsyncDatabase,
    pub log: LogStore<Types>,
    pub state: StateStore<Types, Machine>,
}

/// Opens the stores of a directory, which has everything of a node.
pub async fn open(dir: &Path) -> Node {
    let path = dir.join("data");
    open_on(AsyncDatabase::open(move || Database::open(path)).await.expect("open"), dir).await
}

/// Opens the stores of a database, with snapshots in a directory.
pub async fn open_on(db: AsyncDatabase, dir: &Path) -> Node {
    let machine = db.call(Machine::open).await.expect("open").expect("tables");
    let log = LogStore::open(&db).await.expect("a log");
    let state = StateStore::open(&db, machine, dir.join("snapshots")).await.expect("a state");
    Node { db, log, state }
}

impl Node {
    pub async fn append(&mut self, entries: impl IntoIterator<Item = Entry<Types>>) {
        let entries: Vec<_> = entries.into_iter().collect();
        self.log.blocking_append(entries).await.expect("append");
    }

    /// All rows of the state.
    pub fn rows(&self) -> Vec<Vec<OwnedValue>> {
        let db = self.db.database();
        let tables = Machine::open(db).expect("tables").tables();
        let txn = db.begin_read().expect("begin");
        let rows = tables.iter().flat_map(|table| {
            let rows = txn.scan(table, Range::all()).expect("scan");
            rows.map(|row| row.expect("a row").to_values().expect("values")).collect::<Vec<_>>()
        });
        rows.collect()
    }
}

pub fn log_id(term: u64, index: u64) -> LogId<u64> {
    LogId::new(CommittedLeaderId::new(term, 1), index)
}

pub fn entry(index: u64, put: Put) -> Entry<Types> {
    Entry { log_id: log_id(1, index), payload: EntryPayload::Normal(put) }
}
