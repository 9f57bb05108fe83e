//! The way to the rows that a query can need: a range of the primary key or of an index, as far as its conditions say.

use std::fmt;
use std::ops::Bound;

use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use pantile::{OwnedValue, Range, Result, Table, Transaction, Type, Value};

/// What a column of a row that is needed is compared with.
struct Condition {
    column: usize,
    operator: Operator,
    value: OwnedValue,
}

/// Whether a condition can shorten the way. All rows for which it is true are on it.
pub fn is_of_use(table: &Table, condition: &Expr) -> bool {
    !conditions(table, condition).is_empty()
}

fn conditions(table: &Table, condition: &Expr) -> Vec<Condition> {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq};
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            let mut both = conditions(table, left);
            both.extend(conditions(table, right));
            both
        }
        Expr::BinaryExpr(BinaryExpr { left, op: operator @ (Eq | Lt | LtEq | Gt | GtEq), right }) => {
            let found = comparison(table, left, *operator, right);
            let found = found.or_else(|| comparison(table, right, operator.swap()?, left));
            found.into_iter().collect()
        }
        Expr::Between(Between { expr, negated: false, low, high }) => {
            let bounds = [comparison(table, expr, GtEq, low), comparison(table, expr, LtEq, high)];
            bounds.into_iter().flatten().collect()
        }
        _ => Vec::new(),
    }
}

fn comparison(table: &Table, left: &Expr, operator: Operator, right: &Expr) -> Option<Condition> {
    let (Expr::Column(Column { name, .. }), Expr::Literal(value, _)) = (left, right) else { return None };
    let column = table.column(name).ok()?;
    let value = value_of(table.columns()[column].ty, value)?;
    Some(Condition { column, operator, value })
}

/// A value as keys of this type compare it, if they compare it as DataFusion does, and if a column can hold it at all.
fn value_of(ty: Type, value: &ScalarValue) -> Option<OwnedValue> {
    use ScalarValue as S;
    Some(match (ty, value) {
        (Type::Bool, S::Boolean(Some(value))) => (*value).into(),
        (Type::I8, S::Int8(Some(value))) => (*value).into(),
        (Type::I16, S::Int16(Some(value))) => (*value).into(),
        (Type::I32, S::Int32(Some(value))) => (*value).into(),
        (Type::I64, S::Int64(Some(value))) => (*value).into(),
        (Type::U8, S::UInt8(Some(value))) => (*value).into(),
        (Type::U16, S::UInt16(Some(value))) => (*value).into(),
        (Type::U32, S::UInt32(Some(value))) => (*value).into(),
        (Type::U64, S::UInt64(Some(value))) => (*value).into(),
        (Type::Timestamp, S::TimestampMicrosecond(Some(micros), _)) => Value::Timestamp(*micros).into(),
        (Type::String(max), S::Utf8(Some(text)) | S::LargeUtf8(Some(text)) | S::Utf8View(Some(text))) => {
            (text.len() as u64 <= u64::from(max)).then(|| text.as_str().into())?
        }
        (
            Type::Bytes(max),
            S::Binary(Some(bytes)) | S::LargeBinary(Some(bytes)) | S::BinaryView(Some(bytes)),
        ) => (bytes.len() as u64 <= u64::from(max)).then(|| bytes.as_slice().into())?,
        (Type::FixedBytes(len), S::FixedSizeBinary(_, Some(bytes))) => {
            (bytes.len() == usize::from(len)).then(|| bytes.as_slice().into())?
        }
        // Floats, of which DataFusion may take -0 and 0 for the same, and decimals.
        _ => return None,
    })
}

/// A range of keys.
#[derive(Clone, Debug)]
pub struct Path {
    /// The index. None is the primary key.
    pub index: Option<String>,
    /// The columns of its keys.
    pub columns: Vec<usize>,
    names: Vec<String>,
    equal: Vec<OwnedValue>,
    lower: Bound<OwnedValue>,
    upper: Bound<OwnedValue>,
}

impl Path {
    /// The shortest way to all rows for which the conditions are true, and about how many rows are on it.
    ///
    /// # Errors
    /// As [`Transaction::estimate`].
    pub fn shortest(txn: &Transaction, table: &Table, filters: &[Expr]) -> Result<(Self, u64)> {
        let conditions: Vec<_> = filters.iter().flat_map(|filter| conditions(table, filter)).collect();
        let definition = table.definition();
        let primary = Self::of(table, None, &definition.primary_key, &conditions);
        let mut shortest = (primary.estimate(txn, table)?, primary);
        for index in &definition.indexes {
            let path = Self::of(table, Some(&index.name), &index.columns, &conditions);
            if path.is_everything() {
                continue;
            }
            // An index may be newer than the state that is read.
            let rows = path.estimate(txn, table).unwrap_or(u64::MAX);
            if rows < shortest.0 {
                shortest = (rows, path);
            }
        }
        let (rows, path) = shortest;
        Ok((path, rows))
    }

    fn of(table: &Table, index: Option<&str>, names: &[String], conditions: &[Condition]) -> Self {
        let number = |name: &String| table.column(name).expect("a column of a key");
        let columns: Vec<_> = names.iter().map(number).collect();
        let (mut equal, mut lower, mut upper) = (Vec::new(), Bound::Unbounded, Bound::Unbounded);
        for column in &columns {
            let of_column = || conditions.iter().filter(|condition| condition.column == *column);
            if let Some(same) = of_column().find(|condition| condition.operator == Operator::Eq) {
                equal.push(same.value.clone());
                continue;
            }
            for condition in of_column() {
                let value = condition.value.clone();
                match condition.operator {
                    Operator::Gt => lower = Bound::Excluded(value),
                    Operator::GtEq => lower = Bound::Included(value),
                    Operator::Lt => upper = Bound::Excluded(value),
                    _ => upper = Bound::Included(value),
                }
            }
            break;
        }
        Self { index: index.map(str::to_owned), columns, names: names.to_vec(), equal, lower, upper }
    }

    fn is_everything(&self) -> bool {
        self.equal.is_empty() && self.lower == Bound::Unbounded && self.upper == Bound::Unbounded
    }

    fn estimate(&self, txn: &Transaction, table: &Table) -> Result<u64> {
        self.with_range(|range| match &self.index {
            None => txn.estimate(table, range),
            Some(index) => txn.estimate_index(&table.index(index)?, range),
        })
    }

    /// Calls with the range of keys.
    pub fn with_range<T>(&self, call: impl FnOnce(Range<'_>) -> T) -> T {
        let (lower, upper) = (self.key(&self.lower), self.key(&self.upper));
        call(Range::all().from(lower.as_ref().map(Vec::as_slice)).to(upper.as_ref().map(Vec::as_slice)))
    }

    /// A bound with the values before it.
    fn key<'k>(&'k self, bound: &'k Bound<OwnedValue>) -> Bound<Vec<Value<'k>>> {
        let equal = OwnedValue::as_values(&self.equal);
        match bound {
            Bound::Unbounded if equal.is_empty() => Bound::Unbounded,
            Bound::Unbounded => Bound::Included(equal),
            bound => bound.as_ref().map(|last| equal.iter().copied().chain([last.as_value()]).collect()),
        }
    }
}

/// As `EXPLAIN` shows it: `by_customer: customer = 7, at >= 5`.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.index.as_deref().unwrap_or("primary key"))?;
        let mut before = ": ";
        for (name, value) in self.names.iter().zip(&self.equal) {
            write!(f, "{before}{name} = {}", value.as_value())?;
            before = ", ";
        }
        for (bound, strict, loose) in [(&self.lower, ">", ">="), (&self.upper, "<", "<=")] {
            let (operator, value) = match bound {
                Bound::Excluded(value) => (strict, value),
                Bound::Included(value) => (loose, value),
                Bound::Unbounded => continue,
            };
            write!(f, "{before}{} {operator} {}", self.names[self.equal.len()], value.as_value())?;
            before = ", ";
        }
        Ok(())
    }
}
