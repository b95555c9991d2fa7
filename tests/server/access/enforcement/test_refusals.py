"""What was not allowed, in the audit log; and the ids of requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.model.durations import DAY_MS, MINUTE_MS
from runvitals.server.access.enforcement.refusals import RECORDED_PER_MINUTE
from runvitals.server.audit.storage.audit import CLI, AuditEvent, AuditFilter
from tests.patience import eventually
from tests.server.accounts_server import AccountsServer, accounts_server
from tests.server.projects.routes.conftest import add_run

DENIED = AuditFilter(outcome="denied")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AccountsServer]:
    """The team vision with its administrator ada, its member bob, and a run of ada; eve is in no team."""
    with accounts_server(tmp_path) as running:
        running.user("olga", org_role="admin")
        for name in ("ada", "bob", "eve"):
            running.user(name)
        accounts, now_ms = running.accounts, running.clock()
        accounts.teams.create("vision", CLI, now_ms, administrator=accounts.users.by_name("ada").id)
        accounts.members.add("vision", "bob", "member", CLI, now_ms)
        add_run(running, "run-ada", "digits", "ada")
        yield running


def denied(server: AccountsServer) -> list[AuditEvent]:
    """The oldest first."""
    return server.accounts.audit.page(DENIED, 1000)[::-1]


def test_a_refused_change_is_recorded_with_the_id_of_its_request(server: AccountsServer) -> None:
    with server.client("bob") as bob:
        response = bob.delete("runs/run-ada", headers={"x-request-id": "forged"})
    assert response.status_code == 403
    [event] = denied(server)
    assert (event.action, event.actor_name, event.outcome) == ("run.delete", "bob", "denied")
    assert (event.entity, event.project, event.run) == ("vision", "digits", "run-ada")
    assert event.after == {"permission": "run:delete", "status": 403}
    assert event.request_id == response.headers["x-request-id"] != "forged"
    listed = server.ask("olga", "GET", "organisation/audit?outcome=denied")["events"]
    assert listed[0]["request_id"] == event.request_id


def test_every_response_has_another_id_and_changes_name_it(server: AccountsServer) -> None:
    with server.client("ada") as ada:
        responses = [ada.patch("teams/vision", json={"company": "A"}), ada.get("nothing"), ada.get("teams")]
        own_page = ada.get(f"{server.url}/vision")
    ids = [response.headers["x-request-id"] for response in (*responses, own_page)]
    assert len(set(ids)) == len(ids)
    [event] = server.accounts.audit.page(AuditFilter(action="team.update"))
    assert event.request_id == ids[0]


def test_reads_and_what_is_hidden_are_not_recorded(server: AccountsServer) -> None:
    server.ask("bob", "GET", "teams/vision/settings", 403)
    server.ask("bob", "GET", "teams/vision/members?format=csv", 403)
    server.ask("eve", "DELETE", "runs/run-ada", 404)
    server.ask(None, "DELETE", "runs/run-ada", 401)
    assert denied(server) == []


def test_ten_a_minute_are_recorded_and_the_others_counted(server: AccountsServer) -> None:
    with server.client("bob") as bob:
        for _ in range(RECORDED_PER_MINUTE + 3):
            assert bob.delete("runs/run-ada").status_code == 403
        assert bob.post("runs/run-ada/stop").status_code == 403
    actions = [event.action for event in denied(server)]
    assert actions == ["run.delete"] * RECORDED_PER_MINUTE + ["run.stop"]
    server.clock.now_ms += MINUTE_MS
    # The thread that notices changes of rights writes the counts.
    eventually(lambda: len(denied(server)) > len(actions))
    last = denied(server)[-1]
    assert (last.action, last.after) == (
        "run.delete",
        {"permission": "run:delete", "status": 403, "further": 3},
    )
    server.ask("bob", "DELETE", "runs/run-ada", 403)
    assert denied(server)[-1].after == {"permission": "run:delete", "status": 403}


def test_a_key_beyond_its_scope_is_recorded_once_a_day(server: AccountsServer) -> None:
    accounts = server.accounts
    user_id = accounts.users.by_name("ada").id
    secret, key = accounts.keys.create("a", CLI, server.clock(), user_id=user_id, scope="ingest")

    def read() -> int:
        server.app.services.access.rights_changed()
        with server.client() as client:
            headers = {"authorization": f"Bearer {secret}"}
            return client.get("runs/run-ada", headers=headers).status_code

    assert [read(), read()] == [404, 404]
    [event] = denied(server)
    assert (event.action, event.target) == ("key.refused_scope", key.public_id)
    assert (event.actor_name, event.key_public_id) == ("ada", key.public_id)
    assert (event.run, event.after) == ("run-ada", {"permission": "run:read"})
    server.app.services.access.refusals._days.clear()  # as after a restart
    assert read() == 404
    assert len(denied(server)) == 1
    server.clock.now_ms += DAY_MS
    assert read() == 404
    assert len(denied(server)) == 2


def test_a_key_of_another_team_is_recorded_where_it_is_refused(server: AccountsServer) -> None:
    accounts, now_ms = server.accounts, server.clock()
    bob = accounts.users.by_name("bob")
    secret, _ = accounts.keys.create("b", CLI, now_ms, user_id=bob.id, scope="full", entities=[bob.entity_id])
    server.app.services.access.rights_changed()
    with server.client() as client:
        headers = {"authorization": f"Bearer {secret}"}
        assert client.patch("runs/run-ada", json={"notes": "x"}, headers=headers).status_code == 404
        sent = {"run": "new", "writer": "curl", "entity": "vision", "rows": []}
        assert client.post("ingest", json=sent, headers=headers).status_code == 403
    assert [event.action for event in denied(server)] == ["key.refused_scope"]
