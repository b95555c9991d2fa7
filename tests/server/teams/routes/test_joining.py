"""Joining a team, and asking for one, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.mail.mailer import Mailer
from tests.server.accounts_server import AccountsServer
from tests.server.teams.routes.test_notices import ENVIRONMENT, waiting

REQUESTS = "teams/vision/join-requests"


@pytest.fixture
def mailing(vision: AccountsServer) -> AccountsServer:
    box = SecretBox({"k": bytes(32)})
    vision.start_mail(Mailer(vision.metadata_store, box, vision.clock, ENVIRONMENT), box)
    return vision


def join_of(server: AccountsServer, name: str) -> Any:
    return server.ask(name, "GET", "teams/vision/profile")["join"]


def test_a_request_and_its_approval(mailing: AccountsServer) -> None:
    assert join_of(mailing, "mallory") == {"how": "ask", "request": None}
    assert join_of(mailing, "bob") is None
    created = mailing.ask("mallory", "POST", REQUESTS, 201, json={"message": "Please"})
    assert (created["state"], created["user"], created["message"]) == ("pending", "mallory", "Please")
    assert join_of(mailing, "mallory") == {"how": "requested", "request": created["id"]}
    mailing.ask("mallory", "POST", REQUESTS, 409, json={})
    mailing.ask("bob", "POST", REQUESTS, 409, json={})
    assert waiting(mailing) == [("join_requested", "ada@example.org")]
    assert [row["id"] for row in mailing.ask("ada", "GET", REQUESTS)["join_requests"]] == [created["id"]]
    for name in ("bob", "eve"):
        mailing.ask(name, "GET", REQUESTS, 403)
        mailing.ask(name, "POST", f"{REQUESTS}/{created['id']}/approve", 403, json={})
    mailing.ask("ada", "POST", f"{REQUESTS}/{created['id']}/approve", 422, json={"role": "nobody"})
    approved = mailing.ask("ada", "POST", f"{REQUESTS}/{created['id']}/approve", json={"role": "viewer"})
    assert approved["state"] == "approved"
    assert mailing.accounts.members.get("vision", "mallory").role == "viewer"
    assert ("added_to_team", "mallory@example.org") in waiting(mailing)
    mailing.ask("ada", "POST", f"{REQUESTS}/{created['id']}/reject", 410)
    assert mailing.actions(action="team.join_*") == ["team.join_request", "team.join_approved"]


def test_a_request_that_is_rejected_or_withdrawn(mailing: AccountsServer) -> None:
    first = mailing.ask("mallory", "POST", REQUESTS, 201, json={})
    assert mailing.ask("olga", "POST", f"{REQUESTS}/{first['id']}/reject")["state"] == "rejected"
    assert ("join_rejected", "mallory@example.org") in waiting(mailing)
    second = mailing.ask("mallory", "POST", REQUESTS, 201, json={})
    mailing.ask("bob", "DELETE", f"account/join-requests/{second['id']}", 404)
    assert len(mailing.ask("mallory", "GET", "account/join-requests")["join_requests"]) == 1
    mailing.ask("mallory", "DELETE", f"account/join-requests/{second['id']}", 204)
    assert mailing.ask("mallory", "GET", "account/join-requests")["join_requests"] == []
    mailing.ask("mallory", "DELETE", f"account/join-requests/{second['id']}", 410)


def test_requests_of_another_team_are_not_found(vision: AccountsServer) -> None:
    now_ms = vision.clock()
    vision.accounts.teams.create(
        "speech", CLI, now_ms, administrator=vision.accounts.users.by_name("mallory").id
    )
    created = vision.ask("mallory", "POST", REQUESTS, 201, json={})
    for how in ("approve", "reject"):
        vision.ask("mallory", "POST", f"teams/speech/join-requests/{created['id']}/{how}", 404, json={})
        vision.ask("ada", "POST", f"{REQUESTS}/{created['id'] + 1}/{how}", 404, json={})


def test_nobody_approves_their_own_request(vision: AccountsServer) -> None:
    created = vision.ask("olga", "POST", REQUESTS, 201, json={})
    vision.ask("olga", "POST", f"{REQUESTS}/{created['id']}/approve", 403, json={})


def test_a_hidden_team_cannot_be_asked(vision: AccountsServer) -> None:
    vision.accounts.teams.update("vision", CLI, vision.clock(), hidden=True)
    missing = vision.ask("mallory", "POST", "teams/nobody/join-requests", 404, json={})
    hidden = vision.ask("mallory", "POST", REQUESTS, 404, json={})
    assert json.dumps(hidden).replace("vision", "nobody") == json.dumps(missing)


def test_who_cannot_ask(vision: AccountsServer) -> None:
    accounts, now_ms = vision.accounts, vision.clock()
    mallory = accounts.users.by_name("mallory")
    vision.ask(None, "POST", REQUESTS, 401, json={})
    secret, _ = accounts.keys.create("reader", CLI, now_ms, user_id=mallory.id, scope="read")
    headers = {"authorization": f"Bearer {secret}"}
    with vision.client() as client:
        assert client.post(REQUESTS, json={}, headers=headers).status_code == 403
    accounts.users.update(mallory.id, CLI, now_ms, access="none")
    assert vision.ask("mallory", "POST", REQUESTS, 403, json={})["error"].startswith("your account")


def test_teams_of_ones_mail_domain(mailing: AccountsServer) -> None:
    joinable = "account/joinable-teams"
    assert mailing.ask("mallory", "GET", joinable)["teams"] == []
    general = {"join_domains": ["Example.org"], "join_by_domain": "auto"}
    mailing.ask("ada", "PATCH", "teams/vision", json=general)
    assert mailing.ask("ada", "GET", "teams/vision/settings")["settings"]["join_domains"]["value"] == [
        "example.org"
    ]
    wrong = mailing.ask(
        "ada", "PATCH", "teams/vision", 422, json={"display_name": "V", "join_domains": ["@"]}
    )
    assert list(wrong["fields"]) == ["join_domains"]
    assert mailing.ask("mallory", "GET", joinable)["teams"] == []  # it is not recommended
    mailing.ask("olga", "PATCH", "teams/vision/privacy", json={"recommend_by_domain": True})
    [row] = mailing.ask("mallory", "GET", joinable)["teams"]
    assert (row["name"], row["members"], row["join"]) == ("vision", 3, "auto")
    assert mailing.ask("bob", "GET", joinable)["teams"] == []
    mailing.ask("olga", "PUT", "organisation/settings", json={"enforce_hidden": "on"})
    assert mailing.ask("mallory", "GET", joinable)["teams"] == []
    mailing.ask("olga", "PUT", "organisation/settings", json={"enforce_hidden": "none"})
    assert join_of(mailing, "mallory")["how"] == "auto"
    assert mailing.ask("mallory", "POST", REQUESTS, 201, json={})["state"] == "approved"
    assert mailing.accounts.members.get("vision", "mallory").added_by == "mallory"
    assert ("joined_by_domain", "ada@example.org") in waiting(mailing)


def test_asking_for_a_team(mailing: AccountsServer) -> None:
    teams = mailing.ask("mallory", "GET", "teams")
    assert teams["administrators"] == ["olga"]
    assert "administrators" not in mailing.ask("olga", "GET", "teams")
    body = {"name": "speech", "message": "We need one"}
    assert mailing.ask("mallory", "POST", "team-requests", 202, json=body) == {"administrators": ["olga"]}
    assert waiting(mailing) == [("team_wanted", "olga@example.org")]
    mailing.ask("mallory", "POST", "team-requests", 429, json=body)
    mailing.ask("bob", "POST", "team-requests", 202, json={})
    mailing.ask("olga", "POST", "team-requests", 409, json=body)
    assert mailing.actions(action="team.ask") == ["team.ask", "team.ask"]


def test_without_mail_the_administrators_are_named(vision: AccountsServer) -> None:
    response = vision.ask("mallory", "POST", "team-requests", 409, json={})
    assert "olga" in response["error"]


def test_added_by_is_who_invited(vision: AccountsServer) -> None:
    vision.ask("ada", "POST", "teams/vision/invitations", json={"people": ["mallory"]})
    [invitation] = vision.ask("mallory", "GET", "account/invitations")["invitations"]
    vision.ask("mallory", "POST", "invitations/accept", json={"id": invitation["id"]})
    assert vision.accounts.members.get("vision", "mallory").added_by == "ada"
