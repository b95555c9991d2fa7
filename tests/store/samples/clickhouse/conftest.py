"""A ClickHouse server per process of a test session and kind, a database per test."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.store.samples.clickhouse import ClickHouseAddress
from tests.store.samples.clickhouse.server import ClickHouseServer, installed

_numbers = itertools.count()


def _kinds() -> list[str]:
    return ["debian", "chdb"] if installed("chdb") else ["debian"]


@pytest.fixture(scope="session", params=_kinds())
def clickhouse_server(request: pytest.FixtureRequest) -> Iterator[ClickHouseServer]:
    if not installed(request.param):
        pytest.skip("clickhouse-server is not installed")
    in_memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="runvitals-clickhouse-", dir=in_memory) as folder:
        server = ClickHouseServer(Path(folder) / "server", request.param)
        yield server
        server.stop()


@pytest.fixture
def database(clickhouse_server: ClickHouseServer) -> ClickHouseAddress:
    """A new, empty database."""
    return clickhouse_server.new_database(f"test_{next(_numbers)}")
