"""What threads read from stays open until they are done, however early the user leaves it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fastapi import Request, Response

from runvitals.server.local_app import create_app
from runvitals.terminal.leet.current_run import CurrentRun
from runvitals.terminal.leet.overlay import RunOverlay
from runvitals.terminal.leet.shared_use import Closed, SharedUse
from runvitals.terminal.leet.sources.server_catalogue import ServerCatalogue
from tests.patience import PATIENCE_S
from tests.readers.journals.journals import T0, Monitor
from tests.readers.servers.serving import serving


class Gate:
    """A server that answers its first request only when it is told to."""

    def __init__(self, url: str, asked: threading.Event, may_answer: threading.Event) -> None:
        self.url, self.asked, self.may_answer = url, asked, may_answer

    def open_connections(self) -> int:
        """How many connections to the server are established."""
        port = f":{urlsplit(self.url).port:04X}"
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return sum(row[2].endswith(port) and row[3] == "01" for row in rows)


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    for run in ("abc", "other"):
        Monitor(tmp_path, run).sample(T0, {"cpu": 1.0})
    app = create_app(str(tmp_path), lambda: T0 + 5000)
    requested, may_answer = threading.Event(), threading.Event()

    @app.middleware("http")
    async def wait(request: Request, respond: Callable[[Request], Awaitable[Response]]) -> Response:
        requested.set()
        await asyncio.to_thread(may_answer.wait, PATIENCE_S)
        return await respond(request)

    with serving(app) as url:
        yield Gate(url, requested, may_answer)


def test_it_is_closed_once_and_at_once_if_nobody_uses_it() -> None:
    closed: list[str] = []
    use = SharedUse(lambda: closed.append("closed"))
    with use():
        assert not closed
    use.close()
    use.close()
    assert closed == ["closed"]
    with pytest.raises(Closed), use():
        pytest.fail("it is closed")


def test_it_is_closed_after_the_last_use_also_if_that_fails() -> None:
    closed: list[str] = []
    use = SharedUse(lambda: closed.append("closed"))
    outer = use()
    outer.__enter__()
    with use():
        use.close()
    assert not closed
    assert not outer.__exit__(KeyError, KeyError("a read failed"), None)
    assert closed == ["closed"]


def test_a_run_of_a_server_that_is_left_while_it_is_read(gate: Gate) -> None:
    source = ServerCatalogue(gate.url, {}).open("abc")
    with ThreadPoolExecutor(1) as thread:
        polled = thread.submit(source.poll)
        assert gate.asked.wait(PATIENCE_S)
        source.close()
        gate.may_answer.set()
        assert polled.result(PATIENCE_S)
    assert source.run is not None
    assert gate.open_connections() == 0
    with pytest.raises(Closed):
        source.poll()


def test_runs_that_are_deselected_while_they_are_read(gate: Gate) -> None:
    overlay = RunOverlay(ServerCatalogue(gate.url, {}).open)
    overlay.select({"abc": 0, "other": 1})
    with ThreadPoolExecutor(1) as thread:
        polled = thread.submit(overlay.poll)
        assert gate.asked.wait(PATIENCE_S)
        overlay.select({})
        gate.may_answer.set()
        assert polled.result(PATIENCE_S), "the first run was being read"
    assert gate.open_connections() == 0


def test_the_screen_does_not_wait_for_the_run_at_the_cursor_when_it_is_left(gate: Gate) -> None:
    current = CurrentRun(ServerCatalogue(gate.url, {}).open)
    with ThreadPoolExecutor(1) as thread:
        read = thread.submit(current.read, "abc")
        assert gate.asked.wait(PATIENCE_S)
        current.close()
        assert not read.done()
        gate.may_answer.set()
        assert read.result(PATIENCE_S)
    assert current.data is None
    assert gate.open_connections() == 0


def test_a_list_of_runs_that_is_left_while_it_is_read(gate: Gate) -> None:
    catalogue = ServerCatalogue(gate.url, {})
    with ThreadPoolExecutor(1) as thread:
        listed = thread.submit(catalogue.runs, T0, "")
        assert gate.asked.wait(PATIENCE_S)
        catalogue.close()
        gate.may_answer.set()
        assert listed.result(PATIENCE_S)[1] == 2
    assert gate.open_connections() == 0
    with pytest.raises(Closed):
        catalogue.runs(T0, "")
