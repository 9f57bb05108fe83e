//! SQL queries on Pantile, by [DataFusion](https://datafusion.apache.org): joins, aggregates, windows and what else it
//! has, over one state of the database, while others write.
//!
//! ```
//! use pantile::{Database, IndexDef, TableDef, Type};
//! use pantile_datafusion::Sql;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! # let dir = tempfile::tempdir()?;
//! let db = Database::open(dir.path())?;
//! let orders = TableDef::new("orders").column("id", Type::U64).column("customer", Type::String(40));
//! let orders = orders.column("cents", Type::I64).primary_key(["id"]).index(IndexDef::new("by_customer", ["customer"]));
//! let orders = db.create_table(orders)?;
//! db.run(|txn| {
//!     txn.insert(&orders, &[1u64.into(), "Ida".into(), 250i64.into()])?;
//!     txn.insert(&orders, &[2u64.into(), "Ida".into(), 150i64.into()])?;
//!     txn.insert(&orders, &[3u64.into(), "Tom".into(), 900i64.into()])
//! })?;
//!
//! let sql = Sql::new(&db);
//! let batches = sql.query("SELECT sum(cents) AS total FROM orders WHERE customer = 'Ida'").await?.collect().await?;
//! let text = datafusion::arrow::util::pretty::pretty_format_batches(&batches)?.to_string();
//! assert!(text.contains("| 400   |"));
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! Only rows that a query can need are read: comparisons with the first columns of the primary key or of an index become
//! a range of keys, and of all such ranges the one with the fewest rows is taken. `EXPLAIN` shows it. Rows come in the
//! order of the keys, so that `ORDER BY` the primary key sorts nothing, in both directions.
//!
//! To query tables of Pantile beside others, register a [`Snapshot`] in a `SessionContext` of your own.

mod failed;
mod path;
mod scan;
mod snapshot;
mod sql;
mod table;

pub use snapshot::Snapshot;
pub use sql::Sql;
pub use table::PantileTable;
