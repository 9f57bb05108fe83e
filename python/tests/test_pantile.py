"""Tables, transactions, misuse, threads, kills and a model, through the package as it is installed."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections import ChainMap, UserDict, UserList
from datetime import datetime, timezone
from decimal import Decimal
from types import MappingProxyType

import numpy
import pantile
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pantile import Column, Index, Table

from conftest import NUMBERS

def test_values_of_every_type_come_back(tmp_path):
    values = {
        "id": 2**64 - 1, "small": -128, "yes": True, "real": 0.1, "text": "über", "raw": b"\0\xff" * 200_000,
        "price": Decimal("-19.90"), "at": datetime(1969, 7, 20, 20, 17, 40, 123456, timezone.utc), "none": None,
    }
    types = ["u64", "i8", "bool", "f64", "string(20)", "bytes(1000000)", "decimal(12,2)", "timestamp"]
    columns = [Column(name, ty) for name, ty in zip(values, types)] + [Column("none", "u8", nullable=True)]
    with pantile.open(tmp_path) as db:
        table = db.open_or_create(Table("t", columns, ["id"]))
        db.run(lambda txn: txn.insert(table, values))
    with pantile.open(tmp_path) as db, db.read() as txn:
        row = txn.get(db.table("t"), 2**64 - 1)
        assert row == values and row["yes"] is True and str(row["price"]) == "-19.90"
        assert list(txn.scan(db.table("t"), tuples=True)) == [tuple(values.values())]


class Seven:
    def __index__(self):
        return 7


def test_what_stands_for_values_is_taken(db):
    types = {"a": "i64", "b": "u8", "yes": "bool", "raw": "bytes(9)", "long": "decimal(38,0)", "price": "decimal(30,2)"}
    table = db.open_or_create(Table("t", [Column(name, ty) for name, ty in types.items()], ["a", "b"]))
    scalar, many = numpy.int64(-5), memoryview(b"abcdef")[::2]
    rows = [
        (scalar, numpy.uint8(255), numpy.bool_(True), many, 10**38 - 1, numpy.int32(3)),
        [Seven(), numpy.array(4), numpy.bool_(False), memoryview(b""), 1 - 10**38, 2**64],
    ]
    with db.transaction() as txn:
        assert txn.insert_many(table, rows) == 2
        first = {"a": -5, "b": 255, "yes": True, "raw": b"ace", "long": Decimal(10**38 - 1), "price": Decimal(3)}
        assert txn.get(table, [scalar, 255]) == first
        second = txn.get(table, (7, 4))
        assert second == {"a": 7, "b": 4, "yes": False, "raw": b"", "long": 1 - 10**38, "price": 2**64}
        assert second["yes"] is False and [row["a"] for row in txn.scan(table, prefix=[Seven()])] == [7]
        assert txn.update(table, [7, 4], yes=numpy.bool_(True)) and txn.count(table, prefix=scalar) == 1
        assert txn.delete(table, [-5, 255]) and txn.get_many(table, [[7, 4], [1, 1]])[1] is None
        for long in (10**38, -(10**38), 2**127, 2**200):
            with pytest.raises(pantile.InvalidValue, match="38 digits"):
                txn.update(table, (7, 4), long=long)
        for what in (numpy.array([1, 2]), [1], (1,), numpy.datetime64("2020-01-01")):
            with pytest.raises(pantile.InvalidValue, match="no column holds"):
                txn.update(table, (7, 4), a=what)
        with pytest.raises(pantile.InvalidValue, match="does not fit 64 bits"):
            txn.update(table, (7, 4), a=2**64)
        with pytest.raises(pantile.InvalidValue, match="does not fit 64 bits"):
            txn.upsert(table, (2**64, 4, True, b"", 0, 0))


@pytest.mark.parametrize("n", [2**63, 2**64, "one", None, 1.5, Decimal("NaN"), datetime(2020, 1, 1), object()])
def test_values_that_do_not_fit_are_refused(db, numbers, n):
    with pytest.raises(pantile.InvalidValue):
        db.run(lambda txn: txn.update(numbers, 1, n=n))
    with db.read() as txn:
        assert txn.get(numbers, 1) == {"id": 1, "n": -1}


def test_rows_are_mappings_and_sequences(db, numbers):
    mappings = [MappingProxyType({"n": 7, "id": 2000}), UserDict(n=7, id=2001), ChainMap({"n": 7}, {"id": 2002, "n": 8})]
    sequences = [[2003, 7], (2004, 7), iter([2005, 7]), UserList([2006, 7])]
    with db.transaction() as txn:
        txn.insert(numbers, mappings[0])
        assert not txn.upsert(numbers, mappings[1])
        assert txn.insert_many(numbers, mappings[2:] + sequences) == 5
        assert list(txn.scan(numbers, start=2000, tuples=True)) == [(id, 7) for id in range(2000, 2007)]
        for row in ({3000, 1}, frozenset([3000, 1]), b"ab", bytearray(b"ab"), memoryview(b"ab"), "ab"):
            with pytest.raises(pantile.InvalidValue, match="a row is a mapping, a tuple or a list, not"):
                txn.insert(numbers, row)
        assert txn.count(numbers, start=2007) == 0


def test_columns_may_have_the_names_of_parameters(db):
    columns = [Column("id", "u64"), Column("key", "u64"), Column("table", "i64")]
    table = db.open_or_create(Table("odd", columns, ["id"]))
    db.run(lambda txn: txn.insert(table, {"id": 1, "key": 2, "table": 3}))
    assert db.run(lambda txn: txn.update(table, 1, table=4, key=5))
    with db.read() as txn:
        assert list(txn.scan(table)) == [{"id": 1, "key": 5, "table": 4}]


def test_many_rows_in_one_call(db, numbers):
    def change(txn):
        assert txn.update_many(numbers, ((i, {"n": i * i}) for i in (3, 500, 5000, 4))) == 3
        return txn.get_many(numbers, iter([4, 5000, 3, 3, 5]))

    assert [row and row["n"] for row in db.run(change)] == [16, None, 9, 9, -5]
    with pytest.raises(pantile.InvalidValue):
        db.run(lambda txn: txn.update_many(numbers, [(1, {"n": 7}), (2, {"n": "seven"})]))
    with db.read() as txn:
        assert txn.get_many(numbers, []) == []
        assert txn.get_many(numbers, [1, 500]) == [{"id": 1, "n": -1}, {"id": 500, "n": 250_000}]
        with pytest.raises(pantile.InvalidValue):
            txn.get_many(numbers, [1, "one"])


def test_scans(db, numbers):
    with db.read() as txn:
        ids = lambda **how: [row["id"] for row in txn.scan(numbers, **how)]
        assert ids() == list(range(1000))
        assert ids(start=5, stop=8) == [5, 6, 7]
        assert ids(reverse=True, limit=2) == [999, 998]
        assert ids(index="by_n", limit=2) == [999, 998]
        assert ids(index="by_n", prefix=-3) == [3]
        assert txn.count(numbers, start=990) == 10 and txn.count(numbers, index="by_n", stop=-900) == 99
        with pytest.raises(pantile.Misuse):
            txn.scan(numbers, prefix=1, start=2)


def test_a_transaction_is_all_or_nothing(db, numbers):
    with pytest.raises(ZeroDivisionError), db.transaction() as txn:
        assert txn.delete_range(numbers, start=10) == 990
        assert txn.count(numbers) == 10
        1 / 0
    with pytest.raises(pantile.DuplicateKey, match="already has a row"):
        db.run(lambda txn: txn.insert_many(numbers, [(1000, 0), (1, 0)]))
    with db.transaction() as txn:
        assert txn.count(numbers) == 1000
        assert txn.upsert(numbers, {"id": 1, "n": 7}) and not txn.upsert(numbers, [1001, 7])
        assert txn.delete(numbers, 1001) and not txn.delete(numbers, 1001)
        assert txn.get(numbers, 1, for_update=True)["n"] == 7


def test_a_block_may_end_its_transaction_itself(db, numbers):
    with db.transaction() as txn:
        txn.update(numbers, 1, n=10)
        txn.commit()
    with db.transaction() as txn:
        txn.update(numbers, 1, n=11)
        txn.rollback()
    with pytest.raises(ZeroDivisionError), db.transaction() as txn:
        txn.commit()
        1 / 0
    with pytest.raises(pantile.Closed), db.transaction() as txn:
        txn.commit()
        txn.update(numbers, 1, n=12)
    with pytest.raises(pantile.TransactionEnded), db.transaction() as txn:
        txn.update(numbers, 1, n=13)
        db.end_transaction(next(running.id for running in db.transactions() if running.id is not None))
    # A commit that has failed is told, also if the block does not tell it.
    with pytest.raises(pantile.Error), db.transaction() as txn:
        db.end_transaction(next(running.id for running in db.transactions() if running.id is not None))
        with pytest.raises(pantile.TransactionEnded):
            txn.commit()
    assert db.run(lambda txn: (txn.update(numbers, 2, n=20), txn.commit(), "done")[2]) == "done"
    assert db.run(lambda txn: (txn.update(numbers, 2, n=21), txn.rollback(), "undone")[2]) == "undone"
    with db.read() as txn:
        txn.rollback()
    with db.read() as txn:
        assert [row["n"] for row in txn.get_many(numbers, [1, 2])] == [10, 20]


def test_a_savepoint_undoes_its_block_also_after_an_earlier_one_was_undone(db, numbers):
    def ids():
        return [id for id, _ in txn.scan(numbers, start=1000, tuples=True)]

    with db.transaction() as txn:
        with txn.savepoint() as outer:
            txn.insert(numbers, (1000, 0))
            with pytest.raises(ZeroDivisionError), txn.savepoint() as middle:
                txn.insert(numbers, (1001, 0))
                with pytest.raises(ZeroDivisionError), txn.savepoint() as inner:
                    txn.insert(numbers, (1002, 0))
                    outer.rollback()
                    assert ids() == []
                    txn.insert(numbers, (1003, 0))
                    with txn.savepoint():
                        txn.insert(numbers, (1004, 0))
                    assert ids() == [1003, 1004]
                    1 / 0
                assert ids() == []
                txn.insert(numbers, (1005, 0))
                middle.rollback()
                assert ids() == []
                txn.insert(numbers, (1006, 0))
                with pytest.raises(pantile.Error, match="savepoint"):
                    inner.rollback()
                1 / 0
            assert ids() == []
            txn.insert(numbers, (1007, 0))
    with db.read() as txn:
        assert ids() == [1007]


def test_a_block_that_cannot_be_undone_says_so(db, numbers):
    with db.transaction() as txn, txn.savepoint() as outer:
        with pytest.raises(pantile.Error, match="savepoint") as raised, txn.savepoint():
            outer.__exit__()
            txn.insert(numbers, (1000, 0))
            1 / 0
        assert isinstance(raised.value.__context__, ZeroDivisionError)
        txn.delete(numbers, 1000)
    # What the block raises says more than that the transaction is over.
    for end in (pantile.Transaction.commit, pantile.Transaction.rollback):
        with pytest.raises(ZeroDivisionError), db.transaction() as txn, txn.savepoint():
            end(txn)
            1 / 0


def test_a_body_that_has_committed_does_not_run_again(db, numbers):
    def add(txn, committed):
        txn.update(numbers, 1, n=txn.get(numbers, 1)["n"] + 1)
        tries.append(committed)
        if committed:
            txn.commit()
        if len(tries) < 3:
            error = pantile.Conflict("another transaction")
            error.retryable = True
            raise error

    tries = []
    with pytest.raises(pantile.Conflict):
        db.run(lambda txn: add(txn, True))
    assert len(tries) == 1
    db.run(lambda txn: add(txn, False))
    assert len(tries) == 3
    with db.read() as txn:
        assert txn.get(numbers, 1)["n"] == 1


def test_tables_change(db, numbers):
    changed = db.alter(numbers, add=[Column("name", "string(9)", default="?")], rename={"n": "m"})
    assert changed.columns == ("id", "m", "name")
    with db.transaction() as txn:
        assert txn.get(changed, 1) == {"id": 1, "m": -1, "name": "?"}
        txn.insert(changed, {"id": 5000, "m": 1})
        assert txn.get(changed, 5000)["name"] == "?"
    widened = db.alter(changed, widen={"name": "string(99)"}, nullable=["name"])
    db.run(lambda txn: txn.update(widened, 1, name=None))
    assert db.alter(widened, drop=["name"]).columns == ("id", "m")
    with pytest.raises(pantile.InvalidSchema, match="differs"):
        db.open_or_create(NUMBERS)
    db.create_index(numbers, "once", ["m", "id"], unique=True)
    db.alter(numbers, rename_index={"once": "twice"})
    db.drop_index(numbers, "twice")
    db.drop_table("numbers")
    assert db.tables() == []


def test_names_change_places(tmp_path):
    with pantile.open(tmp_path) as db:
        columns = [Column(name, "u32") for name in ("id", "a", "b", "c")]
        indexes = [Index(f"by_{name}", [name]) for name in "abc"]
        table = db.open_or_create(Table("t", columns, ["id"], indexes))
        db.run(lambda txn: txn.insert(table, (0, 1, 2, 3)))
        table = db.alter(table, rename={"a": "b", "b": "a", "c": "d"}, rename_index={"by_a": "by_b", "by_b": "by_a"})
        assert table.columns == ("id", "b", "a", "d")
        with db.read() as txn:
            assert txn.count(table, index="by_b", prefix=1) == txn.count(table, index="by_a", prefix=2) == 1
        table = db.alter(table, rename={"id": "a", "a": "b", "b": "d", "d": "e"})
        assert table.columns == ("a", "d", "b", "e")
        circle = {"a": "d", "d": "b", "b": "e", "e": "a"}
        pantile.Migrations(pantile.Migration(1, "turn").alter_table("t", rename=circle)).apply(db)
        table = db.table("t")
        assert table.columns == ("d", "b", "e", "a")
        with pytest.raises(pantile.InvalidSchema, match="'?there is one of this name"):
            db.alter(table, rename={"a": "b"})
        with pytest.raises(pantile.InvalidSchema, match="x"):
            db.alter(table, rename={"a": "x", "x": "a"})
        with db.read() as txn:
            assert txn.get(table, 0) == {"d": 0, "b": 1, "e": 2, "a": 3}


def test_a_column_is_replaced(tmp_path):
    columns = [Column("id", "u32"), Column("a", "u32"), Column("b", "u32")]
    with pantile.open(tmp_path) as db:
        table = db.open_or_create(Table("t", columns, ["id"]))
        db.run(lambda txn: txn.insert(table, (1, 2, 3)))
        table = db.alter(table, drop=["a"], add=[Column("a", "string(5)", default="?")])
        assert table.columns == ("id", "b", "a")
        db.run(lambda txn: txn.insert(table, (2, 3, "two")))
        table = db.alter(table, rename={"b": "old"}, add=[Column("b", "u8", nullable=True)], widen={"b": "u16"})
        db.run(lambda txn: txn.insert(table, (3, 4, "three", 500)))
    rows = [(1, 3, "?", None), (2, 3, "two", None), (3, 4, "three", 500)]
    with pantile.open(tmp_path) as db, db.read() as txn:
        assert db.table("t").columns == ("id", "old", "a", "b")
        assert list(txn.scan(db.table("t"), tuples=True)) == rows


def test_backup_and_upkeep(db, numbers, tmp_path):
    assert db.backup_to(tmp_path / "backup") == pantile.restore(tmp_path / "backup", tmp_path / "new") == 1000
    db.compact()
    assert db.is_current and db.verify() == 1000 and db.stats()["commits"] >= 1
    with pantile.open(tmp_path / "new") as copy, copy.read(safe_snapshot=True) as txn:
        assert txn.count(copy.table("numbers")) == 1000


def test_a_backup_since_another(db, numbers, tmp_path):
    db.backup_to(tmp_path / "full")
    db.run(lambda txn: txn.delete(numbers, 1))
    assert db.backup_to(tmp_path / "since", since=tmp_path / "full") == 999
    with pytest.raises(pantile.IncompleteBackup, match="an incremental backup"):
        pantile.open(tmp_path / "since")
    pantile.restore(tmp_path / "since", tmp_path / "new")
    with pantile.open(tmp_path / "new") as copy, copy.read(safe_snapshot=True) as txn:
        assert txn.count(copy.table("numbers")) == 999


def test_a_dump_is_new_and_loads_wholly(db, numbers, tmp_path):
    file = tmp_path / "dump"
    assert db.dump(file) == 1000
    with pytest.raises(pantile.Error, match="cannot dump to .*; the database is as it was"):
        db.dump(file)
    with pantile.open(tmp_path / "other") as other:
        assert other.load(file) == 1000
        with other.read() as txn:
            assert txn.get(other.table("numbers"), 7) == {"id": 7, "n": -7}
        with pytest.raises(pantile.DuplicateKey):
            other.load(file)
    half = tmp_path / "half"
    half.write_bytes(file.read_bytes()[:5000])
    with pantile.open(tmp_path / "none") as none:
        for bad in (half, tmp_path / "missing"):
            with pytest.raises(pantile.Error):
                none.load(bad)
        assert none.tables() == []


def test_what_a_database_says_about_itself(db, numbers):
    with db.read(name="report") as txn:
        txn.get(numbers, 1)
        db.run(lambda txn: txn.update(numbers, 1, n=5), name="writer")
        [report] = [running for running in db.transactions() if running.id is not None]
        assert (report.name, report.read_only, report.ended) == ("report", True, None)
        assert report.age > 0 and report.held_bytes > 0 and "numbers" in report.tables
        db.end_transaction(report.id)
        with pytest.raises(pantile.TransactionEnded, match="end_transaction"):
            txn.get(numbers, 1)
    with pytest.raises(pantile.Error, match="no transaction"):
        db.end_transaction(report.id)
    assert db.space_by_table()["numbers"]["contents"] >= 1000 and "# TYPE" in db.metrics()


def test_a_transaction_without_a_name_is_called_by_its_line(db, numbers):
    def names():
        return [running.name for running in db.transactions() if running.id is not None]

    line = sys._getframe().f_lineno
    with db.read() as txn:
        assert txn.count(numbers) == 1000 and names() == [f"test_pantile.py:{line + 1}"]
    with db.transaction():
        assert names() == [f"test_pantile.py:{line + 3}"]
    assert db.run(lambda txn: names()) == [f"test_pantile.py:{line + 5}"]
    txn = db.begin()
    assert names() == [f"test_pantile.py:{line + 6}"]
    txn.rollback()


def test_a_program_of_any_number_of_lines_can_begin_transactions(tmp_path):
    program = """
import pantile
db = pantile.open("unused", memory=True)
for n in range(1100):
    exec(compile("txn = db.begin()", f"cell {n}", "exec"))
    [running] = db.transactions()
    assert running.name == (f"cell {n}:1" if n < 1000 else None)
    txn.rollback()
db.begin(name="a name").rollback()
"""
    subprocess.run([sys.executable, "-I", "-c", program], check=True, cwd=tmp_path, timeout=600)


def test_a_reader_that_holds_too_much_is_ended(tmp_path):
    with pantile.open(tmp_path, durability="none", max_pinned_bytes=1000, on_pinned="end") as db:
        table = db.open_or_create(NUMBERS)
        db.run(lambda txn: txn.insert(table, (1, 0)))
        with db.read() as txn:
            assert txn.get(table, 1)["n"] == 0
            end = time.monotonic() + 600
            while db.stats()["pin_ends"] == 0:
                assert time.monotonic() < end, db.stats()
                db.run(lambda txn: txn.update(table, 1, n=txn.get(table, 1)["n"] + 1))
            with pytest.raises(pantile.TransactionEnded, match="max_pinned_bytes"):
                txn.get(table, 1)


@pytest.mark.parametrize("option", [{"on_pinned": "kill"}, {"max_pinned_age": -1}, {"durability": "?"}])
def test_options_that_do_not_exist_are_refused(tmp_path, option):
    with pytest.raises(pantile.Error):
        pantile.open(tmp_path / "db", **option)
    assert not (tmp_path / "db").exists()


def test_names_are_for_kinds_of_transactions(tmp_path):
    program = """
import pantile
db = pantile.open("unused", memory=True)
for _ in range(2):
    for n in range(1000):
        db.begin(name=str(n)).rollback()
try:
    db.begin(name="one more")
except pantile.InvalidValue as error:
    assert "one name" in str(error)
else:
    raise AssertionError
assert db.stats()["running"] == 0
"""
    subprocess.run([sys.executable, "-I", "-c", program], check=True, cwd=tmp_path, timeout=600)


def test_misuse_is_refused(db, numbers, tmp_path):
    with pytest.raises(pantile.AlreadyOpen):
        pantile.open(tmp_path / "db")
    with db.read() as txn:
        rows = txn.scan(numbers)
        next(rows)
        with pytest.raises(pantile.Error, match="read-only"):
            txn.insert(numbers, (1, 1))
    with pytest.raises(pantile.Closed):
        next(rows)
    with pytest.raises(pantile.Closed):
        txn.get(numbers, 1)
    db.close()
    db.close()
    with pytest.raises(pantile.Closed):
        db.begin()


def test_an_exception_leaves_a_database_at_once(tmp_path):
    with pytest.raises(ZeroDivisionError), pantile.open(tmp_path) as db:
        table = db.open_or_create(NUMBERS)
        txn = db.begin()
        txn.insert(table, (1, 1))
        began = time.monotonic()
        1 / 0
    # Closing would have waited for the transaction for ten seconds.
    assert time.monotonic() - began < 9
    with pytest.raises(pantile.Closed):
        db.begin()
    # The transaction is there, so the database is; with it, the database goes.
    with pytest.raises(pantile.AlreadyOpen):
        pantile.open(tmp_path)
    txn.commit()
    with pytest.raises(ZeroDivisionError), pantile.open(tmp_path) as db, db.read() as txn:
        assert txn.count(db.table("numbers")) == 1
        1 / 0
    pantile.open(tmp_path).close()


def test_a_database_that_could_not_be_closed_in_order_is_closed(tmp_path):
    db = pantile.open(tmp_path / "db")
    table = db.open_or_create(NUMBERS)
    db.run(lambda txn: txn.insert(table, (1, 1)))
    # To be closed in order, it must be where it was.
    (tmp_path / "db").rename(tmp_path / "moved")
    (tmp_path / "db").mkdir()
    with pytest.raises(pantile.Error):
        db.close()
    with pantile.open(tmp_path / "moved") as again, again.read() as txn:
        assert txn.count(again.table("numbers")) == 1
    db.close()
    with pytest.raises(pantile.Closed):
        db.begin()


def test_a_database_with_a_transaction_stays_open(db, numbers):
    with db.transaction() as txn:
        txn.update(numbers, 1, n=3)
        with pytest.raises(pantile.Error, match="10"):
            db.close()
        txn.update(numbers, 2, n=3)
    with db.read() as txn:
        assert [row["n"] for row in txn.get_many(numbers, [1, 2])] == [3, 3]


def test_a_dropped_transaction_is_rolled_back(db, numbers):
    txn = db.begin()
    txn.update(numbers, 1, n=99)
    del txn
    gc.collect()
    assert db.stats()["running"] == 0
    with db.read() as txn:
        assert txn.get(numbers, 1)["n"] == -1


def test_a_forked_process_is_told(db, numbers):
    txn = db.begin()
    txn.update(numbers, 1, n=5)
    child = os.fork()
    if child == 0:
        told = 0
        for call in (db.tables, txn.commit, db.close):
            try:
                call()
            except pantile.Misuse:
                told += 1
        del txn
        os._exit(told)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    txn.commit()
    with db.read() as txn:
        assert txn.get(numbers, 1)["n"] == 5


def test_threads_that_conflict_lose_nothing(db, numbers):
    def add(txn):
        txn.update(numbers, 0, n=txn.get(numbers, 0)["n"] + 1)

    threads = [threading.Thread(target=lambda: [db.run(add) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with db.read() as txn:
        assert txn.get(numbers, 0)["n"] == 200


def test_rows_do_not_leak(db, numbers):
    marker = "marker-" * 3
    before = sys.getrefcount(numbers)
    with db.read() as txn:
        for _ in range(50):
            list(txn.scan(numbers))
            with pytest.raises(pantile.InvalidSchema):
                txn.scan(numbers, index=marker)
    count = sys.getrefcount(marker)
    gc.collect()
    assert sys.getrefcount(numbers) == before and sys.getrefcount(marker) == count


WRITER = """
import sys, pantile
db = pantile.open(sys.argv[1])
t = db.open_or_create(pantile.Table("t", [pantile.Column("id", "u64")], ["id"]))
for n in range(10**9):
    with db.transaction() as txn:
        txn.insert(t, (2 * n,)); txn.insert(t, (2 * n + 1,))
    print(n, flush=True)
"""


def test_what_a_killed_process_committed_is_there(tmp_path):
    writer = subprocess.Popen([sys.executable, "-I", "-c", WRITER, tmp_path], stdout=subprocess.PIPE, text=True)
    seen = [writer.stdout.readline() for _ in range(100)]
    writer.send_signal(signal.SIGKILL)
    seen += writer.stdout.readlines()
    writer.wait()
    acknowledged = int([line for line in seen if line.endswith("\n")][-1])
    with pantile.open(tmp_path) as db, db.read() as txn:
        ids = [id for (id,) in txn.scan(db.table("t"), tuples=True)]
    assert ids == list(range(len(ids))) and len(ids) % 2 == 0 and len(ids) // 2 > acknowledged


KEYS = st.integers(0, 20)
STEP = st.tuples(st.sampled_from(["put", "delete", "commit", "rollback", "reopen"]), KEYS, st.integers(-5, 5))


@settings(max_examples=40, deadline=None)
@given(st.lists(STEP, max_size=40))
def test_it_does_what_a_dict_does(tmp_path_factory, steps):
    path = tmp_path_factory.mktemp("model")
    db = pantile.open(path, durability="none")
    db.open_or_create(NUMBERS)
    committed, current, txn = {}, {}, db.begin()
    for what, key, n in steps:
        table = db.table("numbers")
        if what == "put":
            assert txn.upsert(table, (key, n)) == (key in current)
            current[key] = n
        elif what == "delete":
            assert txn.delete(table, key) == (current.pop(key, None) is not None)
        else:
            txn.commit() if what == "commit" else txn.rollback()
            committed = dict(current) if what == "commit" else committed
            current = dict(committed)
            if what == "reopen":
                db.close()
                db = pantile.open(path, create=False)
            txn = db.begin()
        table = db.table("numbers")
        assert list(txn.scan(table, tuples=True)) == sorted(current.items())
        assert sorted(txn.scan(table, index="by_n", tuples=True)) == sorted(current.items())
    txn.rollback()
    db.close()
