"""An order service on one directory: what a program needs around its transactions.

$ python shop.py old DIR 20000         # a database as the first version of this program left it
$ python shop.py migrate DIR           # ... made what this version needs
$ python shop.py work DIR BACKUPS      # takes orders and backs up, until it is killed
$ python shop.py report DIR            # from a second process, while the first one works
$ python shop.py dump DIR FILE         # everything as text

Any of them can be killed at any moment; `tests/test_shop.py` does. `examples/shop` is the same in Rust.
"""

import itertools
import sys
import threading
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Iterator, List, Optional

import pantile
from pantile import Column, Index, Migration, Migrations, Table

ITEMS = 50
PAGE = 5
THREADS = 2
# Orders of one thread have numbers of their own.
FIRST, EACH = 1 << 40, 1 << 32


@dataclass
class Item:
    id: int
    name: str
    price: Decimal
    sold: int


@dataclass
class Order:
    id: int
    item: int
    pieces: int
    note: Optional[str] = None  # added by a migration: orders from before have none
    total: Optional[Decimal] = None


def say(line: str) -> None:
    # One call, so that lines of threads do not mix.
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


# --- How databases of the first version become what the program needs


def stock(db: pantile.Database, txn: pantile.Transaction) -> None:
    prices = (Decimal(199 + id) / 100 for id in range(ITEMS))
    txn.insert_many(db.table("items"), (asdict(Item(id, f"item {id}", price, 0)) for id, price in enumerate(prices)))


def fill_totals(db: pantile.Database, txn: pantile.Transaction) -> None:
    """One transaction: the totals of all earlier orders, or none."""
    items, orders = db.table("items"), db.table("orders")
    prices = {row["id"]: row["price"] for row in txn.scan(items, columns=["id", "price"])}
    # All that is read before anything is written: a scan would come to its own changes.
    for n, row in enumerate(list(txn.scan(orders))):
        txn.update(orders, row["id"], total=prices[row["item"]] * row["pieces"])
        if n % 1000 == 0:
            say(f"filled {n}")


FIRST_VERSION = (
    Migration(1, "items and orders")
    .create_table(Table(
        "items",
        [Column("id", "u32"), Column("name", "string(40)"), Column("price", "decimal(10,2)"), Column("sold", "u64")],
        ["id"],
    ))
    .create_table(Table("orders", [Column("id", "u64"), Column("item", "u32"), Column("pieces", "u32")], ["id"]))
    .run(stock)
)

# All that a database has had, in order. What is here once is never changed.
ALL = Migrations(
    FIRST_VERSION,
    Migration(2, "notes and totals").alter_table(
        "orders", add=[Column("note", "string(100)", nullable=True), Column("total", "decimal(12,2)", nullable=True)]
    ),
    Migration(3, "totals of earlier orders, and an index")
    .run(fill_totals)
    .create_index("orders", Index("by_item", ["item"])),
)


def first_version(db: pantile.Database, count: int) -> None:
    """A database as the first version would have left it after some orders."""
    Migrations(FIRST_VERSION).apply(db)
    items, orders = db.table("items"), db.table("orders")
    rows = [(id, id % ITEMS, 1 + id % 7) for id in range(count)]

    def fill(txn: pantile.Transaction) -> None:
        txn.insert_many(orders, rows)
        for item in range(ITEMS):
            txn.update(items, item, sold=sum(pieces for _, of, pieces in rows if of == item))

    db.run(fill)


# --- Orders


class Shop:
    def __init__(self, db: pantile.Database) -> None:
        self.db, self.items, self.orders = db, db.table("items"), db.table("orders")

    def order(self, id: int, item: int, pieces: int) -> None:
        """Takes an order: the item counts what is sold, the order its total. Both or neither."""

        def take(txn: pantile.Transaction) -> None:
            row = txn.get(self.items, item, for_update=True)
            if row is None:
                raise KeyError(f"there is no item {item}")
            found = Item(**row)
            txn.update(self.items, item, sold=found.sold + pieces)
            note = "by truck" if pieces > 8 else None
            txn.insert(self.orders, asdict(Order(id, item, pieces, note, found.price * pieces)))

        self.db.run(take, name="order")

    def pages(self, txn: pantile.Transaction, size: int = PAGE) -> Iterator[List[Order]]:
        """The list of orders, the newest first. Each page is a query that begins where the one before has ended."""
        before = None
        while page := [Order(**row) for row in txn.scan(self.orders, stop=before, reverse=True, limit=size)]:
            yield page
            before = page[-1].id

    def taken_of(self, txn: pantile.Transaction, item: Item) -> int:
        """Pieces of an item by its orders, whose totals are checked."""
        orders = [Order(**row) for row in txn.scan(self.orders, index="by_item", prefix=item.id)]
        for order in orders:
            assert order.total == item.price * order.pieces, order
        return sum(order.pieces for order in orders)


def take_orders(shop: Shop, thread: int) -> None:
    first = FIRST + thread * EACH
    with shop.db.read() as txn:
        taken = txn.count(shop.orders, start=first, stop=first + EACH)
    for id in itertools.count(first + taken):
        shop.order(id, id * 7919 % ITEMS, 1 + id % 10)
        say(f"order {id}")


def work(db: pantile.Database, backups: Path, rate: Optional[int]) -> None:
    """Writes a line for each order once it is durable, and lines for each backup and for what holds garbage."""
    shop = Shop(db)
    takers = [threading.Thread(target=take_orders, args=(shop, n), daemon=True) for n in range(THREADS)]
    for taker in takers:
        taker.start()
    for round in itertools.count():
        try:
            say(f"backup {round} {db.backup_to(backups / str(round), rate=rate)}")
        except pantile.NotEmpty:
            continue  # an earlier run has made it; one that was interrupted is made again
        for line in insight(db):
            say(line)
        if not all(taker.is_alive() for taker in takers):
            sys.exit("orders are no longer taken")


# --- What it says about itself


def insight(db: pantile.Database) -> Iterator[str]:
    """What the database takes, and which transactions keep garbage in it."""
    stats = db.stats()
    yield "stats {commits} commits, {rows} rows, {obsolete_bytes} of {medium_bytes} bytes obsolete".format(**stats)
    for running in db.transactions():
        if running.held_bytes:
            yield f"holds {running.name} for {running.age:.1f} s, {running.held_bytes} bytes, of {sorted(running.tables)}"


def report(db: pantile.Database) -> None:
    """What was sold of each item, by the orders and by the items, which must agree."""
    shop = Shop(db)
    with db.read(safe_snapshot=True, name="report") as txn:
        items = [Item(**row) for row in txn.scan(shop.items)]
        for item in items:
            taken = shop.taken_of(txn, item)
            assert taken == item.sold, (taken, item)
            say(f"{taken:>8} pieces of {item.name:<8} for {taken * item.price}")
        say(f"{sum(item.sold for item in items)} pieces in {txn.count(shop.orders)} orders; the last ones:")
        for order in next(shop.pages(txn), []):
            say(f"{order.id}: {order.pieces} of item {order.item} {order.note or ''}")


def main(what: str, dir: str, *more: str) -> None:
    if what in ("report", "dump"):
        with pantile.open_read_only(dir) as db:
            report(db) if what == "report" else say(f"dumped {db.dump(*more)}")
        return
    # A transaction that holds back garbage for longer than a minute is ended.
    with pantile.open(dir, max_pinned_age=60, on_pinned="end") as db:
        if what == "old":
            first_version(db, int(more[0]))
            return
        say(f"migrated {ALL.apply(db)}")
        if what == "work":
            work(db, Path(more[0]), int(more[1]) if more[1:] else None)


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("old", "migrate", "work", "report", "dump"):
        sys.exit(__doc__)
    main(*sys.argv[1:])
