"""Events that automations react to, and that each is reacted to once; with both databases."""

from __future__ import annotations

from typing import Any

import pytest

from runvitals.model.durations import DAY_MS, HOUR_MS
from runvitals.model.ending import Ending
from runvitals.server.alerts.reactions import reaction_to, times_of
from runvitals.server.alerts.storage.automations import AutomationRow
from runvitals.server.artifacts.storage.rows import NewVersion
from runvitals.server.audit.storage.audit import CLI, Actor
from runvitals.server.events.automation_events import raise_for_run
from runvitals.server.events.outbox import StoredNotification
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from runvitals.server.runs.storage.writers import WriterEnd
from tests.server.database.artifacts.making import manifest_digest

NOW = 1_800_000_000_000
SLACK = {"kind": "slack", "destination": 1}


class Room:
    """A team with its administrator, ada."""

    def __init__(self, store: MetadataStore) -> None:
        self.store = store
        self.ada = store.accounts.users.create("ada", CLI, NOW).id
        self.team = store.accounts.teams.create("vision", CLI, NOW, administrator=self.ada).id
        self.now_ms = NOW

    def automation(self, kind: str, *actions: dict[str, Any], **more: Any) -> AutomationRow:
        event = {"kind": kind, **more.pop("event", {})}
        definition = {"event": event, "actions": list(actions) or [SLACK], **more}
        by = Actor("user", "ada", self.ada)
        return self.store.alerts.automations.create(self.team, kind, True, definition, by, NOW)

    def run(self, uid: str, writer: str = "monitor.node1.a", team: int | None = None) -> tuple[int, int]:
        """A run that begins, or another writer of it: ids of the run and the writer."""
        sender = Sender(entity_id=team or self.team, author_id=self.ada)
        registration = WriterRegistration(uid, writer, "digits", sender=sender)
        (joined,) = self.store.writers.join([registration], self.now_ms)
        return joined.run_id, joined.writer_id

    def end(self, writer_id: int, state: Any) -> None:
        self.store.writers.record_ends([WriterEnd(writer_id, Ending(state, 1), self.now_ms)])

    def react(self) -> int:
        return self.store.alerts.automations.react(reaction_to, self.now_ms)

    def sent(self) -> list[str]:
        """The titles of what was sent, the oldest first."""
        return [row.text.partition("\n")[0] for row in reversed(self.notifications())]

    def notifications(self) -> list[StoredNotification]:
        return self.store.alerts.outbox.of_team(self.team, 100)


@pytest.fixture
def room(metadata_store: MetadataStore) -> Room:
    return Room(metadata_store)


def on_states(*states: str) -> dict[str, Any]:
    return {"event": {"states": list(states)}, "cooldown_h": 0}


def test_states_of_a_run_and_of_its_next_life(room: Room) -> None:
    room.automation("run.state", **on_states("running", "failed", "finished"))
    run_id, writer = room.run("a")
    room.end(writer, "failed")
    room.end(writer, "failed")
    assert room.react() == 2
    room.now_ms += 1000
    _, writer = room.run("a", "monitor.node1.b")
    room.end(writer, "finished")
    room.react()
    assert room.sent() == [
        "[vision/digits] a is running",
        "[vision/digits] a is failed",
        "[vision/digits] a is running",
        "[vision/digits] a is finished",
    ]
    failed = room.notifications()[2]
    assert (failed.target, failed.subject, failed.kind) == ("slack:1", f"run:{run_id}", "run.state")
    assert (failed.payload["path"], failed.payload["level"]) == ("/vision/digits/runs/a", "error")
    values = failed.payload["values"]
    assert (values["run_name"], values["run_state"], values["event_author"]) == ("a", "failed", "ada")
    assert room.react() == 0


def test_a_silent_run_is_lost(room: Room) -> None:
    room.automation("run.state", **on_states("lost"))
    room.run("a")
    _, ended = room.run("b")
    room.end(ended, "finished")
    automations = room.store.alerts.automations
    automations.note_lost(NOW, NOW + 5_000)
    room.react()
    assert room.sent() == []
    for _ in range(2):  # another server sees the same
        automations.note_lost(NOW + 5_000, NOW + HOUR_MS)
        room.react()
    assert room.sent() == ["[vision/digits] a is lost"]


def test_without_an_automation_nothing_is_written(room: Room) -> None:
    other = room.store.accounts.teams.create("speech", CLI, NOW).id
    row = room.automation("run.state", **on_states("failed"))
    _, writer = room.run("a", team=other)
    room.end(writer, "failed")
    room.store.alerts.automations.update(room.team, row.id, {"enabled": False}, CLI, NOW)
    _, writer = room.run("b")
    room.end(writer, "failed")
    assert room.react() == 0


def test_the_cool_down(room: Room) -> None:
    room.automation("finding", cooldown_h=24)
    run_id, _ = room.run("a")
    other_id, _ = room.run("b")

    def find(run: int, key: str) -> None:
        data = {"finding": "gpu idle"}
        room.store.write(lambda connection: raise_for_run(connection, "finding", run, data, room.now_ms, key))
        room.react()

    find(run_id, "1")
    find(run_id, "2")
    find(other_id, "3")
    assert room.sent() == ["[vision/digits] a: gpu idle", "[vision/digits] b: gpu idle"]
    room.now_ms += DAY_MS
    find(run_id, "4")
    assert len(room.sent()) == 3
    room.store.alerts.automations.purge_firings(NOW + 100 * DAY_MS)
    find(run_id, "5")
    assert len(room.sent()) == 4


def test_tags(room: Room) -> None:
    room.automation("run.tag", {"kind": "tag", "tag": "seen"}, event={"tag": "^best"}, cooldown_h=0)
    run_id, _ = room.run("a")
    room.store.runs.tag([run_id], NOW, add=["best", "other"])
    room.store.runs.tag([run_id], NOW, add=["more"])
    room.react()
    [change] = room.notifications()
    assert (change.target, change.payload["tag"]) == (f"tag:{run_id}", "seen")


def test_versions_aliases_and_links(room: Room) -> None:
    for kind, event in (
        ("artifact.version", {"collection": "mnist"}),
        ("artifact.alias", {"alias": "^production$"}),
        ("registry.link", {}),
    ):
        room.automation(kind, event=event, cooldown_h=0)
    run_id, _ = room.run("a")
    place = room.store.runs.place(run_id)
    assert place is not None
    artifacts = room.store.artifacts
    digest = manifest_digest({})
    new = NewVersion(place.project_id, "model", "mnist", digest, run_id=run_id, distributed_id="x")
    begun = artifacts.versions.begin(new, NOW)
    artifacts.entries.put(begun.id, [])
    version = artifacts.versions.commit(begun.id, NOW)
    assert version.collection is not None
    for _ in range(2):
        artifacts.collections.add_aliases(version.collection.id, version.id, ["production", "best"], NOW)
    artifacts.links.link(version.id, place.project_id, "released", [], NOW)
    room.react()
    assert room.sent() == [
        "[vision/digits] mnist:v0 was logged",
        "[vision/digits] mnist:v0 has the alias production",
        "[vision/digits] released:v0 was linked to released",
    ]
    values = room.notifications()[2].payload["values"]
    assert (values["artifact_version_string"], values["artifact_collection_name"]) == ("mnist:v0", "mnist")
    version_row = room.store.alerts.automations.of_team(room.team)[0]
    past = room.store.alerts.past_events.of_team(room.team, "artifact.version", NOW, NOW)
    assert past is not None
    assert times_of(version_row, past) == [NOW]


def test_how_often_an_automation_would_have_acted(room: Room) -> None:
    row = room.automation("run.state", event={"states": ["failed"]}, filter={"run_name": "^a"})
    for uid, state in (("a1", "failed"), ("a2", "finished"), ("a3", "failed"), ("b", "failed")):
        _, writer = room.run(uid)
        room.end(writer, state)
        room.now_ms += 1000
    past_events = room.store.alerts.past_events
    past = past_events.of_team(room.team, "run.state", NOW, room.now_ms)
    assert past is not None
    assert times_of(row, past) == [NOW, NOW + 2000]
    assert past_events.of_team(room.team, "finding", NOW, room.now_ms) is None


def test_an_automation_that_is_switched_off_tells_its_administrators(room: Room) -> None:
    row = room.automation("run.tag", event={"tag": ""})
    for _ in range(2):
        room.store.alerts.automations.switch_off(row.id, "Its creator left.", NOW)
    automation = room.store.alerts.automations.get(room.team, row.id)
    assert (automation.enabled, automation.problem) == (False, "Its creator left.")
    [due] = room.store.alerts.outbox.due(NOW)
    assert due.target == f"user:{room.ada}"
    again = room.store.alerts.automations.update(room.team, row.id, {"enabled": True}, CLI, NOW)
    assert again.problem is None
