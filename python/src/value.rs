//! Values of Python as values of rows, and back.

use pantile::{Decimal, OwnedValue, Value};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::error::InvalidValue;

static CONVERT: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// The functions in Python that know dates and decimals.
fn convert(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    let module = CONVERT.get_or_try_init(py, || py.import("pantile._convert").map(Bound::unbind));
    module.map(|module| module.bind(py))
}

/// What a row takes for an object.
pub fn from_python(object: &Bound<'_, PyAny>) -> PyResult<OwnedValue> {
    if object.is_none() {
        Ok(OwnedValue::Null)
    } else if let Ok(truth) = object.cast::<PyBool>() {
        Ok(OwnedValue::Bool(truth.is_true()))
    } else if object.is_instance_of::<PyInt>() {
        integer(object)
    } else if object.is_instance_of::<PyFloat>() {
        Ok(OwnedValue::Float(object.extract()?))
    } else if let Ok(text) = object.cast::<PyString>() {
        Ok(OwnedValue::Str(text.extract()?))
    } else if let Ok(bytes) = object.cast::<PyBytes>() {
        Ok(OwnedValue::Bytes(bytes.as_bytes().to_vec()))
    } else if let Ok(bytes) = object.cast::<PyByteArray>() {
        Ok(OwnedValue::Bytes(bytes.to_vec()))
    } else {
        other(object)
    }
}

fn integer(object: &Bound<'_, PyAny>) -> PyResult<OwnedValue> {
    if let Ok(signed) = object.extract::<i64>() {
        return Ok(OwnedValue::Int(signed));
    }
    if let Ok(unsigned) = object.extract::<u64>() {
        return Ok(OwnedValue::UInt(unsigned));
    }
    // Only decimals are as long as that.
    match object.extract::<i128>() {
        Ok(units) if units.unsigned_abs() < 10u128.pow(38) => Ok(OwnedValue::Decimal(Decimal::new(units, 0))),
        _ => Err(InvalidValue::new_err(format!("{object} has more than 38 digits; nothing was changed"))),
    }
}

/// A date, a decimal, or what stands for a value of another type.
fn other(object: &Bound<'_, PyAny>) -> PyResult<OwnedValue> {
    let plain = convert(object.py())?.getattr("plain")?.call1((object,))?;
    if !plain.is_none() {
        return from_python(&plain);
    }
    let parts = convert(object.py())?.getattr("parts")?.call1((object,))?;
    let (units, scale): (i128, Option<u8>) = parts.extract()?;
    match (scale, i64::try_from(units)) {
        (Some(scale), _) => Ok(OwnedValue::Decimal(Decimal::new(units, scale))),
        (None, Ok(micros)) => Ok(OwnedValue::Timestamp(micros)),
        (None, Err(_)) => {
            Err(InvalidValue::new_err(format!("{object} is too far away; nothing was changed")))
        }
    }
}

/// The values of a key: those of a tuple or a list, or one.
pub fn key_from_python(object: &Bound<'_, PyAny>) -> PyResult<Vec<OwnedValue>> {
    if let Ok(values) = object.cast::<PyTuple>() {
        values.iter().map(|value| from_python(&value)).collect()
    } else if let Ok(values) = object.cast::<PyList>() {
        values.iter().map(|value| from_python(&value)).collect()
    } else {
        Ok(vec![from_python(object)?])
    }
}

/// The object for a value.
pub fn to_python<'py>(py: Python<'py>, value: &OwnedValue) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value.as_value() {
        Value::Bool(truth) => PyBool::new(py, truth).to_owned().into_any(),
        Value::Int(number) => number.into_pyobject(py)?.into_any(),
        Value::UInt(number) => number.into_pyobject(py)?.into_any(),
        Value::Float(number) => PyFloat::new(py, number).into_any(),
        Value::Str(text) => PyString::new(py, text).into_any(),
        Value::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        Value::Timestamp(micros) => convert(py)?.getattr("moment")?.call1((micros,))?,
        Value::Decimal(number) => convert(py)?.getattr("decimal")?.call1((number.units, number.scale))?,
        _ => py.None().into_bound(py),
    })
}

/// Borrows values for a call of the engine.
pub fn borrowed(values: &[OwnedValue]) -> Vec<Value<'_>> {
    values.iter().map(OwnedValue::as_value).collect()
}
