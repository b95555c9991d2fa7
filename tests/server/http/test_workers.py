"""One question that takes long ends, and stops nobody meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from runvitals.base import deadline
from runvitals.base.deadline import ClientLeft, TooSlow
from runvitals.server.http.workers import Busy, Workers
from runvitals.server.library.run_library import RunView
from runvitals.server.library.stored.run_library import StoredLibrary
from tests.patience import PATIENCE_S
from tests.readers.journals.journals import Training
from tests.server.stored_runs import StoredServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StoredServer]:
    server = StoredServer(tmp_path / "server")
    training = Training(tmp_path)
    training.advance(20)
    server.take(tmp_path)
    yield server
    server.close()


def test_work_ends_at_a_deadline_check() -> None:
    def endless() -> None:
        while True:
            deadline.check()

    with pytest.raises(TooSlow), deadline.within(0.01):
        endless()
    deadline.check()  # there is none out here

    async def ask() -> None:
        await Workers(1, deadline_s=0.01).run(endless)

    with pytest.raises(TooSlow):
        anyio.run(ask)


def test_work_ends_when_its_client_has_left_unless_it_changes_something() -> None:
    async def ask(workers: Workers) -> str:
        with deadline.while_connected(lambda: True):
            return await workers.run(check)

    def check() -> str:
        deadline.check()
        return "done"

    with pytest.raises(ClientLeft):
        anyio.run(ask, Workers(1))
    assert anyio.run(ask, Workers(1, goes_on=True)) == "done"


def test_a_database_query_ends_at_the_deadline(server: StoredServer) -> None:
    slow = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with (
        pytest.raises(TooSlow),
        deadline.within(0.05),
        server.metadata_store.runs._database.read() as connection,
    ):
        connection.exec_driver_sql(slow)
    assert server.metadata_store.runs.find("abc", server.now_ms) is not None


@pytest.mark.parametrize(
    "path",
    [
        "runs/abc/metrics",
        "runs/abc/series",
        "runs/abc/statistics",
        "runs/abc/metrics?resolution=raw",
        "aggregate?metric=cpu",
    ],
)
def test_a_request_that_takes_too_long_is_cancelled(server: StoredServer, path: str) -> None:
    library = server.app.state.services.library
    assert isinstance(library, StoredLibrary)
    assert server.get(f"/api/v1/{path}").status_code == 200
    library._thorough._deadline_s = -1.0
    library._thorough._waits_s = 10.0
    response = server.get(f"/api/v1/{path}")
    assert response.status_code == 503
    assert "was cancelled: request fewer keys" in response.json()["error"]


def test_a_slow_request_does_not_block_others_for_the_same_run(server: StoredServer) -> None:
    let_go = threading.Event()
    began = anyio.Event()

    async def ask() -> None:
        run = await server.app.state.services.library.open("abc")
        async with anyio.create_task_group() as tasks:

            async def slow() -> None:
                def wait(view: RunView) -> None:
                    anyio.from_thread.run_sync(began.set)
                    assert let_go.wait(PATIENCE_S)

                await run.use(wait)

            for _ in range(2):
                tasks.start_soon(slow)
            await began.wait()
            with anyio.fail_after(PATIENCE_S):
                assert await run.use(lambda view: view.run_id) == "abc"
                assert await run.use(lambda view: view.run_id, quick=True) == "abc"
            let_go.set()

    anyio.run(ask)


def test_requests_beyond_the_limit_are_told_to_retry() -> None:
    workers = Workers(1, deadline_s=PATIENCE_S)
    let_go = threading.Event()
    reported: list[str] = []

    async def one() -> None:
        try:
            await workers.run(lambda: let_go.wait(PATIENCE_S))
        except Busy as error:
            reported.append(str(error))

    async def many() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(5010):
                tasks.start_soon(one)
            until_s = time.monotonic() + PATIENCE_S
            while not reported and time.monotonic() < until_s:
                await anyio.sleep(0.01)
            let_go.set()

    anyio.run(many)
    assert set(reported) == {"too many requests are waiting: try again later"}


@pytest.mark.parametrize(
    "path",
    [
        "runs/abc/metrics?keys={}",
        "runs/abc/series?keys={}",
        "runs/abc/series?writer={}",
        "latest?keys={}",
        "runs?last={}",
        "runs/abc/metrics?keys={}&format=csv",
        "aggregate?metric={}",
    ],
)
def test_long_globs_are_rejected(server: StoredServer, path: str) -> None:
    response = server.get("/api/v1/" + path.format("[" * 20_000))
    assert response.status_code == 422
    assert "error" in response.json()
