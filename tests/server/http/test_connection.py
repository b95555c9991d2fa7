"""What a client may make a server keep and wait for, before anything is known of it."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.to_thread
import httpx
import pytest
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from runvitals.base import deadline
from runvitals.server.http.buffered_body import BufferedBodies
from runvitals.server.http.connection import Connection, ConnectionConfig
from runvitals.server.http.connection_limits import ConnectionLimits
from runvitals.server.http.serve import Server, listen
from tests.patience import PATIENCE_S
from tests.server.serving import Served, answered, serving

GET = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n"
POST = b"POST /api/v1/ingest HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n"
MIB = b"x" * (1 << 20)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served"), token_required=True) as served:
        yield served


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    bounds = ConnectionLimits(head_s=1, body_s=1, idle_s=1, unread_s=1, rejected_s=1)
    with serving(tmp_path_factory.mktemp("impatient"), bounds) as served:
        yield served


def rss_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def sends_until_closed(connection: socket.socket, what: bytes, every_s: float) -> bool:
    """Whether the server closes a connection on which something is sent again and again."""
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        try:
            connection.sendall(what)
        except (BrokenPipeError, ConnectionResetError):
            return True
        time.sleep(every_s)
    return False


@pytest.mark.parametrize(
    ("status", "parts"),
    [
        (431, [GET, b"x-a: ", *([MIB] * 40)]),
        (431, [GET, *([b"x-a: " + b"y" * 8000 + b"\r\n"] * 5000)]),
        (431, [GET, b"".join(b"x-%d: y\r\n" % number for number in range(5000)), b"\r\n"]),
        (414, [b"GET /", *([MIB] * 40)]),
        (414, [b"GET /" + b"a" * 66_000 + GET[5:] + b"\r\n"]),
        (400, [GET, b"host: a\r\nHost: b\r\n\r\n"]),
        (400, [GET, b"authorization: Bearer a\r\nauthorization: Bearer b\r\n\r\n"]),
        (431, [b"\r\n" * 20_000_000]),
        (400, [b"\x16\x03\x01\x02\x00" + MIB]),
        (400, [b"G" * 20_000_000]),
    ],
    ids=[
        "value",
        "fields of 8 kB",
        "5,000 fields",
        "address",
        "one address",
        "two hosts",
        "two keys",
        "empty lines",
        "TLS",
        "method",
    ],
)
def test_head_size_is_limited(served: Served, status: int, parts: list[bytes]) -> None:
    before = rss_mb()
    response = served.say(*parts)
    assert response.startswith(b"HTTP/1.1 %d " % status)
    assert b'"error"' in response
    assert rss_mb() - before < 15
    assert httpx.get(f"{served.url}/healthz", timeout=PATIENCE_S).text == "ok\n"


@pytest.mark.parametrize(
    "parts",
    [
        [b"2\r\n{}\r\n0\r\nx-trailer: ", *([MIB] * 20)],
        [b"2;", *([MIB] * 20)],
        [b"2\r\n{}\r\n0\r\n", *([b"x-trailer: " + b"y" * 50_000 + b"\r\n"] * 500)],
    ],
    ids=["trailer", "extension of a chunk", "many trailers"],
)
def test_trailers_and_chunk_extensions_share_that_limit(impatient: Served, parts: list[bytes]) -> None:
    before = rss_mb()
    impatient.say(CHUNKED, *parts)
    assert rss_mb() - before < 15
    assert impatient.refused[-1][0] == 431


def test_heads_up_to_the_limit_are_read(served: Served) -> None:
    long = b"x-a: " + b"y" * 47_000 + b"\r\n"
    assert served.say(GET, long, b"connection: close\r\n\r\n").startswith(b"HTTP/1.1 200 ")
    fields = b"".join(b"x-%d: y\r\n" % number for number in range(100))
    assert served.say(GET, fields, b"connection: close\r\n\r\n").startswith(b"HTTP/1.1 200 ")


def test_incomplete_heads_share_a_limit(tmp_path: Path) -> None:
    with serving(tmp_path, ConnectionLimits(heads_bytes=500_000)) as served:
        waiting = [served.connect() for _ in range(40)]
        deadline_s = time.monotonic() + PATIENCE_S
        for connection in waiting:
            connection.sendall(GET + b"x-a: " + b"y" * 40_000)
        while len(served.refused) < 5:
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        assert {status for status, _ in served.refused} == {503}
        assert served.http.config.heads_bytes <= 500_000  # type: ignore[attr-defined]
        for connection in waiting:
            connection.close()
        while served.http.config.heads_bytes:  # type: ignore[attr-defined]
            assert time.monotonic() < deadline_s
            time.sleep(0.05)


def test_pipelined_requests_are_limited(served: Served) -> None:
    few = served.say((GET + b"\r\n") * 20 + GET + b"connection: close\r\n\r\n")
    assert few.count(b"HTTP/1.1 200 ") == 21
    many = served.say((GET + b"\r\n") * 5000)
    assert 1 <= many.count(b"HTTP/1.1 200 ") <= 40


def test_an_upgrade_request_is_answered_in_http(served: Served) -> None:
    response = served.say(
        GET + b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: abc\r\n\r\n"
    )
    assert response.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "begin",
    [
        b"",
        GET,
        POST + b'content-length: 100\r\n\r\n{"run": ',
        POST.replace(b"/api/v1/ingest", b"/login") + b"content-length: 100\r\n\r\ntoken",
        b"PATCH /api/v1/runs/abc HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{",
        GET + b"content-length: 100\r\n\r\n",
        CHUNKED + b"2\r\n{}\r\n0\r\nx-trailer: ",
        GET + b"\r\n",
    ],
    ids=["nothing", "head", "ingest", "login", "edit", "GET with a body", "trailer", "between two requests"],
)
def test_a_client_that_stalls_is_disconnected(impatient: Served, begin: bytes) -> None:
    with impatient.connect() as connection:
        connection.sendall(begin)
        answered(connection)  # it would time out otherwise


def test_a_trickling_body_times_out(impatient: Served) -> None:
    with impatient.connect() as connection:
        connection.sendall(POST + b"content-length: 1000\r\n\r\n")
        assert sends_until_closed(connection, b"x", 0.1)
    assert (408, "the body did not arrive within 1 s") in impatient.refused


def test_a_rejected_client_reads_the_error_and_may_continue(served: Served) -> None:
    with served.connect() as connection:
        for _ in range(2):
            connection.sendall(POST + b"content-length: 3000000\r\n\r\n")
            for _ in range(30):
                connection.sendall(b"x" * 100_000)
            assert connection.recv(65536).startswith(b"HTTP/1.1 401 ")


def test_a_client_that_does_not_read_its_response_is_disconnected(impatient: Served) -> None:
    with impatient.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        ask = b"GET /api/v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n"
        assert sends_until_closed(connection, ask, 0.01)


def test_connections_beyond_the_limit_are_rejected(tmp_path: Path) -> None:
    with serving(tmp_path, ConnectionLimits(connections=4)) as served:
        used = [served.connect() for _ in range(4)]
        for connection in used:
            connection.sendall(GET + b"\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
        assert httpx.get(f"{served.url}/healthz", timeout=PATIENCE_S).status_code == 503
        for connection in used:
            connection.close()
        deadline_s = time.monotonic() + PATIENCE_S
        while httpx.get(f"{served.url}/healthz", timeout=PATIENCE_S).status_code != 200:
            assert time.monotonic() < deadline_s


def test_silent_connections_are_closed_for_others(tmp_path: Path) -> None:
    with serving(tmp_path, ConnectionLimits(connections=4, silent_s=0.0)) as served:
        silent = [served.connect() for _ in range(4)]
        deadline_s = time.monotonic() + PATIENCE_S
        while len(served.http.server_state.connections) < 4:
            assert time.monotonic() < deadline_s
        assert httpx.get(f"{served.url}/healthz", timeout=PATIENCE_S).status_code == 200
        for connection in silent:
            connection.close()


class Computing:
    """An application that computes until its deadline, or until its client leaves."""

    def __init__(self) -> None:
        self.closing = anyio.Event()
        self.begun, self.ended = threading.Event(), threading.Event()
        self.error: Exception | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await anyio.to_thread.run_sync(self._compute)

    def _compute(self) -> None:
        self.begun.set()
        try:
            with deadline.within(10 * PATIENCE_S):
                while True:
                    deadline.check()
                    time.sleep(0.01)
        except deadline.TooSlow as error:
            self.error = error
        self.ended.set()


def test_work_ends_when_the_client_leaves() -> None:
    app = Computing()
    bodies = BufferedBodies(app)
    bodies.closing = app.closing  # type: ignore[attr-defined]
    with listen(0) as listener:
        http = Server(bodies)  # type: ignore[arg-type]
        thread = threading.Thread(target=http.run, kwargs={"sockets": [listener]})
        thread.start()
        with socket.create_connection(listener.getsockname(), timeout=PATIENCE_S) as connection:
            connection.sendall(GET + b"\r\n")
            assert app.begun.wait(PATIENCE_S)
            assert not app.ended.is_set()
        assert app.ended.wait(PATIENCE_S)
        assert isinstance(app.error, deadline.ClientLeft)
        http.handle_exit(2, None)
        thread.join(PATIENCE_S)


def test_a_body_may_take_long_as_long_as_it_arrives() -> None:
    """A file of many gigabytes does: the limit is one for each part of it."""
    refused: list[int] = []

    async def check() -> None:
        arrived, more = 0, asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            nonlocal arrived
            while (message := await receive())["type"] == "http.request":
                arrived += len(message["body"])
                more.set()

        limits = ConnectionLimits(body_s=10)
        config = ConnectionConfig(app, limits, lambda client, status, why: refused.append(status), None)
        config.load()
        made: list[Connection] = []

        def connection() -> Connection:
            made.append(Connection(config, ServerState(), {}))
            return made[-1]

        server = await asyncio.get_running_loop().create_server(connection, "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"PUT /files/a HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10000000\r\n\r\n")
        for number in range(1, 6):
            writer.write(b"x" * 300_000)
            while arrived < number * 300_000:
                more.clear()
                await asyncio.wait_for(more.wait(), PATIENCE_S)
            made[0].check_timeout(number * 9.0)
        assert refused == []
        made[0].check_timeout(45.0 + 11.0)
        assert refused == [408]
        writer.close()
        server.close()

    asyncio.run(check())
