//! One state of a database, as a schema of DataFusion.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use datafusion::catalog::SchemaProvider;
use datafusion::datasource::TableProvider;
use datafusion::error::Result;
use pantile::{Database, Error, Transaction, TransactionOptions};

use crate::failed::external;
use crate::table::PantileTable;

/// What `pantile top` and [`Database::transactions`] call the transactions of queries.
const NAME: &str = "sql";

/// The tables of a database in one state. Register it as a schema of a `SessionContext` of your own, or use
/// [`Sql`](crate::Sql).
///
/// It is a transaction: what it may read is not freed until the last query over it has ended and it is dropped.
#[derive(Debug)]
pub struct Snapshot {
    db: Database,
    txn: Arc<Shared>,
}

impl Snapshot {
    /// The newest safe snapshot: queries over it never wait for writers, and no writer notices them. It is older than
    /// all running writers.
    ///
    /// # Errors
    /// As [`Database::begin`].
    pub fn begin(db: &Database) -> Result<Self, Error> {
        Ok(Self::of(db, db.begin_with(TransactionOptions::new().safe_snapshot().name(NAME))?))
    }

    /// What a transaction of this database sees.
    pub fn of(db: &Database, txn: Transaction) -> Self {
        Self { db: db.clone(), txn: Arc::new(Shared(Mutex::new(txn))) }
    }
}

#[async_trait]
impl SchemaProvider for Snapshot {
    fn table_names(&self) -> Vec<String> {
        self.db.tables()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match self.db.table(name) {
            Ok(table) => Ok(Some(Arc::new(PantileTable::new(Arc::clone(&self.txn), table)?))),
            Err(Error::UnknownTable { .. }) => Ok(None),
            Err(error) => Err(external(error)),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.db.table(name).is_ok()
    }
}

/// A transaction that several scans of a query take turns with.
pub(crate) struct Shared(Mutex<Transaction>);

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, Transaction> {
        // It only reads, so there is nothing that a panic leaves half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transaction")
    }
}
