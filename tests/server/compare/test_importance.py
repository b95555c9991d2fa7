"""Which parameters decide a number of runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runvitals.server.compare.forest import importance
from runvitals.server.compare.parameters import importances
from runvitals.server.compare.routes.fields import ComparedFields
from runvitals.server.compare.routes.importance import ImportancesSchema
from tests.readers.journals.journals import T0, Trainer
from tests.server.access.organisation import ServedOrganisation, served_organisation
from tests.server.client import Client
from tests.server.stored_runs import StoredServer

RANDOM = np.random.default_rng(1)


def test_what_decides_a_number_is_the_most_important() -> None:
    rows = RANDOM.random((300, 6))
    found = importance(rows, 3 * rows[:, 2] + (rows[:, 4] > 0.5) + RANDOM.normal(0, 0.05, 300))
    assert np.argsort(found.shares)[::-1][:2].tolist() == [2, 4]
    assert found.shares.sum() == pytest.approx(1)
    assert found.shares[[0, 1, 3, 5]].sum() < 0.1
    assert found.score > 0.85


def test_parameters_that_act_together_are_found() -> None:
    rows = RANDOM.integers(0, 2, (400, 5)).astype(float)
    found = importance(rows, (rows[:, 0] != rows[:, 1]) + RANDOM.normal(0, 0.05, 400))
    assert sorted(np.argsort(found.shares)[::-1][:2].tolist()) == [0, 1]


def test_noise_is_decided_by_nothing() -> None:
    found = importance(RANDOM.random((200, 5)), RANDOM.random(200))
    assert found.score < 0.1
    assert importance(RANDOM.random((50, 3)), np.full(50, 2.0)).shares.tolist() == [0, 0, 0]


def test_the_same_rows_give_the_same_result() -> None:
    rows = RANDOM.random((100, 4))
    first, second = importance(rows, rows[:, 0]), importance(rows.copy(), rows[:, 0].copy())
    assert (first.score, first.shares.tolist()) == (second.score, second.shares.tolist())


def test_texts_missing_values_and_what_is_not_finite() -> None:
    rows: list[dict[str, str | float]] = []
    for i in range(120):
        lr = 10.0 ** -(i % 4)
        row: dict[str, str | float] = {
            "config.model": "abc"[i % 3],
            "config.id": f"run-{i}",
            "config.same": 1.0,
        }
        if i % 5:
            row["config.lr"] = lr
        row["summary.loss"] = float("nan") if i % 40 == 1 else {"a": 1.0, "b": 2.0, "c": 8.0}["abc"[i % 3]]
        rows.append(row)
    names = ["config.model", "config.id", "config.same", "config.lr", "config.never"]
    found = importances(rows, names, "summary.loss")
    assert found.runs == 117
    assert [parameter.name for parameter in found.parameters] == ["config.model", "config.lr"]
    assert found.parameters[0].correlation is None
    assert found.parameters[0].share > 0.9
    assert abs(found.parameters[1].correlation or 0) < 0.3


def test_few_runs_say_nothing() -> None:
    rows: list[dict[str, str | float]] = [{"config.lr": float(i), "summary.loss": 1.0} for i in range(9)]
    assert importances(rows, ["config.lr"], "summary.loss") == importances(
        rows[:9], ["config.lr"], "summary.loss"
    )
    assert importances(rows, ["config.lr"], "summary.loss").score is None


@pytest.fixture(params=["journals", "store"])
def runs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    names = [f"run{i:02d}" for i in range(24)]
    for i, run in enumerate(names):
        trainer = Trainer(tmp_path, run)
        trainer.info(
            T0, run={"project": "digits"}, config={"lr": float(i % 4), "batch": float(i % 3), "same": 1}
        )
        trainer.info(T0 + 1, summary={"loss": float(i % 4) * 2})
        trainer.close()
    if request.param == "journals":
        yield Client(tmp_path)
        return
    server = StoredServer(tmp_path / "server")
    for run in names:
        server.take(tmp_path, run)
    yield server
    server.close()


def test_both_libraries_say_the_same(runs: Client) -> None:
    body: dict[str, Any] = runs.ask("compare/importance", of="summary.loss")
    ImportancesSchema.model_validate(body)
    assert body["runs"] == 24
    assert [parameter["name"] for parameter in body["parameters"]] == ["config.lr", "config.batch"]
    assert body["parameters"][0]["share"] > 0.9
    assert body["parameters"][0]["correlation"] == pytest.approx(1)
    assert body["parameters"][0]["values"] == 4
    few = runs.ask("compare/importance", of="summary.loss", filter="id:run01")
    assert few == {"runs": 1, "score": None, "parameters": []}


def test_both_libraries_have_the_same_fields(runs: Client) -> None:
    usual: dict[str, Any] = runs.ask("compare/fields")
    ComparedFields.model_validate(usual)
    assert usual["goal"] == {"name": "loss", "goal": "minimize"}
    assert [field["name"] for field in usual["fields"]] == ["config.lr", "config.batch", "summary.loss"]
    assert (len(usual["runs"]), usual["more"]) == (24, False)
    at = [run["id"] for run in usual["runs"]].index("run07")
    assert [field["values"][at] for field in usual["fields"]] == [3.0, 1.0, 6.0]
    chosen = runs.ask("compare/fields", fields=["config.never", "summary.loss"], filter="id:run07")
    assert [(field["name"], field["values"]) for field in chosen["fields"]] == [
        ("config.never", [None]),
        ("summary.loss", [6.0]),
    ]
    assert runs.get("/api/v1/compare/fields", params={"fields": "colour"}).status_code == 422


def test_values_that_are_not_finite_are_counted(tmp_path: Path) -> None:
    for i, loss in enumerate((1.0, float("nan"), float("inf"))):
        trainer = Trainer(tmp_path, f"run{i}")
        trainer.info(T0, config={"lr": float(i)}, summary={"loss": loss})
        trainer.close()
    body = Client(tmp_path).ask("compare/fields", fields=["summary.loss"])
    assert body["fields"][0]["not_finite"] == 2
    assert sorted(body["fields"][0]["values"], key=str) == [1.0, None, None]


def test_invalid_requests(runs: Client) -> None:
    response = runs.get("/api/v1/compare/importance", params={"of": "colour"})
    assert response.status_code == 422
    assert "unknown column 'colour'" in response.text


def test_a_request_has_a_deadline(runs: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runvitals.server.charts.routes.overlay.DEADLINE_S", -1.0)
    response = runs.get("/api/v1/compare/importance", params={"of": "summary.loss"})
    assert response.status_code == 503


def test_runs_of_others_do_not_count(tmp_path: Path) -> None:
    with served_organisation(tmp_path) as served:
        send(served)
        params = {"of": "summary.loss", "project": "p"}
        mine = served.ask("otto", "GET", "/api/v1/compare/importance", params=params)
        assert mine.json()["runs"] == 1


def send(served: ServedOrganisation) -> None:
    """A run with a loss of each of two teams."""
    for who, run, entity in (("bob", "ours", "vision"), ("otto", "theirs", "speech")):
        record = [1, "info", {"t": T0, "summary": {"loss": 1.0}}]
        value = {"run": run, "writer": "train.h.1.1", "seq": 1, "project": "p", "entity": entity}
        value |= {"keys": [], "t": [], "v": [], "records": [record]}
        response = served.ask(who, "POST", "/api/v1/ingest", json=value)
        assert response.status_code == 200, response.text
