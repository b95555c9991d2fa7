"""Mail about teams: what is put into the queue, over HTTP."""

from __future__ import annotations

import json

import pytest

from runvitals.server.database.secret_box import SecretBox
from runvitals.server.mail.mailer import Mailer
from tests.server.accounts_server import T0, AccountsServer

ENVIRONMENT = {
    "RUNVITALS_SMTP_URL": "smtp://127.0.0.1:1?tls=none",
    "RUNVITALS_MAIL_FROM": "runs@example.org",
    "RUNVITALS_URL": "https://runs.example.org",
}


@pytest.fixture
def mailing(vision: AccountsServer) -> AccountsServer:
    """The same with a mail server, which nothing is sent to: the mailer's thread does not run."""
    box = SecretBox({"k": bytes(32)})
    vision.start_mail(Mailer(vision.metadata_store, box, vision.clock, ENVIRONMENT), box)
    return vision


def waiting(server: AccountsServer) -> list[tuple[str, str]]:
    return sorted((mail.kind, mail.address) for mail in server.accounts.outgoing_mail.due(T0))


def test_invitations_are_sent_and_their_links_not_shown(mailing: AccountsServer) -> None:
    body = {"people": ["new@example.net", "mallory"], "message": "Join us"}
    results = mailing.ask("ada", "POST", "teams/vision/invitations", json=body)["results"]
    assert all("url" not in row and row["state"] == "invited" for row in results)
    assert waiting(mailing) == [("invitation", "mallory@example.org"), ("invitation", "new@example.net")]
    link = mailing.ask("ada", "POST", "teams/vision/invitations", json={"link": True})["results"]
    assert "#" in link[0]["url"]


def test_members_get_mail_about_what_others_change(mailing: AccountsServer) -> None:
    mailing.ask("ada", "PATCH", "teams/vision/members/eve", json={"role": "member"})
    mailing.ask("ada", "DELETE", "teams/vision/members/bob", 204)
    mailing.ask("eve", "DELETE", "teams/vision/members/eve", 204)
    mailing.ask("olga", "POST", "teams/vision/join", 201)
    assert waiting(mailing) == [
        ("administrator_joined", "ada@example.org"),
        ("administrator_joined", "olga@example.org"),
        ("removed_from_team", "bob@example.org"),
        ("team_role_changed", "eve@example.org"),
    ]


def test_members_get_mail_when_their_team_is_deleted(mailing: AccountsServer) -> None:
    mailing.ask("olga", "DELETE", "teams/vision", 202, json={"confirm": "vision"})
    assert waiting(mailing) == [("team_deleted", f"{name}@example.org") for name in ("ada", "bob", "eve")]


def test_administrators_get_mail_about_the_visibility_of_a_project(mailing: AccountsServer) -> None:
    digits = "entities/vision/projects/digits"
    mailing.ask("bob", "POST", "entities/vision/projects", 201, json={"name": "digits"})
    mailing.ask("bob", "PATCH", digits, json={"description": "no news"})
    mailing.ask("bob", "PATCH", digits, json={"visibility": "restricted"})
    assert waiting(mailing) == [("visibility_changed", "ada@example.org")]
    mailing.ask("ada", "POST", f"{digits}/join", 201)
    mailing.ask("ada", "PATCH", digits, json={"visibility": "team"})
    assert waiting(mailing) == [
        ("administrator_joined_project", "bob@example.org"),
        ("visibility_changed", "ada@example.org"),
        ("visibility_changed", "bob@example.org"),
    ]


def test_mail_of_the_organisation(mailing: AccountsServer) -> None:
    members = "organisation/members"
    mailing.ask("olga", "PATCH", f"{members}/bob", json={"state": "suspended"})
    mailing.ask("olga", "PATCH", f"{members}/ada", json={"org_role": "admin"})
    assert mailing.ask("olga", "POST", f"{members}/eve/reset") == {"sent": True}
    mailing.ask("olga", "DELETE", f"{members}/mallory")
    mailing.ask("olga", "PUT", "organisation/settings", json={"signup": "open"})
    kinds = [kind for kind, _ in waiting(mailing)]
    assert kinds == [
        "account_deleted",
        "account_suspended",
        "organisation_role_changed",
        "organisation_role_changed",
        "reset_password",
        "settings_changed",
        "settings_changed",
    ]


def test_the_password_of_the_mail_server_is_stored_encrypted(mailing: AccountsServer) -> None:
    url = "smtps://user:hunter2@mail.example.org"
    whole = {"smtp_url": url, "mail_from": "runs@example.org", "url": "https://runs.example.org"}
    shown = mailing.ask("olga", "PUT", "organisation/settings", json=whole)["settings"]
    assert shown["smtp_url"]["value"] == "smtps://user:…@mail.example.org"
    assert "hunter2" not in json.dumps(mailing.accounts.settings.all())
    assert "hunter2" not in json.dumps(mailing.ask("olga", "GET", "organisation/audit")["events"])
