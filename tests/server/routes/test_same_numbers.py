"""Charts, tables, CSV and API have the same numbers to the last bit, from journals and from the store."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runvitals import open_run
from tests.readers.journals.journals import T0, Monitor, Trainer
from tests.server.client import Client
from tests.server.stored_runs import StoredServer

KEYS = ("cpu", "gpu.0.powerWatts", "gpu.1.powerWatts", "memory_percent")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Journals of a run with values that no rounding would leave as they are."""
    folder = tmp_path_factory.mktemp("runs")
    monitor, trainer = Monitor(folder), Trainer(folder)
    for i in range(700):
        values = {key: (0.1 + 0.2) * math.sin(i + index) + 1 / 3 for index, key in enumerate(KEYS)}
        monitor.sample(T0 + i * 1000, {**values, "disk.in": i * math.pi, "app.tiny": 5e-324 * i})
        trainer.log(T0 + i * 1000 + 7, i, loss=math.exp(-i / 97) + 1e-17)
    monitor.end(T0 + 700_000)
    trainer.close()
    return folder


@pytest.fixture(scope="module")
def servers(folder: Path) -> Iterator[list[Client]]:
    """Clients of the journals, and of a store with the same run."""
    stored = StoredServer(folder / "server")
    stored.take(folder)
    yield [Client(folder), stored]
    stored.close()


def rows(client: Client, path: str, **params: Any) -> list[dict[str, str]]:
    response = client.get(f"/api/v1/{path}", params={**params, "format": "csv"})
    assert response.status_code == 200
    return list(csv.DictReader(response.text.splitlines()))


@pytest.mark.parametrize("max_points", [300, 1000])
def test_a_table_has_the_numbers_of_the_chart(servers: list[Client], max_points: int) -> None:
    charts = []
    for server in servers:
        response = server.ask("runs/abc/metrics", keys=KEYS, max_points=max_points)
        table = rows(server, "runs/abc/metrics", keys=KEYS, max_points=max_points)
        (group,) = response["groups"]
        assert [int(row["t"]) for row in table] == group["t"]
        for key in KEYS:
            assert [float(row[key]) for row in table] == group["series"][key]
            if group["n"] is not None:
                assert [float(row[f"{key}:min"]) for row in table] == group["min"][key]
                assert [float(row[f"{key}:max"]) for row in table] == group["max"][key]
        charts.append(response["groups"])
    assert charts[0] == charts[1]


def test_the_same_series_has_the_same_buckets_in_every_request(servers: list[Client]) -> None:
    """A page requests the charts that come into view together, so a chart is in many different requests."""
    for server in servers:
        (alone,) = server.ask("runs/abc/metrics", keys=["cpu"], max_points=300)["groups"]
        (several,) = server.ask("runs/abc/metrics", keys=KEYS, max_points=300)["groups"]
        assert (alone["t"], alone["n"]) == (several["t"], several["n"])
        for part in ("series", "min", "max"):
            assert alone[part]["cpu"] == several[part]["cpu"]
        again = server.ask("runs/abc/metrics", keys=["cpu"], max_points=300)["groups"]
        assert again == [alone]


def test_samples_are_those_that_were_recorded(servers: list[Client], folder: Path) -> None:
    run = open_run("abc", str(folder))
    for key in (*KEYS, "app.tiny", "disk.in", "disk.readMBps"):
        recorded = list(run.metrics(key)[key].values)
        for server in servers:
            (group,) = server.ask("runs/abc/metrics", keys=[key], resolution="raw")["groups"]
            assert group["series"][key] == recorded
            table = rows(server, "runs/abc/metrics", keys=[key], resolution="raw")
            assert [float(row[key]) for row in table] == recorded


def test_logged_values_are_those_that_were_logged(servers: list[Client]) -> None:
    logged = [math.exp(-i / 97) + 1e-17 for i in range(700)]
    for server in servers:
        (group,) = server.ask("runs/abc/history", keys=["loss"], max_points=1000)["groups"]
        assert group["series"]["loss"] == logged
        assert [float(row["loss"]) for row in rows(server, "runs/abc/history", keys=["loss"])] == logged
        buckets = server.ask("runs/abc/history", keys=["loss"], max_points=100)["groups"]
        table = rows(server, "runs/abc/history", keys=["loss"], max_points=100)
        assert [float(row["loss"]) for row in table] == buckets[0]["series"]["loss"]
