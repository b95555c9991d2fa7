"""Which teams, projects and runs take the space, and who may see it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import numpy as np
import pytest

from runvitals.model.durations import DAY_MS
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.projects.storage.projects import ProjectOwner
from runvitals.server.runs.storage.console import ConsoleLine
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from runvitals.server.usage.storage.figures import StorageRow
from runvitals.store.samples.interface import SampleBatch
from tests.server.accounts_server import AccountsServer, accounts_server
from tests.server.database.artifacts.making import T0, logged


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountsServer]:
    """ada administers vision and bob is in it; a run of each, of which bob's is the larger. olga administers
    the organisation."""
    with accounts_server(tmp_path_factory.mktemp("storage")) as running:
        running.user("olga", org_role="admin")
        ada, bob = (running.user(name) for name in ("ada", "bob"))
        running.user("carol")
        team = running.accounts.teams.create("vision", CLI, running.clock(), administrator=ada.id)
        running.accounts.members.add("vision", "bob", "member", CLI, running.clock())
        add_run(running, "small", team.id, ada.id, 10)
        add_run(running, "large", team.id, bob.id, 100)
        yield running


def add_run(server: AccountsServer, uid: str, entity_id: int, author_id: int, count: int) -> None:
    store, now_ms = server.metadata_store, server.clock()
    sender = Sender(entity_id, author_id)
    new = WriterRegistration(uid, "monitor.node1.1", "digits", "monitor", "node1", sender=sender)
    (who,) = store.writers.join([new], now_ms)
    times = now_ms + np.arange(count, dtype=np.int64)
    server.store.append([SampleBatch(who.lane_id, who.writer_id, 0, (1,), times, np.ones((count, 1)))])
    store.console.add([ConsoleLine(who.run_id, who.writer_id, 0, now_ms, 1, "hello")])
    day = StorageRow("2026-11-20", who.project_id, "samples", entity_id, count)
    store.usage.figures.put_storage([day])
    store.usage.figures.copy_names()


def sizes(body: dict[str, Any], plural: str, name: str) -> list[tuple[str, int, int]]:
    return [(row[name], row["samples"], row["console"]) for row in body[plural]]


def test_the_largest_come_first(server: AccountsServer) -> None:
    listing = server.ask("olga", "GET", "storage")
    assert listing["day"] == "2026-11-20"
    assert sizes(listing, "entities", "entity") == [("vision", 100, 0)]
    of_team = server.ask("ada", "GET", "storage/vision")
    assert sizes(of_team, "projects", "project") == [("digits", 1760, 10)]
    runs = server.ask("ada", "GET", "storage/vision/digits")
    assert sizes(runs, "runs", "run") == [("large", 1600, 5), ("small", 160, 5)]
    oldest = server.ask("ada", "GET", "storage/vision/digits?sort=name&limit=1&after=1")
    assert (sizes(oldest, "runs", "run"), oldest["total"], oldest["next"]) == ([("small", 160, 5)], 2, None)


def test_who_may_see_what_is_stored_and_delete_it(server: AccountsServer) -> None:
    server.ask("ada", "GET", "storage", 403)
    server.ask("bob", "GET", "storage/vision", 403)
    hidden = server.ask("carol", "GET", "storage/vision/digits", 404)
    missing = server.ask("carol", "GET", "storage/vision/none", 404)
    assert hidden["error"] == missing["error"].replace("none", "digits")
    server.ask("olga", "GET", "storage/vision")
    server.ask("olga", "GET", "storage/vision/digits", 404)  # no data of teams that she is not in
    may = {run["run"]: run["may"] for run in server.ask("bob", "GET", "storage/vision/digits")["runs"]}
    assert may == {"small": [], "large": ["run:delete"]}
    server.ask("bob", "GET", "storage?entity=vision", 403)
    server.ask("bob", "GET", "storage?entity=bob")
    server.ask("carol", "GET", "storage?entity=vision", 404)
    server.ask("carol", "GET", "storage?entity=nobody", 404)
    mays = {who: server.ask(who, "GET", "storage/vision")["projects"][0]["may"] for who in ("ada", "olga")}
    assert mays == {"ada": ["project:delete"], "olga": []}
    server.ask(None, "GET", "storage/vision", 401)


def test_what_was_deleted_is_in_the_trash_and_can_come_back(server: AccountsServer) -> None:
    change = {"runs": [{"id": "small", "entity": "vision"}], "do": "delete"}
    server.ask("ada", "POST", "runs/bulk", json=change)
    body = server.ask("ada", "GET", "storage/vision")
    (project,) = body["projects"]
    assert (project["bytes"], project["trash"]) == (1770, 165)
    purged_ms = server.clock() + 30 * DAY_MS
    assert body["trash"] == {"runs": 1, "bytes": 165, "first_ms": purged_ms, "last_ms": purged_ms}
    assert body == server.ask("ada", "GET", "storage?entity=vision")
    runs = server.ask("ada", "GET", "storage/vision/digits")["runs"]
    assert [(run["run"], run["in_trash"]) for run in runs] == [("large", False), ("small", True)]
    goes = [run["purged_ms"] for run in runs]
    assert goes == [None, purged_ms]
    server.ask("ada", "POST", "runs/bulk", json={**change, "do": "restore"})
    (project,) = server.ask("ada", "GET", "storage/vision")["projects"]
    assert project["trash"] == 0


def test_what_artifacts_take_and_their_time_to_live(server: AccountsServer) -> None:
    store = server.metadata_store
    project_id = store.projects.id("digits")
    logged(store, project_id, {"a": b"12345678"}, "kept")
    logged(store, project_id, {"a": b"1234"}, "short-lived", ttl_s=3600)
    linked = logged(store, project_id, {"a": b"12"}, "linked", ttl_s=3600)
    store.artifacts.links.link(linked.id, project_id, "best", [], T0)
    listing = server.ask("bob", "GET", "storage/vision/digits/artifacts")
    figures = ("name", "versions", "bytes", "expiring_bytes", "expires_ms", "may")
    assert [tuple(row[name] for name in figures) for row in listing["artifacts"]] == [
        ("kept", 1, 8, 0, None, ["artifact:delete"]),
        ("short-lived", 1, 4, 4, T0 + 3_600_000, ["artifact:delete"]),
        ("linked", 1, 2, 0, None, ["artifact:delete"]),
    ]
    hidden = server.ask("carol", "GET", "storage/vision/digits/artifacts", 404)
    missing = server.ask("carol", "GET", "storage/vision/none/artifacts", 404)
    assert hidden["error"] == missing["error"].replace("none", "digits")
    server.ask("olga", "GET", "storage/vision/digits/artifacts", 404)
    expiring = server.ask("ada", "GET", "storage/vision")["expiring"]
    assert expiring == {"versions": 1, "bytes": 4, "first_ms": T0 + 3_600_000}


def test_what_was_not_read_for_long_comes_first(server: AccountsServer) -> None:
    """The day of a read is noted once; to list runs, or to look what they take, is not to read them."""
    store = server.metadata_store
    listing = "storage/vision/digits?sort=read"
    assert {run["last_read"] for run in server.ask("ada", "GET", listing)["runs"]} == {None}
    server.ask("ada", "GET", "runs?entity=vision")
    server.ask("bob", "GET", "runs/small/events?entity=vision")
    server.ask("carol", "GET", "runs/large?entity=vision", 404)
    store.read_days.write()
    today = datetime.fromtimestamp(server.clock() / 1000, timezone.utc).date().isoformat()
    runs = server.ask("ada", "GET", listing)["runs"]
    assert [(run["run"], run["last_read"]) for run in runs] == [("large", None), ("small", today)]


def test_artifacts_that_no_run_made(server: AccountsServer) -> None:
    """Their project takes space, and is read when one of their files is."""
    store = server.metadata_store
    project_id = store.projects.ensure(
        "weights", ProjectOwner(server.accounts.users.by_name("carol").entity_id), T0
    )
    first = logged(store, project_id, {"a": b"weights"}, "first")
    logged(store, project_id, {"a": b"more weights"}, "second")
    store.read_days.note_version(first.id, T0 + DAY_MS)
    store.read_days.note_version(first.id, T0)  # the clock was set back
    store.read_days.write()
    rows = server.ask("carol", "GET", "storage/carol/weights/artifacts?sort=read")["artifacts"]
    assert [(row["name"], row["last_read"]) for row in rows] == [("second", None), ("first", "2025-10-10")]
    (project,) = server.ask("carol", "GET", "storage/carol")["projects"]
    assert (project["project"], project["runs"], project["last_read"]) == ("weights", 0, "2025-10-10")


def test_teams_and_users_are_sorted_as_what_is_in_them(server: AccountsServer) -> None:
    """speech has what is older, smaller and was read."""
    ada, store = server.accounts.users.by_name("ada").id, server.metadata_store
    speech = server.accounts.teams.create("speech", CLI, server.clock(), administrator=ada)
    add_run(server, "spoken", speech.id, ada, 1)
    project = dict(store.projects.named("digits"))[speech.id]
    logged(store, project, {"a": b"x"}, "old")
    number = store.runs.places("spoken")[0].run_id
    store.read_days.note_run(number, 20_000 * DAY_MS)
    store.read_days.write()

    def listed(sort: str) -> list[str]:
        return [row["entity"] for row in server.ask("olga", "GET", f"storage?sort={sort}")["entities"]]

    assert (listed("bytes"), listed("name")) == (["vision", "speech"], ["speech", "vision"])
    rows = {row["entity"]: row for row in server.ask("olga", "GET", "storage")["entities"]}
    assert (rows["speech"]["started_ms"], rows["speech"]["last_read"]) == (T0, "2024-10-04")
    for sort, field in (("started", "started_ms"), ("last", "last_ms"), ("read", "last_read")):
        assert listed(sort) == sorted(rows, key=lambda name: (str(rows[name][field] or ""), name)), sort
    server.ask("olga", "GET", "storage?sort=size", 422)
