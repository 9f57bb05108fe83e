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
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, TypeVar, Union

from . import _native
from ._native import (
    AlreadyOpen,
    Closed,
    Conflict,
    Damaged,
    DuplicateKey,
    Error,
    InvalidSchema,
    InvalidValue,
    Misuse,
    OutOfSpace,
    Scan,
    Transaction,
)
from ._native import Table as TableHandle

__all__ = [
    "AlreadyOpen", "Closed", "Column", "Conflict", "Damaged", "Database", "DuplicateKey", "Error", "Index",
    "InvalidSchema", "InvalidValue", "Misuse", "OutOfSpace", "Scan", "Table", "TableHandle", "Transaction",
    "open", "restore",
]

_Path = Union[str, "os.PathLike[str]"]
_T = TypeVar("_T")
_RETRY_SECONDS = 30.0


@dataclass(frozen=True)
class Column:
    """A column. Types: bool, i8 to i64, u8 to u64, f32, f64, timestamp, string(MAX), bytes(MAX),
    fixed string(LEN), fixed bytes(LEN) and decimal(PRECISION,SCALE)."""

    name: str
    type: str
    nullable: bool = False
    default: Any = None

    def _parts(self) -> Tuple[str, str, bool, Any]:
        return self.name, self.type, self.nullable, self.default


@dataclass(frozen=True)
class Index:
    """A secondary index over columns, the most significant first."""

    name: str
    columns: List[str]
    unique: bool = False


@dataclass(frozen=True)
class Table:
    """The definition of a table. `Database.open_or_create` returns a handle for it."""

    name: str
    columns: List[Column]
    primary_key: List[str]
    indexes: List[Index] = field(default_factory=list)


class Database(_native.Database):
    """An open database; `with` closes it. Any number of threads can use it."""

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def open_or_create(self, table: Table) -> TableHandle:
        """The table of this definition, made if it is not there; `InvalidSchema` if it differs."""
        indexes = [(index.name, index.columns, index.unique) for index in table.indexes]
        columns = [column._parts() for column in table.columns]
        return self._open_or_create(table.name, columns, table.primary_key, indexes)

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
    ) -> TableHandle:
        """Changes columns, all at once and in this order. Returns a new handle of the table."""
        steps: List[Tuple[str, str, Any]] = [("drop", name, None) for name in drop or []]
        for what, changes in (("rename", rename), ("widen", widen), ("default", default)):
            steps += [(what, name, to) for name, to in (changes or {}).items()]
        steps += [("nullable", name, None) for name in nullable or []]
        return self._alter(table, [column._parts() for column in add or []], steps)

    @contextmanager
    def transaction(self, *, isolation: str = "serializable") -> Iterator[Transaction]:
        """A transaction that commits at the end of the block, and rolls back if the block raises."""
        txn = self.begin(isolation=isolation)
        try:
            yield txn
            txn.commit()
        finally:
            txn.rollback()

    @contextmanager
    def read(self, *, safe_snapshot: bool = False) -> Iterator[Transaction]:
        """A transaction that only reads. A safe snapshot disturbs nobody and is a little older."""
        txn = self.begin(read_only=True, safe_snapshot=safe_snapshot)
        try:
            yield txn
        finally:
            txn.rollback()

    def run(self, body: Callable[[Transaction], _T]) -> _T:
        """Runs `body` in a transaction, again after conflicts, for 30 seconds at most."""
        end = time.monotonic() + _RETRY_SECONDS
        tries = 0
        while True:
            try:
                with self.transaction() as txn:
                    return body(txn)
            except Error as error:
                if not error.retryable or time.monotonic() >= end:
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
) -> Database:
    """Opens the database in a directory, or creates it. With `memory`, nothing is written to the directory.
    `durability` is "sync", "group" or "none"."""
    return Database(
        path, durability=durability, memory=memory, create=create, read_only=read_only, max_bytes=max_bytes
    )


def restore(backup: _Path, into: _Path) -> int:
    """Copies a backup into an empty directory and checks the copy. Returns how many rows it has."""
    return Database._restore(backup, into)
