"""More requests than the server can store, and slow clients."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from runvitals.server.http.body_limits import Limits
from runvitals.server.http.connection_limits import ConnectionLimits
from runvitals.server.ingest.endpoint import PATH
from runvitals.server.ingest.sample_commits import SampleCommits
from runvitals.store.samples.interface import CommitAck, SampleBatch
from runvitals.store.samples.sqlite import SqliteChunks
from tests.patience import PATIENCE_S
from tests.server.ingest.server import NOW, Server
from tests.server.serving import answered, serving


class BlockedDisk:
    """A store that commits nothing until `unblock`."""

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
def test_requests_in_flight_are_bounded_while_the_disk_blocks(tmp_path: Path, limit: Any) -> None:
    limits = Limits(**limit)
    server = Server(str(tmp_path), limits)
    disk = BlockedDisk(server.store)
    server.recorder.sample_commits = SampleCommits(disk)  # type: ignore[arg-type]
    responses: dict[int, httpx.Response] = {}
    most = 0

    async def send(client: httpx.AsyncClient, seq: int) -> None:
        responses[seq] = await client.post(
            PATH, content=envelope(seq), headers={"content-type": "application/json"}
        )

    async def send_all() -> None:
        nonlocal most
        transport = httpx.ASGITransport(server.endpoint)
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
            anyio.create_task_group() as tasks,
        ):
            for seq in range(40):
                tasks.start_soon(send, client, seq)
            with anyio.fail_after(PATIENCE_S):
                while (
                    len(responses) + server.endpoint.admission.requests < 40
                    or not server.recorder.sample_commits.batches
                ):
                    await anyio.sleep(0.01)
                most = server.endpoint.admission.bytes
                while len(responses) + server.recorder.sample_commits.batches < 40:
                    await anyio.sleep(0.01)
            disk.unblock()

    anyio.run(send_all)
    rejected = [response for response in responses.values() if response.status_code == 429]
    assert 0 < most <= limits.bytes_in_flight
    assert len(rejected) >= 20
    assert {response.headers["retry-after"] for response in rejected} == {"1"}
    assert all("in flight already: try again later" in response.text for response in rejected)
    accepted = sorted(seq for seq, response in responses.items() if response.status_code == 200)
    assert len(accepted) + len(rejected) == 40
    assert sorted({int(value) for _, value in server.samples()["cpu"]}) == accepted
    assert (server.endpoint.admission.requests, server.endpoint.admission.bytes) == (0, 0)
    again = server.post(envelope(next(iter(set(range(40)) - set(accepted)))))
    assert (again.status_code, again.json()["stored"]) == (200, True)
    server.close()


@pytest.mark.parametrize("length", [100, 1_000_000])
def test_slow_clients_are_rejected(tmp_path: Path, length: int) -> None:
    head = b"POST /api/v1/ingest HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    with (
        serving(tmp_path, ConnectionLimits(body_s=0.3), Limits(body_s=0.3)) as served,
        served.connect() as connection,
    ):
        connection.sendall(head + b'content-length: %d\r\n\r\n{"run": ' % length)
        assert answered(connection).startswith(b"HTTP/1.1 408 ")
        assert httpx.get(f"{served.url}/healthz", timeout=PATIENCE_S).text == "ok\n"
