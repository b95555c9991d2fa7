"""`Api`: the runs of a server under W&B's names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import runvitals
from runvitals.readers.servers.wandb.filters import ABSENT, holds

FIELDS: dict[str, Any] = {"state": "finished", "config.lr": 0.1, "tags": ["a", "b"], "name": "x1"}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({}, True),
        ({"state": "finished", "config.lr": 0.1}, True),
        ({"state": "failed"}, False),
        ({"config.lr": {"$gt": 0.05, "$lte": 0.1}}, True),
        ({"config.lr": {"$gt": "text"}}, False),
        ({"config.depth": {"$lt": 3}}, False),
        ({"config.depth": None}, True),
        ({"config.depth": {"$exists": False}}, True),
        ({"config.lr": {"$not": {"$gt": 1}}}, True),
        ({"tags": "b"}, True),
        ({"tags": {"$in": ["c", "a"]}}, True),
        ({"tags": {"$nin": ["c"]}}, True),
        ({"name": {"$regex": "^x[0-9]$"}}, True),
        ({"state": {"$ne": "finished"}}, False),
        ({"$or": [{"state": "failed"}, {"name": "x1"}]}, True),
        ({"$nor": [{"state": "failed"}, {"name": "x1"}]}, False),
        ({"$and": [{"state": "finished"}, {"$not": {"name": "x2"}}]}, True),
    ],
)
def test_filters(condition: dict[str, Any], expected: bool) -> None:
    assert holds(condition, lambda name: FIELDS.get(name, ABSENT)) is expected


@pytest.mark.parametrize("condition", [{"$where": "1"}, {"state": {"$near": 1}}, {"$or": {"state": 1}}])
def test_unknown_operators_are_refused(condition: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\$(where|near|or)"):
        holds(condition, FIELDS.get)


@pytest.fixture
def api(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[runvitals.Api]:
    monkeypatch.setenv("RUNVITALS_DIR", str(tmp_path))
    for number in (1, 2):
        run = runvitals.init(
            project="digits", id=f"x{number}", name=f"try {number}", config={"lr": number / 10}, tags=["a"],
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
    found = api.runs("team/digits", filters={"config.lr": {"$gt": 0.15}})
    assert [run.id for run in found] == ["x2"]
    assert (len(found), found[0].name) == (1, "try 2")
    assert (len(api.runs("digits", lazy=False)), [run.id for run in api.runs("digits")[:1]]) == (2, ["x1"])
    assert [run.id for run in api.runs("digits", order="+summary_metrics.loss")] == ["x2", "x1"]
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


def test_errors_are_those_of_wandb(api: runvitals.Api) -> None:
    with pytest.raises(runvitals.errors.CommError, match="nothing") as raised:
        api.run("team/digits/nothing")
    assert isinstance(raised.value, LookupError)
    with pytest.raises(runvitals.CommError):
        api.artifact("team/digits/model:latest")
    stopped = runvitals.Api(overrides={"base_url": "http://127.0.0.1:9"})
    with pytest.raises(runvitals.errors.CommError) as unreachable:
        stopped.run("x1")
    assert isinstance(unreachable.value, OSError)


def test_without_a_server() -> None:
    with pytest.raises(ValueError, match="no server"):
        runvitals.Api()
