"""Pages of rows, rows that are locked by pages, and savepoints."""

import threading

import pantile
import pytest
from pantile import Column, Index, Table

TASKS = Table("tasks", [Column("id", "u32"), Column("state", "u8")], ["id"], [Index("by_state", ["state"])])


@pytest.fixture
def db():
    with pantile.open("unused", memory=True) as db:
        tasks = db.open_or_create(TASKS)
        db.run(lambda txn: txn.insert_many(tasks, ({"id": id, "state": id % 2} for id in range(100))))
        yield db


def pages(db, rows, **where):
    after, all = None, []
    while True:
        with db.read() as txn:
            found, after = txn.page(db.table("tasks"), rows, after=after, **where)
        assert len(found) <= rows
        all += [row["id"] for row in found]
        if after is None:
            return all


@pytest.mark.parametrize("rows", [1, 7, 100, 1000])
@pytest.mark.parametrize("reverse", [False, True])
def test_pages_are_the_whole(db, rows, reverse):
    order = reversed if reverse else iter
    assert pages(db, rows, reverse=reverse) == list(order(range(100)))
    assert pages(db, rows, index="by_state", prefix=1, reverse=reverse) == list(order(range(1, 100, 2)))
    by_state = sorted(range(100), key=lambda id: id % 2)
    assert pages(db, rows, index="by_state", reverse=reverse) == list(order(by_state))
    assert pages(db, rows, start=10, stop=20, columns=["id"], reverse=reverse) == list(order(range(10, 20)))


def test_what_is_no_page_is_refused(db):
    tasks = db.table("tasks")
    with db.read() as txn:
        _, after = txn.page(tasks, 5)
        with pytest.raises(pantile.InvalidValue, match="after"):
            txn.page(tasks, 5, after=b"abc")
        with pytest.raises(pantile.Error, match="position"):
            txn.page(tasks, 5, after=after, index="by_state")
        with pytest.raises(pantile.InvalidValue, match="at least one"):
            txn.page(tasks, 0)
        with pytest.raises(pantile.InvalidValue, match="for_update"):
            txn.page(tasks, 5, skip_locked=True)
        assert [row["id"] for row in txn.page(tasks, 2, after=after)[0]] == [5, 6]


def test_workers_take_tasks_that_nobody_has(db):
    tasks, taken, lock = db.table("tasks"), [], threading.Lock()

    def work():
        while True:
            def take(txn):
                rows, _ = txn.page(tasks, 3, index="by_state", prefix=0, for_update=True, skip_locked=True)
                for row in rows:
                    txn.update(tasks, row["id"], state=2)
                return [row["id"] for row in rows]

            ids = db.run(take)
            if not ids:
                with db.read() as txn:
                    if txn.count(tasks, prefix=0, index="by_state") == 0:
                        return
            with lock:
                taken.extend(ids)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(taken) == list(range(0, 100, 2))


def test_a_locked_page_is_passed_over(db):
    tasks = db.table("tasks")
    with db.transaction() as first:
        mine, _ = first.page(tasks, 3, for_update=True)
        assert [row["id"] for row in mine] == [0, 1, 2]
        with db.transaction() as second:
            theirs, _ = second.page(tasks, 3, for_update=True, skip_locked=True)
            assert [row["id"] for row in theirs] == [3, 4, 5]


def test_savepoints(db):
    tasks = db.table("tasks")
    with db.transaction() as txn:
        txn.update(tasks, 1, state=7)
        with pytest.raises(KeyError):
            with txn.savepoint():
                txn.update(tasks, 2, state=7)
                with txn.savepoint():
                    txn.update(tasks, 3, state=7)
                raise KeyError("no such customer")
        with txn.savepoint() as point:
            txn.update(tasks, 4, state=7)
            point.rollback()
            txn.update(tasks, 5, state=7)
    with db.read() as txn:
        assert [row["id"] for row in txn.scan(tasks) if row["state"] == 7] == [1, 5]
    with pytest.raises(pantile.Closed):
        point.rollback()


def test_a_savepoint_in_a_transaction_that_has_ended(db):
    txn = db.begin()
    with pytest.raises(ZeroDivisionError):
        with txn.savepoint():
            txn.rollback()
            1 / 0
    with pytest.raises(pantile.Closed):
        with txn.savepoint():
            pass
