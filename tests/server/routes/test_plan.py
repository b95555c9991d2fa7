"""The plan of a run's charts: the series by metric, from journals and from the store."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runvitals.server.charts.routes import plan_models
from runvitals.server.http import cached_read
from runvitals.server.library.stored.plans import StoredPlans
from tests.readers.journals.journals import T0, Monitor, Training
from tests.server.client import Client
from tests.server.stored_runs import StoredServer

Series = tuple[str, str, str]


@pytest.fixture
def client(client: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(cached_read, "FRESH_S", 0.0)
    return client


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoredServer]:
    monkeypatch.setattr(cached_read, "FRESH_S", 0.0)
    server = StoredServer(tmp_path / "server")
    yield server
    server.close()


def planned(plan: dict[str, Any], field: str = "places") -> dict[Series, dict[str, Any]]:
    """The series that a plan names in a field, with their definitions."""
    return {
        (key["key"], plan["places"][index]["host"], plan["places"][index]["role"]): {**metric, **key}
        for metric in plan["metrics"]
        for key in metric["series"]
        for index in key[field]
    }


def all_zero(plan: dict[str, Any]) -> set[str]:
    return {key for key, _, _ in planned(plan, "zero")}


def test_a_definition_is_sent_once_for_all_devices_and_hosts(tmp_path: Path, client: Client) -> None:
    for host in ("a", "b"):
        Monitor(tmp_path, host=host).sample(T0, {f"gpu.{i}.powerWatts": 300.0 for i in range(8)})
    plan = client.ask("runs/abc/plan")
    plan_models.RunPlanSchema.model_validate(plan)
    (metric,) = plan["metrics"]
    assert (metric["template"], metric["unit"], metric["chart"]) == ("gpu.{i}.powerWatts", "W", "GPU power")
    assert metric["mlflow"] == {"unit": "W", "factor": 1.0}
    assert plan["places"] == [{"host": "a", "role": "monitor"}, {"host": "b", "role": "monitor"}]
    mlflow_name = "system/gpu_3_power_usage_watts"
    assert metric["series"][3] == {
        "key": "gpu.3.powerWatts",
        "mlflow": mlflow_name,
        "places": [0, 1],
        "zero": [],
    }
    assert (plan["total"], plan["next"], plan["newest_ms"]) == (16, None, T0)


def test_a_plan_has_what_the_list_of_series_has(tmp_path: Path, client: Client, stored: StoredServer) -> None:
    for host in ("a", "b"):
        training = Training(tmp_path, host=host, gpus=2)
        training.advance(30)
        training.end()
    stored.take(tmp_path)
    for server in (client, stored):
        plan = server.ask("runs/abc/plan")
        found, listed = planned(plan), server.ask("runs/abc/series")
        assert set(found) == {(one["key"], one["host"], one["role"]) for one in listed}
        for one in listed:
            series = found[one["key"], one["host"], one["role"]]
            for name in ("template", "unit", "kind", "subject", "chart", "text", "source"):
                assert series[name] == one[name]
            named = series["mlflow"] and {
                "name": series["mlflow"],
                **_metric(plan, one["template"])["mlflow"],
            }
            assert named == one["mlflow"]
        zero = {
            (one["key"], one["host"], one["role"])
            for one in listed
            if one["kind"] != "gauge" and one["min"] == 0 and one["max"] == 0
        }
        assert set(planned(plan, "zero")) == zero
    mine, theirs = client.ask("runs/abc/plan"), stored.ask("runs/abc/plan")
    assert {**theirs, "cursor": ""} == {**mine, "cursor": ""}


def _metric(plan: dict[str, Any], template: str) -> dict[str, Any]:
    found: dict[str, Any] = next(metric for metric in plan["metrics"] if metric["template"] == template)
    return found


def test_what_is_zero_until_it_is_not(tmp_path: Path, client: Client, stored: StoredServer) -> None:
    monitor = Monitor(tmp_path)
    quiet = {"disk.in": 0.0, "network.recv": 7.0, "my.own": 0.0, "cpu": 0.0}
    seen: dict[str, int] | None = None

    def plans(at_ms: int, values: dict[str, float]) -> list[dict[str, Any]]:
        nonlocal seen
        monitor.sample(at_ms, values)
        seen = stored.take(tmp_path, after=seen)
        return [client.ask("runs/abc/plan"), stored.ask("runs/abc/plan")]

    for plan in plans(T0, quiet):
        assert all_zero(plan) == {"disk.in", "my.own"}
        assert "disk.readMBps" not in {key for key, _, _ in planned(plan)}
    for plan in plans(T0 + 1000, quiet):
        assert all_zero(plan) == {"disk.in", "disk.readMBps", "network.recvMBps", "my.own"}
    for plan in plans(T0 + 2000, {**quiet, "disk.in": math.nan}):
        assert all_zero(plan) == {"disk.in", "disk.readMBps", "network.recvMBps", "my.own"}
    for plan in plans(T0 + 3000, {**quiet, "disk.in": 1.0}):
        assert all_zero(plan) == {"network.recvMBps", "my.own"}
    for plan in plans(T0 + 4000, {**quiet, "disk.in": 1.0, "network.recv": 8.0, "new.one": 0.0}):
        assert all_zero(plan) == {"my.own", "new.one"}
        assert plan["newest_ms"] == T0 + 4000


def test_a_plan_stays_the_same_object_while_nothing_in_it_changes(
    tmp_path: Path, stored: StoredServer
) -> None:
    training = Training(tmp_path)
    training.advance(10)
    seen = stored.take(tmp_path)
    stored.ask("runs/abc/plan")
    plans: StoredPlans = stored.app.state.services.library._plans
    (number,) = plans._plans
    first = plans.of(number).plan
    training.advance(10)
    stored.take(tmp_path, after=seen)
    assert stored.ask("runs/abc/plan")["newest_ms"] == T0 + 19_000
    assert plans.of(number).plan is first


def test_the_plans_that_were_used_last_are_kept(tmp_path: Path, stored: StoredServer) -> None:
    for run in ("one", "two", "three"):
        Monitor(tmp_path, run).sample(T0, {f"m{i}": 1.0 for i in range(10)})
        stored.take(tmp_path, run)
    stored.app.state.services.library._plans = plans = StoredPlans(max_series=25)
    for run in ("one", "two", "three", "one"):
        assert stored.ask(f"runs/{run}/plan")["total"] == 10
    assert len(plans._plans) == 3
    Monitor(tmp_path, "four").sample(T0, {"m": 1.0})
    stored.take(tmp_path, "four")
    stored.ask("runs/four/plan")
    assert len(plans._plans) == 3


def test_pages_and_keys(tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runvitals.server.charts.run_plan.MAX_SERIES", 4)
    Monitor(tmp_path).sample(T0, {f"m{i}": 1.0 for i in range(10)})
    pages = [client.ask("runs/abc/plan")]
    while pages[-1]["next"] is not None:
        pages.append(client.ask("runs/abc/plan", skip=pages[-1]["next"]))
    assert [[key for key, _, _ in planned(page)] for page in pages] == [
        ["m0", "m1", "m2", "m3"],
        ["m4", "m5", "m6", "m7"],
        ["m8", "m9"],
    ]
    plan = client.ask("runs/abc/plan", keys=["m[789]"])
    assert ([key for key, _, _ in planned(plan)], plan["total"]) == (["m7", "m8", "m9"], 3)
    assert client.get("/api/v1/runs/abc/plan?skip=-1").status_code == 422


def test_news_after_a_plan_is_complete(tmp_path: Path, client: Client) -> None:
    monitor = Monitor(tmp_path)
    monitor.sample(T0, {"cpu": 1.0})
    plan = client.ask("runs/abc/plan")
    monitor.sample(T0 + 1000, {"cpu": 2.0})
    news = client.ask("runs/abc/metrics", after=plan["cursor"])
    assert [sample["t"] for sample in news["samples"]] == [T0 + 1000]


def test_a_run_without_samples(tmp_path: Path, client: Client) -> None:
    Monitor(tmp_path)
    plan = client.ask("runs/abc/plan")
    assert (plan["metrics"], plan["total"], plan["newest_ms"]) == ([], 0, 0)
    assert client.get("/api/v1/runs/nope/plan").status_code == 404
