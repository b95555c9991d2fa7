"""Series, their samples and their definitions, from journals on disk."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import pytest

from runvitals.server.runs.routes import models
from tests.readers.journals.journals import T0, Monitor, Training
from tests.server.client import Client


def test_series_have_their_metric_definitions(tmp_path: Path, client: Client) -> None:
    monitor = Monitor(tmp_path)
    monitor.sample(T0, {"disk.in": 0.0, "my own.thing": 1.0})
    monitor.sample(T0 + 1000, {"disk.in": 3.0, "my own.thing": math.nan})
    by_key = {series["key"]: series for series in client.ask("runs/abc/series")}
    assert list(by_key) == ["disk.in", "disk.readMBps", "my own.thing"]
    rate = by_key["disk.readMBps"]
    assert (rate["unit"], rate["kind"], rate["subject"], rate["chart"]) == (
        "MiB/s",
        "rate",
        "Disk",
        "Disk I/O",
    )
    assert (rate["n"], rate["first_ms"], rate["last"]) == (1, T0 + 1000, 3.0)
    assert (by_key["disk.in"]["min"], by_key["disk.in"]["max"]) == (0.0, 3.0)
    assert (by_key["my own.thing"]["subject"], by_key["my own.thing"]["last"]) == ("Other", 1.0)
    for series in by_key.values():
        models.SeriesInfo.model_validate(series)


def test_short_series_are_returned_as_samples(tmp_path: Path, client: Client) -> None:
    monitor = Monitor(tmp_path)
    for i in range(4):
        slow = {"disk./.usagePercent": 50.0 + i} if i % 2 == 0 else {}
        monitor.sample(T0 + i * 1000, {"cpu": 0.1 * i if i != 2 else math.nan, "cpu.mean": 1.0, **slow})
    metrics = client.ask("runs/abc/metrics", keys=["cpu*", "disk*"])
    models.Metrics.model_validate(metrics)
    assert (metrics["resolution"], metrics["bucket_ms"], metrics["t0"], metrics["t1"]) == (
        "raw",
        None,
        T0,
        T0 + 3000,
    )
    assert metrics["groups"] == [
        {
            "host": "node1", "role": "monitor", "t": [T0, T0 + 1000, T0 + 2000, T0 + 3000], "n": None,
            "series": {"cpu": [0.0, 0.1, None, 0.30000000000000004], "cpu.mean": [1.0] * 4},
            "min": None, "max": None,
        },
        {
            "host": "node1", "role": "monitor", "t": [T0, T0 + 2000], "n": None,
            "series": {"disk./.usagePercent": [50.0, 52.0]}, "min": None, "max": None,
        },
    ]  # fmt: skip


def test_long_series_are_returned_as_buckets(tmp_path: Path, client: Client) -> None:
    monitor = Monitor(tmp_path)
    for i in range(100):
        monitor.sample(T0 + i * 1000, {"cpu": float(i), "disk.in": float(i), "memory_percent": float(i)})
    metrics = client.ask("runs/abc/metrics", max_points=10)
    models.Metrics.model_validate(metrics)
    assert (metrics["resolution"], metrics["bucket_ms"]) == ("buckets", 10_000)
    (group, rate) = metrics["groups"]  # the rate has one sample less
    assert group["t"][:2] == [T0, T0 + 10_000]
    assert group["n"] == [10] * 10
    assert (group["min"]["cpu"][1], group["series"]["cpu"][1], group["max"]["cpu"][1]) == (10.0, 14.5, 19.0)
    assert group["series"]["disk.in"][1] == 19.0  # of a counter the last counts
    assert group["series"]["memory_percent"][1] == 19.0  # of memory the highest
    assert rate["series"]["disk.readMBps"] == [1.0] * 10

    raw = client.ask("runs/abc/metrics", keys="cpu", max_points=10, resolution="raw")
    assert raw["groups"][0]["series"]["cpu"] == [float(i) for i in range(100)]


def test_buckets_that_get_wider_keep_decades_and_spikes(tmp_path: Path, client: Client) -> None:
    spikes = {3: 90.0, 470: 91.0, 15_000: 92.0}
    monitor = Monitor(tmp_path)
    for i in range(20_000):
        monitor.sample(T0 + i * 1000, {"cpu": spikes.get(i, 1.0)})
    metrics = client.ask("runs/abc/metrics", keys="cpu", max_points=50, log_from=T0)
    models.Metrics.model_validate(metrics)
    assert (metrics["resolution"], metrics["bucket_ms"]) == ("buckets", None)
    (group,) = metrics["groups"]
    since = [(t - T0) / 1000 for t in group["t"]]
    assert since == sorted(set(since))
    assert since[0] <= 1 < since[1]
    assert sum(group["n"]) == 19_999  # the first sample is at the start
    for low in (100, 1000):
        assert sum(low <= place < 10 * low for place in since) >= 20
    assert max(after / before for before, after in pairwise(since) if before > 50) < 1.07
    for second, height in spikes.items():
        place = group["max"]["cpu"].index(height)
        assert since[place] <= second < since[place + 1]
    part = client.ask(
        "runs/abc/metrics", keys="cpu", max_points=50, log_from=T0, t0=T0 + 100_000, t1=T0 + 999_000
    )
    first = part["groups"][0]
    assert T0 + 90_000 < first["t"][0] <= T0 + 100_000
    assert 960_000 <= first["t"][-1] - T0 <= 999_000
    few = client.ask("runs/abc/metrics", keys="cpu", max_points=50, log_from=T0 + 19_980_000)
    assert (few["resolution"], few["groups"][0]["t"][0]) == ("raw", T0 + 19_981_000)
    table = client.get(
        "/api/v1/runs/abc/metrics",
        params={"keys": "cpu", "max_points": 50, "log_from": T0, "format": "csv"},
    )
    assert len(table.text.splitlines()) == 1 + len(since)


def test_metrics_of_a_time_range_and_of_one_host(tmp_path: Path, client: Client) -> None:
    for host in ("a", "b"):
        monitor = Monitor(tmp_path, host=host)
        for i in range(10):
            monitor.sample(T0 + i * 1000, {"cpu": float(i)})
    metrics = client.ask("runs/abc/metrics", t0=T0 + 2000, t1=T0 + 4000, host="b")
    (group,) = metrics["groups"]
    assert (group["host"], group["series"]["cpu"]) == ("b", [2.0, 3.0, 4.0])
    empty = client.ask("runs/abc/metrics", t0=T0 + 50_000)
    assert (empty["groups"], empty["t0"], empty["t1"]) == ([], T0 + 50_000, T0 + 50_000)


def test_too_many_samples_are_rejected(
    tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runvitals.server.charts.series.MAX_RAW_VALUES", 50)
    training = Training(tmp_path)
    training.advance(10)
    response = client.get("/api/v1/runs/abc/metrics?resolution=raw")
    assert response.status_code == 422
    assert "a response holds at most 50: request fewer keys or a shorter time" in response.json()["error"]
    client.ask("runs/abc/metrics", resolution="raw", keys="cpu")


def test_responses_follow_the_journal(
    tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runvitals.server.http.cached_read.FRESH_S", 0.0)
    training = Training(tmp_path)
    training.advance(1)
    assert client.ask("runs/abc/metrics", keys="cpu")["groups"][0]["t"] == [T0]
    training.advance(1)
    assert client.ask("runs/abc/metrics", keys="cpu")["groups"][0]["t"] == [T0, T0 + 1000]
