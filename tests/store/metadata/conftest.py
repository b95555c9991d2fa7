"""Metadata stores for tests, each empty, on SQLite and on PostgreSQL."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from sqlalchemy import Connection, delete

from runvitals.store.metadata import MetadataStore, open_metadata_store
from runvitals.store.metadata.database import Database
from runvitals.store.metadata.tables import metadata
from tests.store.metadata.postgresql import Server, programs

settings.register_profile("steady", deadline=None)
settings.load_profile("steady")

_numbers = itertools.count()
NewAddress = Callable[..., str]


@pytest.fixture(scope="session")
def postgresql(testrun_uid: str) -> Server:
    """One server for all processes of a test session."""
    if programs() is None:
        pytest.skip("PostgreSQL is not installed")
    session = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    return Server(f"{tempfile.gettempdir()}/runvitals-tests-{testrun_uid[:12]}", owner_pid=session)


@pytest.fixture(params=["sqlite", "postgresql"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which database."""
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


@pytest.fixture(scope="session")
def templates() -> dict[str, str]:
    """Databases that were brought to the newest revision once, to be used again."""
    return {}


@pytest.fixture
def address(
    kind: str,
    empty: NewAddress,
    templates: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    """A database at the newest revision, nothing in it."""
    if kind == "sqlite":
        if kind not in templates:
            templates[kind] = str(tmp_path_factory.mktemp("template") / "catalogue.db")
            open_metadata_store(templates[kind]).close()
        return shutil.copy(templates[kind], empty())
    if kind not in templates:
        templates[kind] = empty()
        open_metadata_store(templates[kind]).close()
    database = Database(templates[kind])
    database.write(_empty)  # quicker than a new database: 5 ms, not 100
    database.close()
    return templates[kind]


def _empty(connection: Connection) -> None:
    for table in reversed(metadata.sorted_tables):
        connection.execute(delete(table))


@pytest.fixture
def metadata_store(address: str) -> Iterator[MetadataStore]:
    with open_metadata_store(address) as opened:
        yield opened
