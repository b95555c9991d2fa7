"""`/runs/{run}/findings`: the page over journals and a shared store give what the command gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runvitals.findings.rules import RULES
from runvitals.readers.journals.run_handle import open_run
from tests.findings.scenarios import healthy, sick
from tests.findings.scenarios.journal import write_journal
from tests.server.client import Client
from tests.server.stored_runs import StoredServer

COURSES = {
    "input-bound": sick.input_bound_cpu("h100", seed=3, interval_s=5.0),
    "slow-host": sick.slow_host("a100", seed=3, interval_s=10.0),
    "checkpoints": sick.checkpoint_stalls("mi300x", seed=3, interval_s=5.0),
    "nan": sick.nan_loss("tpu", seed=3, interval_s=10.0),
    "diverged": sick.diverged("h100", seed=3, interval_s=10.0),
    "validates": healthy.marked_validation("h100", seed=3, interval_s=5.0),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the journals of all courses."""
    folder = tmp_path_factory.mktemp("findings")
    for name, course in COURSES.items():
        write_journal(course, folder, name)
    return folder


@pytest.fixture(scope="module")
def stored(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoredServer]:
    """A server whose store has taken the journals."""
    server = StoredServer(tmp_path_factory.mktemp("stored"))
    for name in COURSES:
        server.take(folder, name)
    yield server
    server.close()


def without_names(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without the names of the series that decided, which only the API has; each has one."""
    for finding in answer["findings"]:
        for evidence in finding["evidence"]:
            assert evidence.pop("name")
    return answer


@pytest.mark.parametrize("name", COURSES)
def test_journals_and_the_store_give_the_same(folder: Path, stored: StoredServer, name: str) -> None:
    findings = open_run(name, str(folder)).findings().to_json()
    assert without_names(Client(folder).ask(f"runs/{name}/findings")) == findings
    assert without_names(stored.ask(f"runs/{name}/findings")) == findings


def test_costs_are_told_in_money_with_a_price(stored: StoredServer) -> None:
    headline = stored.ask("runs/input-bound/findings", price=2)["findings"][0]
    assert headline["cost"]["money"] == pytest.approx(2 * headline["cost"]["device_hours"], abs=0.01)
    assert stored.get("/api/v1/runs/input-bound/findings", params={"price": -1}).status_code == 422


def test_a_run_that_is_not_there(stored: StoredServer) -> None:
    assert stored.get("/api/v1/runs/none/findings").status_code == 404


def test_rules_come_with_the_remedies_for_missing_signals(folder: Path) -> None:
    answer = Client(folder).ask("findings/rules")
    assert {rule["id"] for rule in answer["rules"]} == {rule.id for rule in RULES}
    assert all(set(rule["needs"]) <= set(answer["remedies"]) for rule in answer["rules"])
