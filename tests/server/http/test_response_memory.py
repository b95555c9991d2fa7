"""Clients that ask for much and read nothing: what their answers hold in memory is limited together."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import numpy as np
import pytest

from runvitals.server.http.connection_limits import ConnectionLimits
from runvitals.server.http.response_memory import ResponseLimits
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.store.samples.interface import SampleBatch
from tests.patience import PATIENCE_S, eventually
from tests.server.serving import Served, serving

T0 = 1_790_812_800_000
LIMIT = 48 << 20
CLIENTS = 30
JSON = "/api/v1/runs/abc/metrics?resolution=raw"
CSV = f"{JSON}&format=csv"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A run of 150,000 values: 4 MB of JSON."""
    limits = ResponseLimits(held_bytes=LIMIT)
    with serving(tmp_path, ConnectionLimits(unread_s=600), response_limits=limits) as served:
        add_run(served)
        yield served


def add_run(served: Served) -> None:
    (who,) = served.metadata_store.writers.join(
        [WriterRegistration("abc", "monitor.node1.1", "digits", started_ms=T0)], T0
    )
    schema = served.metadata_store.metrics.schema([f"key.{number}" for number in range(10)])
    served.metadata_store.metrics.record_schemas([(who.writer_id, schema.id)])
    values = np.random.default_rng(1).random((15_000, 10))
    t = T0 + 1000 * np.arange(len(values))
    served.store.append([SampleBatch(who.lane_id, who.writer_id, 0, schema.metric_ids, t, values)])


def ask(served: Served, path: str) -> socket.socket:
    """Ask, and read nothing."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(PATIENCE_S)
    connection.connect(served.address)
    connection.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
    return connection


def head_of(connection: socket.socket) -> bytes:
    head = b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(100)
    return head


@pytest.mark.parametrize("path", [JSON, CSV], ids=["JSON", "CSV"])
def test_unread_responses_share_a_limit(served: Served, path: str) -> None:
    memory = served.app.services.response_memory
    with ExitStack() as stack:
        waiting = [stack.enter_context(closing(ask(served, path))) for _ in range(CLIENTS)]
        begun = [head_of(connection) for connection in waiting]
        answered = sum(head.startswith(b"HTTP/1.1 200 ") for head in begun)
        rejected = [head for head in begun if head.startswith(b"HTTP/1.1 503 ")]
        assert answered + len(rejected) == CLIENTS
        assert 0 < answered < CLIENTS
        assert all(b"retry-after: 1\r\n" in head for head in rejected)
        assert 0 < memory.held_bytes <= LIMIT
        assert httpx.get(f"{served.url}/readyz", timeout=PATIENCE_S).status_code == 200
        refused = httpx.get(f"{served.url}{path}", timeout=PATIENCE_S)
        assert refused.json()["error"].startswith("responses that other clients are still reading take ")
    eventually(lambda: memory.held_bytes == 0)
    assert httpx.get(f"{served.url}{path}", timeout=PATIENCE_S).status_code == 200


def test_a_response_larger_than_the_limit_is_sent_if_it_is_the_only_one(tmp_path: Path) -> None:
    with serving(tmp_path, response_limits=ResponseLimits(held_bytes=1)) as served:
        add_run(served)
        response = httpx.get(
            f"{served.url}{JSON}", headers={"accept-encoding": "identity"}, timeout=PATIENCE_S
        )
        assert response.status_code == 200
        assert int(response.headers["content-length"]) == len(response.content) > 3_000_000
        assert len(response.json()["groups"][0]["t"]) == 15_000


@pytest.mark.parametrize(
    ("bounds", "limits"),
    [
        (ConnectionLimits(unread_s=1), ResponseLimits()),
        (ConnectionLimits(unread_s=1), ResponseLimits(patience_s=0.2, slowest_bytes_per_s=100_000_000)),
    ],
    ids=["reads nothing", "reads a little now and then"],
)
def test_a_client_that_reads_too_slowly_is_disconnected(
    tmp_path: Path, bounds: ConnectionLimits, limits: ResponseLimits
) -> None:
    with serving(tmp_path, bounds, response_limits=limits) as served:
        add_run(served)
        memory = served.app.services.response_memory
        with closing(ask(served, JSON)) as connection:
            assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
            if limits.patience_s < 1:
                while memory.held_bytes:
                    connection.recv(100)
                    time.sleep(0.02)
            eventually(lambda: memory.held_bytes == 0)
            eventually(lambda: not served.http.server_state.connections)
