"""Automations of a team and what they sent, over HTTP; and what they do to runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runvitals.cli import main
from runvitals.model.ending import Ending
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.runs.storage.events import StoredEvent
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from runvitals.server.runs.storage.writers import WriterEnd
from tests.patience import eventually
from tests.server.accounts_server import T0, AccountsServer

AUTOMATIONS, WEBHOOKS = "teams/vision/automations", "teams/vision/webhooks"
FAILED = {"kind": "run.state", "states": ["failed"]}
TELL_BOB = {"kind": "mail", "members": ["bob"]}


def create(server: AccountsServer, name: str = "told", **how: Any) -> Any:
    body = {"name": name, "event": FAILED, "actions": [TELL_BOB], **how}
    return server.ask("ada", "POST", AUTOMATIONS, 201, json=body)


def run(server: AccountsServer, uid: str, author: str = "bob") -> tuple[int, int]:
    """A run that begins: its id, and that of its writer."""
    team = server.accounts.teams.by_name("vision").id
    sender = Sender(entity_id=team, author_id=server.accounts.users.by_name(author).id)
    registration = WriterRegistration(uid, "monitor.node1.a", "digits", sender=sender)
    (joined,) = server.metadata_store.writers.join([registration], server.clock())
    return joined.run_id, joined.writer_id


def fail(server: AccountsServer, uid: str) -> int:
    run_id, writer = run(server, uid)
    server.metadata_store.writers.record_ends([WriterEnd(writer, Ending("failed", 1), server.clock())])
    return run_id


def settled(server: AccountsServer, number: int) -> list[Any]:
    """What the team's automations sent, once it is so many and each was tried."""

    def sent() -> list[Any]:
        rows: list[Any] = server.ask("ada", "GET", "teams/vision/notifications")["notifications"]
        return rows

    eventually(lambda: len(rows := sent()) >= number and all(row["ended_ms"] for row in rows))
    return sent()


def test_an_automation_is_created_changed_and_deleted(vision: AccountsServer) -> None:
    created = create(vision)
    assert (created["created_by"], created["cooldown_h"], created["problem"]) == ("ada", 24, None)
    path = f"{AUTOMATIONS}/{created['id']}"
    changed = vision.ask("olga", "PATCH", path, json={"enabled": False})
    assert changed == {**created, "enabled": False}
    changed = vision.ask("ada", "PATCH", path, json={"name": "new", "filter": {"projects": ["digits"]}})
    assert (changed["name"], changed["filter"]["projects"]) == ("new", ["digits"])
    assert vision.ask("eve", "GET", AUTOMATIONS)["automations"] == [changed]
    assert vision.ask("eve", "GET", path) == changed
    vision.ask("bob", "PATCH", path, 403, json={"enabled": True})
    vision.ask("mallory", "GET", AUTOMATIONS, 404)
    vision.ask("ada", "DELETE", path, 204)
    vision.ask("ada", "GET", path, 404)
    assert vision.actions(outcome="ok")[-4:] == [
        "automation.create",
        "automation.update",
        "automation.update",
        "automation.delete",
    ]


def test_an_automation_that_is_refused(vision: AccountsServer) -> None:
    create(vision)
    hook = vision.ask("ada", "POST", WEBHOOKS, 201, json={"name": "ci", "url": "https://ci.example/"})
    for body, status, field in (
        ({"name": "told"}, 409, "name"),
        ({"name": " "}, 422, "name"),
        ({"event": {"kind": "run.state", "states": ["sad"]}}, 422, "event.states[0]"),
        ({"actions": [{"kind": "slack", "destination": 99}]}, 422, "actions[0]"),
        ({"actions": [{"kind": "webhook", "webhook": 99}]}, 422, "actions[0]"),
        (
            {"actions": [{"kind": "webhook", "webhook": hook["id"], "payload": '{"a": "${b}"}'}]},
            422,
            "actions[0].payload",
        ),
    ):
        sent = {"name": "another", "event": FAILED, "actions": [TELL_BOB], **body}
        response = vision.ask("ada", "POST", AUTOMATIONS, status, json=sent)
        assert list(response["fields"]) == [field]


def test_payloads_are_shown_to_those_who_manage_automations_only(vision: AccountsServer) -> None:
    hook = vision.ask("ada", "POST", WEBHOOKS, 201, json={"name": "ci", "url": "https://ci.example/"})
    action = {"kind": "webhook", "webhook": hook["id"], "payload": '{"token": "s3cret"}'}
    create(vision, actions=[action])
    assert vision.ask("ada", "GET", AUTOMATIONS)["automations"][0]["actions"] == [action]
    [shown] = vision.ask("bob", "GET", AUTOMATIONS)["automations"][0]["actions"]
    assert shown["payload"] is None


def test_who_was_told_and_whether_it_arrived(vision: AccountsServer) -> None:
    automation = create(vision)
    fail(vision, "a")
    [row] = settled(vision, 1)
    assert (row["channel"], row["receiver"], row["title"]) == ("member", "bob", "[vision/digits] a is failed")
    assert (row["state"], row["error"]) == ("dropped", "this server sends no mail")
    history = f"{AUTOMATIONS}/{automation['id']}/history"
    assert vision.ask("ada", "GET", history) == {"notifications": [row], "total": 1, "next": None}
    vision.ask("bob", "GET", history, 403)
    again = f"teams/vision/notifications/{row['id']}/send-again"
    assert vision.ask("ada", "POST", again)["state"] == "pending"
    settled(vision, 1)
    vision.ask("ada", "POST", "teams/vision/notifications/99/send-again", 404)


def test_a_test_and_a_preview(vision: AccountsServer) -> None:
    automation = create(vision, actions=[TELL_BOB, {"kind": "stop"}])
    path = f"{AUTOMATIONS}/{automation['id']}"
    assert vision.ask("ada", "POST", f"{path}/test", 202) == {"sent": 1}
    [row] = settled(vision, 1)
    assert (row["event"], row["title"]) == ("test", "Test: [vision/example] an example is finished")
    fail(vision, "a")
    fail(vision, "b")
    preview = vision.ask("ada", "POST", f"{path}/preview", json={"days": 7})
    assert preview == {"days": 7, "times": 2, "times_ms": [T0, T0]}
    metric = create(vision, "metric", event={"kind": "metric.threshold", "metric": "loss", "value": 1})
    preview = vision.ask("ada", "POST", f"{AUTOMATIONS}/{metric['id']}/preview", json={})
    assert preview == {"days": 30, "times": None, "times_ms": []}


def test_stopping_and_tagging_a_run_with_the_rights_of_the_creator(vision: AccountsServer) -> None:
    actions = [{"kind": "stop"}, {"kind": "tag", "tag": "seen"}]
    create(vision, event={"kind": "run.state", "states": ["running"]}, actions=actions)
    run_id, _ = run(vision, "a")
    rows = settled(vision, 2)
    assert {row["answer"] for row in rows} == {"the run was asked to stop", "the run has the tag seen"}
    found = vision.metadata_store.runs.get([run_id], T0)[run_id]
    assert found.tags == ("seen",)
    assert vision.metadata_store.runs.stops_requested([run_id]) == {run_id: T0}
    assert set(vision.actions()[-2:]) == {"run.stop", "run.update"}
    events = [event.name for event in vision.metadata_store.events.of_run(run_id)]
    assert sorted(events) == ["edited", "stop_requested"]


def test_a_command_waits_for_the_host_and_says_what_came_of_it(vision: AccountsServer) -> None:
    command = {"kind": "command", "command": "drain"}
    create(vision, event={"kind": "run.tag", "tag": "^tired$"}, actions=[command])
    run_id, _ = run(vision, "a")
    vision.metadata_store.runs.tag([run_id], T0, add=["tired"])
    outbox = vision.metadata_store.alerts.outbox
    eventually(lambda: outbox.host_commands())
    [(number, name)] = outbox.host_commands()[run_id]
    assert name == "drain"
    eventually(lambda: vision.actions()[-1] == "run.command")
    text = f"command {number} (drain) ended with status 0"
    vision.metadata_store.events.add([StoredEvent(run_id, T0, "command", "warning", text, {})])
    vision.clock.now_ms += 120_000
    [row] = settled(vision, 1)
    assert (row["state"], row["answer"], row["created_ms"]) == ("finished", text, T0)
    assert outbox.host_commands() == {}
    wrong = {"name": "x", "event": FAILED, "actions": [{"kind": "command", "command": "rm -rf /"}]}
    vision.ask("ada", "POST", AUTOMATIONS, 422, json=wrong)


@pytest.mark.parametrize("leaves", [False, True])
def test_a_creator_who_lost_the_rights(vision: AccountsServer, leaves: bool) -> None:
    create(vision, event={"kind": "run.state", "states": ["running"]}, actions=[{"kind": "stop"}])
    members = vision.accounts.members
    members.add("vision", "mallory", "admin", CLI, T0)
    if leaves:
        members.remove("vision", "ada", CLI, T0)
    else:
        members.set_role("vision", "ada", "viewer", CLI, T0)
    vision.app.services.access.rights_changed()
    run_id, _ = run(vision, "a")

    def found() -> Any:
        return vision.ask("olga", "GET", AUTOMATIONS)["automations"][0]

    eventually(lambda: not found()["enabled"])
    assert found()["problem"].startswith("It was created by ada, who ")
    assert vision.metadata_store.runs.stops_requested([run_id]) == {}


def test_events_of_a_project_that_the_creator_may_not_read(vision: AccountsServer) -> None:
    create(vision)
    store = vision.metadata_store
    place = store.runs.place(fail(vision, "before"))
    assert place is not None
    settled(vision, 1)
    vision.accounts.owned_projects.update(place.project_id, CLI, T0, visibility="restricted")
    vision.app.services.access.rights_changed()
    fail(vision, "after")
    eventually(lambda: not store.alerts.automations.waiting())
    assert [row["title"] for row in settled(vision, 1)] == ["[vision/digits] before is failed"]


def test_a_metric_that_ingest_receives(vision: AccountsServer) -> None:
    create(vision, event={"kind": "metric.threshold", "metric": "loss", "value": 10})
    bob = vision.accounts.users.by_name("bob").id
    secret, _ = vision.accounts.keys.create("cli", CLI, T0, user_id=bob)
    vision.app.services.access.rights_changed()
    headers = {"Authorization": f"Bearer {secret}"}
    with vision.client() as client:
        for seq, value in enumerate((1.0, 12.5, 13.0), 1):
            rows = {"keys": ["loss", "other"], "t": [T0 + seq], "v": [[value], [99.0]], "step": [seq]}
            sent = {"run": "a", "entity": "vision", "project": "digits", "writer": "train.n.1", "seq": seq}
            response = client.post("ingest", json={**sent, **rows}, headers=headers)
            assert response.status_code == 200, response.text
    [row] = settled(vision, 1)
    assert row["title"] == "[vision/digits] a: loss is 12.5"


def test_the_command_line(
    vision: AccountsServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ada = vision.accounts.users.by_name("ada")
    secret, _ = vision.accounts.keys.create("laptop", CLI, T0, user_id=ada.id, scope="full")
    monkeypatch.setenv("RUNVITALS_TOKEN", secret)
    monkeypatch.setenv("RUNVITALS_SERVER", vision.url)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "automations.toml"
    file.write_text(
        '[[automation]]\nname = "told"\nevent = {kind = "run.state", states = ["failed"]}\n'
        'actions = [{kind = "mail", members = ["bob"]}]\n'
    )

    def automations(*arguments: str) -> str:
        assert main(["automations", "--server", vision.url, *arguments]) == 0
        return capsys.readouterr().out

    assert automations("apply", "vision", str(file)) == "added told\n"
    assert automations("apply", "vision", str(file)) == ""
    file.write_text(file.read_text().replace("failed", "crashed"))
    assert automations("apply", "vision", str(file)) == "changed told\n"
    assert "run.state" in automations("list", "vision")
    assert automations("disable", "vision", "told") == "told is off\n"
    assert automations("preview", "vision", "told") == "told in the last 30 days: 0 times\n"
    assert automations("test", "vision", "told") == "1 message is on the way\n"
    assert "an example" in automations("history", "vision")
    assert main(["automations", "--server", vision.url, "delete", "vision", "none"]) == 1
    file.write_text('{"automation": []}')
    file = file.rename(tmp_path / "automations.json")
    assert automations("apply", "vision", str(file), "--prune") == "deleted told\n"
