"""Service accounts and their keys, over HTTP."""

from __future__ import annotations

import json

import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts_server import T0, AccountsServer

ACCOUNTS = "teams/vision/service-accounts"
HOUR = 3_600_000


@pytest.mark.parametrize(("by", "base"), [("ada", ACCOUNTS), ("olga", "organisation/service-accounts")])
def test_a_service_account_and_its_keys(vision: AccountsServer, by: str, base: str) -> None:
    home = {"default_team": "vision"} if base.startswith("organisation") else {}
    created = vision.ask(by, "POST", base, 201, json={"name": "CI runner", "scope": "ingest", **home})
    assert (created["name"], created["default_team"], created["keys"]) == ("CI runner", "vision", 1)
    assert created["team"] == (None if home else "vision")
    first = created["key"]
    checked = vision.accounts.keys.check(first["key"], T0)
    assert checked is not None
    assert checked.scope == "ingest"
    vision.ask(by, "POST", base, 409, json={"name": "CI runner", **home})
    account = f"{base}/CI runner"
    second = vision.ask(by, "POST", f"{account}/api-keys", 201, json={"name": "second"})
    listed = vision.ask(by, "GET", f"{account}/api-keys")["api_keys"]
    assert [row["id"] for row in listed] == [first["id"], second["id"]]
    assert all("key" not in row for row in listed)
    rotated = vision.ask(by, "POST", f"{account}/api-keys/{first['id']}/rotate", 201, json={"overlap_h": 1})
    for time_ms, valid in ((T0 + HOUR - 1, True), (T0 + HOUR, False)):
        assert (vision.accounts.keys.check(first["key"], time_ms) is not None) is valid
        assert vision.accounts.keys.check(rotated["key"], time_ms) is not None
    vision.ask(by, "POST", f"{account}/api-keys/{second['id']}/rotate", 422, json={"overlap_h": 169})
    vision.ask(by, "DELETE", f"{account}/api-keys/{second['id']}", 204)
    assert vision.accounts.keys.check(second["key"], T0) is None
    vision.ask(by, "DELETE", account, 204)
    assert vision.accounts.keys.check(rotated["key"], T0) is None
    vision.ask(by, "DELETE", account, 404)
    vision.ask(by, "POST", base, 201, json={"name": "CI runner", **home})


def test_an_account_without_a_key_and_a_key_for_some_teams(vision: AccountsServer) -> None:
    created = vision.ask("ada", "POST", ACCOUNTS, 201, json={"name": "ci", "scope": None})
    assert created["keys"] == 0
    assert "key" not in created
    own, other = {"name": "a", "teams": ["vision"]}, {"name": "b", "teams": ["speech"]}
    key = vision.ask("ada", "POST", f"{ACCOUNTS}/ci/api-keys", 201, json=own)
    assert key["teams"] == ["vision"]
    refused = vision.ask("ada", "POST", f"{ACCOUNTS}/ci/api-keys", 422, json=other)
    assert refused["fields"] == {"teams": "a team's service account works in that team"}


def test_disabling_renaming_and_reading_only(vision: AccountsServer) -> None:
    vision.ask("ada", "POST", ACCOUNTS, 201, json={"name": "ci"})
    changes = {"name": "build", "reads_only": True, "disabled": True}
    changed = vision.ask("ada", "PATCH", f"{ACCOUNTS}/ci", json=changes)
    assert (changed["name"], changed["reads_only"], changed["disabled_ms"]) == ("build", True, T0)
    assert vision.ask("ada", "PATCH", f"{ACCOUNTS}/build", json={"disabled": False})["disabled_ms"] is None
    vision.ask("ada", "PATCH", f"{ACCOUNTS}/ci", 404, json={"disabled": False})
    wrong = vision.ask("ada", "PATCH", f"{ACCOUNTS}/build", 422, json={"default_team": "nobody"})
    assert list(wrong["fields"]) == ["default_team"]
    assert vision.actions()[-3:] == [
        "service_account.update",
        "service_account.disable",
        "service_account.enable",
    ]


def test_who_manages_service_accounts(vision: AccountsServer) -> None:
    vision.ask("bob", "GET", ACCOUNTS, 403)
    vision.ask("mallory", "GET", ACCOUNTS, 404)
    vision.ask("ada", "GET", "organisation/service-accounts", 403)
    vision.ask("olga", "POST", ACCOUNTS, 201, json={"name": "ci"})
    for body in ({"name": "a/b"}, {"name": "x" * 65}, {"name": "ci", "kind": "robot"}):
        vision.ask("ada", "POST", ACCOUNTS, 422, json=body)
    vision.ask("ada", "POST", ACCOUNTS, 403, json={"name": "ci", "kind": "external"})
    missing = vision.ask("olga", "POST", "organisation/service-accounts", 422, json={"name": "ci"})
    assert list(missing["fields"]) == ["default_team"]


def test_a_service_account_has_at_most_twenty_keys(vision: AccountsServer) -> None:
    vision.ask("ada", "POST", ACCOUNTS, 201, json={"name": "ci"})
    for number in range(19):
        vision.ask("ada", "POST", f"{ACCOUNTS}/ci/api-keys", 201, json={"name": f"key {number}"})
    vision.ask("ada", "POST", f"{ACCOUNTS}/ci/api-keys", 409, json={"name": "one more"})


def test_keys_end_when_the_organisation_says_so(vision: AccountsServer) -> None:
    by, now_ms = "olga", vision.clock()
    vision.ask(by, "PUT", "organisation/settings", json={"key_max_age_days": 10})
    created = vision.ask("ada", "POST", ACCOUNTS, 201, json={"name": "ci"})
    assert created["key"]["expires_ms"] == now_ms + 10 * 24 * HOUR
    longer = {"name": "long", "expires_ms": now_ms + 100 * 24 * HOUR}
    refused = vision.ask("ada", "POST", f"{ACCOUNTS}/ci/api-keys", 422, json=longer)
    assert refused["fields"] == {"expires_ms": "the organisation lets keys live for at most 10 days"}


def test_a_default_team_does_not_show_which_teams_exist(vision: AccountsServer) -> None:
    vision.accounts.teams.create("hidden-one", CLI, T0, hidden=True)
    vision.ask("ada", "POST", ACCOUNTS, 201, json={"name": "build"})
    for method, path in (("POST", ACCOUNTS), ("PATCH", f"{ACCOUNTS}/build")):
        there, absent, broken = (
            vision.ask("ada", method, path, 422, content=json.dumps({"name": "build", "default_team": name}))
            for name in ("hidden-one", "nobody", "\ud800")
        )
        assert there == absent
        assert "a text has a lone surrogate" in broken["error"]  # whatever there is
    vision.ask("ada", "PATCH", f"{ACCOUNTS}/build", json={"default_team": "vision"})


def test_service_accounts_are_searched_by_name(vision: AccountsServer) -> None:
    for name in ("CI runner", "nightly"):
        vision.ask("ada", "POST", ACCOUNTS, 201, json={"name": name})
    listed = vision.ask("ada", "GET", f"{ACCOUNTS}?text=ci%20R")
    assert ([row["name"] for row in listed["service_accounts"]], listed["total"]) == (["CI runner"], 1)
