//! What an index is over: an expression of the columns of its table.

use gluesql_core::ast::{Expr, Function, IndexOperator, Literal};
use gluesql_core::data::{Schema, SchemaIndex, Value};
use gluesql_core::executor::{RowContext, evaluate_stateless};
use gluesql_core::plan::{ExprPlan, plan_scalar_expr};

use crate::failed::Outcome;

pub struct Expression {
    columns: Vec<String>,
    plan: ExprPlan,
}

impl Expression {
    pub fn new(schema: &Schema, index: &SchemaIndex) -> Self {
        let columns = schema.column_defs.iter().flatten().map(|column| column.name.clone()).collect();
        Self { columns, plan: plan_scalar_expr(index.expr.clone()) }
    }

    /// Its value for a row.
    pub fn value(&self, values: &[Value]) -> Outcome<Value> {
        let row = RowContext::RefVecData { columns: &self.columns, values };
        Ok(evaluate_stateless(Some(row), &self.plan)?.try_into()?)
    }

    /// The comparison of its value with another, as GlueSQL makes it without an index.
    pub fn compared(self, operator: &IndexOperator, other: &Value) -> Self {
        let plan = ExprPlan::BinaryOp {
            left: Box::new(self.plan),
            op: operator.clone().into(),
            right: Box::new(literal_of(other)),
        };
        Self { plan, ..self }
    }

    pub fn is_true(&self, values: &[Value]) -> Outcome<bool> {
        Ok(matches!(self.value(values)?, Value::Bool(true)))
    }
}

/// The literal that became the value: GlueSQL compares literals otherwise than values.
fn literal_of(value: &Value) -> ExprPlan {
    let text = String::from(value);
    match value {
        Value::I64(_) | Value::F64(_) => match text.parse() {
            Ok(number) => ExprPlan::Literal(Literal::Number(number)),
            Err(_) => ExprPlan::Value(value.clone()),
        },
        Value::Str(_) => ExprPlan::Literal(Literal::QuotedString(text)),
        _ => ExprPlan::Value(value.clone()),
    }
}

/// Calls `visit` with each column that the expression names. Expressions of indexes have these parts only.
pub fn each_column(expr: &mut Expr, visit: &mut impl FnMut(&mut String)) {
    match expr {
        Expr::Identifier(column) => visit(column),
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => each_column(inner, visit),
        Expr::BinaryOp { left, right, .. } => {
            each_column(left, visit);
            each_column(right, visit);
        }
        Expr::Function(function) => {
            if let Function::Cast { expr, .. } = &mut **function {
                each_column(expr, visit);
            }
        }
        _ => {}
    }
}
