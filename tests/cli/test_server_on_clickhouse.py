"""`runvitals server` with samples in ClickHouse, as processes and over real sockets."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.cli import main
from tests.cli.test_server import envelope, serving, values
from tests.patience import PATIENCE_S, eventually
from tests.store.samples.clickhouse.server import ClickHouseServer, installed


@pytest.fixture(scope="module")
def clickhouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClickHouseServer]:
    if not installed("debian"):
        pytest.skip("clickhouse-server is not installed")
    server = ClickHouseServer(tmp_path_factory.mktemp("clickhouse") / "server", password="s3cret-word")
    yield server
    server.stop()


def test_what_is_posted_is_kept_while_clickhouse_is_away_and_the_server_is_killed_and_started(
    clickhouse: ClickHouseServer, tmp_path: Path
) -> None:
    address = f"clickhouse://127.0.0.1:{clickhouse.port}"
    environ = {"CLICKHOUSE_PASSWORD": clickhouse.password, "RUNVITALS_DIR": str(tmp_path / "data")}
    with serving(address, environ=environ) as (process, client):
        assert client.post("/api/v1/ingest", json=envelope(0)).json()["stored"] is True
        assert client.post("/api/v1/ingest", json=envelope(0)).json()["stored"] is False
        assert values(client) == [0.0, 1.0, 2.0]
        assert client.get("/api/v1/runs").json()["runs"][0]["project"] == "digits"
        clickhouse.kill()
        assert client.post("/api/v1/ingest", json=envelope(1)).status_code == 200
        ready = client.get("/readyz")
        assert ready.status_code == 200
        assert any("wait for ClickHouse" in warning for warning in ready.json()["warnings"])
        process.kill()
        written = "".join(process.communicate(timeout=PATIENCE_S))
        assert "wait" in written
        assert clickhouse.password not in written
    with serving(address, environ=environ) as (process, client):  # it starts without ClickHouse
        ready = client.get("/readyz")
        assert ready.status_code == 200
        assert any("cannot be reached" in warning for warning in ready.json()["warnings"])
        metrics = client.get("/metrics").text
        assert 'runvitals_thread_failing{thread="store-waiting"} 1' in metrics
        assert "runvitals_store_warnings 2" in metrics
        assert "cannot be reached" in client.get("/api/v1/runs").json()["error"]
        assert client.post("/api/v1/ingest", json=envelope(2)).status_code == 200
        clickhouse.start()
        eventually(lambda: client.get("/readyz").json()["warnings"] == [])
        assert values(client) == [float(value) for value in range(9)]
        assert client.post("/api/v1/ingest", json=envelope(1)).json()["stored"] is False
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0


def test_a_password_among_the_arguments_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["server", "--store", "clickhouse://otter:s3cret@127.0.0.1", "--listen", "127.0.0.1:0"]) == 1
    printed = capsys.readouterr().err
    assert "CLICKHOUSE_PASSWORD" in printed
    assert "s3cret" not in printed
