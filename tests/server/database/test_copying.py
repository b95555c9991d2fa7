"""Metadata stores that are copied between SQLite and PostgreSQL, with rows in every table."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Boolean, CheckConstraint, Column, Double, LargeBinary, Table, insert, select, text

from runvitals.cli import main
from runvitals.server.database.copying import copy_database, move_database
from runvitals.server.database.database import Database
from runvitals.server.database.issued_ids import highest_ids
from runvitals.server.database.migration import newest, present
from runvitals.server.database.tables import metadata
from runvitals.server.metadata_store import open_metadata_store
from runvitals.store.errors import MetadataStoreError
from tests.server.database.conftest import templates
from tests.server.database.postgresql import Server
from tests.server.database.schemas import schema

TEXTS = ("\\N", "tab\t, line\n, \r, \\, \"quoted\", 'so'", "␀ é \U0010ffff")
BYTES = (b"", b"\x00\\\xff", bytes(range(256)))
NUMBERS = (0.1, -1e300, float("inf"))
NULL = (
    "project_member.service_account_id",
    "api_key.service_account_id",
    "guest_link.run_id",
    "guest_link.report_id",
)
Opened = Callable[[str], Database]


def value(column: Column[Any], number: int) -> object:
    """A value of a row, from 0 on. Whatever refers to a row refers to the one with its own number."""
    if f"{column.table.name}.{column.name}" in NULL:
        return None
    for key in column.foreign_keys:
        return value(key.column, number)
    if column.nullable and number == 2:
        return None
    for check in column.table.constraints:
        choices = isinstance(check, CheckConstraint) and re.match(
            rf"{column.name} IN \('(\w+)'", str(check.sqltext)
        )
        if choices:
            return choices[1]
    if isinstance(column.type, Boolean):
        return number % 2 == 0
    if isinstance(column.type, Double):
        return NUMBERS[number]
    if isinstance(column.type, LargeBinary):
        return BYTES[number] + bytes([number])
    if column.type.python_type is int:
        return number + 1
    return f"{TEXTS[number]} {number}"


def rows_of(address: str, opened: Opened) -> dict[str, list[tuple[Any, ...]]]:
    database = opened(address)
    with database.read() as connection:
        rows = {
            table.name: sorted(map(tuple, connection.execute(select(table))), key=repr)
            for table in metadata.sorted_tables
        }
    database.close()  # what is open is not moved
    return rows


@pytest.fixture
def opened() -> Iterator[Opened]:
    databases: list[Database] = []

    def open_(address: str) -> Database:
        databases.append(Database(address))
        return databases[-1]

    yield open_
    for database in databases:
        database.close()


@pytest.fixture
def full(tmp_path: Path) -> str:
    """A database of SQLite with three rows in every table, of which newer ones were deleted."""
    address = str(tmp_path / "full.db")
    open_metadata_store(address).close()
    with closing(Database(address)) as database:

        def fill(connection: Any) -> None:
            for table in metadata.sorted_tables:
                connection.execute(table.delete())
                connection.execute(insert(table), [row(table, number) for number in range(3)])
            connection.execute(text("UPDATE sqlite_sequence SET seq = 70 WHERE name = 'run'"))

        database.change_tables(fill)
    return address


def row(table: Table, number: int) -> dict[str, object]:
    return {column.name: value(column, number) for column in table.columns}


@pytest.fixture
def empty_name(request: pytest.FixtureRequest) -> str:
    """The name of a new database."""
    return f"copying_{os.getpid()}_{request.node.name[:30]}"


def ignored(_: str) -> None:
    """Take a text."""


def test_every_row_of_every_table_goes_there_and_back(
    full: str, postgresql: Server, tmp_path: Path, opened: Opened, empty_name: str
) -> None:
    there, back = postgresql.make(empty_name), str(tmp_path / "back.db")
    before = rows_of(full, opened)
    copied = move_database(full, there, ignored)
    assert {copy.rows for copy in copied} == {3}
    assert len(copied) == len(metadata.tables)
    after = rows_of(there, opened)
    starts = [(row[0], row[1] + 2) for row in before.pop("pairing")]
    assert after.pop("pairing") == starts
    assert after == before
    assert copied[0] == move_database(there, back, ignored)[0]
    again = rows_of(back, opened)
    assert again.pop("pairing") == [(name, count + 2) for name, count in starts]
    assert again == before
    for address in (there, back):
        with opened(address).read() as connection:
            assert highest_ids(connection)["run"] == 70
        open_metadata_store(address).close()  # finds nothing to migrate

    assert schema(opened(there)) == schema(opened(templates().copy_of_postgresql(postgresql)))
    with closing(sqlite3.connect(back)) as file:  # the index of search texts
        assert len(file.execute("SELECT rowid FROM run_text_fts WHERE text LIKE '%quoted%'").fetchall()) == 1


def test_an_earlier_revision_is_copied_as_it_is(
    postgresql: Server, tmp_path: Path, opened: Opened, empty_name: str
) -> None:
    path, copy = str(tmp_path / "oldest.db"), postgresql.make(empty_name)
    script = Path(__file__).with_name("revision_0041.sqlite.sql").read_text(encoding="utf-8")
    with closing(sqlite3.connect(path)) as file:
        file.executescript(script)
    there = copy_database(opened(path), opened(copy), ignored)
    assert present(opened(copy)) == "0041"
    back = str(tmp_path / "back.db")
    assert copy_database(opened(copy), opened(back), ignored) == there
    for address in (path, copy, back):
        open_metadata_store(address).close()
        assert present(opened(address)) == newest()
    assert rows_of(copy, opened) == rows_of(path, opened) == rows_of(back, opened)


def test_nothing_is_left_of_a_copy_that_fails(
    full: str, postgresql: Server, tmp_path: Path, opened: Opened, empty_name: str
) -> None:
    with closing(sqlite3.connect(full)) as file:
        file.execute("UPDATE run SET created_ms = 'yesterday' WHERE id = 2")
        file.commit()
    there = postgresql.make(empty_name)
    with pytest.raises(MetadataStoreError, match=r"table run could not be copied: .*yesterday"):
        move_database(full, there, ignored)
    with closing(sqlite3.connect(full)) as file:
        file.execute("UPDATE run SET created_ms = 2, project_id = 99 WHERE id = 2")
        file.commit()
    with pytest.raises(MetadataStoreError, match="fk_run_project_id"):
        move_database(full, there, ignored)
    with pytest.raises(
        MetadataStoreError, match="a row of table run refers to a missing row of table project"
    ):
        move_database(full, str(tmp_path / "copy.db"), ignored)
    assert not list(tmp_path.glob("copy.db*"))
    assert present(opened(there)) is None


def test_a_store_that_is_used_is_not_moved(
    full: str, postgresql: Server, tmp_path: Path, empty_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    there = postgresql.make(empty_name)
    migrate = ["store", "migrate"]
    with closing(sqlite3.connect(full)) as file:
        file.execute("SELECT count(*) FROM run").fetchall()
        assert main([*migrate, full, there]) == 1
        assert f"{full} cannot be moved (database is locked): end the server" in capsys.readouterr().err
    assert main([*migrate, full, there]) == 0
    assert "run: 3 rows, digest " in capsys.readouterr().out
    back = str(tmp_path / "back.db")
    with open_metadata_store(there) as used:
        link = used.join_servers(lambda message: None, lambda: None)
        assert main([*migrate, there, back]) == 1
        assert "servers use the metadata store that is to be moved" in capsys.readouterr().err
        link.close()
    for source, target, expected in (
        (full, there, "is not empty: choose a new database"),
        (there, full, "exists already"),
        (str(tmp_path / "none.db"), back, "unable to open database file"),
        (full, str(tmp_path), "FROM and TO must both have samples"),
        (full, full, "are the same store"),
    ):
        assert main([*migrate, source, target]) == 1
        assert expected in capsys.readouterr().err
    assert not list(tmp_path.glob("back.db*"))
