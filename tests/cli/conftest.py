"""Engines of a server of its own, which a test may kill or stop; and signals as they were before a test."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.database import postgresql as postgres
from tests.store.samples.clickhouse.server import ClickHouseServer, installed


@pytest.fixture(autouse=True)
def _unblocked_signals() -> Iterator[None]:
    """`runvitals run` blocks signals for good, also those of processes that a later test starts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
