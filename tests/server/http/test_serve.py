"""A serving process: the settings of its interpreter, and its end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from runvitals.server.http.serve import Server, listen, serve, signals_noted
from tests.patience import PATIENCE_S
from tests.server.http.program import Application

ROOT = Path(__file__).parents[3]
PENDING = 20


class Served:
    """The program, and the lines that it prints."""

    def __init__(self, stderr: Path) -> None:
        self.stderr = stderr
        with stderr.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.server.http.program"],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        self.url = self.line()["url"]

    def line(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path / "stderr")
    yield served
    served.close()


def test_interpreter_settings_are_changed_while_serving(served: Served) -> None:
    while_serving = httpx.get(f"{served.url}/settings", timeout=PATIENCE_S).json()
    served.stop()
    ended = served.line()
    assert served.process.wait(PATIENCE_S) == 0
    assert while_serving == {"gc": [20_000, *ended["before"]["gc"][1:]], "frozen": True, "switch_s": 0.001}
    assert ended["after"] == ended["before"]


def test_requests_that_are_unanswered_at_the_end_get_503_and_no_traceback(served: Served) -> None:
    with ThreadPoolExecutor(PENDING) as clients:
        requests = [
            clients.submit(httpx.get, f"{served.url}/{number}", timeout=PATIENCE_S)
            for number in range(PENDING)
        ]
        for _ in range(PENDING):
            assert "pending" in served.line()
        served.stop()
        responses = [response.result() for response in requests]
    assert served.process.wait(PATIENCE_S) == 0
    assert {response.status_code for response in responses} == {503}
    assert responses[0].json() == {"error": "the server is shutting down: try again later"}
    assert responses[0].headers["retry-after"] == "1"
    logged = served.stderr.read_text()
    assert "Traceback" not in logged
    assert logged.count("request failed") == PENDING


def test_signals_are_only_noted_until_the_third() -> None:
    """The first could arrive while the main thread holds a lock that other threads wait for."""
    before = signal.getsignal(signal.SIGTERM)
    with signals_noted() as signals:
        assert not signals.arrived
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        assert signals.arrived == 2
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_signal_before_the_server_serves() -> None:
    listener = listen(0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    application = Application()
    with signals_noted() as signals:
        signal.raise_signal(signal.SIGTERM)
        serve(application, listener, signals=signals)
    assert application.closing.is_set()
    with pytest.raises(httpx.ConnectError):
        httpx.get(url, timeout=PATIENCE_S)


def test_a_thread_that_hangs_does_not_keep_a_process_from_ending() -> None:
    program = (
        "import signal, threading\n"
        "from runvitals.server.http.serve import EndSignals, signals_noted\n"
        "threading.Thread(target=threading.Event().wait).start()\n"
        "with signals_noted(EndSignals(0.1)):\n"
        "    signal.raise_signal(signal.SIGTERM)\n"
    )
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ended.returncode == 0
    assert "without waiting any longer" in ended.stderr


def test_an_ipv4_client_has_its_address_also_at_a_socket_for_ipv6() -> None:
    """Which proxies are trusted is said by their address."""
    seen: list[Any] = []

    class Seeing(Application):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            seen.append((scope["client"][0], scope["server"][0]))
            await JSONResponse({})(scope, receive, send)

    async def ask() -> None:
        server = Server(Seeing())
        listener = listen(0, "::")
        async with anyio.create_task_group() as tasks, httpx.AsyncClient(timeout=PATIENCE_S) as client:
            tasks.start_soon(server.serve, [listener])
            await client.get(f"http://127.0.0.1:{listener.getsockname()[1]}/")
            server.should_exit = True

    anyio.run(ask)
    assert seen == [("127.0.0.1", "127.0.0.1")]
