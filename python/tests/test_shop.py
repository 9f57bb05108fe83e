"""The order service of `examples/shop.py` is run, and killed during a migration, orders and a backup."""

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pantile
import pytest

PROGRAM = Path(__file__).parent.parent / "examples" / "shop.py"
OLD = 5000
# Bytes of a backup in a second, so that it takes a few.
SLOW = 20_000
SECONDS = 600


def start(*arguments):
    command = [sys.executable, PROGRAM, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def done(*arguments):
    child = start(*arguments)
    out, err = child.communicate(timeout=SECONDS)
    assert child.returncode == 0, err
    return out.splitlines()


def killed_when(child, is_time):
    """Kills the child once a line says that it is time. Returns all that it has said."""
    said, is_killed = [], False
    too_late = threading.Timer(SECONDS, child.kill)
    too_late.start()
    for line in child.stdout:
        said.append(line)
        if not is_killed and is_time(said):
            is_killed = True
            child.kill()
    too_late.cancel()
    child.wait(SECONDS)
    assert is_killed, (said[-5:], child.stderr.read())
    child.stderr.close()
    return [line.strip() for line in said if line.endswith("\n")]


def orders_of(said):
    return [int(line.split()[1]) for line in said if line.startswith("order ")]


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    place = tmp_path_factory.mktemp("shop") / "old"
    done("old", place, OLD)
    return place


@pytest.fixture
def shop(old, tmp_path):
    return shutil.copytree(old, tmp_path / "shop")


def test_a_migration_is_killed_and_done_once(shop):
    for filled in (0, OLD // 2 // 1000 * 1000):
        said = killed_when(start("migrate", shop), lambda said: said[-1] == f"filled {filled}\n")
        assert not any(line.startswith("migrated") for line in said)
        with pantile.open(shop) as db, db.read() as txn:
            orders = db.table("orders")
            assert orders.columns[-1] == "total" and orders.indexes == []
            assert {row["total"] for row in txn.scan(orders)} == {None}, "the step is not half done"
    assert done("migrate", shop)[-1] == "migrated [3]"
    assert done("migrate", shop) == ["migrated []"]
    # It looks at the total of each order.
    assert done("report", shop)[50].endswith(f"in {OLD} orders; the last ones:")


def test_orders_and_a_backup_are_killed(shop, tmp_path):
    backups = tmp_path / "backups"
    backups.mkdir()
    done("migrate", shop)
    has_both = lambda said: len(orders_of(said)) > 100 and any(line.startswith("backup 0 ") for line in said)
    whole = killed_when(start("work", shop, backups), has_both)
    number = sum((place / "pantile.data").exists() for place in backups.iterdir())

    def is_backing_up(said):
        return len(orders_of(said)) > 5 and (backups / str(number) / "pantile.incomplete").exists()

    slow = killed_when(start("work", shop, backups, SLOW), is_backing_up)
    assert not any(line.startswith(f"backup {number} ") for line in slow)
    for way in (pantile.open, pantile.open_read_only, lambda place: pantile.restore(place, tmp_path / "none")):
        with pytest.raises(pantile.IncompleteBackup, match="not completed"):
            way(backups / str(number))
    assert pantile.restore(backups / "0", tmp_path / "first") > OLD
    done("report", tmp_path / "first")

    taken = orders_of(whole) + orders_of(slow)
    assert len(taken) == len(set(taken))
    done("report", shop)
    with pantile.open(shop) as db:
        with db.read() as txn:
            missing = [id for id in taken if txn.get(db.table("orders"), id) is None]
        assert missing == []
        # The one that was interrupted is made again.
        assert db.backup_to(backups / str(number)) > OLD + len(taken)
        with pytest.raises(pantile.NotEmpty):
            db.backup_to(backups / str(number))
    pantile.restore(backups / str(number), tmp_path / "again")
    assert done("report", tmp_path / "again") == done("report", shop)


def test_reports_and_dumps_beside_orders(shop, tmp_path):
    done("migrate", shop)
    (tmp_path / "backups").mkdir()
    worker = start("work", shop, tmp_path / "backups")
    assert worker.stdout.readline() == "migrated []\n"
    try:
        assert " orders; the last ones:" in done("report", shop)[50]
        assert done("dump", shop, tmp_path / "dump")[0].startswith("dumped ")
        reader = start("report", shop)
        reader.kill()
        reader.communicate(timeout=SECONDS)
        done("report", shop)
    finally:
        worker.kill()
        worker.communicate(timeout=SECONDS)
    with pantile.open(tmp_path / "loaded") as db:
        assert db.load(tmp_path / "dump") > OLD
    done("report", tmp_path / "loaded")


@pytest.fixture
def program(monkeypatch):
    monkeypatch.syspath_prepend(str(PROGRAM.parent))
    import shop

    return shop


def test_pages_have_each_order_once(shop, program):
    with pantile.open(shop) as db:
        program.ALL.apply(db)
        with db.read() as txn:
            pages = list(program.Shop(db).pages(txn, size=999))
    assert [len(page) for page in pages] == [999] * 5 + [5]
    assert [order.id for page in pages for order in page] == list(reversed(range(OLD)))


def test_it_says_who_holds_garbage(shop, program):
    with pantile.open(shop) as db:
        program.ALL.apply(db)
        with db.read(name="a long report") as txn:
            assert txn.count(db.table("orders")) == OLD
            for n in range(5):
                db.run(lambda txn: [txn.update(db.table("items"), id, sold=n) for id in range(program.ITEMS)])
            lines = list(program.insight(db))
            assert lines[0].startswith("stats ") and any(line.startswith("holds a long report for ") for line in lines)
            [holder] = [running for running in db.transactions() if running.name == "a long report"]
            db.end_transaction(holder.id)
            with pytest.raises(pantile.TransactionEnded):
                txn.count(db.table("orders"))
        assert not any("a long report" in line for line in program.insight(db))


def test_how_it_is_called():
    child = start("sell")
    assert "python shop.py work DIR BACKUPS" in child.communicate(timeout=SECONDS)[1] and child.returncode == 1
