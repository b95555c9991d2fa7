"""Metrics of several runs over each other: the same numbers as of each run alone, of both libraries."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runvitals.server.charts.routes import overlay_models as models
from tests.readers.journals.journals import T0, Monitor, Trainer, Training
from tests.server.access.organisation import ServedOrganisation, served_organisation
from tests.server.client import Client
from tests.server.stored_runs import StoredServer

TICKS = {"first": 400, "second": 90, "third": 30}
STARTED = {"first": T0, "second": T0 + 777, "third": T0 + 3_600_123}


@pytest.fixture(scope="module", params=["journals", "store"])
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Three runs of different lengths: of one host, with two GPUs, with several ranks."""
    folder = tmp_path_factory.mktemp(request.param)
    for index, (run, ticks) in enumerate(TICKS.items()):
        training = Training(folder, run, start_ms=STARTED[run], gpus=2 * (index == 1), seed=index)
        training.advance(ticks)
        training.end()
    for rank in range(1, 4):
        trainer = Trainer(folder, "third", pid=5000 + rank, rank=rank, start_ms=STARTED["third"])
        for step in range(30):
            trainer.log(STARTED["third"] + step * 1000, step, loss=float(rank * step))
        trainer.close()
    if request.param == "journals":
        yield Client(folder)
        return
    server = StoredServer(folder / "server")
    for run in TICKS:
        server.take(folder, run)
    yield server
    server.close()


def overlay(client: Client, what: str, **params: Any) -> dict[str, Any]:
    body: dict[str, Any] = client.ask(f"overlay/{what}", **{"runs": list(TICKS), **params})
    models.Overlay.model_validate(body)
    return body


def lines(body: dict[str, Any], key: str) -> dict[str, dict[str, Any]]:
    """The lines of a key by run, each with its x."""
    (matching,) = (entry for entry in body["keys"] if entry["key"] == key)
    return {line["run"]: {**line, "x": group["x"]} for group in matching["groups"] for line in group["lines"]}


def width(body: dict[str, Any], key: str) -> Any:
    return next(entry["width"] for entry in body["keys"] if entry["key"] == key)


def test_the_plan_names_runs_and_metrics(runs: Client) -> None:
    plan = runs.ask("overlay/plan", runs=[*TICKS, "none", "../x"])
    models.OverlayPlan.model_validate(plan)
    assert [run["id"] for run in plan["runs"]] == list(TICKS)
    assert plan["missing"] == ["none", "../x"]
    assert (
        plan["runs"][1] | {"name": "second", "state": "finished", "started_ms": T0 + 777} == plan["runs"][1]
    )
    assert plan["logged"] == ["accuracy", "loss", "lr"]
    system = {metric["key"]: metric for metric in plan["system"]}
    assert (
        system["gpu.{i}.temp"] | {"subject": "GPU", "unit": "°C", "kind": "gauge"} == system["gpu.{i}.temp"]
    )
    assert "network.recv" not in system, "its rate is there"
    assert any(metric["kind"] == "rate" for metric in plan["system"])


@pytest.mark.parametrize("folder_exists", [False, True])
def test_a_run_is_listed_as_soon_as_it_has_a_journal(tmp_path: Path, folder_exists: bool) -> None:
    """The page of an ended run requests its plan once."""
    if folder_exists:
        (tmp_path / "runs" / "new").mkdir(parents=True)
    client = Client(tmp_path)
    assert client.ask("runs")["total"] == 0
    training = Training(tmp_path, "new")
    training.advance(3)
    training.end()
    assert client.ask("overlay/plan", runs=["new"])["missing"] == []
    Training(tmp_path, "newer").advance(3)
    assert client.ask("runs")["total"] == 2


@pytest.mark.parametrize("points", [20, 100, 1000])
def test_sampled_buckets_are_those_of_the_run_alone(runs: Client, points: int) -> None:
    keys = ["cpu", "memory_percent", "network.recv"]
    for axis in ("relative", "wall"):
        response = overlay(runs, "system", keys=keys, x=axis, points=points)
        for run in TICKS:
            alone = runs.ask(f"runs/{run}/metrics", keys=keys, max_points=points)
            for key in keys:
                line = lines(response, key)[run]
                start = (
                    STARTED[run] // width(response, key) * width(response, key) if axis == "relative" else 0
                )
                found = dict(zip([x + start for x in line["x"]], line["y"], strict=True))
                assert found, key
                if alone["bucket_ms"] == width(response, key):
                    (group,) = (one for one in alone["groups"] if key in one["series"])
                    expected = dict(zip(group["t"], group["series"][key], strict=True))
                    assert found == expected
                    assert line["n"] is None or line["n"] == group["n"]
                    assert line["min"] is None or line["min"] == group["min"][key]


def test_buckets_of_the_same_width_are_the_same_numbers(runs: Client) -> None:
    whole = overlay(runs, "system", keys=["cpu"], points=50)
    assert width(whole, "cpu") == 10_000
    alone = runs.ask("runs/first/metrics", keys="cpu", max_points=50)
    assert alone["bucket_ms"] == 10_000
    assert lines(whole, "cpu")["first"]["y"] == alone["groups"][0]["series"]["cpu"]
    assert lines(whole, "cpu")["first"]["max"] == alone["groups"][0]["max"]["cpu"]
    part = overlay(runs, "system", runs=["first"], keys=["cpu"], x0=100_000, x1=200_000, width=10_000)
    line, all_of_it = lines(part, "cpu")["first"], lines(whole, "cpu")["first"]
    first = all_of_it["x"].index(line["x"][0])
    assert first > 0
    assert line["y"] == all_of_it["y"][first : first + len(line["y"])]
    assert 100_000 - 10_000 < line["x"][0] <= 100_000
    assert line["x"][-1] <= 200_000


def test_devices_are_one_line_with_their_extremes(runs: Client) -> None:
    response = overlay(runs, "system", keys=["gpu.{i}.temp", "gpu.*.temp", "gpu.1.temp"], points=50)
    assert list(lines(response, "gpu.{i}.temp")) == ["second"], "the others have no GPU"
    both = lines(response, "gpu.{i}.temp")["second"]
    assert both == lines(response, "gpu.*.temp")["second"]
    assert both["n"] == [2 * n for n in lines(response, "gpu.1.temp")["second"]["n"]]
    alone = runs.ask("runs/second/metrics", keys=["gpu.0.temp", "gpu.1.temp"], max_points=10)["groups"][0]
    means = overlay(runs, "system", runs=["second"], keys=["gpu.*.temp"], width=10_000)
    line = lines(means, "gpu.*.temp")["second"]
    first, second = (alone["series"][f"gpu.{i}.temp"] for i in (0, 1))
    assert line["y"] == [(a + b) / 2 for a, b in zip(first, second, strict=True)]
    lowest = zip(alone["min"]["gpu.0.temp"], alone["min"]["gpu.1.temp"], strict=True)
    assert line["min"] == list(map(min, lowest))
    without = overlay(runs, "system", keys=["gpu.*.temp"], points=50, extremes="false")
    assert (
        lines(without, "gpu.*.temp")["second"] | {"min": None, "max": None, "n": None}
        == lines(without, "gpu.*.temp")["second"]
    )


def test_few_logged_values_are_returned_as_they_are(runs: Client) -> None:
    response = overlay(runs, "logged", keys=["loss", "none"], points=500)
    assert width(response, "loss") is None
    for run in ("first", "second"):
        alone = runs.ask(f"runs/{run}/history", keys="loss")["groups"][0]
        line = lines(response, "loss")[run]
        assert (line["x"], line["y"], line["n"]) == (alone["step"], alone["series"]["loss"], None)
    assert lines(response, "none") == {}


def test_many_logged_values_are_buckets_of_steps(runs: Client) -> None:
    response = overlay(runs, "logged", keys=["loss"], points=50)
    alone = runs.ask("runs/first/history", keys="loss", max_points=50)["groups"][0]
    line = lines(response, "loss")["first"]
    assert width(response, "loss") == 10
    assert (line["x"], line["y"]) == (alone["step"], alone["series"]["loss"])
    assert (line["min"], line["max"], line["n"]) == (alone["min"]["loss"], alone["max"]["loss"], alone["n"])
    tail = overlay(runs, "logged", runs=["first"], keys=["loss"], width=10, x0=350)
    assert lines(tail, "loss")["first"]["y"] == line["y"][35:]


@pytest.mark.parametrize("x", ["step", "relative", "metric:seen"])
def test_a_logarithmic_scale_keeps_decades_and_spikes(tmp_path: Path, x: str) -> None:
    steps = 20_000
    spikes = {3: 50.0, 470: 60.0, 15_000: 70.0}
    trainer = Trainer(tmp_path, "first")
    for step in range(steps):
        trainer.log(T0 + step, step, loss=spikes.get(step, 1.0), seen=float(step))
    trainer.close()
    asked: dict[str, Any] = {"runs": ["first"], "keys": ["loss"], "x": x, "scale": "log", "points": 50}
    body = overlay(Client(tmp_path), "logged", **asked)
    line = lines(body, "loss")["first"]
    assert line["x"][0] == pytest.approx(1, rel=0.06)
    for low in (100, 1000):
        assert sum(low <= place < 10 * low for place in line["x"]) >= 20
    assert sum(1 <= place <= 10 for place in line["x"]) >= 9  # all that there are
    assert sum(line["n"]) == steps - 1  # the first step is not positive
    for step, height in spikes.items():
        place = next(i for i, most in enumerate(line["max"]) if most == height)
        assert line["x"][place] <= step + 1e-6 < line["x"][place + 1]
    finer = lines(
        overlay(Client(tmp_path), "logged", **asked, x0=100, x1=999, width=width(body, "loss")), "loss"
    )["first"]
    whole = dict(zip(line["x"], line["y"], strict=True))
    assert [whole[place] for place in finer["x"][1:-1]] == finer["y"][1:-1]


def test_sampled_values_along_a_logarithmic_axis(runs: Client) -> None:
    body = overlay(runs, "system", keys=["cpu", "gpu.{i}.temp"], scale="log", points=20)
    assert width(body, "cpu") is None
    for run in TICKS:
        line = lines(body, "cpu")[run]
        alone = runs.ask(f"runs/{run}/metrics", keys="cpu", max_points=10_000)["groups"][0]
        since = [t - STARTED[run] for t in alone["t"] if t > STARTED[run]]
        assert sum(line["n"] or [1] * len(line["x"])) == len(since)
        assert line["x"][0] <= since[0]
    long = lines(body, "cpu")["first"]["x"]
    assert sum(10_000 <= x < 100_000 for x in long) >= 20
    assert set(lines(body, "cpu")["second"]["x"]) <= set(long), "runs share their buckets"
    part = lines(overlay(runs, "system", keys=["cpu"], scale="log", x0=100_000, x1=200_000), "cpu")
    assert list(part) == ["first"]
    assert 95_000 < part["first"]["x"][0] <= 100_000


def test_ranks_are_one_line_with_their_extremes(runs: Client) -> None:
    line = lines(overlay(runs, "logged", keys=["loss"], points=500), "loss")["third"]
    assert line["n"] == [4] * 30  # rank 0 logs too
    assert line["max"][10] == 30.0
    own = runs.ask("runs/third/history", keys="loss", rank=0)["groups"][0]["series"]["loss"]
    assert line["y"][10] == pytest.approx((own[10] + 10 + 20 + 30) / 4)


def test_logged_values_over_time_and_over_another_metric(runs: Client) -> None:
    relative = lines(overlay(runs, "logged", keys=["loss"], x="relative", points=2000), "loss")
    assert relative["second"]["x"][:3] == [0, 1000, 2000]
    wall = lines(overlay(runs, "logged", keys=["loss"], x="wall", points=2000), "loss")
    assert wall["second"]["x"][:2] == [STARTED["second"], STARTED["second"] + 1000]
    assert wall["second"]["y"] == relative["second"]["y"]
    by_metric = lines(overlay(runs, "logged", keys=["loss"], x="metric:accuracy", points=2000), "loss")
    group = runs.ask("runs/second/history", keys=["loss", "accuracy"])["groups"][0]["series"]
    assert by_metric["second"]["x"] == group["accuracy"]
    assert by_metric["second"]["y"] == group["loss"]
    coarse = overlay(runs, "logged", keys=["loss"], x="metric:accuracy", points=20)
    assert width(coarse, "loss") == pytest.approx(0.05)
    assert all(x == pytest.approx(round(x / 0.05) * 0.05) for x in lines(coarse, "loss")["first"]["x"])


def test_a_resumed_process_replaces_what_came_before(tmp_path: Path) -> None:
    before, after = Trainer(tmp_path, pid=1), Trainer(tmp_path, pid=2, start_ms=T0 + 60_000)
    for step in range(10):
        before.log(T0 + step * 1000, step, loss=1.0)
    for step in range(5, 12):
        after.log(T0 + 60_000 + step * 1000, step, loss=2.0)
    line = lines(overlay(Client(tmp_path), "logged", runs=["abc"], keys=["loss"]), "loss")["abc"]
    assert line["x"] == [float(step) for step in range(12)]
    assert line["y"] == [1.0] * 5 + [2.0] * 7


@pytest.mark.parametrize("x", ["step", "relative"])
def test_steps_that_a_training_went_back_are_replaced_but_over_time(tmp_path: Path, x: str) -> None:
    trainer = Trainer(tmp_path)
    for row, step in enumerate([*range(30), *range(20, 40)]):
        trainer.log(T0 + row * 1000, step, loss=1.0 if row < 30 else 2.0)
    line = lines(overlay(Client(tmp_path), "logged", runs=["abc"], keys=["loss"], x=x), "loss")["abc"]
    assert line["y"] == ([1.0] * 20 if x == "step" else [1.0] * 30) + [2.0] * 20


def test_a_gap_stays_a_gap(tmp_path: Path) -> None:
    trainer = Trainer(tmp_path)
    for step, loss in enumerate([1.0, float("nan"), 3.0]):
        trainer.log(T0 + step, step, loss=loss)
    line = lines(overlay(Client(tmp_path), "logged", runs=["abc"], keys=["loss"]), "loss")["abc"]
    assert line["y"] == [1.0, None, 3.0]


def test_a_restarted_monitor_leaves_a_gap_in_no_other_run(tmp_path: Path) -> None:
    for run, starts in (("a", (T0, T0 + 60_000)), ("b", (T0,))):
        for start in starts:
            monitor = Monitor(tmp_path, run, start_ms=start)
            for i in range(10):
                monitor.sample(start + i * 1000, {"cpu": 50.0})
            monitor.close()
    response = overlay(Client(tmp_path), "system", runs=["a", "b"], keys=["cpu"], width=1000)
    assert None in lines(response, "cpu")["a"]["y"]
    assert lines(response, "cpu")["b"]["y"] == [50.0] * 10


def test_a_table_has_the_same_numbers(runs: Client) -> None:
    for what, key in (("system", "cpu"), ("logged", "loss")):
        response = overlay(runs, what, keys=[key], points=50)
        params = {"runs": list(TICKS), "keys": key, "points": 50, "format": "csv"}
        table = list(csv.DictReader(runs.get(f"/api/v1/overlay/{what}", params=params).text.splitlines()))
        for run, line in lines(response, key).items():
            rows = [row for row in table if row["run"] == run]
            assert [float(row["x"]) for row in rows] == line["x"]
            assert [float(row["value"]) for row in rows] == line["y"]
            assert [float(row["max"]) for row in rows] == (line["max"] or line["y"])


@pytest.mark.parametrize(
    ("what", "params", "reason"),
    [
        ("system", {"x": "step"}, "x='step': expected relative or wall"),
        ("logged", {"x": "steps"}, "expected step, relative, wall or metric:<logged name>"),
        ("logged", {"x0": 2, "x1": 1}, "x1 (1) is before x0 (2)"),
        ("system", {"width": 0.01}, "more than 20,000 buckets"),
        ("logged", {"width": 0.001}, "more than 20,000 buckets"),
        ("system", {"runs": [f"r{i}" for i in range(101)]}, "runs"),
        ("logged", {"keys": [f"k{i}" for i in range(101)]}, "keys"),
        ("logged", {"width": "inf"}, "width"),
        ("system", {"scale": "log", "x": "wall"}, "scale=log of system metrics: expected x=relative"),
        ("system", {"scale": "log", "width": 5}, "no width"),
    ],
)
def test_invalid_requests(runs: Client, what: str, params: dict[str, Any], reason: str) -> None:
    request = {"runs": list(TICKS), "keys": ["loss" if what == "logged" else "cpu"], **params}
    response = runs.get(f"/api/v1/overlay/{what}", params=request)
    assert response.status_code == 422, response.text
    assert reason in response.json()["error"]


def test_a_request_has_limits(runs: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runvitals.server.charts.overlay.run_reading.MAX_VALUES", 100)
    response = runs.get("/api/v1/overlay/logged", params={"runs": list(TICKS), "keys": ["loss"]})
    assert "more than 100 logged values would have to be read" in response.json()["error"]
    monkeypatch.setattr("runvitals.server.charts.overlay.run_reading.MAX_POINTS", 100)
    response = runs.get("/api/v1/overlay/logged", params={"runs": list(TICKS), "keys": ["loss"]})
    assert "3 runs × 1 keys × 300 points are 900" in response.json()["error"]
    monkeypatch.undo()
    monkeypatch.setattr("runvitals.server.charts.routes.overlay.DEADLINE_S", -1.0)
    response = runs.get("/api/v1/overlay/system", params={"runs": list(TICKS), "keys": ["cpu"]})
    assert response.status_code == 503


@pytest.fixture(scope="module")
def teams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOrganisation]:
    """A run of each team, and one with the same id in both."""
    with served_organisation(tmp_path_factory.mktemp("organisation")) as served:
        for who, run, entity in (
            ("bob", "ours", "vision"),
            ("otto", "theirs", "speech"),
            ("bob", "twin", "vision"),
            ("otto", "twin", "speech"),
        ):
            value = {"run": run, "writer": "monitor.h.1", "seq": 1, "project": "p", "entity": entity}
            value |= {"keys": ["cpu"], "t": [T0], "v": [[1.0]], "records": []}
            assert served.ask(who, "POST", "/api/v1/ingest", json=value).status_code == 200
        yield served


@pytest.mark.parametrize("what", ["plan", "system", "logged"])
def test_runs_of_others_are_missing(teams: ServedOrganisation, what: str) -> None:
    params = {"runs": ["ours", "theirs"], **({} if what == "plan" else {"keys": ["cpu"]})}
    response = teams.ask("otto", "GET", f"/api/v1/overlay/{what}", params=params)
    assert response.status_code == 200, response.text
    assert [run["id"] for run in response.json()["runs"]] == ["theirs"]
    assert response.json()["missing"] == ["ours"]
    nobody = teams.ask(None, "GET", f"/api/v1/overlay/{what}", params=params)
    assert nobody.status_code == 401 or nobody.json()["runs"] == []


def test_a_run_id_of_two_teams_needs_the_team(teams: ServedOrganisation) -> None:
    mine = teams.ask("otto", "GET", "/api/v1/overlay/plan", params={"runs": "twin"}).json()
    assert [run["id"] for run in mine["runs"]] == ["twin"]
    params = {"runs": "twin", "entity": "vision"}
    assert teams.ask("otto", "GET", "/api/v1/overlay/plan", params=params).json()["missing"] == ["twin"]
