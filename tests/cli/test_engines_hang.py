"""ClickHouse and PostgreSQL accept connections and never answer: probes are answered, samples are kept."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from tests.cli.test_server import envelope, serving, values
from tests.patience import eventually
from tests.server.database import postgresql as postgres
from tests.store.samples.clickhouse.server import ClickHouseServer

REQUEST_S = 60.0
"""How long a server waits for the response to a request to ClickHouse, but not for that to a batch."""
PROBES = ("/healthz", "/readyz", "/metrics")


def seconds(ask: Callable[[], httpx.Response]) -> tuple[float, httpx.Response]:
    begun_s = time.monotonic()
    response = ask()
    return time.monotonic() - begun_s, response


def quickest(client: httpx.Client, path: str) -> tuple[float, httpx.Response]:
    """The quickest of a few answers, so that other work on the machine does not count."""
    return min((seconds(lambda: client.get(path)) for _ in range(5)), key=lambda timed: timed[0])


def limit_s(client: httpx.Client) -> float:
    """The longest that a probe may take: far more than now, far less than the seconds for which an engine is
    waited for.
    """
    return 1.0 + 20 * max(quickest(client, path)[0] for path in PROBES)


def test_a_batch_waits_a_moment_for_clickhouse_and_probes_do_not(
    clickhouse: ClickHouseServer, tmp_path: Path
) -> None:
    environ = {"CLICKHOUSE_PASSWORD": clickhouse.password, "RUNVITALS_DIR": str(tmp_path / "data")}
    with serving(f"clickhouse://127.0.0.1:{clickhouse.port}", environ=environ) as (_, client):
        assert client.post("/api/v1/ingest", json=envelope(0)).json()["stored"] is True
        assert clickhouse.process is not None
        allowed_s = limit_s(client)
        clickhouse.process.send_signal(signal.SIGSTOP)
        try:
            for path in PROBES:
                took_s, response = quickest(client, path)
                assert (response.status_code, took_s < allowed_s) == (200, True), (path, took_s)
            took_s, response = seconds(lambda: client.post("/api/v1/ingest", json=envelope(1)))
            assert (response.status_code, took_s < REQUEST_S) == (200, True), took_s
            ready = client.get("/readyz").json()
            assert ready["ready"]
            eventually(lambda: "wait for ClickHouse" in str(client.get("/readyz").json()["warnings"]))
        finally:
            clickhouse.process.send_signal(signal.SIGCONT)
        eventually(lambda: client.get("/readyz").json()["warnings"] == [])
        assert values(client) == [float(value) for value in range(6)]


def test_probes_and_samples_do_not_wait_for_postgresql(
    metadata: postgres.KillableServer, tmp_path: Path
) -> None:
    with serving(tmp_path / "store", "--metadata", metadata.make("vitals")) as (_, client):
        assert client.post("/api/v1/ingest", json=envelope(0)).json()["stored"] is True
        allowed_s = limit_s(client)
        with metadata.frozen():
            for path in PROBES:
                took_s, response = quickest(client, path)
                assert (response.status_code, took_s < allowed_s) == (200, True), (path, took_s)
            assert client.post("/api/v1/ingest", json=envelope(1)).status_code == 200
            eventually(lambda: "has not answered" in str(client.get("/readyz").json()["warnings"]))
            assert client.get("/readyz").json()["ready"]
        eventually(lambda: client.get("/readyz").json()["warnings"] == [])
        assert values(client) == [float(value) for value in range(6)]
