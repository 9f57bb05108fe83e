//! Reading the rows of a path, batch by batch.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    EquivalenceProperties, LexOrdering, Partitioning, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::sort_pushdown::SortOrderPushdownResult;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use pantile::{Cursor, Table};
use pantile_arrow::Batches;

use crate::failed::external;
use crate::path::Path;
use crate::table::Source;

/// Batches that are read ahead of what takes them.
const AHEAD: usize = 2;

/// Reads some columns of the rows of a path.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    of: Arc<Source>,
    path: Path,
    columns: Vec<usize>,
    is_reverse: bool,
    limit: Option<usize>,
    /// About how many rows are on the path.
    rows: u64,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl Scan {
    pub fn new(
        of: Arc<Source>,
        path: Path,
        columns: Vec<usize>,
        limit: Option<usize>,
        rows: u64,
    ) -> Result<Self> {
        let schema = Arc::clone(Batches::new(&of.table, columns.clone()).map_err(external)?.schema());
        let properties = properties(&of.table, &path, &columns, schema, false);
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Self { of, path, columns, is_reverse: false, limit, rows, properties, metrics })
    }

    /// The same rows from the last to the first.
    fn reversed(&self) -> Self {
        let (is_reverse, schema) = (!self.is_reverse, self.schema());
        let properties = properties(&self.of.table, &self.path, &self.columns, schema, is_reverse);
        Self { is_reverse, properties, ..self.clone() }
    }

    fn cursor(&self) -> pantile::Result<Cursor> {
        let (txn, table) = (self.of.txn.lock(), &self.of.table);
        self.path.with_range(|range| {
            let range = range.limit(self.limit.unwrap_or(usize::MAX));
            let range = if self.is_reverse { range.reverse() } else { range };
            match &self.path.index {
                None => txn.cursor(table, range),
                Some(index) => txn.index_cursor(&table.index(index)?, range),
            }
        })
    }
}

fn properties(
    table: &Table,
    path: &Path,
    columns: &[usize],
    schema: SchemaRef,
    is_reverse: bool,
) -> Arc<PlanProperties> {
    // As far as the columns of the key are read.
    let options = SortOptions { descending: is_reverse, nulls_first: !is_reverse };
    let ordered = path.columns.iter().map_while(|column| {
        let at = columns.iter().position(|read| read == column)?;
        let def = &table.columns()[*column];
        Some(PhysicalSortExpr::new(Arc::new(Column::new(&def.name, at)), options))
    });
    let ordering = LexOrdering::new(ordered);
    let equivalence = EquivalenceProperties::new_with_orderings(schema, ordering);
    let partitioning = Partitioning::UnknownPartitioning(1);
    Arc::new(PlanProperties::new(equivalence, partitioning, EmissionType::Incremental, Boundedness::Bounded))
}

impl ExecutionPlan for Scan {
    fn name(&self) -> &str {
        "PantileScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("a scan has no children") }
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(Self { limit, ..self.clone() }))
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
    ) -> Result<SortOrderPushdownResult<Arc<dyn ExecutionPlan>>> {
        // The first rows of one order are the last of the other.
        if self.limit.is_some() {
            return Ok(SortOrderPushdownResult::Unsupported);
        }
        let reversed = self.reversed();
        let fits = reversed.properties.equivalence_properties().ordering_satisfy(order.iter().cloned())?;
        Ok(match fits {
            true => SortOrderPushdownResult::Exact { inner: Arc::new(reversed) },
            false => SortOrderPushdownResult::Unsupported,
        })
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let rows = self.limit.map_or(self.rows as usize, |limit| limit.min(self.rows as usize));
        let unknown = Statistics::new_unknown(&self.schema());
        Ok(Arc::new(Statistics { num_rows: Precision::Inexact(rows), ..unknown }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut batches = Batches::new(&self.of.table, self.columns.clone()).map_err(external)?;
        let mut stream = RecordBatchReceiverStream::builder(self.schema(), AHEAD);
        let (scan, to, rows) = (self.clone(), stream.tx(), context.session_config().batch_size());
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        // Reads may wait for the device.
        stream.spawn_blocking(move || {
            let mut cursor = scan.cursor().map_err(external)?;
            while batches.fill(&scan.of.txn.lock(), &mut cursor, rows).map_err(external)? > 0 {
                let batch = batches.finish()?;
                metrics.record_output(batch.num_rows());
                if to.blocking_send(Ok(batch)).is_err() {
                    break; // Nobody wants more.
                }
            }
            Ok(())
        });
        Ok(stream.build())
    }
}

/// As `EXPLAIN` shows it.
impl DisplayAs for Scan {
    fn fmt_as(&self, ty: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.columns.iter().map(|column| self.of.table.columns()[*column].name.as_str());
        let columns = names.collect::<Vec<_>>().join(", ");
        let mut facts = vec![("table", self.of.table.name().to_owned()), ("columns", format!("[{columns}]"))];
        facts.push(("by", self.path.to_string()));
        facts.extend(self.is_reverse.then(|| ("order", "reverse".to_owned())));
        facts.extend(self.limit.map(|limit| ("limit", limit.to_string())));
        match ty {
            DisplayFormatType::TreeRender => {
                facts.iter().try_for_each(|(fact, value)| writeln!(f, "{fact}={value}"))
            }
            _ => {
                let facts: Vec<_> = facts.iter().map(|(fact, value)| format!("{fact}={value}")).collect();
                write!(f, "PantileScan: {}", facts.join(", "))
            }
        }
    }
}
