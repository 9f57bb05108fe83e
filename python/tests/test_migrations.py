"""Migrations are made once, fail wholly, and are recorded as programs in Rust record them."""

import threading

import pantile
import pytest
from pantile import Column, Index, Migration, Migrations, Table

PETS = Table("pets", [Column("id", "u32"), Column("name", "string(40)")], ["id"])


def first():
    return Migration(1, "pets").create_table(PETS)


def names(db):
    with db.read() as txn:
        return [row["name"] for row in txn.scan(db.table("pets"))]


def test_each_is_made_once(tmp_path):
    def rex(db, txn):
        txn.insert(db.table("pets"), {"id": 1, "name": "Rex"})

    for made in ([1, 2], []):
        with pantile.open(tmp_path) as db:
            assert Migrations(first(), Migration(2, "Rex").run(rex)).apply(db) == made
            assert names(db) == ["Rex"]


def test_every_kind_of_step(db):
    migrations = Migrations(
        first().create_table(Table("odd", [Column("id", "u8")], ["id"])),
        Migration(5, "all else")
        .create_index("pets", Index("by_name", ["name"], unique=True))
        .create_index("pets", Index("more", ["name", "id"]))
        .drop_index("pets", "more")
        .drop_table("odd")
        .alter_table("pets", add=[Column("legs", "u8", default=4)], rename={"name": "called"}, rename_table="animals"),
    )
    assert migrations.apply(db) == [1, 5] and migrations.apply(db) == []
    animals = db.table("animals")
    assert (animals.columns, animals.indexes) == (("id", "called", "legs"), ["by_name"])
    assert sorted(db.tables()) == ["#migrations", "animals"]
    assert repr(Migration(5, "x").drop_table("odd")) == "<pantile migration 5, 'x', of 1 steps>"


def test_the_record_is_that_of_programs_in_rust(db):
    def fail(db, txn):
        raise ValueError("no")

    with pytest.raises(pantile.MigrationFailed):
        Migrations(first(), Migration(2, "fails").drop_table("pets").run(fail)).apply(db)
    with db.read() as txn:
        record = list(txn.scan(db.table("#migrations")))
    assert record == [
        {"number": 1, "name": "pets", "steps": 1, "is_under_way": False, "is_done": True},
        {"number": 2, "name": "fails", "steps": 1, "is_under_way": False, "is_done": False},
    ]


def test_a_step_that_raises_leaves_nothing_and_is_named(db):
    ways = []

    def fill(db, txn):
        txn.insert(db.table("pets"), {"id": 1, "name": "Rex"})
        if not ways:
            ways.append("one that fails")
            raise ValueError("no more cages")

    migrations = Migrations(first().run(fill).alter_table("pets", add=[Column("legs", "u8", default=4)]))
    with pytest.raises(pantile.MigrationFailed, match='step 2 of migration 1, "pets", has failed.*no more cages') as failed:
        migrations.apply(db)
    assert isinstance(failed.value.__cause__, ValueError) and not failed.value.retryable
    assert names(db) == [] and db.table("pets").columns == ("id", "name")
    assert migrations.apply(db) == [1]
    assert names(db) == ["Rex"] and db.table("pets").columns == ("id", "name", "legs")


def test_an_error_of_the_database_is_named_too(db):
    migrations = Migrations(first(), Migration(2, "gone").drop_table("none"))
    with pytest.raises(pantile.MigrationFailed, match="step 1 of migration 2.*no table \"none\""):
        migrations.apply(db)
    duplicate = Migration(2, "gone").run(lambda db, txn: txn.insert_many(db.table("pets"), [(1, "a"), (1, "b")]))
    with pytest.raises(pantile.MigrationFailed) as failed:
        Migrations(first(), duplicate).apply(db)
    assert isinstance(failed.value.__cause__, pantile.DuplicateKey) and names(db) == []


def test_what_does_not_fit_the_database_is_refused(db):
    Migrations(first()).apply(db)
    for wrong in ([], [Migration(1, "cats")], [first(), Migration(1, "again")]):
        with pytest.raises(pantile.InvalidMigrations):
            Migrations(*wrong).apply(db)


def test_an_interrupt_is_passed_on_as_it_is(db):
    def interrupted(db, txn):
        txn.insert(db.table("pets"), (1, "Rex"))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Migrations(first().run(interrupted)).apply(db)
    assert names(db) == []


def test_conflicts_are_tried_again(db):
    """Another thread writes what the step has read, before the step writes."""
    Migrations(first()).apply(db)
    db.run(lambda txn: txn.insert(db.table("pets"), (1, "Rex")))
    tries = []

    def rename(db, txn):
        name = txn.get(db.table("pets"), 1)["name"]
        if not tries:
            other = threading.Thread(target=lambda: db.run(lambda txn: txn.update(db.table("pets"), 1, name="Tib")))
            other.start()
            other.join()
        tries.append(name)
        txn.update(db.table("pets"), 1, name=name + "!")

    assert Migrations(first(), Migration(2, "louder").run(rename)).apply(db) == [2]
    assert names(db) == ["Tib!"] and tries == ["Rex", "Tib"]


def test_the_transaction_belongs_to_the_migration(db):
    kept = []

    def body(db, txn):
        kept.append(txn)
        for end in (txn.commit, txn.rollback):
            with pytest.raises(pantile.Misuse, match="the migration ends this transaction"):
                end()
        txn.insert(db.table("pets"), (1, "Rex"))

    Migrations(first().run(body)).apply(db)
    with pytest.raises(pantile.Closed):
        kept[0].count(db.table("pets"))
    assert names(db) == ["Rex"] and db.stats()["running"] == 0


def test_two_threads_make_each_once(tmp_path):
    with pantile.open(tmp_path) as db:
        one = Migration(2, "one").run(lambda db, txn: txn.insert(db.table("pets"), (1, "Rex")))
        made = []
        threads = [threading.Thread(target=lambda: made.append(Migrations(first(), one).apply(db))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(600)
        assert sorted(made) == [[], [1, 2]] and names(db) == ["Rex"]
