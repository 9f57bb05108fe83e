//! Pantile: an embedded, durable, serializable store for transactions.
//!
//! Start with [`Database::open`], make a table with
//! [`Database::create_table`], and run transactions with [`Database::run`] or
//! [`Database::begin`].

mod anchor;
mod background;
mod catalog;
mod check;
mod cleanup;
mod commit;
mod core;
mod database;
mod ddl;
mod error;
mod inspect;
mod key;
mod large;
mod options;
mod recovery;
mod retry;
mod row;
mod row_edit;
mod row_shape;
mod scan;
mod schema;
mod stats;
mod table;
mod transaction;
mod value;
mod view;
mod visitor;
mod write;

pub use check::{CheckOptions, CheckReport, CheckStep, Finding, Place, Severity, check};
pub use database::Database;
pub use error::{Conflict, Error, Result};
pub use inspect::{
    BlockState, InspectedBlock, InspectedChunk, InspectedRecord, InspectedTable, Inspection, inspect,
};
pub use options::{
    ConflictPolicy, Isolation, MediumKind, Options, Progress, RecoveryStep, TransactionOptions,
};
pub use pantile_base::Timestamp;
pub use pantile_cc::{ClockSource, SimulatedTime};
pub use pantile_media::{Durability, Medium, MediumFactory, MediumStats};
pub use pantile_reclaim::{Collector, CollectorStats, GcOptions, Pacing};
pub use retry::Retry;
pub use row::{ColumnRef, FromValue, Micros, Row};
pub use row_edit::RowEdit;
pub use scan::{Range, Scan};
pub use schema::{ColumnDef, IndexDef, TableDef, Type};
pub use stats::{Chains, Recovery, Stats, TableSpace};
pub use table::{Index, Table};
pub use transaction::{Savepoint, Transaction};
pub use value::{Decimal, Value};
