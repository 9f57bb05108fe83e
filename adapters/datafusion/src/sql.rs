//! Queries, each over a state of its own.

use std::sync::Arc;

use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProvider, MemoryCatalogProviderList,
};
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionState;
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use pantile::Database;

use crate::failed::external;
use crate::snapshot::Snapshot;

/// What queries find the tables under: `pantile.public.orders` is `orders`.
const CATALOG: &str = "pantile";
const SCHEMA: &str = "public";

/// Reads a database by SQL. It changes nothing: statements that would are refused.
#[derive(Clone, Debug)]
pub struct Sql {
    db: Database,
    state: SessionState,
}

impl Sql {
    /// Queries of this database, which use as much memory as they need.
    pub fn new(db: &Database) -> Self {
        let config = SessionConfig::new()
            .with_default_catalog_and_schema(CATALOG, SCHEMA)
            .with_create_default_catalog_and_schema(false)
            .with_information_schema(true)
            // Names are as they are written, as everywhere else.
            .set_bool("datafusion.sql_parser.enable_ident_normalization", false);
        let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
        Self { db: db.clone(), state }
    }

    /// The same with a limit of the memory, in bytes, for sorting, grouping and joining. Beyond it, what can be goes to
    /// temporary files, and other queries fail.
    ///
    /// # Errors
    /// Those of DataFusion.
    pub fn memory_limit(self, bytes: usize) -> Result<Self> {
        let runtime = RuntimeEnvBuilder::new().with_memory_limit(bytes, 1.0).build_arc()?;
        let state = SessionStateBuilder::new_from_existing(self.state).with_runtime_env(runtime).build();
        Ok(Self { state, ..self })
    }

    /// Plans a query over the newest safe snapshot, which stays until what this returns is dropped.
    ///
    /// # Errors
    /// Those of DataFusion. What Pantile refuses is [`DataFusionError::External`].
    ///
    /// [`DataFusionError::External`]: datafusion::error::DataFusionError::External
    pub async fn query(&self, sql: &str) -> Result<DataFrame> {
        self.query_at(Snapshot::begin(&self.db).map_err(external)?, sql).await
    }

    /// Plans a query over this snapshot.
    ///
    /// # Errors
    /// As [`Sql::query`].
    pub async fn query_at(&self, snapshot: Snapshot, sql: &str) -> Result<DataFrame> {
        let catalog = MemoryCatalogProvider::new();
        catalog.register_schema(SCHEMA, Arc::new(snapshot))?;
        let catalogs = MemoryCatalogProviderList::new();
        catalogs.register_catalog(CATALOG.to_owned(), Arc::new(catalog));
        let state = SessionStateBuilder::new_from_existing(self.state.clone());
        let context = SessionContext::new_with_state(state.with_catalog_list(Arc::new(catalogs)).build());
        let reads_only =
            SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        context.sql_with_options(sql, reads_only).await
    }
}
