"""Engines of a server of its own, which a test may kill or stop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.database import postgresql as postgres
from tests.store.samples.clickhouse.server import ClickHouseServer, installed


@pytest.fixture
def metadata() -> Iterator[postgres.KillableServer]:
    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    server = postgres.KillableServer()
    yield server
    server.stop()


@pytest.fixture
def clickhouse(tmp_path: Path) -> Iterator[ClickHouseServer]:
    if not installed("debian"):
        pytest.skip("clickhouse-server is not installed")
    server = ClickHouseServer(tmp_path / "clickhouse", password="s3cret-word")
    yield server
    server.stop()
