"""Scans as pyarrow and pandas objects. Neither package is needed for anything else."""

from importlib import import_module
from typing import Any

from . import _native


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"this needs {name}, and it cannot be imported; the scan is as it was; install it") from error


def reader(scan: _native.Scan, batch_rows: int) -> Any:
    """A `pyarrow.RecordBatchReader`."""
    arrow = _package("pyarrow")
    return arrow.RecordBatchReader.from_stream(scan._stream(batch_rows))


def table(scan: _native.Scan) -> Any:
    """A `pyarrow.Table`. What the database refuses while it is read is raised as its own exception."""
    arrow = _package("pyarrow")
    try:
        batches = arrow.RecordBatchReader.from_stream(scan)
        # One after the other, so that Python handles signals between them.
        return arrow.Table.from_batches([batch for batch in batches], batches.schema)
    except arrow.ArrowException:
        scan._raise_failure()
        raise


def frame(scan: _native.Scan) -> Any:
    """A `pandas.DataFrame`."""
    pandas = _package("pandas")
    rows = table(scan)
    nullable = _nullable_types(_package("pyarrow"), pandas)
    columns = {
        field.name: column.to_pandas(types_mapper=nullable.get if field.nullable else None)
        for field, column in zip(rows.schema, rows.columns)
    }
    return pandas.DataFrame(columns)


def _nullable_types(arrow: Any, pandas: Any) -> Any:
    types = {arrow.bool_(): pandas.BooleanDtype()}
    for bits in (8, 16, 32, 64):
        types[getattr(arrow, f"int{bits}")()] = getattr(pandas, f"Int{bits}Dtype")()
        types[getattr(arrow, f"uint{bits}")()] = getattr(pandas, f"UInt{bits}Dtype")()
    return types
