"""The columns that a list of runs shows until the user chooses, and the check of a filter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.model.completion import FieldChoice
from runvitals.server.runs.usual_columns import differing_config
from tests.readers.journals.journals import T0, Trainer
from tests.server.client import Client
from tests.server.stored_runs import StoredServer


@pytest.fixture(params=["journals", "store"])
def runs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    for run, rate in (("a", 0.1), ("b", 0.2)):
        trainer = Trainer(tmp_path, run)
        config = {
            "lr": rate,
            "batch_size": 64,
            "seed": rate * 10,
            "output_dir": f"/data/{run}",
            "model": {"arch": run},
        }
        trainer.info(T0, run={"project": "digits"}, config=config)
        trainer.log(T0, 0, **{"train/loss": 1.0, "val/loss": 2.0, "val/accuracy": 0.5, "lr": rate})
        trainer.info(T0 + 1, summary={"train/loss": 1.0, "val/loss": 2.0, "val/accuracy": 0.5, "lr": rate})
        if run == "b":
            trainer.info(T0 + 2, metrics={"val/acc*": {"goal": "maximize"}})
        trainer.close()
    if request.param == "journals":
        yield Client(tmp_path)
        return
    server = StoredServer(tmp_path / "server")
    for run in ("a", "b"):
        server.take(tmp_path, run)
    yield server
    server.close()


def test_what_was_defined_comes_first(runs: Client) -> None:
    usual = runs.ask("fields/usual")
    assert usual["goal"] == {"name": "val/accuracy", "goal": "maximize"}
    assert usual["config"] == ["config.lr", "config.model.arch", "config.seed"], (
        "what is equal, and paths, are left out"
    )


def test_otherwise_names_say_what_the_goal_is(runs: Client) -> None:
    usual = runs.ask("fields/usual", filter="id:a")
    assert usual == {"goal": {"name": "val/loss", "goal": "minimize"}, "config": []}


def test_no_runs_have_no_goal(runs: Client) -> None:
    assert runs.ask("fields/usual", filter="id:none") == {"goal": None, "config": []}


def test_a_text_of_its_own_in_each_run_describes_none() -> None:
    names = FieldChoice("config.tag", "text", tuple(f"t{i}" for i in range(20)))
    numbers = FieldChoice("config.dropout", "number", tuple(float(i) for i in range(20)))
    assert differing_config([names, numbers]) == ["config.dropout"]


def test_a_filter_is_checked_while_it_is_typed(runs: Client) -> None:
    assert runs.ask("fields/check", filter="config.lr>0.1 state:failed") == {"error": None}
    assert "config.lr" in runs.ask("fields/check", filter="config.lr>")["error"]
    assert "state" in runs.ask("fields/check", filter="state:fai")["error"]
    assert runs.get("/api/v1/fields/check", params={"filter": "x" * 2001}).status_code == 422
