"""More than a server can take, and clients that take their time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from runvitals.server.http.connection import ConnectionLimits
from runvitals.server.ingest import PATH, Limits
from runvitals.server.ingest.sample_commits import Commits
from runvitals.store.samples.contract import CommitAck, SampleBatch
from runvitals.store.samples.sqlite_chunks import SqliteChunks
from tests.server.ingest.server import NOW, Server
from tests.server.serving import answered, serving


class BlockedDisk:
    """A store whose disk does nothing until it is let."""

    def __init__(self, store: SqliteChunks) -> None:
        self._store = store
        self._waiting: list[tuple[Sequence[SampleBatch], Future[CommitAck]]] = []
        self._blocked = True

    def submit(self, batches: Sequence[SampleBatch]) -> Future[CommitAck]:
        if not self._blocked:
            return self._store.submit(batches)
        future: Future[CommitAck] = Future()
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
    assert all("in flight already: try again later" in answer.text for answer in refused)
    taken = sorted(seq for seq, answer in answers.items() if answer.status_code == 200)
    assert len(taken) + len(refused) == 40
    assert sorted({int(value) for _, value in server.samples()["cpu"]}) == taken
    assert (server.endpoint.admission.requests, server.endpoint.admission.bytes) == (0, 0)
    again = server.post(envelope(next(iter(set(range(40)) - set(taken)))))
    assert (again.status_code, again.json()["stored"]) == (200, True)
    server.close()


@pytest.mark.parametrize("length", [100, 1_000_000])
def test_clients_that_take_their_time_are_sent_away(tmp_path: Path, length: int) -> None:
    head = b"POST /api/v1/ingest HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    with (
        serving(tmp_path, ConnectionLimits(body_s=0.3), Limits(body_s=0.3)) as served,
        served.connect() as connection,
    ):
        connection.sendall(head + b'content-length: %d\r\n\r\n{"run": ' % length)
        assert answered(connection).startswith(b"HTTP/1.1 408 ")
        assert httpx.get(f"{served.url}/healthz").text == "ok\n"
