"""`/hosts`: who runs where, which devices need attention, and how a host did in time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runvitals.model.device import RunDevice, devices_of
from runvitals.model.durations import DAY_MS, HOUR_MS, MINUTE_MS
from runvitals.server.hosts.routes import host_models
from runvitals.server.http import cached_read
from runvitals.server.library.stored import hosts as stored_hosts
from tests.readers.journals.journals import T0, Monitor
from tests.server.client import Client
from tests.server.stored_runs import StoredServer

NOW = T0 + HOUR_MS
GPUS = [
    {"index": 0, "uuid": "GPU-a", "name": "H100", "memory_bytes": 80 * 2**30, "used": True},
    {"index": 1, "uuid": "GPU-b", "name": "H100", "memory_bytes": 80 * 2**30, "used": True},
    {"index": 2, "uuid": "GPU-c", "name": "H100", "used": False},
]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoredServer]:
    monkeypatch.setattr(cached_read, "FRESH_S", 0.0)
    monkeypatch.setattr(stored_hosts, "_FRESH_MS", 0)
    server = StoredServer(tmp_path / "server")
    yield server
    server.close()


@pytest.fixture
def local(tmp_path: Path, server: StoredServer) -> Client:
    return Client(tmp_path)


def take(server: StoredServer, directory: Path, run: str, devices: list[RunDevice] | None = None) -> None:
    server.take(directory, run)
    row = server.metadata_store.runs.find(run, NOW)
    assert row is not None
    if devices:
        server.metadata_store.devices.record(row.id, devices, NOW)


def both(local: Client, server: StoredServer, path: str, **params: Any) -> Any:
    """The answer of the journals, which must be that of the store."""
    mine, theirs = local.ask(path, **params), server.ask(path, **params)
    assert theirs == mine
    return mine


def busy(use: float, throttled_s: float = 0.0) -> dict[str, float]:
    """A sample with three GPUs: the first as given, the second unused, the third of nobody."""
    return {
        "cpu": 1.0,
        "cpu.mean": 40.0,
        "memory_percent": 50.0,
        "gpu.0.gpu": use,
        "gpu.0.memoryAllocated": 25.0,
        "gpu.0.memoryAllocatedBytes": 20.0 * 2**30,
        "gpu.0.powerWatts": 400.0,
        "gpu.0.enforcedPowerLimitWatts": 700.0,
        "gpu.0.temp": 86.0,
        "gpu.0.throttle.swThermalSeconds": throttled_s,
        "gpu.0.throttle.swPowerCapSeconds": 1000.0 + throttled_s,
        "gpu.1.gpu": 0.0,
        "gpu.1.powerWatts": 60.0,
        "gpu.1.temp": 30.0,
        "gpu.2.gpu": 0.0,
    }


def fleet(directory: Path, server: StoredServer) -> Monitor:
    """Three hosts: on node2 a run is running, that of node10 was lost, and that of node1 has finished."""
    done = Monitor(directory, "done", "node1", start_ms=T0 - DAY_MS)
    done.end(T0 - DAY_MS + HOUR_MS, "finished", exit_code=0)
    take(server, directory, "done")
    lost = Monitor(directory, "gone", "node10", start_ms=T0 - 2 * HOUR_MS)
    lost.sample(T0 - HOUR_MS, {"cpu": 1.0})
    server.now_ms = T0 - HOUR_MS
    take(server, directory, "gone")
    server.now_ms = NOW
    start_ms = NOW - 20 * MINUTE_MS
    live = Monitor(directory, "live", "node2", start_ms=start_ms, interval_s=60.0)
    live.info(start_ms, run={"name": "a live one"}, machine={"gpu_nvidia": GPUS})
    for minute in range(21):
        live.sample(start_ms + minute * MINUTE_MS, busy(90.0, 6.0 * minute))
    take(server, directory, "live", devices_of("node2", {"gpu_nvidia": GPUS}))
    return live


def test_hosts_and_their_devices(tmp_path: Path, local: Client, server: StoredServer) -> None:
    fleet(tmp_path, server)
    page = both(local, server, "hosts")
    host_models.FleetPage.model_validate(page)
    assert [(host["name"], host["state"]) for host in page["hosts"]] == [
        ("node1", "ended"),
        ("node2", "running"),
        ("node10", "lost"),
    ]
    assert page["total"] == 3
    assert page["next"] is None
    running = page["hosts"][1]
    assert [(run["id"], run["name"], run["state"], run["devices"]) for run in running["runs"]] == [
        ("live", "a live one", "running", [0, 1])
    ]
    assert (running["cpu"], running["memory"]) == (40.0, 50.0)
    first, second, third = running["devices"]
    assert first == {
        "kind": "gpu",
        "index": "0",
        "model": "H100",
        "memory_bytes": 80 * 2**30,
        "use": 90.0,
        "memory": 25.0,
        "memory_used_bytes": 20.0 * 2**30,
        "power": 400.0,
        "power_limit": 700.0,
        "temperature": 86.0,
        "in_use": True,
        "runs": ["live"],
        "flags": ["throttled", "hot"],
    }
    assert (second["flags"], second["in_use"], second["memory"]) == (["idle"], True, None)
    assert (third["flags"], third["in_use"], third["power"]) == ([], False, None)
    assert running["flags"] == ["throttled", "hot", "idle"]
    assert page["totals"] == {
        "running": 1,
        "lost": 1,
        "ended": 1,
        "devices": 3,
        "use": 30.0,
        "power": 460.0,
        "idle": 1,
        "throttled": 1,
        "hot": 1,
    }


def test_lists_are_filtered_sorted_and_paged(tmp_path: Path, local: Client, server: StoredServer) -> None:
    fleet(tmp_path, server)

    def names(**params: Any) -> list[str]:
        return [host["name"] for host in both(local, server, "hosts", **params)["hosts"]]

    assert names(state=["lost", "ended"]) == ["node1", "node10"]
    assert names(flag="idle") == ["node2"]
    assert names(flag="lost") == ["node10"]
    assert names(text="LIVE node2") == ["node2"]
    assert names(text="digits") == ["node1", "node2", "node10"]
    assert names(text="nothing") == []
    assert names(sort="attention") == ["node10", "node2", "node1"]
    assert names(sort="power") == ["node2", "node1", "node10"]
    page = both(local, server, "hosts", limit=2)
    assert (page["total"], page["next"]) == (3, "2")
    assert names(limit=2, after=page["next"]) == ["node10"]
    for wrong in ({"after": "x"}, {"state": "busy"}, {"flag": "cold"}, {"sort": "colour"}, {"limit": 0}):
        assert local.get("/api/v1/hosts", params=wrong).status_code == 422


def test_a_device_is_neither_idle_at_first_nor_after_a_busy_minute(
    tmp_path: Path, local: Client, server: StoredServer
) -> None:
    for run, minutes, first in (("new", 10, 0.0), ("paused", 30, 100.0)):
        start_ms = NOW - minutes * MINUTE_MS
        monitor = Monitor(tmp_path, run, run, start_ms=start_ms, interval_s=60.0)
        for minute in range(minutes + 1):
            # The paused one worked until five minutes ago.
            monitor.sample(start_ms + minute * MINUTE_MS, busy(first if minute < minutes - 5 else 0.0))
        take(server, tmp_path, run)
    page = both(local, server, "hosts")
    flags = {
        host["name"]: {device["index"]: device["flags"] for device in host["devices"]}
        for host in page["hosts"]
    }
    assert flags["new"] == {"0": ["hot"], "1": [], "2": []}
    assert flags["paused"] == {"0": ["hot"], "1": ["idle"], "2": ["idle"]}  # it is not known who uses them


def test_a_source_that_stopped_reporting_is_no_value(tmp_path: Path, server: StoredServer) -> None:
    monitor = Monitor(tmp_path, "live", "node1", start_ms=T0)
    monitor.sample(NOW - 30 * MINUTE_MS, {"cpu": 5.0, "gpu.0.gpu": 80.0})
    for minute in range(20):
        monitor.sample(NOW - (20 - minute) * MINUTE_MS, {"cpu": 6.0})
    take(server, tmp_path, "live")
    [host] = server.ask("hosts")["hosts"]
    assert (host["cpu"], host["devices"]) == (6.0, [])


def test_a_host_without_a_record_for_a_week_is_not_listed(
    tmp_path: Path, local: Client, server: StoredServer
) -> None:
    Monitor(tmp_path, "old", start_ms=T0 - 8 * DAY_MS).end(T0 - 8 * DAY_MS + 1000)
    take(server, tmp_path, "old")
    assert both(local, server, "hosts")["hosts"] == []
    detail = both(local, server, "hosts/node1")
    assert (detail["host"], detail["runs"]) == (None, [])
    assert [run["id"] for run in both(local, server, "hosts/node1", t0=T0 - 9 * DAY_MS)["runs"]] == ["old"]


def test_a_host_and_its_runs_in_time(tmp_path: Path, local: Client, server: StoredServer) -> None:
    for number in range(3):
        start_ms = NOW - (3 - number) * HOUR_MS
        monitor = Monitor(tmp_path, f"run-{number}", start_ms=start_ms)
        monitor.sample(start_ms, {"cpu": float(number)})
        monitor.end(start_ms + 30 * MINUTE_MS, "failed", exit_code=2)
        take(server, tmp_path, f"run-{number}")
    detail = both(local, server, "hosts/node1")
    host_models.HostDetail.model_validate(detail)
    assert detail["host"]["state"] == "ended"
    assert [(run["id"], run["state"], run["started_ms"]) for run in detail["runs"]] == [
        (f"run-{number}", "failed", NOW - (3 - number) * HOUR_MS) for number in (2, 1, 0)
    ]
    between = {"t0": NOW - 2 * HOUR_MS, "t1": NOW - 90 * MINUTE_MS}
    assert [run["id"] for run in both(local, server, "hosts/node1", **between)["runs"]] == ["run-1"]
    page = both(local, server, "hosts/node1", limit=2)
    assert page["next"] == "2"
    rest = both(local, server, "hosts/node1", limit=2, after="2")
    assert ([run["id"] for run in rest["runs"]], rest["next"]) == (["run-0"], None)
    for client in (local, server):
        assert client.get("/api/v1/hosts/node7").json() == {"error": "there is no host 'node7'"}
        assert client.get("/api/v1/hosts/node7/metrics").status_code == 404
        assert client.get("/api/v1/hosts/node1?t0=5&t1=4").status_code == 422


def test_series_of_a_host_over_its_runs(tmp_path: Path, local: Client, server: StoredServer) -> None:
    for number in range(2):
        start_ms = NOW - (2 - number) * 10 * MINUTE_MS
        monitor = Monitor(tmp_path, f"run-{number}", start_ms=start_ms)
        for second in range(60):
            monitor.sample(start_ms + second * 1000, {"gpu.0.gpu": 10.0 * number + second % 2, "cpu": 1.0})
        monitor.end(start_ms + MINUTE_MS)
        take(server, tmp_path, f"run-{number}")
    response = both(
        local, server, "hosts/node1/metrics", keys="gpu.*.gpu", t0=NOW - HOUR_MS, t1=NOW, max_points=60
    )
    host_models.HostSeries.model_validate(response)
    [series] = response["series"]
    assert series["key"] == "gpu.0.gpu"
    assert {*zip(series["min"], series["value"], series["max"], strict=True)} == {
        (0.0, 0.5, 1.0),
        (10.0, 10.5, 11.0),
    }
    assert NOW - 22 * MINUTE_MS < series["t"][0] < series["t"][-1] <= NOW - 9 * MINUTE_MS
