//! Pantile as the storage of a replicated service, by [`openraft`] 0.9.
//!
//! A cluster of nodes agrees on a sequence of requests, its log, and each node carries them out on tables of its own. A
//! request that is answered is durable on most nodes, and survives the loss of the others. [`LogStore`] and
//! [`StateStore`] are what `openraft` needs of each node; the application says with a [`StateMachine`] what a request
//! does. All of it can be in one database.
//!
//! ```
//! use openraft::storage::RaftStateMachine;
//! use openraft::testing::log_id;
//! use openraft::{Entry, EntryPayload};
//! use pantile::{Database, Table, TableDef, Transaction, Type};
//! use pantile_openraft::{LogStore, StateMachine, StateStore};
//! use pantile_tokio::AsyncDatabase;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, Serialize, Deserialize)]
//! struct Deposit {
//!     account: u32,
//!     cents: u64,
//! }
//!
//! openraft::declare_raft_types!(
//!     Types: D = Deposit, R = Option<u64>, SnapshotData = tokio::fs::File
//! );
//!
//! struct Accounts(Table);
//!
//! impl StateMachine<Types> for Accounts {
//!     fn tables(&self) -> Vec<Table> {
//!         vec![self.0.clone()]
//!     }
//!
//!     /// Answers with the new balance.
//!     fn apply(&self, txn: &mut Transaction, deposit: &Deposit) -> pantile::Result<Option<u64>> {
//!         let account = deposit.account.into();
//!         let before = txn.get(&self.0, &[account])?.map(|row| row.get("cents")).transpose()?;
//!         let cents: u64 = before.unwrap_or(0) + deposit.cents;
//!         txn.upsert(&self.0, &[account, cents.into()])?;
//!         Ok(Some(cents))
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! # let (path, snapshots) = (dir.path().join("data"), dir.path().join("snapshots"));
//! let db = AsyncDatabase::open(move || Database::open(path)).await?;
//! let def = TableDef::new("accounts").column("id", Type::U32).column("cents", Type::U64).primary_key(["id"]);
//! let accounts = Accounts(db.call(|db| db.open_or_create(def)).await??);
//! let log = LogStore::<Types>::open(&db).await?;
//! let mut state = StateStore::<Types, _>::open(&db, accounts, snapshots).await?;
//!
//! // `Raft::new(id, config, network, log, state)` takes them from here. It makes calls such as this one.
//! let deposit = Deposit { account: 7, cents: 1250 };
//! let entry = Entry { log_id: log_id(1, 1, 0), payload: EntryPayload::Normal(deposit) };
//! assert_eq!(state.apply([entry]).await?, [Some(1250)]);
//! # drop((log, state));
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! `examples/replicated` is a whole service: a key-value store on three nodes, with its messages over TCP.
//!
//! # What is durable when
//!
//! | Raft is told that | then this is durable, in the database of the node |
//! | --- | --- |
//! | a vote is saved | the vote |
//! | entries are appended, by the callback | the entries; when `append` returns, they are visible |
//! | entries are deleted | their deletion, and how far the log is purged, in one transaction |
//! | a commit is saved | how far the log is committed |
//! | entries are applied | what they have changed, and that they are applied, in one transaction |
//! | a snapshot is installed | the whole state, in one transaction; killed before that, the node has the old state |
//!
//! Durable means what the database means by it: with [`Durability::None`](pantile::Durability), a power failure can take
//! what the node has promised to the others, and Raft is then no longer safe. Waiting for a sync takes no thread of the
//! runtime.
//!
//! # Reading
//!
//! Programs read the tables of the state in read-only transactions, at any time. Such a read sees one state, which on
//! any node may be behind the newest answer. `Raft::ensure_linearizable` on the leader, before the
//! transaction begins, makes it see every answer that was given before.
//!
//! # Snapshots
//!
//! A snapshot is the rows of the state's tables, read in one transaction while entries are applied, in a file. The state
//! is durable by itself, so no file outlives the process: a node that starts again makes a new one when it needs it. A
//! snapshot is installed in one transaction, whose limit of 16,777,215 rows counts the rows that it replaces and the
//! new ones, and which is in memory until it commits.
//!
//! # Formats
//!
//! Entries and marks are in MessagePack, with the names of fields. A program that has added a field with
//! `#[serde(default)]` to its requests reads the entries of the one before. Requests with long byte strings use the crate
//! `serde_bytes`, or each byte may take two.

mod failed;
mod files;
mod log;
mod marks;
mod rows;
mod state;

pub use log::LogStore;
pub use state::{StateMachine, StateStore};
