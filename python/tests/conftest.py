"""What several tests use."""

import pantile
import pytest
from pantile import Column, Index, Table

NUMBERS = Table("numbers", [Column("id", "u64"), Column("n", "i64")], ["id"], [Index("by_n", ["n"])])


@pytest.fixture
def db(tmp_path):
    with pantile.open(tmp_path / "db") as db:
        yield db


@pytest.fixture
def numbers(db):
    table = db.open_or_create(NUMBERS)
    with db.transaction() as txn:
        assert txn.insert_many(table, ({"id": i, "n": -i} for i in range(1000))) == 1000
    return table
