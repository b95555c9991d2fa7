"""More than a server can take, and clients that take their time."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from runvitals.server.ingest import PATH, Limits
from runvitals.server.ingest.commits import Commits
from runvitals.server.serve import Server as HttpServer
from runvitals.server.serve import listen
from runvitals.server.shared_app import SharedServer
from runvitals.store.catalogue import open_catalogue
from runvitals.store.contract import Ack, Batch
from runvitals.store.sqlite_chunks import SqliteChunks
from tests.server.ingest.server import NOW, Server


class BlockedDisk:
    """A store whose disk does nothing until it is let."""

    def __init__(self, store: SqliteChunks) -> None:
        self._store = store
        self._waiting: list[tuple[Sequence[Batch], Future[Ack]]] = []
        self._blocked = True

    def submit(self, batches: Sequence[Batch]) -> Future[Ack]:
        if not self._blocked:
            return self._store.submit(batches)
        future: Future[Ack] = Future()
        self._waiting.append((batches, future))
        return future

    def unblock(self) -> None:
        self._blocked = False
        for batches, future in self._waiting:
            future.set_result(self._store.append(batches))


def envelope(seq: int, rows: int = 100) -> bytes:
    t = [NOW - 10_000_000 + seq * 1000 + row for row in range(rows)]
    return json.dumps(
        {"run": "abc", "writer": "w", "seq": seq, "keys": ["cpu"], "t": t, "v": [[float(seq)] * rows]}
    ).encode()


@pytest.mark.parametrize("limit", [{"bytes_in_flight": 20_000}, {"requests_in_flight": 7}])
def test_while_the_disk_does_nothing_what_is_in_flight_is_bounded(tmp_path: Path, limit: Any) -> None:
    limits = Limits(**limit)
    server = Server(str(tmp_path), limits)
    disk = BlockedDisk(server.store)
    server.recorder.commits = Commits(disk)  # type: ignore[arg-type]
    answers: dict[int, httpx.Response] = {}
    most = 0

    async def send(client: httpx.AsyncClient, seq: int) -> None:
        answers[seq] = await client.post(
            PATH, content=envelope(seq), headers={"content-type": "application/json"}
        )

    async def everything() -> None:
        nonlocal most
        transport = httpx.ASGITransport(server.endpoint)
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
            anyio.create_task_group() as tasks,
        ):
            for seq in range(40):
                tasks.start_soon(send, client, seq)
            with anyio.fail_after(10):
                while (
                    len(answers) + server.endpoint.admission.requests < 40
                    or not server.recorder.commits.batches
                ):
                    await anyio.sleep(0.01)
                most = server.endpoint.admission.bytes
                while len(answers) + server.recorder.commits.batches < 40:
                    await anyio.sleep(0.01)
            disk.unblock()

    anyio.run(everything)
    refused = [answer for answer in answers.values() if answer.status_code == 429]
    assert 0 < most <= limits.bytes_in_flight
    assert len(refused) >= 20
    assert {answer.headers["retry-after"] for answer in refused} == {"1"}
    assert all("in flight already: come again later" in answer.text for answer in refused)
    taken = sorted(seq for seq, answer in answers.items() if answer.status_code == 200)
    assert len(taken) + len(refused) == 40
    assert sorted({int(value) for _, value in server.samples()["cpu"]}) == taken
    assert (server.endpoint.admission.requests, server.endpoint.admission.bytes) == (0, 0)
    again = server.post(envelope(next(iter(set(range(40)) - set(taken)))))
    assert (again.status_code, again.json()["stored"]) == (200, True)
    server.close()


@contextmanager
def serving(folder: Path, **how: Any) -> Iterator[tuple[str, int]]:
    """The address of a server that has no patience."""
    store, catalogue = SqliteChunks(str(folder / "store")), open_catalogue(str(folder / "catalogue.db"))
    app = SharedServer(store, catalogue, limits=Limits(body_s=0.3))
    listener = listen(0)
    server = HttpServer(app, **how)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    with listener:
        thread.start()
        yield listener.getsockname()
        server.handle_exit(2, None)
        thread.join(timeout=10)
    app.close()
    catalogue.close()
    store.close()


def answer(connection: socket.socket) -> bytes:
    """All that comes until the connection is closed."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


def test_clients_that_take_their_time_are_sent_away(tmp_path: Path) -> None:
    head = b"POST /api/v1/ingest HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    with serving(tmp_path, headers_s=0.3) as address:
        began_s = time.monotonic()
        silent, half_a_head, half_a_body = (socket.create_connection(address, timeout=10) for _ in range(3))
        half_a_head.sendall(head)
        half_a_body.sendall(head + b'content-length: 100\r\n\r\n{"run": ')
        assert answer(half_a_body).startswith(b"HTTP/1.1 408 ")
        assert answer(silent) == b""
        assert answer(half_a_head) == b""
        assert time.monotonic() - began_s < 8
        assert httpx.get(f"http://127.0.0.1:{address[1]}/healthz").text == "ok\n"
        for connection in (silent, half_a_head, half_a_body):
            connection.close()


def test_beyond_so_many_connections_a_server_says_that_it_has_no_room(tmp_path: Path) -> None:
    with serving(tmp_path, connections=4) as address:
        url = f"http://127.0.0.1:{address[1]}/healthz"
        idle = [socket.create_connection(address, timeout=10) for _ in range(4)]
        deadline_s = time.monotonic() + 10
        while httpx.get(url).status_code != 503:  # they are accepted after a moment
            assert time.monotonic() < deadline_s
        for connection in idle:
            connection.close()
        while httpx.get(url).status_code != 200:
            assert time.monotonic() < deadline_s
