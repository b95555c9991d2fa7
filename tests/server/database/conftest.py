"""Metadata stores for tests, each empty, on SQLite and on PostgreSQL."""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import psycopg
import pytest

from runvitals.server.metadata_store import MetadataStore, open_metadata_store
from tests.server.database.postgresql import Server, programs, shared_server
from tests.store.conftest import folder as folder

_numbers = itertools.count()
NewAddress = Callable[..., str]
# Empties the tables that ever had rows, in any order: foreign keys are not checked in this role.
_EMPTY = """
SET session_replication_role = replica;
DO $$ DECLARE used text; BEGIN
FOR used IN SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
AND relname <> 'alembic_version' AND pg_relation_size(oid) > 0
LOOP EXECUTE format('DELETE FROM %I', used); END LOOP;
FOR used IN SELECT sequencename FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL
LOOP PERFORM setval(quote_ident(used), 1, false); END LOOP; END $$
"""


@pytest.fixture(scope="session")
def postgresql(testrun_uid: str) -> Server:
    """One server for all processes of a test session."""
    if programs() is None:
        pytest.skip("PostgreSQL is not installed")
    return shared_server(testrun_uid)


@pytest.fixture(params=["sqlite", "postgresql"], scope="module")
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of database."""
    return str(request.param)


@pytest.fixture
def empty(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> NewAddress:
    """Makes addresses of databases without any table."""

    def make() -> str:
        if kind == "sqlite":
            return str(tmp_path / f"{next(_numbers)}.db")
        server: Server = request.getfixturevalue("postgresql")
        return server.make(f"empty_{os.getpid()}_{next(_numbers)}")

    return make


class Templates:
    """Databases that were brought to the newest revision once, to be copied or to be used again."""

    def __init__(self) -> None:
        self._sqlite: str | None = None
        self._postgresql: str | None = None
        self._emptied: psycopg.Connection | None = None

    def sqlite(self, folders: pytest.TempPathFactory) -> str:
        """The path of a database that is only to be copied."""
        if self._sqlite is None:
            self._sqlite = str(folders.mktemp("template") / "catalogue.db")
            open_metadata_store(self._sqlite).close()
        return self._sqlite

    def copy_of_postgresql(self, server: Server) -> str:
        """The address of a new database."""
        if self._postgresql is None:
            name = f"template_{os.getpid()}"
            open_metadata_store(server.make(name)).close()
            self._postgresql = name
        return server.make(f"copy_{os.getpid()}_{next(_numbers)}", self._postgresql)

    def emptied_postgresql(self, server: Server) -> str:
        """The address of a database that one test at a time uses. That is quicker than a new one: 5 ms, on a
        connection that knows the tables already, not 100."""
        if self._emptied is None:
            self._emptied = psycopg.connect(self.copy_of_postgresql(server), autocommit=True)
            atexit.register(self._emptied.close)
        self._emptied.execute(_EMPTY)
        return server.address(self._emptied.info.dbname)


@cache
def templates() -> Templates:
    return Templates()


@pytest.fixture
def address(
    kind: str, empty: NewAddress, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> str:
    """A database at the newest revision, nothing in it."""
    if kind == "sqlite":
        return shutil.copy(templates().sqlite(tmp_path_factory), empty())
    return templates().emptied_postgresql(request.getfixturevalue("postgresql"))


@pytest.fixture
def metadata_store(address: str) -> Iterator[MetadataStore]:
    with open_metadata_store(address) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared_store(
    kind: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[MetadataStore]:
    """A metadata store that a fixture of the module fills, and that its tests only read."""
    if kind == "sqlite":
        path = tmp_path_factory.mktemp("shared") / "catalogue.db"
        address = shutil.copy(templates().sqlite(tmp_path_factory), str(path))
    else:
        address = templates().copy_of_postgresql(request.getfixturevalue("postgresql"))
    with open_metadata_store(address) as opened:
        yield opened
