//! A table, as DataFusion plans with it.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::{Constraint, Constraints, Result, exec_err};
use datafusion::datasource::{TableProvider, TableType};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use pantile::Table;
use pantile_arrow::Batches;

use crate::failed::external;
use crate::path::{Path, is_of_use};
use crate::scan::Scan;
use crate::snapshot::Shared;

/// A table in one state of a database.
#[derive(Debug)]
pub struct PantileTable {
    of: Arc<Source>,
    schema: SchemaRef,
    constraints: Constraints,
}

/// What its rows are read from.
#[derive(Debug)]
pub(crate) struct Source {
    pub txn: Arc<Shared>,
    pub table: Table,
}

impl PantileTable {
    pub(crate) fn new(txn: Arc<Shared>, table: Table) -> Result<Self> {
        let all = (0..table.columns().len()).collect();
        let schema = Arc::clone(Batches::new(&table, all).map_err(external)?.schema());
        let key = table.definition().primary_key;
        let key = key.iter().filter_map(|name| table.column(name).ok()).collect();
        let constraints = Constraints::new_unverified(vec![Constraint::PrimaryKey(key)]);
        Ok(Self { of: Arc::new(Source { txn, table }), schema, constraints })
    }
}

#[async_trait]
impl TableProvider for PantileTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// Conditions shorten the way; DataFusion looks at every row that is on it once more.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let of_use = filters.iter().map(|filter| is_of_use(&self.of.table, filter));
        Ok(of_use
            .map(|is_of_use| match is_of_use {
                true => TableProviderFilterPushDown::Inexact,
                false => TableProviderFilterPushDown::Unsupported,
            })
            .collect())
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        let txn = self.of.txn.lock();
        if txn.is_before(&self.of.table) {
            let name = self.of.table.name();
            return exec_err!(
                "table {name:?} was made or truncated after the state that the query reads; query again when the \
                 transactions that were open then have ended"
            );
        }
        let (path, rows) = Path::shortest(&txn, &self.of.table, filters).map_err(external)?;
        drop(txn);
        Ok(Arc::new(Scan::new(Arc::clone(&self.of), path, columns, limit, rows)?))
    }
}
