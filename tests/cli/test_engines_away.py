"""PostgreSQL and ClickHouse are killed under a server and come back: nothing acknowledged is lost."""

from __future__ import annotations

import time
from pathlib import Path

import httpx

from tests.cli.test_server import envelope, serving, values
from tests.patience import PATIENCE_S, eventually
from tests.server.database import postgresql as postgres
from tests.store.samples.clickhouse.server import ClickHouseServer


def test_both_engines_are_killed_and_come_back(
    metadata: postgres.KillableServer, clickhouse: ClickHouseServer, tmp_path: Path
) -> None:
    samples = f"clickhouse://127.0.0.1:{clickhouse.port}"
    options = (samples, "--metadata", metadata.make("vitals"))
    environ = {"CLICKHOUSE_PASSWORD": clickhouse.password, "RUNVITALS_DIR": str(tmp_path / "data")}
    with serving(*options, environ=environ) as (_, client):
        acknowledged = Acknowledged(client)
        acknowledged.send("first")
        acknowledged.send("second")

        clickhouse.kill()
        acknowledged.send("first")  # waits on the disk of the server
        refused = client.get("/api/v1/runs/first/metrics")
        assert refused.status_code == 503
        assert int(refused.headers["retry-after"]) > 0
        assert f"ClickHouse at clickhouse://default@127.0.0.1:{clickhouse.port}" in refused.json()["error"]
        assert clickhouse.password not in refused.text

        metadata.kill()
        # A run that is new must be registered first; samples of a known one need ClickHouse alone.
        refused = client.post("/api/v1/ingest", json=envelope(0, run="third"))
        assert refused.status_code == 503
        assert int(refused.headers["retry-after"]) > 0
        acknowledged.try_to_send("first", "second")
        assert client.get("/healthz").status_code == 200

        metadata.start()
        eventually(lambda: client.get("/api/v1/me").status_code != 503)
        eventually(lambda: acknowledged.try_to_send("third"))
        clickhouse.start()
        eventually(lambda: client.get("/readyz").json()["warnings"] == [])
        acknowledged.send("second")
        acknowledged.check()
    with serving(*options, environ=environ) as (_, client):
        acknowledged.client = client
        acknowledged.check()


def test_postgresql_is_killed_again_and_again_while_hosts_send(
    metadata: postgres.KillableServer, tmp_path: Path
) -> None:
    options = (str(tmp_path / "store"), "--metadata", metadata.make("vitals"))
    with serving(*options) as (_, client):
        acknowledged = Acknowledged(client)
        for round in range(3):
            acknowledged.send("first")
            metadata.kill()
            for _ in range(5):
                acknowledged.try_to_send("first", f"new-{round}")
            metadata.start()
            eventually(lambda name=f"new-{round}": acknowledged.try_to_send(name))
        acknowledged.check()


class Acknowledged:
    """What a server has acknowledged, by run."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self._sent: dict[str, int] = {}

    def send(self, run: str) -> None:
        """Send the next envelope of a run until it is acknowledged."""
        until_s = time.monotonic() + PATIENCE_S
        while not self.try_to_send(run):
            assert time.monotonic() < until_s

    def try_to_send(self, *runs: str) -> bool:
        """Send the next envelope of runs once. What is refused must be refused with 503 and Retry-After."""
        every = True
        for run in runs:
            seq = self._sent.get(run, 0)
            response = self.client.post("/api/v1/ingest", json=envelope(seq, run=run))
            if response.status_code == 200:
                self._sent[run] = seq + 1
            else:
                assert response.status_code == 503, response.text
                assert int(response.headers["retry-after"]) > 0
                every = False
        return every

    def check(self) -> None:
        """All that was acknowledged is there, once and in order."""
        for run, count in self._sent.items():
            assert values(self.client, run) == [float(value) for value in range(3 * count)]
