"""The list of runs, single runs, and changes of them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from runvitals.server.runs.routes import models
from tests.readers.journals.journals import T0, Monitor, Trainer, Training
from tests.server.client import Client


def test_runs_are_filtered_by_project_and_state(tmp_path: Path, client: Client) -> None:
    Monitor(tmp_path, "a").end(T0 + 1, "failed", exit_code=2)
    Monitor(tmp_path, "b", start_ms=T0 + 1).end(T0 + 2, "finished", exit_code=0)
    Monitor(tmp_path, "c", start_ms=T0 + 2, project="other")
    assert [run["id"] for run in client.ask("runs")["runs"]] == ["c", "b", "a"]
    assert [run["id"] for run in client.ask("runs", project="digits")["runs"]] == ["b", "a"]
    assert [run["id"] for run in client.ask("runs", state=["failed", "lost"])["runs"]] == ["c", "a"]
    models.RunPageSchema.model_validate(client.ask("runs"))


def test_pages_of_runs_are_stable_while_runs_start(tmp_path: Path, client: Client) -> None:
    for i in range(5):
        Monitor(tmp_path, f"run{i}", start_ms=T0 + i // 2)  # some started in the same millisecond
    first = client.ask("runs", limit=2)
    assert ([run["id"] for run in first["runs"]], first["total"]) == (["run4", "run2"], 5)
    Monitor(tmp_path, "new", start_ms=client.now_ms)
    seen, following = [], first["next"]
    while following:
        page = client.ask("runs", limit=2, after=following)
        seen += [run["id"] for run in page["runs"]]
        following = page["next"]
    assert seen == ["run3", "run0", "run1"]


def test_a_list_begins_after_skipped_runs(tmp_path: Path, client: Client) -> None:
    for i in range(5):
        Monitor(tmp_path, f"run{i}", start_ms=T0 + i)
    page = client.ask("runs", limit=2, skip=1)
    assert ([run["id"] for run in page["runs"]], page["total"]) == (["run3", "run2"], 5)
    page = client.ask("runs", limit=2, after=page["next"], skip=1)
    assert ([run["id"] for run in page["runs"]], page["next"]) == (["run0"], None)
    assert client.ask("runs", skip=9)["runs"] == []


def test_rows_have_the_first_line_of_the_notes(tmp_path: Path, client: Client) -> None:
    training = Training(tmp_path)
    training.trainer.info(T0, run={"notes": "first" * 100 + "\nsecond"})
    (row,) = client.ask("runs")["runs"]
    assert row["notes"] == "first" * 40
    assert client.ask("runs/abc")["notes"].endswith("second")


def test_rows_have_the_newest_values_of_requested_keys(tmp_path: Path, client: Client) -> None:
    Monitor(tmp_path).sample(
        T0, {"cpu": 5.0, "gpu.0.gpu": 50.0, "gpu.0.temp": 60.0, "memory_percent": math.nan}
    )
    (row,) = client.ask("runs")["runs"]
    assert row["last"] == {"node1": {"cpu": 5.0, "gpu.0.gpu": 50.0, "memory_percent": None}}
    (row,) = client.ask("runs", last="gpu.*.temp")["runs"]
    assert row["last"] == {"node1": {"gpu.0.temp": 60.0}}


def test_one_run(tmp_path: Path, client: Client) -> None:
    training = Training(tmp_path)
    training.monitor.event(T0 + 5, "alert", "warning", "hot", value=math.inf)
    training.advance(2)
    training.end("crashed", signal=9, out_of_memory=True)
    run = client.ask("runs/abc")
    models.RunDetail.model_validate(run)
    assert (run["state"], run["signal"], run["out_of_memory"]) == ("crashed", 9, True)
    assert run["sources"]["node1"]["energy"]["state"] == "absent"
    assert run["events"][0]["data"] == {"value": None}
    assert run["events"] == client.ask("runs/abc/events")


def test_a_run_whose_folder_was_deleted_is_not_found(
    tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runvitals.server.http.cached_read.FRESH_S", 0.0)
    monitor = Monitor(tmp_path)
    client.ask("runs/abc")
    Path(monitor.journal.path).unlink()
    (tmp_path / "runs" / "abc").rmdir()
    assert client.get("/api/v1/runs/abc").status_code == 404


def test_runs_are_searched_and_sorted(tmp_path: Path, client: Client) -> None:
    for name, lr in (("a", 0.1), ("b", 0.01), ("c", None)):
        trainer = Trainer(tmp_path, name)
        trainer.info(T0, config={"lr": lr, "optimizer": "adamw"}, run={"tags": ["base", name], "name": name})

    def ids(**params: object) -> list[str]:
        return [run["id"] for run in client.ask("runs", **params)["runs"]]

    assert ids(sort="config.lr") == ["a", "b", "c"]  # without a value: last
    assert ids(sort="config.lr", descending=False) == ["b", "a", "c"]
    assert ids(where="config.lr < 0.05") == ["b"]
    assert ids(text="ADAM base", where=["config.lr = 0.1", "name != zzz"]) == ["a"]
    assert ids(tag=["base", "c"]) == ["c"]
    assert ids(deleted=True) == []
    assert client.ask("fields") == ["config.lr", "config.optimizer"]
    first = client.ask("runs", sort="name", descending=False, limit=2)
    second = client.ask("runs", sort="name", descending=False, limit=2, after=first["next"])
    assert [run["id"] for run in second["runs"]] == ["c"]
    wrong = client.get("/api/v1/runs", params={"sort": "state", "after": first["next"]})
    assert "belongs to a list sorted by name" in wrong.json()["error"]
