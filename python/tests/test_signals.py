"""Signals, as that of Ctrl-C, while rows are read, and waits within calls that do not hold the interpreter's lock."""

import ctypes
import linecache
import signal
import threading
import time
from functools import partial
from itertools import chain, count

import pantile
import pyarrow
import pytest
from pantile import Column, Table, _arrow

# Nothing here takes nearly as long, not even on a slow and busy machine.
PATIENCE = 600


class Stop(Exception):
    """What the handlers of signals raise here."""


@pytest.fixture
def armed():
    """Once something is in it, the next signal raises `Stop` and empties it. There are signals all the time."""
    armed = []

    def stop(*_):
        if armed:
            armed.clear()
            raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    yield armed
    armed.clear()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("wait", [
    lambda txn, table: txn.get(table, 1),
    lambda txn, table: list(txn.scan(table)),
    lambda txn, table: txn.scan(table).to_arrow(),
    lambda txn, table: txn.scan(table).to_pandas(),
])
def test_a_signal_ends_a_wait_with_what_its_handler_raises(db, numbers, armed, wait):
    with db.read() as txn:
        # Also imports what it needs, which a signal is not to interrupt.
        wait(txn, numbers)
    writer, txn = db.begin(), db.begin()
    writer.update(numbers, 1, n=5)
    with pytest.raises(Stop):
        armed.append(True)
        wait(txn, numbers)
    # It is raised once, in place of no other error, and the transaction goes on.
    with pytest.raises(pantile.DuplicateKey):
        txn.insert(numbers, (2, 0))
    writer.rollback()
    wait(txn, numbers)
    txn.commit()


def test_a_wait_for_a_batch_needs_no_lock_of_the_interpreter(db, numbers):
    """Within a call of the package, here `insert_many`, which runs the generator."""
    writer, reader, other = db.begin(), db.begin(), db.begin(isolation="snapshot")
    writer.update(numbers, 500, n=5)

    def rows():
        for batch in reader.scan(numbers).to_batches(batch_rows=100):
            yield from ((id + 1000, n) for id, n in zip(batch["id"].to_pylist(), batch["n"].to_pylist()))

    with pytest.raises(pyarrow.ArrowInvalid, match="another running transaction has locked the tuple"):
        other.insert_many(numbers, rows())
    writer.commit()
    other.insert_many(numbers, ({"id": id + 1000, "n": 0} for id in reader.scan(numbers).to_arrow()["id"].to_pylist()))
    assert other.count(numbers) == 2000


def reads_batches(frame):
    """Whether it is at work, or called from, where the package takes one batch after the other."""
    while frame is not None and frame.f_code is not _arrow.table.__code__:
        frame = frame.f_back
    return frame is not None and "for batch in batches" in linecache.getline(frame.f_code.co_filename, frame.f_lineno)


def test_a_signal_is_handled_between_batches(armed):
    with pantile.open("unused", memory=True) as db:
        table = db.open_or_create(Table("t", [Column("id", "u32")], ["id"]))
        db.run(lambda txn: txn.insert_many(table, ((id,) for id in range(400_000))))
        handled = []

        def end(_, frame):
            if reads_batches(frame):
                handled.append(True)
                # The first one may have come before the first batch.
                if len(handled) == 2:
                    txn.rollback()

        signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        until = time.monotonic() + PATIENCE
        while True:
            handled.clear()
            txn = db.begin(read_only=True)
            try:
                txn.scan(table).to_arrow()
            except pantile.Closed:
                break
            # A fast machine may have read everything before.
            assert time.monotonic() < until, "no signal is handled between batches"
        assert len(handled) >= 2


def test_a_signal_is_handled_between_rows_that_a_list_takes(db, numbers):
    def stop(*_):
        raise Stop

    before = signal.signal(signal.SIGINT, stop)
    try:
        for begin in (db.read, db.transaction):
            with begin() as txn:
                # No step of the interpreter is between the signal and the rows.
                taken = []
                interrupt = map(partial.__call__, [partial(ctypes.pythonapi.PyErr_SetInterrupt)])
                with pytest.raises(Stop):
                    taken.extend(chain(interrupt, txn.scan(numbers)))
                assert len(taken) == 1
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_signal_within_rows_that_are_read_ahead_is_not_lost(armed):
    rows = 200_000
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    with pantile.open("unused", memory=True) as db:
        table = db.open_or_create(Table("t", [Column("id", "u32"), Column("n", "u32")], ["id"]))
        db.run(lambda txn: txn.insert_many(table, ((id, 0) for id in range(rows))))
        stopped, until = 0, time.monotonic() + PATIENCE
        for n in count(1):
            writer = db.begin()
            writer.update_many(table, ((id, {"n": n}) for id in reversed(range(20, rows))))
            committer = threading.Thread(target=writer.commit)
            committer.start()
            try:
                # One that begins within the commit waits for it, four rows after the first batch.
                while committer.is_alive():
                    with db.read() as txn:
                        scan, ids = txn.scan(table, columns=["id"], stop=600, tuples=True), []
                        try:
                            armed.append(True)
                            ids.extend(scan)
                            armed.clear()
                        except Stop:
                            # Behind the first batch.
                            stopped += len(ids) == 16
                            ids.extend(scan)
                        assert ids == [(id,) for id in range(600)]
            finally:
                armed.clear()
                committer.join()
            if stopped:
                break
            assert time.monotonic() < until, "no signal comes while a row is waited for"
