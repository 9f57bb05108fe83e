"""Numbered changes of a database's schema and rows, each made once."""

from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _native
from ._definition import Column, Index, Table, changes


class Migration:
    """One numbered change of a schema, in steps that are made one after the other. The name is for people.

    Each step is made wholly or not at all, and once, whenever the process ends. What is here once is never changed.
    """

    def __init__(self, number: int, name: str) -> None:
        self._number = number
        self._name = name
        self._steps: List[Tuple[str, Any]] = []

    def __repr__(self) -> str:
        return f"<pantile migration {self._number}, {self._name!r}, of {len(self._steps)} steps>"

    def _step(self, what: str, how: object) -> "Migration":
        self._steps.append((what, how))
        return self

    def create_table(self, table: Table) -> "Migration":
        """Creates a table."""
        return self._step("create_table", table._parts())

    def alter_table(
        self,
        table: str,
        *,
        add: Optional[List[Column]] = None,
        drop: Optional[List[str]] = None,
        rename: Optional[Dict[str, str]] = None,
        widen: Optional[Dict[str, str]] = None,
        nullable: Optional[List[str]] = None,
        default: Optional[Dict[str, Any]] = None,
        rename_table: Optional[str] = None,
        rename_index: Optional[Dict[str, str]] = None,
    ) -> "Migration":
        """Changes a table, all at once; see `Database.alter`."""
        steps = changes(add, drop, rename, widen, nullable, default, rename_table, rename_index)
        return self._step("alter_table", (table, *steps))

    def drop_table(self, table: str) -> "Migration":
        """Drops a table with its rows."""
        return self._step("drop_table", table)

    def create_index(self, table: str, index: Index) -> "Migration":
        """Creates an index over rows that are there."""
        return self._step("create_index", (table, index._parts()))

    def drop_index(self, table: str, index: str) -> "Migration":
        """Drops an index."""
        return self._step("drop_index", (table, index))

    def run(self, body: Callable[[Any, _native.Transaction], object]) -> "Migration":
        """Changes rows: `body` gets the database and a transaction, and runs again after conflicts. The transaction
        commits when it returns, and with it that the step is done. What it raises is the cause of `MigrationFailed`."""
        return self._step("run", body)


class Migrations:
    """All migrations of a program, from the first one on, by rising numbers. The database records in the table
    `#migrations` which it has had, in the same way for programs in Rust and Python.

    >>> import pantile
    >>> db = pantile.open("unused", memory=True)
    >>> pets = pantile.Table("pets", [pantile.Column("id", "u32")], ["id"])
    >>> all = pantile.Migrations(
    ...     pantile.Migration(1, "pets").create_table(pets),
    ...     pantile.Migration(2, "the first one").run(lambda db, txn: txn.insert(db.table("pets"), [1])),
    ... )
    >>> all.apply(db), all.apply(db)
    ([1, 2], [])
    """

    def __init__(self, *migrations: Migration) -> None:
        self._all = migrations

    def apply(self, db: _native.Database) -> List[int]:
        """Makes those that the database has not had, in order, and returns their numbers. One that was interrupted or
        has failed goes on from the step at which that happened.

        Raises `InvalidMigrations`, before anything is done, if the numbers do not rise or the database has had a
        migration that is not among these; `MigrationFailed` if a step fails, which names the step. Those before it
        stay made. The step itself is made only if the database failed when it recorded that the step is done; the next
        call finds out, and does not make it twice.
        """
        return db._migrate([(one._number, one._name, one._steps) for one in self._all])
