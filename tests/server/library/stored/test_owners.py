"""Whose a run is, through the API and the client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from runvitals.model.run import RunAuthor, RunServiceAccount
from runvitals.readers.servers import responses
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.http import cached_read
from runvitals.server.runs.routes import models
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from runvitals.store.samples.interface import SampleBatch
from tests.readers.journals.journals import T0
from tests.server.stored_runs import StoredServer


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoredServer]:
    """A run of ada, sent by a service account, and one without accounts."""
    monkeypatch.setattr(cached_read, "FRESH_S", 0.0)
    server = StoredServer(tmp_path / "server")
    accounts = server.metadata_store.accounts
    ada = accounts.users.create("ada", CLI, T0, display_name="Ada L.").id
    vision = accounts.teams.create("vision", CLI, T0, administrator=ada).id
    ci = accounts.service_accounts.create("ci", vision, CLI, T0).id
    cpu = server.metadata_store.metrics.ids(["cpu"])["cpu"]
    for number, (uid, sender) in enumerate((("abc", Sender(vision, ada, ci)), ("def", Sender()))):
        joining = WriterRegistration(uid, "monitor.a.1", "digits", started_ms=T0, sender=sender)
        [writer] = server.metadata_store.writers.join([joining], server.now_ms)
        keys = server.metadata_store.metrics.schema(["cpu"])
        server.metadata_store.metrics.record_schemas([(writer.writer_id, keys.id)])
        times = np.array([server.now_ms - 1000], np.int64)
        values = np.array([[float(number)]])
        server.store.append([SampleBatch(writer.lane_id, writer.writer_id, 1, (cpu,), times, values)])
    yield server
    server.close()


def test_rows_and_runs_name_their_owner(server: StoredServer) -> None:
    rows = {row["id"]: row for row in server.ask("runs")["runs"]}
    for row in rows.values():
        models.RunRowSchema.model_validate(row)
    assert (rows["def"]["entity"], rows["def"]["author"], rows["def"]["service_account"]) == (
        None,
        None,
        None,
    )
    owner = {
        "entity": "vision",
        "author": {"id": 1, "name": "ada", "display_name": "Ada L.", "picture": None},
        "service_account": {"id": 1, "name": "ci", "deleted": False},
    }
    assert {name: rows["abc"][name] for name in owner} == owner
    assert {name: rows["def"][name] for name in owner} == dict.fromkeys(owner)
    detail = server.ask("runs/abc")
    assert {name: detail[name] for name in owner} == owner
    run = responses.run(detail)
    assert (run.entity, run.author) == ("vision", RunAuthor(1, "ada", "Ada L."))
    assert run.service_account == RunServiceAccount(1, "ci", deleted=False)


def test_lists_are_filtered_and_sorted_by_owner(server: StoredServer) -> None:
    def listed(**query: str) -> list[str]:
        return [row["id"] for row in server.ask("runs", **query)["runs"]]

    assert listed(author="ada") == ["abc"]
    assert listed(entity="vision") == ["abc"]
    assert listed(author="bob") == []
    assert listed(sort="author", descending="false") == ["def", "abc"]
    assert listed(sort="entity") == ["abc", "def"]
    assert [(p["name"], p["entity"]) for p in server.ask("projects")] == [
        ("digits", None),
        ("digits", "vision"),
    ]


@pytest.mark.parametrize(("by", "groups"), [("author", ["", "ada"]), ("entity", ["", "vision"])])
def test_aggregates_are_grouped_by_owner(server: StoredServer, by: str, groups: list[str]) -> None:
    found = server.ask("aggregate", metric="cpu", group_by=by)["groups"]
    assert [(group["group"], group["mean"]) for group in found] == list(
        zip(groups, ([1.0], [0.0]), strict=True)
    )
    only = server.ask("aggregate", metric="cpu", author="ada")["groups"]
    assert [(group["group"], group["n"]) for group in only] == [(None, [1])]


def test_the_newest_values_name_the_entity(server: StoredServer) -> None:
    assert {row["run"]: row["entity"] for row in server.ask("latest")} == {"abc": "vision", "def": None}
