"""Where messages of teams and users go, over HTTP: each kind, and each thing that can be done with it."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from runvitals.server.alerts.storage.destinations import Kind
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.database.secret_box import apprise_purpose, slack_purpose, user_slack_purpose
from tests.server.accounts_server import T0, AccountsServer

SLACK_URL = "https://hooks.slack.com/services/T0001/B0001/SecretSecretAbCd"
OTHER_URL = "https://hooks.slack.com/services/T0001/B0001/SecretSecretWxYz"
NTFY_URL = "ntfys://ntfy.sh/SecretSecretTopic"
OWN = "account/slack"
FULL = {"webhook": 50, "slack": 20, "apprise": 20}


@dataclass(frozen=True)
class Case:
    """A kind of destination of a team.

    Attributes:
        called: the field of its name.
        new: what one is made from, besides its name.
        shown: what is shown of it, besides id, name and time.
        change: what of it can be changed, besides its name; and what is shown then.
        blocked: how one is stored that leads to an address to which nothing may be sent.
    """

    kind: Kind
    path: str
    called: str
    new: dict[str, Any]
    shown: dict[str, Any]
    change: tuple[dict[str, Any], dict[str, Any]] | None
    blocked: str
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def listed(self) -> str:
        return self.path.replace("-", "_")

    @property
    def address(self) -> str:
        return f"teams/vision/{self.path}"

    def body(self, name: str) -> dict[str, Any]:
        return {self.called: name, **self.new}


CASES = (
    Case(
        "webhook",
        "webhooks",
        "name",
        {"url": "https://ci.example/hook", "signing_secret": "KEY"},
        {
            "url": "https://ci.example/hook",
            "access_secret": None,
            "signing_secret": "KEY",
            "payload": None,
            "enabled": True,
        },
        ({"enabled": False}, {"enabled": False}),
        "https://127.0.0.1/SecretSecret",
    ),
    Case(
        "slack",
        "slack-destinations",
        "channel",
        {"webhook_url": SLACK_URL},
        {"shown": "hooks.slack.com/…/AbCd", "disabled_ms": None},
        ({"webhook_url": OTHER_URL}, {"shown": "hooks.slack.com/…/WxYz"}),
        "https://127.0.0.1/SecretSecret",
        more={"app": False},
    ),
    Case(
        "apprise",
        "apprise-destinations",
        "name",
        {"url": NTFY_URL},
        {"shown": "ntfy"},
        None,
        "ntfys://127.0.0.1/SecretSecret",
        more={"installed": True},
    ),
)
needs_apprise = pytest.mark.skipif(importlib.util.find_spec("apprise") is None, reason="needs apprise")


@pytest.fixture(
    params=[
        pytest.param(case, id=case.kind, marks=needs_apprise if case.kind == "apprise" else ())
        for case in CASES
    ]
)
def case(request: pytest.FixtureRequest, vision: AccountsServer) -> Case:
    vision.ask("ada", "PUT", "teams/vision/secrets/KEY", json={"value": "SecretSecretKey"})
    chosen: Case = request.param
    return chosen


def team_id(server: AccountsServer) -> int:
    return server.accounts.teams.by_name("vision").id


def listed(server: AccountsServer, case: Case) -> list[dict[str, Any]]:
    found = server.ask("ada", "GET", case.address)
    assert (
        found == {case.listed: found[case.listed], "total": len(found[case.listed]), "next": None} | case.more
    )
    rows: list[dict[str, Any]] = found[case.listed]
    return rows


def store(server: AccountsServer, case: Case, name: str, url: str = "https://ci.example/") -> int:
    """A destination that no request made, and that was not checked."""
    values: dict[str, Any] = {"url": url}
    if case.kind != "webhook":
        purpose = slack_purpose if case.kind == "slack" else apprise_purpose
        box = server.app.services.outside_services.box
        values = {"sealed": box.seal(url.encode(), purpose(team_id(server))), "shown": ""}
    destinations = server.metadata_store.alerts.destinations
    return destinations.create(case.kind, team_id(server), name, values, CLI, T0).id


def test_create_and_read(vision: AccountsServer, case: Case) -> None:
    created = vision.ask("ada", "POST", case.address, 201, json=case.body("ours"))
    assert created == {"id": created["id"], case.called: "ours", **case.shown, "created_ms": T0}
    assert listed(vision, case) == [created]
    response = vision.ask("ada", "POST", case.address, 409, json=case.body("ours"))
    assert list(response["fields"]) == [case.called]
    response = vision.ask("ada", "POST", case.address, 422, json=case.body(" "))
    assert list(response["fields"]) == [case.called]
    assert vision.actions()[-1] == f"{case.kind}.create"


def test_update(vision: AccountsServer, case: Case) -> None:
    created = vision.ask("ada", "POST", case.address, 201, json=case.body("ours"))
    address = f"{case.address}/{created['id']}"
    if case.change is None:
        vision.ask("ada", "PATCH", address, 405, json={})
        return
    vision.ask("ada", "POST", case.address, 201, json=case.body("taken"))
    response = vision.ask("ada", "PATCH", address, 409, json={case.called: "taken"})
    assert list(response["fields"]) == [case.called]
    renamed = vision.ask("ada", "PATCH", address, json={case.called: "new"})
    assert renamed == {**created, case.called: "new"}
    change, shown = case.change
    assert vision.ask("ada", "PATCH", address, json=change) == {**renamed, **shown}
    events = vision.actions()
    assert events[-2:] == [f"{case.kind}.update"] * 2
    assert vision.ask("ada", "PATCH", address, json={}) == {**renamed, **shown}
    assert vision.actions() == events


def test_delete(vision: AccountsServer, case: Case) -> None:
    number = vision.ask("ada", "POST", case.address, 201, json=case.body("ours"))["id"]
    address = f"{case.address}/{number}"
    vision.ask("ada", "DELETE", address, 204)
    assert vision.actions()[-1] == f"{case.kind}.delete"
    assert listed(vision, case) == []
    vision.ask("ada", "DELETE", address, 404)
    vision.ask("ada", "POST", f"{address}/test", 404, json={})
    if case.change is not None:
        vision.ask("ada", "PATCH", address, 404, json={})
    assert vision.ask("ada", "POST", case.address, 201, json=case.body("ours"))["id"] > number


def test_message(vision: AccountsServer, case: Case) -> None:
    """It says why nothing arrived, without the URL."""
    number = store(vision, case, "ours", case.blocked)
    response = vision.ask("ada", "POST", f"{case.address}/{number}/test", json={})
    assert response["status"] is None
    assert response["error"]
    assert "SecretSecret" not in str(response)


def test_permissions(vision: AccountsServer, case: Case) -> None:
    number = store(vision, case, "ours")
    address = f"{case.address}/{number}"
    vision.ask("bob", "GET", case.address, 403)
    vision.ask("bob", "POST", case.address, 403, json=case.body("mine"))
    vision.ask("bob", "DELETE", address, 403)
    vision.ask("bob", "POST", f"{address}/test", 403, json={})
    if case.change is not None:
        vision.ask("bob", "PATCH", address, 403, json={case.called: "mine"})
    assert [row[case.called] for row in vision.ask("olga", "GET", case.address)[case.listed]] == ["ours"]


def test_another_team(vision: AccountsServer, case: Case) -> None:
    vision.accounts.teams.create("speech", CLI, T0)
    other = f"teams/speech/{case.path}/{store(vision, case, 'ours')}"
    vision.ask("olga", "DELETE", other, 404)
    vision.ask("olga", "POST", f"{other}/test", 404, json={})
    if case.change is not None:
        vision.ask("olga", "PATCH", other, 404, json={case.called: "theirs"})
    assert [row[case.called] for row in listed(vision, case)] == ["ours"]


def test_secrets_are_never_shown(vision: AccountsServer, case: Case) -> None:
    created = vision.ask("ada", "POST", case.address, 201, json=case.body("ours"))
    address = f"{case.address}/{created['id']}"
    seen = [created, listed(vision, case)]
    if case.change is not None:
        seen.append(vision.ask("ada", "PATCH", address, json=case.change[0]))
    seen.append(vision.ask("olga", "GET", "organisation/audit"))
    assert "SecretSecret" not in json.dumps(seen)
    destination = vision.metadata_store.alerts.destinations.get(case.kind, team_id(vision), created["id"])
    assert b"SecretSecret" not in destination.sealed
    if case.kind != "webhook":
        purpose = slack_purpose if case.kind == "slack" else apprise_purpose
        url = OTHER_URL if case.kind == "slack" else NTFY_URL
        box = vision.app.services.outside_services.box
        assert box.open(destination.sealed, purpose(team_id(vision))).decode() == url
    assert "SecretSecret" not in repr(destination)


def test_limit(vision: AccountsServer, case: Case) -> None:
    for number in range(FULL[case.kind]):
        store(vision, case, f"n{number}")
    vision.ask("ada", "POST", case.address, 409, json=case.body("more"))
    others = [other for other in CASES if other.kind != case.kind and other.kind != "apprise"]
    for other in others:  # each kind has a limit and names of its own
        vision.ask("ada", "POST", other.address, 201, json=other.body("n0"))


def test_the_channel_of_a_user(vision: AccountsServer) -> None:
    assert vision.ask("bob", "GET", "account/alerts")["slack"] is None
    vision.ask("bob", "PUT", OWN, 422, json={"url": "https://chat.example/SecretSecretSecret"})
    first = vision.ask("bob", "PUT", OWN, json={"url": SLACK_URL})
    assert first == {"shown": "hooks.slack.com/…/AbCd", "created_ms": T0, "disabled_ms": None}
    second = vision.ask("bob", "PUT", OWN, json={"url": OTHER_URL})
    settings = vision.ask("bob", "GET", "account/alerts")
    assert settings["slack"] == second
    assert vision.ask("ada", "GET", "account/alerts")["slack"] is None
    bob = vision.accounts.users.by_name("bob").id
    destination = vision.metadata_store.alerts.destinations.of_user(bob)
    assert destination is not None
    box = vision.app.services.outside_services.box
    assert box.open(destination.sealed, user_slack_purpose(bob)).decode() == OTHER_URL
    assert "SecretSecret" not in json.dumps([first, second, settings]) + repr(destination)
    vision.ask("bob", "DELETE", OWN, 204)
    vision.ask("bob", "DELETE", OWN, 204)
    assert vision.ask("bob", "GET", "account/alerts")["slack"] is None
    response = vision.ask("bob", "POST", "account/alerts/test", json={"channel": "slack"})
    assert response["error"] == "the user has connected no channel of Slack"
