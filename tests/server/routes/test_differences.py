"""Which metrics differ most between a time range and the time around it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from runvitals.server.runs.routes import models
from tests.readers.journals.journals import T0, Monitor, Trainer
from tests.server.client import Client
from tests.server.stored_runs import StoredServer


def disturbed(directory: Path, seconds: int = 600) -> None:
    """A run whose power drops and whose step time doubles from 300 s to 330 s; nothing else changes."""
    monitor, trainer = Monitor(directory), Trainer(directory)
    for i in range(seconds):
        slow = 300 <= i < 330
        noise = math.sin(i * 7.3)
        monitor.sample(
            T0 + i * 1000,
            {
                "gpu.0.powerWatts": (250.0 if slow else 600.0) + 5 * noise,
                "cpu": 50.0 + 10 * noise,
                "memory_percent": 30.0,
                "disk.in": float(i),
            },
        )
        trainer.log(T0 + i * 1000, i, step_time=(0.4 if slow else 0.2) + 0.001 * noise, lr=0.1)


def test_what_changed_is_ranked_by_the_named_statistic(tmp_path: Path, client: Client) -> None:
    disturbed(tmp_path)
    response = client.ask("runs/abc/differences", t0=T0 + 300_000, t1=T0 + 329_999)
    models.Differences.model_validate(response)
    ranked = [
        (difference["kind"], difference["key"], difference["chart"]) for difference in response["differences"]
    ]
    assert ranked[:2] == [
        ("logged", "step_time", "step_time"),
        ("sampled", "gpu.0.powerWatts", "GPU power"),
    ]
    assert {key for _, key, _ in ranked} <= {
        "step_time",
        "gpu.0.powerWatts",
        "cpu",
    }  # constants do not differ
    assert (response["around_t0"], response["around_t1"]) == (T0, T0 + 629_999)
    assert response["compared"] == 6  # the speed of the disk, not its total
    power = response["differences"][1]
    values = np.array([(250.0 if 300 <= i < 330 else 600.0) + 5 * math.sin(i * 7.3) for i in range(600)])
    inside, outside = values[300:330], np.delete(values, slice(300, 330))
    mad = np.median(np.abs(outside - np.median(outside)))
    assert power["inside"] == {
        "n": 30,
        "median": np.median(inside),
        "mad": np.median(np.abs(inside - np.median(inside))),
        "farthest": inside.min(),
    }
    farthest = outside[np.abs(outside - np.median(outside)).argmax()]
    assert power["outside"] == {"n": 570, "median": np.median(outside), "mad": mad, "farthest": farthest}
    spread = max(1.4826 * mad, 0.01 * (values.max() - values.min()))
    assert power["score"] == abs(np.median(inside) - np.median(outside)) / spread


def test_a_long_range_is_compared_by_buckets(tmp_path: Path, client: Client) -> None:
    monitor = Monitor(tmp_path)
    for i in range(9000):
        monitor.sample(T0 + i * 1000, {"cpu": 80.0 if 4000 <= i < 4800 else 20.0 + i % 2})
    (cpu,) = client.ask("runs/abc/differences", t0=T0 + 4_000_000, t1=T0 + 4_799_999)["differences"]
    assert cpu["inside"]["median"] == 80.0
    assert cpu["inside"]["n"] < 800
    assert cpu["outside"]["n"] < 8200
    assert 20.0 <= cpu["outside"]["median"] <= 21.0


def test_series_with_too_few_values_are_left_out(tmp_path: Path, client: Client) -> None:
    monitor = Monitor(tmp_path)
    for i in range(20):
        monitor.sample(T0 + i * 1000, {"cpu": float(i), "memory_percent": math.nan if i != 3 else 1.0})
    response = client.ask("runs/abc/differences", t0=T0 + 2000, t1=T0 + 5000)
    assert (response["compared"], response["left_out"]) == (1, 1)
    assert {one["key"] for one in response["differences"]} <= {"cpu"}
    assert client.ask("runs/abc/differences", t0=0, t1=10)["differences"] == []


def test_a_metric_of_many_devices_is_one_difference(tmp_path: Path, client: Client) -> None:
    for host in ("a", "b"):
        monitor = Monitor(tmp_path, host=host)
        for i in range(600):
            use = {f"gpu.{gpu}.gpu": (10.0 + gpu if 300 <= i < 330 else 95.0) + i % 3 for gpu in range(8)}
            # One that changes on its own does not count.
            monitor.sample(T0 + i * 1000, {**use, "gpu.8.gpu": 95.0 + i % 3})
    (use,) = client.ask("runs/abc/differences", t0=T0 + 300_000, t1=T0 + 329_999)["differences"]
    assert (use["chart"], use["series"], use["hosts"], use["how"]) == ("GPU utilization", 16, 2, "level")


def test_a_spike_is_found_and_probable_causes_come_first(tmp_path: Path, client: Client) -> None:
    monitor, trainer = Monitor(tmp_path), Trainer(tmp_path)
    for i in range(600):
        at = 300 <= i < 330
        sample = {
            "gpu.0.gpu": 40.0 if at else 95.0 + i % 2,
            "cpu.iowait": 30.0 if at else 1.0 + i % 3 / 10,
            "disk.usedMBps": 500.0 if at else 5.0 + i % 2,
        }
        monitor.sample(T0 + i * 1000, sample)
        trainer.log(T0 + i * 1000, i, loss=18.0 if i == 310 else 0.2 + i % 7 / 100)
    response = client.ask("runs/abc/differences", t0=T0 + 300_000, t1=T0 + 329_999)
    found = [(one["key"], one["how"], one["part"]) for one in response["differences"]]
    assert found == [
        ("cpu.iowait", "level", "cause"),
        ("loss", "spike", "logged"),
        ("gpu.0.gpu", "level", "effect"),
        ("disk.usedMBps", "level", "volume"),
    ]
    loss = response["differences"][1]
    assert (loss["inside"]["farthest"], loss["outside"]["median"]) == (18.0, pytest.approx(0.23))
    at = T0 + 310_000
    (alone,) = client.ask("runs/abc/differences", t0=at, t1=at, keys="loss")["differences"]
    assert alone["how"] == "spike"


def test_few_series_are_returned_if_asked_for_few(tmp_path: Path, client: Client) -> None:
    disturbed(tmp_path)
    around = {"t0": T0 + 300_000, "t1": T0 + 329_999}
    whole = client.ask("runs/abc/differences", **around)["differences"]
    assert client.ask("runs/abc/differences", **around, limit=1)["differences"] == whole[:1]
    (power,) = client.ask("runs/abc/differences", **around, keys="gpu.*")["differences"]
    assert power["key"] == "gpu.0.powerWatts"
    assert client.ask("runs/abc/differences", **around, host="other")["compared"] == 0


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"t0": 5, "t1": 4}, "t1 (4) is before t0 (5)"),
        ({"t0": 5}, "t1"),
        ({"t0": 0, "t1": 2**60}, "t1"),
        ({"t0": 0, "t1": 1, "limit": 1000}, "limit"),
    ],
)
def test_wrong_parameters_are_named(
    tmp_path: Path, client: Client, params: dict[str, int], text: str
) -> None:
    Monitor(tmp_path).sample(T0, {"cpu": 1.0})
    response = client.get("/api/v1/runs/abc/differences", params=params)
    assert response.status_code == 422
    assert text in response.json()["error"]


def test_a_shared_server_answers_the_same(tmp_path: Path, client: Client) -> None:
    disturbed(tmp_path)
    server = StoredServer(tmp_path / "server")
    try:
        server.take(tmp_path)
        around = {"t0": T0 + 300_000, "t1": T0 + 329_999}
        assert server.ask("runs/abc/differences", **around) == client.ask("runs/abc/differences", **around)
    finally:
        server.close()
