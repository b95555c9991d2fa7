"""kill -9 and a full disk at every step of what a server and its commands do, with PostgreSQL and ClickHouse.

Nothing that was acknowledged is lost, and the next start succeeds.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from runvitals.server.metadata_store import open_metadata_store
from tests.server.database import postgresql as postgres
from tests.store.crash_point_runs import SmallDisks, assert_survived, killed
from tests.store.engine_pairs import Pair, record, runs
from tests.store.samples.clickhouse.answers_500 import AnswersWith500
from tests.store.samples.clickhouse.server import ClickHouseServer, installed
from tests.store.samples.test_crashes import needs_mounts

OF_POSTGRESQL = ["first start", "start", "migration"]


@pytest.fixture(scope="module")
def clickhouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClickHouseServer]:
    if not installed("debian"):
        pytest.skip("clickhouse-server is not installed")
    server = ClickHouseServer(tmp_path_factory.mktemp("clickhouse") / "server")
    yield server
    server.stop()


@pytest.fixture
def postgresql() -> postgres.Server:
    """A server with databases of its own."""
    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    return postgres.temporary_server()


@pytest.mark.parametrize("operation", OF_POSTGRESQL)
def test_killed_at_every_step_with_postgresql(
    folder: str, operation: str, postgresql: postgres.Server
) -> None:
    assert_survived(killed(folder, operation, postgresql.folder))


@needs_mounts
@pytest.mark.parametrize("operation", OF_POSTGRESQL)
def test_disk_full_at_every_step_with_postgresql(
    tmp_path: Path, small_disks: SmallDisks, operation: str, postgresql: postgres.Server
) -> None:
    assert_survived(small_disks.full(tmp_path, operation, postgresql.folder))


def test_killed_at_every_step_with_postgresql_and_clickhouse(
    folder: str, postgresql: postgres.Server, clickhouse: ClickHouseServer
) -> None:
    samples = str(clickhouse.new_database(f"killed_{os.getpid()}"))
    assert_survived(killed(folder, "start", postgresql.folder, samples))


def test_postgresql_is_killed_at_every_step_of_a_start(tmp_path: Path, clickhouse: ClickHouseServer) -> None:
    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    server = postgres.KillableServer()
    samples = str(clickhouse.new_database(f"restarted_{os.getpid()}"))
    pair = Pair(samples, server.make("vitals"), tmp_path, server)
    try:
        record(pair, "otter", "cpu")
        for at in itertools.count(1):
            if not start_while_killing(pair, server, at):
                break
            server.start()
            assert runs(pair) == {"otter": {"cpu": 10}}
        assert at > 3
    finally:
        server.stop()


def start_while_killing(pair: Pair, server: postgres.KillableServer, at: int) -> bool:
    """Start a server, and kill PostgreSQL at a step of that. Returns whether there is such a step."""
    numbers = itertools.count(1)
    reached = False

    def step(*_: object) -> None:
        nonlocal reached
        if next(numbers) == at:
            reached = True
            server.kill()

    events = ("before_cursor_execute", "commit")
    for name in events:
        event.listen(Engine, name, step)
    try:
        with suppress(OSError), pair.started():  # a line on stderr, and exit code 1
            pass
    finally:
        for name in events:
            event.remove(Engine, name, step)
    return reached


def test_clickhouse_answers_500_after_it_executed_each_request_of_a_start(
    tmp_path: Path, clickhouse: ClickHouseServer
) -> None:
    """No start fails; what could not be done then is done later."""
    (tmp_path / "store").mkdir()
    with AnswersWith500(clickhouse.port) as proxy:
        name = clickhouse.new_database(f"answers_{os.getpid()}").database
        address = f"clickhouse://127.0.0.1:{proxy.port}/{name}"
        pair = Pair(address, str(tmp_path / "store" / "catalogue.db"), tmp_path)
        open_metadata_store(pair.metadata).close()
        sent = {}
        for at in itertools.count():
            proxy.fail(at)
            with pair.started():
                reached = proxy.reached
                proxy.fail(None)
            record(pair, f"run-{at}", "cpu")
            sent[f"run-{at}"] = {"cpu": 10}
            if not reached:
                break
        assert at > 5
        assert runs(pair) == sent
