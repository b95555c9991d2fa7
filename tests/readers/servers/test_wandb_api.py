"""`Api`: the runs of a server under W&B's names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import runvitals


@pytest.fixture
def api(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[runvitals.Api]:
    monkeypatch.setenv("RUNVITALS_DIR", str(tmp_path))
    for number in (1, 2):
        run = runvitals.init(
            project="digits", id=f"x{number}", name=f"try {number}", config={"lr": number / 10},
            tags=["a", "b"][:number],
            mode="offline", reinit=True, settings={"quiet": True},
        )  # fmt: skip
        run.log({"loss": 1.0}, commit=False)
        run.log({"accuracy": 0.5})
        run.log({"loss": 0.5 / number})
        Path(tmp_path, "w.bin").write_bytes(b"123")
        run.save(str(tmp_path / "w.bin"))
        run.finish()
    api = runvitals.Api(overrides={"base_url": url})
    yield api
    api.close()


def test_runs_and_their_history(api: runvitals.Api, tmp_path: Path) -> None:
    runs = api.runs("team/digits", filters={"config.lr": {"$gt": 0.15}})
    assert [run.id for run in runs] == ["x2"]
    assert (len(runs), runs[0].name) == (1, "try 2")
    assert (len(api.runs("digits", lazy=False)), [run.id for run in api.runs("digits")[:1]]) == (2, ["x1"])
    assert [run.id for run in api.runs("digits", order="+summary_metrics.loss")] == ["x2", "x1"]
    assert [run.id for run in api.runs("digits", order="state,-name")] == ["x2", "x1"]
    with pytest.raises(ValueError, match="cannot order runs by '--name'"):
        api.runs("digits", order="--name")
    run = api.run("team/digits/runs/x1")
    assert (run.config, run.summary["loss"], run.tags, run.project) == ({"lr": 0.1}, 0.5, ["a"], "digits")
    rows = [(row["_step"], row.get("loss"), row.get("accuracy")) for row in run.scan_history()]
    assert rows == [(0, 1.0, 0.5), (1, 0.5, None)]
    assert list(run.scan_history(keys=["accuracy"])) == [{"accuracy": 0.5}]
    assert [row["_step"] for row in run.scan_history(min_step=1)] == [1]
    assert list(run.history(keys=["loss"])["loss"]) == [1.0, 0.5]
    assert [row["loss"] for row in run.history(samples=1, pandas=False)] == [1.0]
    assert run.history(keys=["accuracy"], pandas=False) == [{"_step": 0, "accuracy": 0.5}]
    assert run.lastHistoryStep == 1
    file = run.file("w.bin")
    assert Path(file.download(str(tmp_path / "out"))).read_bytes() == b"123"
    with pytest.raises(FileExistsError):
        file.download(str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, ["x1", "x2"]),
        ({"state": "finished", "config.lr": 0.1}, ["x1"]),
        ({"state": "failed"}, []),
        ({"config.lr": {"$gt": 0.05, "$lte": 0.1}}, ["x1"]),
        ({"config.lr": {"$gt": "text"}}, []),
        ({"config.depth": {"$lt": 3}}, []),
        ({"config.depth": None}, ["x1", "x2"]),
        ({"config.depth": {"$exists": False}}, ["x1", "x2"]),
        ({"config.lr": {"$not": {"$gt": 0.1}}}, ["x1"]),
        ({"summary_metrics.loss": {"$lt": 0.3}}, ["x2"]),
        ({"tags": "a"}, ["x1", "x2"]),
        ({"tags": {"$in": ["c", "b"]}}, ["x2"]),
        ({"tags": {"$nin": ["b"]}}, ["x1"]),
        ({"name": {"$regex": "^x[2-9]$"}}, ["x2"]),
        ({"display_name": "try 1", "project": "digits", "id": "x1"}, ["x1"]),
        ({"state": {"$ne": "finished"}}, []),
        ({"state": {"$in": ["finished", "lost"]}}, ["x1", "x2"]),
        ({"$or": [{"state": "failed"}, {"name": "x1"}]}, ["x1"]),
        ({"$nor": [{"state": "failed"}, {"name": "x1"}]}, ["x2"]),
        ({"$and": [{"state": "finished"}, {"$not": {"name": "x2"}}]}, ["x1"]),
    ],
)
def test_filters(api: runvitals.Api, filters: dict[str, Any], expected: list[str]) -> None:
    assert [run.id for run in api.runs("digits", filters)] == expected


@pytest.mark.parametrize("filters", [{"$where": "1"}, {"state": {"$near": 1}}, {"$or": {"state": 1}}])
def test_unknown_operators_are_refused(api: runvitals.Api, filters: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\$(where|near|or)"):
        api.runs("digits", filters)


def test_a_filter_takes_one_request(api: runvitals.Api, requests: list[str]) -> None:
    runs = api.runs("team/digits", {"config.lr": {"$gt": 0.05}, "group": None})
    assert [run.id for run in runs] == ["x1", "x2"]
    assert requests == ["/api/v1/runs"]


def test_system_metrics(api: runvitals.Api) -> None:
    events = api.run("x1").history(stream="events", pandas=False)
    assert any(name.startswith("system.") for row in events for name in row)


def test_what_is_absent_is_named(api: runvitals.Api) -> None:
    with pytest.raises(AttributeError, match=r"wandb.Api.sweep; instead: runvitals.Client"):
        api.sweep("x")
    with pytest.raises(AttributeError, match=r"wandb.Api.run.update"):
        api.run("x1").update()
    with pytest.raises(LookupError, match="no file 'nothing'"):
        api.run("x1").file("nothing")


@pytest.mark.parametrize("other", [{"order": "+created_at"}, {"start": "3"}, {"tags": ["best"]}])
def test_a_choice_of_versions_is_refused(api: runvitals.Api, other: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"artifacts\(\): "):
        next(api.artifacts("model", "team/digits/net", **other))


def test_errors_are_those_of_wandb(api: runvitals.Api) -> None:
    with pytest.raises(runvitals.errors.CommError, match="nothing") as raised:
        api.run("team/digits/nothing")
    assert isinstance(raised.value, LookupError)
    with pytest.raises(runvitals.CommError):
        api.artifact("team/digits/model:latest")
    with pytest.raises(runvitals.CommError):
        next(api.artifacts("model", "team/digits/model", order="-created_at"))
    assert not api.artifact_exists("team/digits/model:latest")
    stopped = runvitals.Api(overrides={"base_url": "http://127.0.0.1:9"})
    with pytest.raises(runvitals.errors.CommError) as unreachable:
        stopped.run("x1")
    assert isinstance(unreachable.value, OSError)


def test_without_a_server() -> None:
    with pytest.raises(ValueError, match="no server"):
        runvitals.Api()
