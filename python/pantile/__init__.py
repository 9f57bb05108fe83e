"""Pantile, an embedded store for transactions, for Python.

>>> import pantile
>>> db = pantile.open("unused", memory=True)
>>> pets = db.open_or_create(pantile.Table("pets", [pantile.Column("id", "u32"), pantile.Column("name", "string(40)")], ["id"]))
>>> with db.transaction() as txn:
...     txn.insert(pets, {"id": 7, "name": "Rex"})
>>> with db.read() as txn:
...     txn.get(pets, 7)
{'id': 7, 'name': 'Rex'}
"""

import os
import random
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, TypeVar, Union

from . import _native
from ._definition import Column, Index, Table, changes
from ._migrations import Migration, Migrations
from ._native import (
    AlreadyOpen,
    Closed,
    Conflict,
    Damaged,
    DuplicateKey,
    Error,
    IncompleteBackup,
    InvalidMigrations,
    InvalidSchema,
    InvalidValue,
    MigrationFailed,
    Misuse,
    NotEmpty,
    OutOfSpace,
    Savepoint,
    Scan,
    Transaction,
    TransactionEnded,
)
from ._native import Table as TableHandle

__all__ = [
    "AlreadyOpen", "Closed", "Column", "Conflict", "Damaged", "Database", "DuplicateKey", "Error", "IncompleteBackup",
    "Index", "InvalidMigrations", "InvalidSchema", "InvalidValue", "Migration", "MigrationFailed", "Migrations",
    "Misuse", "NotEmpty", "OutOfSpace", "RunningTransaction", "Savepoint", "Scan", "Table", "TableHandle", "Transaction",
    "TransactionEnded", "open", "open_read_only", "restore",
]

_Path = Union[str, "os.PathLike[str]"]
_T = TypeVar("_T")
_RETRY_SECONDS = 30.0
_PACKAGE = os.path.dirname(__file__) + os.sep


def _place() -> str:
    """The line of the program that has called this package, like "shop.py:134"."""
    frame = sys._getframe(1)
    # Blocks of `with` are entered by contextlib.
    while frame.f_back and (
        frame.f_code.co_filename.startswith(_PACKAGE) or frame.f_globals.get("__name__") == "contextlib"
    ):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


@dataclass(frozen=True)
class RunningTransaction:
    """A transaction that has not ended, and what it holds back. Its end frees at most `freed_bytes`."""

    id: Optional[int]
    """By which `Database.end_transaction` ends it; None for work of the database itself."""
    name: Optional[str]
    """The name that it was given, or else the line that began it, like "shop.py:134"."""
    age: float
    """Seconds since it began."""
    read_only: bool
    thread: Optional[str]
    ended: Optional[str]
    """What has ended it from outside, if its program has not dropped it yet."""
    held_bytes: int
    """Superseded bytes on the medium, in blocks that it may be reading."""
    freed_bytes: int
    held_dram_bytes: int
    buffer_bytes: int
    """Memory of its own writes that are not committed."""
    tables: Dict[str, int]
    """The parts of `held_bytes` by table."""


class Database(_native.Database):
    """An open database; `with` closes it. Any number of threads can use it.

    A block that an exception leaves does not wait for transactions: the database is closed when they have ended."""

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *raised: object) -> None:
        # The traceback may keep a transaction that nothing ends, and waiting for it would hide the exception.
        if raised and raised[0] is not None:
            self._let_go()
        else:
            self.close()

    def open_or_create(self, table: Table) -> TableHandle:
        """The table of this definition, made if it is not there; `InvalidSchema` if it differs."""
        return self._open_or_create(*table._parts())

    def alter(
        self,
        table: TableHandle,
        *,
        add: Optional[List[Column]] = None,
        drop: Optional[List[str]] = None,
        rename: Optional[Dict[str, str]] = None,
        widen: Optional[Dict[str, str]] = None,
        nullable: Optional[List[str]] = None,
        default: Optional[Dict[str, Any]] = None,
        rename_table: Optional[str] = None,
        rename_index: Optional[Dict[str, str]] = None,
    ) -> TableHandle:
        """Changes columns and the names of the table and its indexes, all at once. Returns a new handle of the table.

        `drop` and the keys of `rename` are names as they are before the call; names may change places. `add`, `widen`,
        `nullable` and `default` have the names as they are after it."""
        steps = changes(add, drop, rename, widen, nullable, default, rename_table, rename_index)
        return self._alter(table, *steps)

    def transactions(self) -> List[RunningTransaction]:
        """The transactions that have not ended, the oldest first."""
        return [RunningTransaction(**running) for running in self._transactions()]

    def begin(
        self, *, isolation: str = "serializable", read_only: bool = False, safe_snapshot: bool = False,
        name: Optional[str] = None,
    ) -> Transaction:
        """Begins a transaction; `transaction` does it for a `with` statement. `transactions` shows its name, or else
        the line that began it."""
        return self._begin(isolation, read_only, safe_snapshot, name, "" if name is not None else _place())

    @contextmanager
    def transaction(
        self, *, isolation: str = "serializable", name: Optional[str] = None
    ) -> Iterator[Transaction]:
        """A transaction that commits at the end of the block, and rolls back if the block raises. The block may also
        call `commit` or `rollback` itself; its end then does nothing."""
        txn = self.begin(isolation=isolation, name=name)
        try:
            yield txn
            if not txn._is_settled():
                txn.commit()
        finally:
            txn.rollback()

    @contextmanager
    def read(self, *, safe_snapshot: bool = False, name: Optional[str] = None) -> Iterator[Transaction]:
        """A transaction that only reads. A safe snapshot disturbs nobody and is a little older."""
        txn = self.begin(read_only=True, safe_snapshot=safe_snapshot, name=name)
        try:
            yield txn
        finally:
            txn.rollback()

    def run(self, body: Callable[[Transaction], _T], *, name: Optional[str] = None) -> _T:
        """Runs `body` in a transaction, again after conflicts, for 30 seconds at most. Returns what `body` returns, also
        if it has called `commit` or `rollback` itself. Once it has committed, it does not run again."""
        end = time.monotonic() + _RETRY_SECONDS
        tries = 0
        while True:
            txn: Optional[Transaction] = None
            try:
                with self.transaction(name=name) as txn:
                    return body(txn)
            except Error as error:
                has_committed = txn is not None and txn._has_committed()
                if has_committed or not error.retryable or time.monotonic() >= end:
                    raise
            tries += 1
            time.sleep(random.uniform(0, min(2**tries, 1024) * 1e-6))


def open(
    path: _Path,
    *,
    durability: str = "sync",
    memory: bool = False,
    create: bool = True,
    read_only: bool = False,
    max_bytes: Optional[int] = None,
    max_pinned_age: Optional[float] = None,
    max_pinned_bytes: Optional[int] = None,
    on_pinned: str = "warn",
) -> Database:
    """Opens the database in a directory, or creates it. With `memory`, nothing is written to the directory.
    `durability` is "sync", "group" or "none". A transaction that holds back garbage for more than `max_pinned_age`
    seconds, or more than `max_pinned_bytes` of it, is counted, and ended if `on_pinned` is "end"."""
    return Database(
        path, durability=durability, memory=memory, create=create, read_only=read_only, max_bytes=max_bytes,
        max_pinned_age=max_pinned_age, max_pinned_bytes=max_pinned_bytes, on_pinned=on_pinned,
    )


def open_read_only(path: _Path) -> Database:
    """Opens a database that is there to read it, also while another process has it open."""
    return open(path, read_only=True)


def restore(backup: _Path, into: _Path) -> int:
    """Copies a backup into an empty directory and checks the copy. Returns how many rows it has."""
    return Database._restore(backup, into)
