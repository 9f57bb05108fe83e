//! Pantile: an embedded, durable, serializable transactional store.
//!
//! Start with [`Database::open`], create a table with
//! [`Database::create_table`], and run transactions with [`Database::run`] or
//! [`Database::begin`].

mod api;
mod engine;
mod tools;
mod transactions;
mod types;

pub use api::database::Database;
pub use engine::table::{Index, Table};
pub use pantile_base::Timestamp;
pub use pantile_cc::{ClockSource, SimulatedTime};
pub use pantile_media::{Durability, Medium, MediumFactory, MediumStats};
pub use pantile_reclaim::{Collector, CollectorStats, GcOptions, Pacing};
pub use tools::check::{CheckReport, check};
pub use tools::findings::{Finding, Location, Severity};
pub use tools::inspect::{
    BlockState, InspectedBlock, InspectedChunk, InspectedRecord, InspectedTable, Inspection, inspect,
};
pub use tools::options::{CheckOptions, CheckStep};
pub use transactions::retry::Retry;
pub use transactions::row_edit::RowEdit;
pub use transactions::savepoint::Savepoint;
pub use transactions::scan::{Range, Scan};
pub use transactions::transaction::Transaction;
pub use types::error::{Conflict, Error, Result};
pub use types::options::{
    ConflictPolicy, Isolation, MediumKind, Options, Progress, RecoveryStep, TransactionOptions,
};
pub use types::row::{ColumnRef, FromValue, Micros, Row};
pub use types::schema::{ColumnDef, IndexDef, TableDef, Type};
pub use types::stats::{Chains, Recovery, Stats, TableSpace};
pub use types::value::{Decimal, Value};
