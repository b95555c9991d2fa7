"""What runs chose with `define_metric`, from journals and from a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.readers.journals.journals import T0, Trainer
from tests.server.client import Client
from tests.server.stored_runs import StoredServer


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[StoredServer]:
    server = StoredServer(tmp_path / "server")
    yield server
    server.close()


LOSS = {"summary": "min", "goal": "minimize"}


def test_a_run_has_its_definitions(tmp_path: Path, client: Client, stored: StoredServer) -> None:
    trainer = Trainer(tmp_path)
    trainer.info(T0, metrics={"val/loss": LOSS, "val/*": {"summary": "last", "x": "epoch"}, "odd": {"x": 5}})
    trainer.info(T0 + 1, metrics={"val/*": {"summary": "last", "hidden": True}})
    stored.take(tmp_path)
    expected = {"val/loss": LOSS, "val/*": {"summary": "last", "hidden": True}}
    for server in (client, stored):
        assert server.ask("runs/abc")["defined_metrics"] == expected


def test_the_newest_definition_of_several_runs_counts(
    tmp_path: Path, client: Client, stored: StoredServer
) -> None:
    for number, (project, goal) in enumerate(
        (("digits", "minimize"), ("digits", "maximize"), ("other", "minimize"))
    ):
        trainer = Trainer(tmp_path, f"run{number}", start_ms=T0 + number, project=project)
        trainer.info(T0 + number, metrics={"score": {"goal": goal}, f"m{number}": {"hidden": True}})
        trainer.close()
        stored.take(tmp_path, f"run{number}")
    for server in (client, stored):
        assert server.ask("defined-metrics", project="digits") == {
            "score": {"goal": "maximize"},
            "m0": {"hidden": True},
            "m1": {"hidden": True},
        }
