"""Scans whose transaction writes meanwhile."""

import pantile
import pytest
from pantile import Column, Index, Table

T = Table("t", [Column("id", "u32"), Column("v", "i64")], ["id"], [Index("by_v", ["v"])])


@pytest.fixture
def db():
    with pantile.open("unused", memory=True) as db:
        yield db


def filled(db, rows):
    table = db.open_or_create(T)
    db.run(lambda txn: txn.insert_many(table, ((id, 1) for id in range(rows))))
    return table


@pytest.mark.parametrize("rows", [5, 20, 600])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_shows_what_its_loop_has_written(db, rows, reverse):
    table, step = filled(db, rows), -1 if reverse else 1
    with db.transaction() as txn:
        seen = []
        for row in txn.scan(table, reverse=reverse):
            seen.append(row["v"])
            if 0 <= row["id"] + step < rows:
                assert txn.update(table, row["id"] + step, v=row["v"] + 1)
        assert seen == list(range(1, rows + 1))
    with db.read() as txn:
        assert [v for _, v in txn.scan(table, reverse=reverse, tuples=True)] == seen


@pytest.mark.parametrize("rows", [5, 20, 600])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("index", [None, "by_v"])
def test_a_scan_leaves_out_what_its_loop_has_deleted(db, rows, reverse, index):
    table = filled(db, rows)
    with db.transaction() as txn:
        seen = []
        for id, _ in txn.scan(table, index=index, reverse=reverse, tuples=True):
            seen.append(id)
            if id > 0 or not reverse:
                txn.delete(table, id + (-1 if reverse else 1))
        assert seen == list(range(rows))[:: -2 if reverse else 2]
        assert txn.count(table) == len(seen)


@pytest.mark.parametrize("rows", [5, 20, 600])
@pytest.mark.parametrize("reverse", [False, True])
def test_rows_that_the_loop_moves_along_the_index_come_once(db, rows, reverse):
    table = filled(db, rows)
    with db.transaction() as txn:
        ids = []
        for row in txn.scan(table, index="by_v", reverse=reverse):
            ids.append(row["id"])
            txn.update(table, row["id"], v=-10 if reverse else 10)
        assert sorted(ids) == list(range(rows))


def test_rows_that_the_loop_moves_out_of_the_range_do_not_come(db):
    table = filled(db, 20)
    with db.transaction() as txn:
        ids = []
        for row in txn.scan(table, index="by_v", prefix=1):
            ids.append(row["id"])
            txn.update_many(table, ((id, {"v": 2}) for id in range(row["id"] + 1, row["id"] + 4)))
        assert ids == [0, 4, 8, 12, 16]


@pytest.mark.parametrize("rows", [5, 20, 600])
@pytest.mark.parametrize("index", [None, "by_v"])
def test_a_scan_shows_what_a_savepoint_has_undone(db, rows, index):
    table = filled(db, rows)
    with db.transaction() as txn:
        with txn.savepoint() as point:
            txn.delete_range(table, start=2)
            txn.update(table, 1, v=7)
            scan = txn.scan(table, index=index, tuples=True)
            assert next(scan) == (0, 1)
            point.rollback()
            assert list(scan) == [(id, 1) for id in range(1, rows)]
            scan = txn.scan(table, index=index, tuples=True)
            seen = [next(scan)]
            with pytest.raises(ZeroDivisionError), txn.savepoint():
                txn.update(table, 1, v=7)
                txn.insert(table, (rows, 1))
                txn.delete(table, 2)
                1 / 0
            assert seen + list(scan) == [(id, 1) for id in range(rows)]


def test_scans_that_only_read_are_as_they_were(db):
    table = filled(db, 1000)
    with db.read() as txn:
        scan = txn.scan(table, columns=["id"], tuples=True)
        assert next(scan) == (0,)
        db.run(lambda writer: writer.update(table, 1, v=5) and writer.delete_range(table, start=2))
        assert list(scan) == [(id,) for id in range(1, 1000)]


def test_a_scan_that_has_begun_does_not_go_to_arrow(db):
    table = filled(db, 3)
    for begin in (db.transaction, db.read):
        with begin() as txn:
            scan = txn.scan(table)
            next(scan)
            with pytest.raises(pantile.Misuse, match="taken already"):
                scan.__arrow_c_stream__()


def test_none_is_no_bound(db):
    columns = [Column("id", "u32"), Column("v", "i64", nullable=True)]
    table = db.open_or_create(Table("t", columns, ["id"], [Index("by_v", ["v"])]))
    with db.transaction() as txn:
        txn.insert_many(table, ((id, id if id % 2 else None) for id in range(10)))
        reads = [txn.scan, txn.count, lambda *of, **how: txn.page(*of, 3, **how)]
        for bound, calls in ("prefix", [*reads, txn.delete_range]), ("start", [txn.delete_range]), ("stop", [txn.delete_range]):
            for call in calls:
                with pytest.raises(pantile.Misuse, match=rf"leave {bound} out for all rows, or give \(None,\) for NULL"):
                    call(table, **{bound: None})
        for bound in "prefix", "start", "stop":
            for empty in (), []:
                with pytest.raises(pantile.Misuse, match=f"{bound} has no values"):
                    txn.delete_range(table, **{bound: empty})
        assert txn.count(table, start=None, stop=3) == 3 and txn.count(table, start=7, stop=None) == 3
        assert txn.count(table) == 10 and txn.count(table, index="by_v", prefix=(None,)) == 5
        assert [row["id"] for row in txn.scan(table, index="by_v", prefix=(None,))] == [0, 2, 4, 6, 8]
        assert [row["id"] for row in txn.page(table, 2, index="by_v", prefix=(None,))[0]] == [0, 2]
        assert txn.count(table, index="by_v", start=(None,)) == 10
        assert txn.delete_range(table) == 10
