"""Automations of the organisation about its registries: who may, what they react to, and what arrives."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.patience import eventually
from tests.server.access.organisation import NOW, TEAM
from tests.server.registry.conftest import Registries

ORGANISATION = "/api/v1/teams/organisation"
OURS = f"{ORGANISATION}/registries"
AUTOMATIONS = f"{OURS}/gate/automations"
LINK = {"kind": "registry.link"}
TELL_VERA = {"kind": "mail", "members": ["vera"]}


@pytest.fixture(scope="module")
def gate(registries: Registries) -> Registries:
    """`gate`, which all read: bob administers it, carol is a member."""
    served = registries.served
    for who, method, path, body in (
        ("rita", "POST", "", {"name": "gate"}),
        ("rita", "POST", "", {"name": "other"}),
        ("rita", "PUT", "/gate/admins/bob", None),
        ("rita", "PUT", "/gate/members/carol", {"role": "member"}),
        ("rita", "PUT", "/other/members/carol", {"role": "member"}),
        ("bob", "PUT", "/gate/protected-aliases/production", None),
    ):
        answer = served.ask(who, method, f"{OURS}{path}", json=body)
        assert answer.status_code < 300, answer.text
    return registries


def make(
    gate: Registries, who: str, name: str, status: int = 201, path: str = AUTOMATIONS, **how: Any
) -> Any:
    body = {"name": name, "event": LINK, "actions": [TELL_VERA], "cooldown_h": 0, **how}
    answer = gate.served.ask(who, "POST", path, json=body)
    assert answer.status_code == status, (who, answer.text)
    return answer.json()


def link(gate: Registries, registry: str, collection: str, version: int = 0) -> None:
    body = {"artifact": f"{TEAM}/team/weights", "version": f"v{version}"}
    path = f"{OURS}/{registry}/collections/{collection}/versions"
    answer = gate.served.ask("carol", "POST", path, json=body)
    assert answer.status_code == 201, answer.text


def texts(gate: Registries) -> list[str]:
    number = gate.served.accounts.entity_id("organisation")
    assert number is not None
    return [row.text.splitlines()[0] for row in gate.store.alerts.outbox.of_team(number, 100)]


@contextmanager
def hook(gate: Registries) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A receiver of webhooks that the organisation allows: its URL, and what arrived."""
    got: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            got.append({"body": body, "token": self.headers["Authorization"]})
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        place = f"127.0.0.1:{server.server_port}"
        settings = {"outbound_allow": [place], "webhook_http": ["127.0.0.1"]}
        gate.served.accounts.settings.put(settings, CLI, NOW)
        yield f"http://{place}/hook", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_who_may(gate: Registries) -> None:
    """As for the administrators of the registry; its members read them, and others do not know of any."""
    ask = gate.served.ask
    for who, status in (
        ("carol", 403),
        ("alice", 403),
        ("vera", 403),
        ("otto", 403),
        ("ci", 403),
        (None, 401),
    ):
        answer = ask(who, "POST", AUTOMATIONS, json={"name": "x", "event": LINK, "actions": [TELL_VERA]})
        assert answer.status_code == status, (who, answer.text)
    made = make(gate, "bob", "mine", enabled=False)
    assert (made["registry"], made["created_by"]) == ("gate", "bob")
    one = f"{AUTOMATIONS}/{made['id']}"
    assert [row["name"] for row in ask("carol", "GET", AUTOMATIONS).json()["automations"]] == ["mine"]
    assert ask("carol", "GET", one).json()["actions"] == made["actions"]
    for who in ("alice", "vera", "otto", "ci"):  # they read the registry
        assert ask(who, "GET", AUTOMATIONS).status_code == 403
        assert ask(who, "GET", one).status_code == 403
    for path in (AUTOMATIONS.replace("gate", "other"), f"{OURS}/none/automations"):
        assert ask("bob", "POST", path, json={}).status_code in (403, 404)
    other = make(gate, "rita", "mine", path=f"{OURS}/other/automations", enabled=False)  # the same name
    for method, part in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("GET", "/history"), ("POST", "/test")):
        answer = ask(
            "bob", method, f"{AUTOMATIONS}/{other['id']}{part}", json={} if method != "GET" else None
        )
        assert answer.status_code == 404, (method, part, answer.text)
    assert make(gate, "bob", "mine", 409)["fields"]["name"]
    changed = ask("rita", "PATCH", one, json={"description": "for all"}).json()
    assert (changed["description"], changed["created_by"]) == ("for all", "rita")
    assert ask("carol", "DELETE", one).status_code == 403
    assert ask("bob", "DELETE", one).status_code == 204
    team = gate.served.ask("carol", "POST", f"/api/v1/teams/{TEAM}/registries", json={"name": "ofteam"})
    assert team.status_code == 201
    refused = ask("alice", "GET", f"/api/v1/teams/{TEAM}/registries/ofteam/automations")
    assert (refused.status_code, f"/teams/{TEAM}/automations" in refused.text) == (422, True)


def test_what_they_can_be_about(gate: Registries) -> None:
    for body, field in (
        ({"event": {"kind": "run.state", "states": ["failed"]}}, "event.kind"),
        ({"filter": {"projects": ["digits"]}}, "filter.projects"),
        ({"actions": [{"kind": "mail", "members": ["nobody"]}]}, "actions[0].members"),
        ({"actions": [{"kind": "webhook", "webhook": 99}]}, "actions[0]"),
        ({"actions": [{"kind": "stop"}]}, "actions"),
    ):
        assert list(make(gate, "bob", "odd", 422, **body)["fields"]) == [field]


def test_they_react_and_a_webhook_arrives(gate: Registries) -> None:
    ask = gate.served.ask
    with hook(gate) as (url, got):
        for who in ("bob", "alice", "carol"):  # the receivers are the organisation's
            assert ask(who, "GET", f"{ORGANISATION}/webhooks").status_code == 404
            assert ask(who, "PUT", f"{ORGANISATION}/secrets/TOKEN", json={"value": "x"}).status_code == 404
        assert ask("rita", "PUT", f"{ORGANISATION}/secrets/TOKEN", json={"value": "hush"}).status_code == 200
        new = {"name": "ci", "url": url, "access_secret": "TOKEN"}
        webhook = ask("rita", "POST", f"{ORGANISATION}/webhooks", json=new)
        assert webhook.status_code == 201, webhook.text
        number = webhook.json()["id"]
        receivers = ask("bob", "GET", f"{OURS}/gate/receivers")
        assert receivers.json()["webhook"] == [{"id": number, "name": "ci"}]
        assert (url in receivers.text, ask("carol", "GET", f"{OURS}/gate/receivers").status_code) == (
            False,
            403,
        )
        values = (
            '{"text": "${artifact_version_string} ${alias}", "run": "${run_name}", "who": "${event_type}"}'
        )
        call = [{"kind": "webhook", "webhook": number, "payload": values}]
        faces = {"kind": "registry.link", "collection": "^faces$"}
        make(gate, "bob", "linked", actions=call, event=faces)
        make(gate, "bob", "set", actions=call, event={"kind": "artifact.alias", "alias": "^production$"})
        make(gate, "bob", "asked", actions=[TELL_VERA], event={"kind": "registry.request"})
        each = {"kind": "registry.link", "collection": "^(faces|voices)$"}
        make(gate, "rita", "all", path=f"{ORGANISATION}/automations", event=each, actions=call)
        shown = ask("carol", "GET", AUTOMATIONS).json()["automations"]
        assert all(action.get("payload") is None for row in shown for action in row["actions"])

        link(gate, "gate", "faces")
        asked = {"alias": "production", "version": 0}
        path = f"{OURS}/gate/collections/faces"
        assert ask("carol", "POST", f"{path}/requests", json=asked).status_code == 201
        assert ask("bob", "PUT", f"{path}/aliases/production", json={"version": 0}).status_code in (200, 204)
        link(gate, "other", "voices")
        told = [
            {"text": "faces:v0 ", "run": "", "who": "registry.link"},
            {"text": "faces:v0 ", "run": "", "who": "registry.link"},  # by "all"
            {"text": "faces:v0 production", "run": "", "who": "artifact.alias"},
            {"text": "voices:v0 ", "run": "team-bob", "who": "registry.link"},
        ]
        eventually(lambda: len(got) >= len(told))
        by_all = [row["body"] | {"run": ""} for row in got]
        assert sorted(map(str, by_all)) == sorted(str({**row, "run": ""}) for row in told)
        assert {row["token"] for row in got} == {"Bearer hush"}
    said = "\n".join(texts(gate))
    assert "[organisation/gate] carol asks for the alias production of faces:v0" in said
    history = ask("rita", "GET", f"{ORGANISATION}/notifications").json()["notifications"]
    assert {row["receiver"] for row in history} >= {str(number), "vera"}


def test_a_run_that_the_creator_may_not_read_is_not_told(gate: Registries) -> None:
    """Rita administers the organisation, and reads no runs of a team; bob's runs are his."""
    number = gate.served.accounts.entity_id("organisation")
    assert number is not None
    for who in ("bob", "rita"):
        make(gate, who, f"of-{who}", event={"kind": "registry.link", "collection": "^told$"})
    link(gate, "gate", "told", 1)

    def names() -> dict[str, str]:
        rows = gate.store.alerts.outbox.of_team(number, 200)
        about = [row for row in rows if "told:v0" in row.text]
        return {
            row.text.rpartition("“")[2].partition("”")[0]: row.payload["values"]["run_id"] for row in about
        }

    eventually(lambda: len(names()) == 2)
    assert names() == {"of-bob": "team-bob", "of-rita": ""}
    (row, *_) = [row for row in gate.store.alerts.outbox.of_team(number, 200) if "told:v0" in row.text]
    assert row.payload["path"] == "/organisation/-/registries/gate/collections/told/versions/0"


def test_without_rights_it_is_switched_off(gate: Registries) -> None:
    made = make(gate, "bob", "left", event={"kind": "registry.link", "collection": "^left$"})
    one = f"{AUTOMATIONS}/{made['id']}"
    assert gate.served.ask("rita", "DELETE", f"{OURS}/gate/admins/bob").status_code == 204
    link(gate, "gate", "left")
    eventually(lambda: not gate.served.ask("rita", "GET", one).json()["enabled"])
    problem = gate.served.ask("rita", "GET", one).json()["problem"]
    assert problem == "It was created by bob, who does not administer the registry any more."
    assert not [text for text in texts(gate) if "linked to left" in text]
    assert gate.served.ask("rita", "PUT", f"{OURS}/gate/admins/bob").status_code == 204


def test_a_deleted_registry_takes_its_automations_along(gate: Registries) -> None:
    assert gate.served.ask("rita", "POST", OURS, json={"name": "short"}).status_code == 201
    make(gate, "rita", "short", path=f"{OURS}/short/automations")
    assert gate.served.ask("rita", "DELETE", f"{OURS}/short").status_code == 204
    all_of_them = gate.served.ask("rita", "GET", f"{ORGANISATION}/automations").json()["automations"]
    assert "short" not in {row["registry"] for row in all_of_them}
