//! Tables: their definitions as Python writes them, and their handles.

use pantile::{ColumnDef, IndexDef, OwnedValue, TableDef, Type};
use pyo3::prelude::*;
use pyo3::types::{
    PyByteArray, PyBytes, PyDict, PyFrozenSet, PyInt, PyList, PyMapping, PyMemoryView, PySet, PyString,
    PyTuple,
};

use crate::error::{InvalidSchema, InvalidValue};
use crate::value::{from_python, to_python};

/// Name, type, whether it takes NULL, and default.
pub type ColumnParts<'py> = (String, String, bool, Bound<'py, PyAny>);
/// Name, columns, and whether it is unique.
pub type IndexParts = (String, Vec<String>, bool);

/// The type of this name, as the engine writes it.
pub fn type_of(name: &str) -> PyResult<Type> {
    name.parse()
        .map_err(|_| InvalidSchema::new_err(format!("there is no type {name:?}; nothing was changed")))
}

/// The definition of a column.
pub fn column_def((name, ty, nullable, default): ColumnParts<'_>) -> PyResult<ColumnDef> {
    Ok(ColumnDef { name, ty: type_of(&ty)?, nullable, default: from_python(&default)? })
}

/// The definition of an index.
pub fn index_def((name, columns, unique): IndexParts) -> IndexDef {
    IndexDef { name, columns, unique }
}

/// The definition of a table.
pub fn table_def(
    name: String,
    columns: Vec<ColumnParts<'_>>,
    primary_key: Vec<String>,
    indexes: Vec<IndexParts>,
) -> PyResult<TableDef> {
    let columns = columns.into_iter().map(column_def).collect::<PyResult<_>>()?;
    Ok(TableDef { name, columns, primary_key, indexes: indexes.into_iter().map(index_def).collect() })
}

/// A table of an open database.
#[pyclass(frozen, module = "pantile")]
pub struct Table {
    pub table: pantile::Table,
    names: Vec<Py<PyString>>,
}

#[pymethods]
impl Table {
    /// The table's name.
    #[getter]
    fn name(&self) -> &str {
        self.table.name()
    }

    /// The names of its columns, in order.
    #[getter]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.names)
    }

    /// The names of its indexes.
    #[getter]
    fn indexes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.table.definition().indexes.iter().map(|index| index.name.as_str()))
    }

    fn __repr__(&self) -> String {
        format!("<pantile table {:?}>", self.table.name())
    }
}

impl Table {
    pub fn new(py: Python<'_>, table: pantile::Table) -> Self {
        let names =
            table.columns().iter().map(|column| PyString::intern(py, &column.name).unbind()).collect();
        Self { table, names }
    }

    /// The values of a row given as a mapping or a sequence. What a mapping leaves
    /// out gets the column's default.
    pub fn row_from(&self, row: &Bound<'_, PyAny>) -> PyResult<Vec<OwnedValue>> {
        if let Ok(named) = row.cast::<PyDict>() {
            return self.row_from_dict(named);
        }
        // Most rows are of these types, and asking whether something is a mapping takes long.
        if row.is_instance_of::<PyTuple>() || row.is_instance_of::<PyList>() {
            return self.values_of(row);
        }
        // To iterate over a mapping gives its keys.
        if let Ok(named) = row.cast::<PyMapping>() {
            return self.row_from_dict(&PyDict::from_sequence(named.items()?.as_any())?);
        }
        if is_no_row(row) {
            let ty = row.get_type().name()?;
            return Err(InvalidValue::new_err(format!(
                "a row is a mapping, a tuple or a list, not of the type {ty}; nothing was changed"
            )));
        }
        self.values_of(row)
    }

    fn row_from_dict(&self, named: &Bound<'_, PyDict>) -> PyResult<Vec<OwnedValue>> {
        let mut values: Vec<_> = self.table.columns().iter().map(|column| column.default.clone()).collect();
        for (column, value) in self.changes_from(named)? {
            values[column] = value;
        }
        Ok(values)
    }

    fn values_of(&self, row: &Bound<'_, PyAny>) -> PyResult<Vec<OwnedValue>> {
        row.try_iter()?.enumerate().map(|(column, value)| self.value_of(column, &value?)).collect()
    }

    /// The value for the column of this number.
    fn value_of(&self, column: usize, object: &Bound<'_, PyAny>) -> PyResult<OwnedValue> {
        let value = from_python(object)?;
        let is_decimal = |column: &ColumnDef| matches!(column.ty, Type::Decimal { .. });
        // An integer of more than 64 bits.
        if matches!(value, OwnedValue::Decimal(_))
            && object.is_instance_of::<PyInt>()
            && !self.table.columns().get(column).is_some_and(is_decimal)
        {
            return Err(InvalidValue::new_err(format!("{object} does not fit 64 bits; nothing was changed")));
        }
        Ok(value)
    }

    /// Columns by their numbers, and values for them.
    pub fn changes_from(&self, named: &Bound<'_, PyDict>) -> PyResult<Vec<(usize, OwnedValue)>> {
        let change = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let number = self.table.column(&name.extract::<String>()?).map_err(crate::error::raised)?;
            Ok((number, self.value_of(number, &value)?))
        };
        named.iter().map(change).collect()
    }

    /// The numbers of these columns, or of all.
    pub fn columns_of(&self, names: Option<Vec<String>>) -> PyResult<Vec<usize>> {
        let Some(names) = names else { return Ok((0..self.names.len()).collect()) };
        if names.is_empty() {
            return Err(InvalidSchema::new_err(
                "rows have at least one column; name some, or leave columns out",
            ));
        }
        let mut numbers = Vec::new();
        for name in names {
            let number = self.table.column(&name).map_err(crate::error::raised)?;
            if numbers.contains(&number) {
                return Err(InvalidSchema::new_err(format!("column {name:?} is named twice; name it once")));
            }
            numbers.push(number);
        }
        Ok(numbers)
    }

    /// Values of these columns as a dict.
    pub fn to_dict<'py>(
        &self,
        py: Python<'py>,
        columns: impl IntoIterator<Item = usize>,
        values: Vec<OwnedValue>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let row = PyDict::new(py);
        for (column, value) in columns.into_iter().zip(values) {
            row.set_item(&self.names[column], to_python(py, &value)?)?;
        }
        Ok(row.into_any())
    }
}

/// Whether it has items that are no values of columns, or are in no order.
fn is_no_row(row: &Bound<'_, PyAny>) -> bool {
    row.is_instance_of::<PyString>()
        || row.is_instance_of::<PyBytes>()
        || row.is_instance_of::<PyByteArray>()
        || row.is_instance_of::<PyMemoryView>()
        || row.is_instance_of::<PySet>()
        || row.is_instance_of::<PyFrozenSet>()
}

/// Values as a tuple.
pub fn to_tuple<'py>(py: Python<'py>, values: &[OwnedValue]) -> PyResult<Bound<'py, PyAny>> {
    let values = values.iter().map(|value| to_python(py, value)).collect::<PyResult<Vec<_>>>()?;
    Ok(PyTuple::new(py, values)?.into_any())
}
