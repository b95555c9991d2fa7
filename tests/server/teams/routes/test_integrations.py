"""Secrets, webhooks and Slack destinations of a team, over HTTP."""

from __future__ import annotations

import json

import pytest

from runvitals.server.alerts.payload_template import MAX_BYTES
from runvitals.server.audit.storage.audit import CLI, AuditFilter
from runvitals.server.database.secret_box import team_secret_purpose
from tests.server.accounts_server import T0, AccountsServer

SECRETS, WEBHOOKS, SLACK = (f"teams/vision/{name}" for name in ("secrets", "webhooks", "slack-destinations"))
URL = "https://hooks.slack.com/services/T0001/B0001/SecretSecretAbCd"
HOOK = {"name": "ci", "url": "https://ci.example/hook"}


def team_id(server: AccountsServer) -> int:
    return server.accounts.teams.by_name("vision").id


def put_secret(server: AccountsServer, name: str, value: str = "s3cret-value") -> None:
    server.ask("ada", "PUT", f"{SECRETS}/{name}", json={"value": value})


def test_a_secret_is_set_replaced_and_never_shown(vision: AccountsServer) -> None:
    response = vision.ask("ada", "PUT", f"{SECRETS}/API_TOKEN", json={"value": "first-value"})
    assert response == {
        "name": "API_TOKEN",
        "created_ms": T0,
        "changed_ms": T0,
        "changed_by": "ada",
        "webhooks": [],
    }
    vision.clock.now_ms += 1
    response = vision.ask("olga", "PUT", f"{SECRETS}/API_TOKEN", json={"value": "second-välue"})
    assert (response["created_ms"], response["changed_ms"], response["changed_by"]) == (T0, T0 + 1, "olga")
    listed = vision.ask("ada", "GET", SECRETS)
    assert listed == {"secrets": [response], "total": 1, "next": None}
    assert "value" not in json.dumps(listed)
    team, box = team_id(vision), vision.app.services.outside_services.box
    sealed = vision.accounts.team_secrets.sealed_value(team, "API_TOKEN")
    assert b"second" not in sealed
    assert box.open(sealed, team_secret_purpose(team, "API_TOKEN")).decode() == "second-välue"
    vision.ask("ada", "DELETE", f"{SECRETS}/API_TOKEN", 204)
    vision.ask("ada", "DELETE", f"{SECRETS}/API_TOKEN", 404)
    assert vision.actions()[-3:] == ["secret.set", "secret.set", "secret.delete"]


@pytest.mark.parametrize("name", ["a b", "a-b", "é", "a" * 65, "%00"])
def test_names_of_secrets(vision: AccountsServer, name: str) -> None:
    response = vision.ask("ada", "PUT", f"{SECRETS}/{name}", 422, json={"value": "s3cret-value"})
    assert "s3cret-value" not in str(response)
    assert vision.ask("ada", "GET", SECRETS)["total"] == 0


@pytest.mark.parametrize("value", ["", "x" * 8193, "é" * 5000, "\ud800"])
def test_values_of_secrets(vision: AccountsServer, value: str) -> None:
    content = json.dumps({"value": value})
    response = vision.ask("ada", "PUT", f"{SECRETS}/TOKEN", 422, content=content)
    assert list(response["fields"]) == ["value"]


def test_a_webhook_is_created_changed_and_deleted(vision: AccountsServer) -> None:
    for name in ("TOKEN", "SIGN"):
        put_secret(vision, name)
    payload = '{"text": "${run_name} ${SIGN}", "token": ["${ACCESS_TOKEN}"]}'
    hook = {**HOOK, "access_secret": "TOKEN", "signing_secret": "SIGN", "payload": payload}
    created = vision.ask("ada", "POST", WEBHOOKS, 201, json=hook)
    assert created == {"id": created["id"], **hook, "enabled": True, "created_ms": T0}
    assert [row["webhooks"] for row in vision.ask("ada", "GET", SECRETS)["secrets"]] == [["ci"], ["ci"]]
    path = f"{WEBHOOKS}/{created['id']}"
    changed = vision.ask("ada", "PATCH", path, json={"access_secret": None, "enabled": False})
    assert changed == {**created, "access_secret": None, "enabled": False}
    events = vision.actions()
    assert vision.ask("ada", "PATCH", path, json={"enabled": False}) == changed
    assert vision.actions() == events
    assert vision.ask("ada", "GET", WEBHOOKS)["webhooks"] == [changed]
    vision.ask("ada", "DELETE", path, 204)
    for method in ("PATCH", "DELETE"):
        vision.ask("ada", method, path, 404, json={})


@pytest.mark.parametrize(
    ("wrong", "status", "field"),
    [
        ({"url": "http://ci.example/hook"}, 422, "url"),
        ({"url": "https://127.0.0.1/hook"}, 422, "url"),
        ({"url": "https://2130706433/hook"}, 422, "url"),
        ({"url": "https://0x7f.1/hook"}, 422, "url"),
        ({"url": "https://localhost/hook"}, 422, "url"),
        ({"url": "https://10.1.2.3/hook"}, 422, "url"),
        ({"url": "https://169.254.169.254/latest"}, 422, "url"),
        ({"url": "https://[::1]/hook"}, 422, "url"),
        ({"url": "https://ci.example:22/hook"}, 422, "url"),
        ({"url": "https://ada:pw@ci.example/hook"}, 422, "url"),
        ({"url": "ci"}, 422, "url"),
        ({"name": " "}, 422, "name"),
        ({"name": "taken"}, 409, "name"),
        ({"access_secret": "NONE"}, 422, "access_secret"),
        ({"signing_secret": "NONE"}, 422, "signing_secret"),
        ({"payload": "{"}, 422, "payload"),
        ({"payload": "[1]"}, 422, "payload"),
        ({"payload": '{"a": NaN}'}, 422, "payload"),
        ({"payload": '{"a": "${nobody}"}'}, 422, "payload"),
        ({"payload": '{"${run_name}": 1}'}, 422, "payload"),
        ({"payload": "[" * (MAX_BYTES - 1)}, 422, "payload"),
    ],
)
def test_a_webhook_that_is_refused(
    vision: AccountsServer, wrong: dict[str, str], status: int, field: str
) -> None:
    vision.ask("ada", "POST", WEBHOOKS, 201, json={**HOOK, "name": "taken"})
    good = vision.ask("ada", "POST", WEBHOOKS, 201, json={**HOOK, "name": "good"})
    events = vision.actions()
    response = vision.ask("ada", "POST", WEBHOOKS, status, json={**HOOK, **wrong})
    assert list(response["fields"]) == [field]
    changes = {"enabled": False, **wrong}
    response = vision.ask("ada", "PATCH", f"{WEBHOOKS}/{good['id']}", status, json=changes)
    assert list(response["fields"]) == [field]
    assert vision.ask("ada", "GET", WEBHOOKS)["webhooks"][1] == good
    assert vision.actions() == events


def test_a_webhook_in_a_network_that_is_allowed(vision: AccountsServer) -> None:
    inside = {**HOOK, "url": "https://10.1.2.3/hook"}
    vision.ask("ada", "POST", WEBHOOKS, 422, json=inside)
    vision.accounts.settings.put({"outbound_allow": ["10.1.0.0/16"]}, CLI, T0)
    vision.ask("ada", "POST", WEBHOOKS, 201, json=inside)


def test_the_audit_log_has_the_host_of_a_url_only(vision: AccountsServer) -> None:
    for number, rest in enumerate(("/t0ken", "?t0ken", "#t0ken", ":443/t0ken?t0ken")):
        hook = {"name": f"{number}", "url": f"https://ci.example{rest}", "payload": '{"a": "t0ken"}'}
        vision.ask("ada", "POST", WEBHOOKS, 201, json=hook)
    events = vision.accounts.audit.page(AuditFilter(action="webhook.create"), 10)
    assert [event.after and event.after["url"] for event in events] == ["ci.example:443", *["ci.example"] * 3]
    assert "t0ken" not in str(events)


def test_a_secret_that_webhooks_use(vision: AccountsServer) -> None:
    for name in ("TOKEN", "OTHER"):
        put_secret(vision, name)
    vision.ask(
        "ada", "POST", WEBHOOKS, 201, json={**HOOK, "access_secret": "TOKEN", "signing_secret": "TOKEN"}
    )
    other = vision.ask("ada", "POST", WEBHOOKS, 201, json={**HOOK, "name": "other", "access_secret": "OTHER"})
    response = vision.ask("ada", "DELETE", f"{SECRETS}/TOKEN", 409)
    assert response["webhooks"] == ["ci"]
    vision.ask("ada", "DELETE", f"{SECRETS}/TOKEN?force=1", 204)
    first, second = vision.ask("ada", "GET", WEBHOOKS)["webhooks"]
    assert (first["access_secret"], first["signing_secret"], first["enabled"]) == (None, None, False)
    assert second == other
    assert vision.actions()[-2:] == ["webhook.update", "secret.delete"]


def test_secrets_of_another_team_are_not_found(vision: AccountsServer) -> None:
    vision.accounts.teams.create("speech", CLI, T0)
    vision.ask("olga", "PUT", "teams/speech/secrets/TOKEN", json={"value": "s3cret-value"})
    vision.ask("ada", "POST", WEBHOOKS, 422, json={**HOOK, "access_secret": "TOKEN"})
    theirs = vision.ask("olga", "POST", "teams/speech/webhooks", 201, json=HOOK)
    vision.ask("ada", "PATCH", f"{WEBHOOKS}/{theirs['id']}", 404, json={"name": "mine"})
    vision.ask("ada", "DELETE", f"{WEBHOOKS}/{theirs['id']}", 404)


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.com/services/T0001/B0001/SecretSecret",
        "https://hooks.slack.com.evil.example/services/T0001/B0001/SecretSecret",
        "http://hooks.slack.com/services/T0001/B0001/SecretSecret",
        "https://hooks.slack.com/SecretSecretSecret",
        "SecretSecretSecret",
    ],
)
def test_a_url_that_is_no_incoming_webhook(vision: AccountsServer, url: str) -> None:
    response = vision.ask("ada", "POST", SLACK, 422, json={"channel": "#runs", "webhook_url": url})
    assert list(response["fields"]) == ["webhook_url"]
    assert "SecretSecret" not in str(response)


def test_incoming_webhooks_of_other_hosts(vision: AccountsServer) -> None:
    hook = {"channel": "#runs", "webhook_url": "https://Chat.example.org:8443/hooks/SecretSecret"}
    vision.ask("ada", "POST", SLACK, 422, json=hook)
    vision.accounts.settings.put({"slack_hosts": ["chat.example.org"]}, CLI, T0)
    assert vision.ask("ada", "POST", SLACK, 201, json=hook)["shown"] == "Chat.example.org/…/cret"
    for url in (
        "http://chat.example.org/hooks/SecretSecret",
        "https://a@chat.example.org/hooks/SecretSecret",
    ):
        vision.ask("ada", "POST", SLACK, 422, json={**hook, "webhook_url": url})


def test_members_do_not_see_secrets(vision: AccountsServer) -> None:
    vision.ask("bob", "GET", SECRETS, 403)
    assert vision.ask("olga", "GET", SECRETS)["total"] == 0
