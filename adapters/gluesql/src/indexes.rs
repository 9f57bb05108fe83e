//! Indexes, and plans that use them.

use gluesql_core::ast::{IndexOperator, OrderByExpr};
use gluesql_core::chrono::Utc;
use gluesql_core::data::{Key, SchemaIndex, SchemaIndexOrd, Value};
use gluesql_core::error::Result;
use gluesql_core::plan::StatementPlan;
use gluesql_core::planner::{
    fetch_schema_map, plan_aggregate, plan_hash_join, plan_index, plan_primary_key, plan_schemaless, validate,
};
use gluesql_core::store::{Index, IndexError, IndexMut, Planner, RowIter, Store, StoreMut};

use crate::PantileStorage;
use crate::expression::Expression;
use crate::failed::Outcome;
use crate::order;
use crate::rows::{Rows, entries, is_comparable};
use crate::tables::{MOST_OF_KEY, Stored};

impl Index for PantileStorage {
    fn scan_indexed_data<'a>(
        &'a self,
        table_name: &str,
        index_name: &str,
        asc: Option<bool>,
        cmp_value: Option<(&IndexOperator, Value)>,
    ) -> Result<RowIter<'a>> {
        let rows = self.indexed(table_name, index_name, asc == Some(false), cmp_value);
        Ok(Box::new(self.noted(rows)?))
    }
}

impl PantileStorage {
    fn indexed(
        &self,
        table: &str,
        index: &str,
        reverse: bool,
        compared: Option<(&IndexOperator, Value)>,
    ) -> Outcome<Rows<'_>> {
        let txn = self.reading()?;
        let stored = Stored::load(&self.tables, &txn, table)?;
        let stored = stored.ok_or_else(|| IndexError::TableNotFound(table.to_owned()))?;
        let unknown = || IndexError::IndexNameDoesNotExist(index.to_owned());
        let id = stored.index(|found| found.name == index).ok_or_else(unknown)?;
        let mut bound = None;
        let mut filter = None;
        if let Some((operator, value)) = compared {
            // A longer value is compared with the rows themselves, and so is NaN, which equals nothing.
            let can_bound = |bytes: &Vec<u8>| bytes.len() <= MOST_OF_KEY && *bytes != [order::NAN];
            for bytes in spellings(&value)?.into_iter().filter(can_bound) {
                if is_comparable(&self.tables, &txn, id, &bytes)? {
                    bound = Some((operator, bytes));
                }
            }
            if bound.is_none() {
                let expression = expression_of(&stored, id).ok_or_else(unknown)?;
                filter = Some(expression.compared(operator, &value));
            }
        }
        let bound = bound.as_ref().map(|(operator, bytes)| (*operator, bytes.as_slice()));
        let cursor = entries(&self.tables, &txn, id, bound, reverse)?;
        Ok(Rows { storage: self, txn, cursor, indexed: Some(stored.id), filter })
    }
}

/// The bytes of a value, and those of the float that is the same number.
fn spellings(value: &Value) -> Outcome<Vec<Vec<u8>>> {
    let mut keys = vec![Key::try_from(value)?];
    if let Value::I64(number) = value
        && number.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS
    {
        keys.push(Key::F64((*number as f64).into()));
    }
    Ok(keys.iter().map(order::bytes_of).collect())
}

fn expression_of(stored: &Stored, id: u64) -> Option<Expression> {
    let mut expressions = stored.expressions().into_iter();
    expressions.find(|(index, _)| *index == id).map(|(_, expression)| expression)
}

impl IndexMut for PantileStorage {
    fn create_index(&mut self, table_name: &str, index_name: &str, column: &OrderByExpr) -> Result<()> {
        let schema = self.fetch_schema(table_name)?;
        let mut schema = schema.ok_or_else(|| IndexError::TableNotFound(table_name.to_owned()))?;
        if schema.indexes.iter().any(|index| index.name == index_name) {
            return Err(IndexError::IndexNameAlreadyExists(index_name.to_owned()).into());
        }
        schema.indexes.push(SchemaIndex {
            name: index_name.to_owned(),
            expr: column.expr.clone(),
            order: match column.asc {
                Some(true) => SchemaIndexOrd::Asc,
                Some(false) => SchemaIndexOrd::Desc,
                None => SchemaIndexOrd::Both,
            },
            created: Utc::now().naive_utc(),
        });
        self.insert_schema(&schema)
    }

    fn drop_index(&mut self, table_name: &str, index_name: &str) -> Result<()> {
        let schema = self.fetch_schema(table_name)?;
        let mut schema = schema.ok_or_else(|| IndexError::TableNotFound(table_name.to_owned()))?;
        let at = schema.indexes.iter().position(|index| index.name == index_name);
        schema.indexes.remove(at.ok_or_else(|| IndexError::IndexNameDoesNotExist(index_name.to_owned()))?);
        self.insert_schema(&schema)
    }
}

/// As GlueSQL plans by default, and with indexes.
impl Planner for PantileStorage {
    fn plan(&self, statement: StatementPlan) -> Result<StatementPlan> {
        let schemas = fetch_schema_map(self, &statement)?;
        validate(&schemas, &statement)?;
        let statement = plan_schemaless(&schemas, statement)?;
        let statement = plan_primary_key(&schemas, statement);
        let statement = plan_index(&schemas, statement);
        let statement = plan_hash_join(&schemas, statement);
        Ok(plan_aggregate(statement))
    }
}
