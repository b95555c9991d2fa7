"""Lists of runs with the metric by which each is judged: from journals and from the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runvitals.server.charts.goal_lines import MAX_NAMES, MAX_RUNS
from tests.readers.journals.journals import T0, Monitor, Trainer
from tests.server.client import Client
from tests.server.stored_runs import StoredServer


def train(folder: Path, run: str, start_ms: int = T0, **logged: float) -> None:
    monitor = Monitor(folder, run)
    monitor.info(start_ms, run=run)
    trainer = Trainer(folder, run, pid=1, start_ms=start_ms)
    for step in range(10):
        values = {name: value - step for name, value in logged.items()}
        trainer.log(start_ms + step * 1000, step, **values)
    monitor.end(start_ms + 10_000)


def goals(client: Any, **params: Any) -> dict[str, Any]:
    return {row["id"]: row.get("goal") for row in client.ask("runs", goal=True, **params)["runs"]}


def test_each_run_has_the_line_of_its_own_metric(tmp_path: Path, client: Client) -> None:
    train(tmp_path, "a", **{"val/loss": 20.0, "lr": 1.0})
    train(tmp_path, "b", **{"train/acc": 50.0})
    train(tmp_path, "c", lr=1.0)
    stored = StoredServer(tmp_path / "server")
    try:
        for run in "abc":
            stored.take(tmp_path, run)
        mine, theirs = goals(client), goals(stored)
    finally:
        stored.close()
    assert mine == theirs
    assert [mine["a"][name] for name in ("name", "goal", "last")] == ["val/loss", "minimize", 11.0]
    line = [value for value in mine["a"]["line"] if value is not None]
    assert 11.0 <= line[-1] < line[0] <= 20.0
    assert line == sorted(line, reverse=True)
    assert (mine["b"]["name"], mine["b"]["goal"]) == ("train/acc", "maximize")
    assert mine["c"] is None


def test_without_the_parameter_there_is_none(tmp_path: Path, client: Client) -> None:
    train(tmp_path, "a", loss=20.0)
    assert "goal" not in client.ask("runs")["runs"][0]


def test_only_so_many_runs_and_metrics_are_read(tmp_path: Path, client: Client) -> None:
    for number in range(MAX_RUNS + 5):
        train(tmp_path, f"r{number:02}", T0 + number * 60_000, **{f"loss{number % (MAX_NAMES + 2)}": 20.0})
    shown = goals(client)
    assert len(shown) == MAX_RUNS + 5
    lines = [goal for goal in shown.values() if goal]
    assert 0 < len(lines) <= MAX_RUNS
    assert len({goal["name"] for goal in lines}) == MAX_NAMES
    assert list(shown.values())[MAX_RUNS:] == [None] * 5
