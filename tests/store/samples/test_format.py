"""The format on disk: older versions are read, later ones and files of other programs rejected."""

from __future__ import annotations

import os
import sqlite3
import struct

import pytest

from runvitals.store.samples.interface import StoreError
from runvitals.store.samples.sqlite import SqliteChunks, database, log
from runvitals.store.samples.sqlite.check import check
from runvitals.store.samples.sqlite.database import Format
from tests.store.samples import format_1


def bits(values: list[float]) -> bytes:
    return struct.pack(f"<{len(values)}d", *values)


@pytest.mark.parametrize("then", ["read", "sealed", "compacted"])
def test_a_store_of_format_1_is_read(folder: str, then: str) -> None:
    format_1.make(folder)
    assert list(check(folder)) == []
    with SqliteChunks(folder) as store:
        if then == "sealed":
            store.flush()
        elif then == "compacted":
            store.compact()
        ones, twos = store.read([7], None, 0, format_1.T0 * 2).series
        assert (ones.metric, ones.t.tolist(), ones.values.tolist()) == (1, format_1.TICKS, format_1.ONES)
        assert (twos.metric, bits(twos.values.tolist())) == (2, bits(format_1.TWOS))
        (combined,) = store.aggregate(1, [7], 0, format_1.T0 * 2).series
        assert (combined.n.tolist(), combined.mean.tolist()) == ([9], [4.0])
        assert store.latest([7])[0].values.tolist() == [8.0, 8.0]
        store.flush()
        assert store.stats().samples == 18
    assert list(check(folder)) == []


def test_a_later_format_is_rejected_with_a_remedy(folder: str) -> None:
    SqliteChunks(folder).close()
    connection = sqlite3.connect(os.path.join(folder, "log.db"))
    connection.execute("PRAGMA user_version=3")
    connection.close()
    with pytest.raises(StoreError, match=r"log.db was written by a later version of runvitals \(format 3"):
        SqliteChunks(folder)
    with pytest.raises(StoreError, match="later version"):
        list(check(folder))


def test_a_database_of_another_program_is_rejected(folder: str) -> None:
    os.makedirs(folder)
    connection = sqlite3.connect(os.path.join(folder, log.NAME))
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(StoreError, match="the database of another program"):
        SqliteChunks(folder)


def test_a_file_that_is_not_a_database_is_rejected(folder: str) -> None:
    os.makedirs(folder)
    with open(os.path.join(folder, log.NAME), "wb") as file:
        file.write(b"not a database" * 1000)
    with pytest.raises(StoreError, match=r"log.db: file is not a database"):
        SqliteChunks(folder)
    os.unlink(os.path.join(folder, log.NAME))
    SqliteChunks(folder).close()  # the lock was released


def test_an_older_file_is_migrated_version_by_version(tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "some.db")
    first = Format(77, "CREATE TABLE a (x)")
    second = Format(77, "CREATE TABLE a (x, y)", [_add_column("y")])
    third = Format(77, "CREATE TABLE a (x, y, z)", [_add_column("y"), _add_column("z")])
    connection = database.open_for_writing(path, first)
    connection.execute("INSERT INTO a VALUES (1)")
    connection.close()

    with pytest.raises(StoreError, match="is of format 1: start a server once to migrate it"):
        database.open_for_reading(path, third)
    database.open_for_writing(path, second).close()
    connection = database.open_for_writing(path, third)
    assert connection.execute("SELECT x, y, z FROM a").fetchall() == [(1, None, None)]
    connection.close()
    with pytest.raises(StoreError, match="later version"):
        database.open_for_writing(path, first)


def test_a_migration_that_fails_changes_nothing(tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "some.db")
    database.open_for_writing(path, Format(77, "CREATE TABLE a (x)")).close()
    broken = Format(77, "", [_add_column("y"), _add_column("y")])
    with pytest.raises(StoreError, match="duplicate column"):
        database.open_for_writing(path, broken)
    connection = database.open_for_reading(path, Format(77, ""))
    assert connection.execute("SELECT * FROM a").description == (("x", *[None] * 6),)
    connection.close()


def _add_column(name: str) -> database.Migration:
    def migrate(connection: sqlite3.Connection) -> None:
        connection.execute(f"ALTER TABLE a ADD COLUMN {name}")

    return migrate
