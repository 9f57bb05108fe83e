"""Scans as Arrow and pandas: every type, NULL, sizes of batches, and what is refused."""

import subprocess
import sys
from datetime import datetime, timezone
from decimal import Decimal

import pandas
import pantile
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pantile import Column, Table

AT = datetime(1969, 7, 20, 20, 17, 40, 123456, timezone.utc)

# Column, Arrow type, and values at the edges.
TYPES = {
    "bool": (pyarrow.bool_(), [True, False]),
    "f32": (pyarrow.float32(), [0.5, float("-inf")]),
    "f64": (pyarrow.float64(), [0.1, -1e308]),
    "timestamp": (pyarrow.timestamp("us", "UTC"), [AT, datetime(9999, 12, 31, tzinfo=timezone.utc)]),
    "decimal(38,0)": (pyarrow.decimal128(38, 0), [Decimal(10**38 - 1), Decimal(1 - 10**38)]),
    "decimal(12,2)": (pyarrow.decimal128(12, 2), [Decimal("-19.90"), Decimal("9999999999.99")]),
    "string(20)": (pyarrow.string(), ["über", ""]),
    "bytes(20)": (pyarrow.binary(), [b"\0\xff", b""]),
    "fixed string(5)": (pyarrow.string(), ["abc", "abcde"]),
    "fixed bytes(3)": (pyarrow.binary(3), [b"\0\1\2", b"abc"]),
    "string(2000000000)": (pyarrow.large_string(), ["long" * 50_000, "short"]),
    "bytes(4000000000)": (pyarrow.large_binary(), [b"\xfe" * 200_000, b"short"]),
}
for bits in (8, 16, 32, 64):
    TYPES[f"i{bits}"] = (getattr(pyarrow, f"int{bits}")(), [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1])
    TYPES[f"u{bits}"] = (getattr(pyarrow, f"uint{bits}")(), [0, 2**bits - 1])


@pytest.fixture
def things(db):
    """A row of each column's first values, one of the second ones, and one of NULLs."""
    columns = [Column(name, name, nullable=True) for name in TYPES]
    table = db.open_or_create(Table("things", [Column("id", "u8"), *columns], ["id"]))
    rows = [[n, *(values[n] for _, values in TYPES.values())] for n in range(2)]
    db.run(lambda txn: txn.insert_many(table, [*rows, [2, *(None for _ in TYPES)]]))
    return table


@pytest.mark.parametrize("name", TYPES)
def test_every_type(db, things, name):
    ty, values = TYPES[name]
    with db.read() as txn:
        rows = txn.scan(things, columns=[name]).to_arrow()
    assert rows.schema == pyarrow.schema([pyarrow.field(name, ty)])
    assert rows.column(0).to_pylist() == [*values, None]
    rows.validate(full=True)


def test_it_is_what_a_scan_of_dicts_gives(db, things):
    with db.read() as txn:
        rows, arrow = list(txn.scan(things)), txn.scan(things).to_arrow()
    assert arrow.to_pylist() == rows and not arrow.schema.field("id").nullable


def test_ranges_and_columns(db, numbers):
    with db.read() as txn:
        ids = lambda **how: txn.scan(numbers, columns=["id"], **how).to_arrow()["id"].to_pylist()
        assert ids() == list(range(1000))
        assert ids(start=5, stop=8) == [5, 6, 7]
        assert ids(reverse=True, limit=2) == [999, 998]
        assert ids(index="by_n", prefix=-3) == [3]
        assert txn.scan(numbers, columns=["n", "id"], limit=1).to_arrow().column_names == ["n", "id"]
        assert next(txn.scan(numbers, columns=["n"], start=7)) == {"n": -7}
        assert next(txn.scan(numbers, columns=["n", "id"], start=7, tuples=True)) == (-7, 7)


def test_no_rows(db, numbers):
    with db.read() as txn:
        rows = txn.scan(numbers, start=5000).to_arrow()
        frame = txn.scan(numbers, start=5000).to_pandas()
        assert list(txn.scan(numbers, start=5000).to_batches()) == []
    assert (rows.num_rows, rows.column_names) == (0, ["id", "n"])
    assert (len(frame), [str(ty) for ty in frame.dtypes]) == (0, ["uint64", "int64"])


def test_batches_are_bounded_by_rows_and_by_bytes(db, numbers):
    with db.read() as txn:
        batches = list(txn.scan(numbers).to_batches(batch_rows=300))
    assert [batch.num_rows for batch in batches] == [300, 300, 300, 100]
    long = db.open_or_create(Table("long", [Column("id", "u32"), Column("raw", "bytes(20000000)")], ["id"]))
    for n in range(5):
        db.run(lambda txn: txn.insert(long, (n, bytes([n]) * 20_000_000)))
    with db.read() as txn:
        batches = list(txn.scan(long).to_batches())
    assert [batch.num_rows for batch in batches] == [4, 1]
    assert [raw.as_py()[::19_999_999] for batch in batches for raw in batch["raw"]] == [bytes([n] * 2) for n in range(5)]


def test_rows_outlive_the_transaction_and_the_database(tmp_path):
    with pantile.open(tmp_path) as db:
        table = db.open_or_create(Table("t", [Column("id", "u32"), Column("name", "string(9)")], ["id"]))
        db.run(lambda txn: txn.insert(table, (1, "Rex")))
        with db.read() as txn:
            rows = txn.scan(table).to_arrow()
    assert rows.to_pylist() == [{"id": 1, "name": "Rex"}]


def test_pandas_keeps_integers(db, things, numbers):
    with db.read() as txn:
        frame = txn.scan(things, columns=["id", "i64", "u64", "bool", "f64", "string(20)", "timestamp"]).to_pandas()
        sums = txn.scan(numbers, start=10).to_pandas().n.sum()
    assert [str(ty) for ty in frame.dtypes[:4]] == ["uint8", "Int64", "UInt64", "boolean"]
    assert list(frame["i64"][:2]) == [-(2**63), 2**63 - 1] and frame["u64"][1] == 2**64 - 1
    assert all(frame.iloc[2, 1:].isna()) and frame["timestamp"][0].to_pydatetime() == AT
    assert isinstance(frame, pandas.DataFrame) and sums == -sum(range(10, 1000))


def test_any_reader_of_arrow_takes_a_scan(db, numbers):
    with db.read() as txn:
        assert pyarrow.table(txn.scan(numbers)).num_rows == 1000
        # What the capsule holds is released with it, read or not.
        before = sys.getrefcount(txn)
        for _ in range(100):
            txn.scan(numbers).__arrow_c_stream__()
            txn.scan(numbers).to_batches().read_next_batch()
        assert sys.getrefcount(txn) == before
    running = db.stats()["running"]
    txn = db.begin(read_only=True)
    streams = [txn.scan(numbers).to_batches(), txn.scan(numbers).__arrow_c_stream__()]
    del txn
    assert db.stats()["running"] == running + 1 and streams.pop(0).read_all().num_rows == 1000
    assert db.stats()["running"] == running + 1
    streams.clear()
    assert db.stats()["running"] == running


def test_what_is_refused(db, numbers):
    with db.transaction() as txn:
        with pytest.raises(pantile.InvalidSchema, match='no column "none"'):
            txn.scan(numbers, columns=["none"])
        with pytest.raises(pantile.InvalidSchema, match="at least one column"):
            txn.scan(numbers, columns=[])
        with pytest.raises(pantile.InvalidSchema, match="named twice"):
            txn.scan(numbers, columns=["n", "n"])
        rows = txn.scan(numbers)
        with pytest.raises(pantile.InvalidValue, match="batch_rows is at least 1"):
            rows.to_batches(batch_rows=0)
        next(rows)
        with pytest.raises(pantile.Misuse, match="taken already"):
            rows.to_arrow()
        rows = txn.scan(numbers)
        rows.to_arrow()
        for again in (rows.to_arrow, rows.to_batches, lambda: next(rows)):
            with pytest.raises(pantile.Misuse, match="went to Arrow; make another scan"):
                again()
        ended, batches = txn.scan(numbers), txn.scan(numbers).to_batches(batch_rows=10)
        batches.read_next_batch()
    with pytest.raises(pantile.Closed, match="the transaction has ended"):
        ended.to_pandas()
    with pytest.raises(pyarrow.ArrowInvalid, match="the transaction has ended"):
        batches.read_next_batch()


def test_a_transaction_that_is_ended_from_outside_says_so(db, numbers):
    with pytest.raises(pantile.TransactionEnded, match="end_transaction"), db.read(name="report") as txn:
        rows = txn.scan(numbers)
        [running] = [running for running in db.transactions() if running.name == "report"]
        db.end_transaction(running.id)
        rows.to_arrow()


def test_neither_package_is_needed(tmp_path):
    program = """
import sys
sys.modules["pyarrow"] = sys.modules["pandas"] = None
import pantile
db = pantile.open("unused", memory=True)
t = db.open_or_create(pantile.Table("t", [pantile.Column("id", "u64")], ["id"]))
db.run(lambda txn: txn.insert(t, (7,)))
with db.read() as txn:
    for method in ("to_arrow", "to_pandas", "to_batches"):
        rows = txn.scan(t)
        try:
            getattr(rows, method)()
        except ImportError as error:
            assert next(rows) == {"id": 7}
            assert "the scan is as it was; install it" in str(error), error
        else:
            raise AssertionError(method)
"""
    subprocess.run([sys.executable, "-I", "-c", program], check=True, cwd=tmp_path, timeout=600)


VALUE = st.tuples(
    st.none() | st.integers(-(2**31), 2**31 - 1), st.none() | st.text("aé\n", max_size=9), st.none() | st.binary(max_size=9)
)


@settings(max_examples=30, deadline=None)
@given(st.lists(VALUE, max_size=30), st.integers(1, 12))
def test_batches_of_any_size_have_the_same_rows(rows, batch_rows):
    columns = [Column("n", "i32", True), Column("text", "string(40)", True), Column("raw", "bytes(40)", True)]
    with pantile.open("unused", memory=True) as db:
        table = db.open_or_create(Table("t", [Column("id", "u32"), *columns], ["id"]))
        db.run(lambda txn: txn.insert_many(table, [(n, *row) for n, row in enumerate(rows)]))
        with db.read() as txn:
            batches = list(txn.scan(table).to_batches(batch_rows=batch_rows))
            assert [row for batch in batches for row in batch.to_pylist()] == list(txn.scan(table))
    assert all(batch.num_rows == batch_rows for batch in batches[:-1])
