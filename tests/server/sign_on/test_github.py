"""Signing in by GitHub, and by GitHub Enterprise."""

from __future__ import annotations

import urllib.parse
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from runvitals.server.account_store import AccountStore
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.sign_on.outcomes import Outcome, Refused, SignedIn
from runvitals.server.sign_on.sign_on import SingleSignOn
from tests.server.outbound.site import Answer, Site
from tests.server.sign_on.conftest import T0, Configure
from tests.server.sign_on.provider import answer

GITHUB = {"id": "github", "label": "GitHub", "kind": "github", "client_id": "abc", "client_secret": "hush"}
EMAILS = [
    {"email": "other@lab.example", "verified": True, "primary": False},
    {"email": "ada@lab.example", "verified": True, "primary": True},
]


def _serve(site: Site, prefix: str = "", emails: object = EMAILS, user: object = None) -> None:
    site.answers |= {
        "/login/oauth/access_token": answer({"access_token": "gho_x", "token_type": "bearer", "scope": ""}),
        f"{prefix}/user": answer(user or {"id": 7, "login": "Ada-L", "name": "Ada L."}),
        f"{prefix}/user/emails": answer(emails),
    }


def _sign_in(
    sso: SingleSignOn, issuer: str = "https://github.com", scope: str = "read:user user:email"
) -> Outcome:
    begun = sso.start("github")
    assert begun.url.startswith(f"{issuer}/login/oauth/authorize?")
    parameters = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(begun.url).query))
    assert parameters["scope"] == scope
    return sso.finish("github", {"code": "c", "state": parameters["state"]}, begun.cookie)


def test_github(configure: Configure, site: Site, accounts: AccountStore) -> None:
    _serve(site)
    sso = configure(GITHUB | {"auto_create": ["lab.example"]})
    outcome = _sign_in(sso)
    assert isinstance(outcome, SignedIn)
    user = accounts.users.get(outcome.user_id)
    assert (user.name, user.display_name, user.created_via) == ("ada-l", "Ada L.", "github")
    assert [row.address for row in accounts.emails.of_user(user.id)] == ["ada@lab.example"]
    (login,) = accounts.logins.of_user(user.id)
    assert (login.issuer, login.subject, login.label) == ("https://github.com", "7", "Ada-L")
    form = dict(
        urllib.parse.parse_qsl(
            site.bodies[[path for path, _ in site.requests].index("/login/oauth/access_token")].decode()
        )
    )
    assert (form["client_id"], form["client_secret"], form["code"]) == ("abc", "hush", "c")
    assert len(form["code_verifier"]) >= 43
    bearers = [headers.get("Authorization") for path, headers in site.requests if path.startswith("/user")]
    assert bearers == ["Bearer gho_x"] * 2


def test_organisations_and_teams_are_groups(configure: Configure, site: Site, accounts: AccountStore) -> None:
    for name in ("vision", "speech"):
        accounts.teams.create(name, CLI, T0)
    groups = {
        "Acme": {"team": "speech", "role": "viewer"},
        "acme/Vision": {"team": "vision", "role": "admin"},
        "acme/other": {"team": "speech", "role": "member"},
    }
    sso = configure(GITHUB | {"auto_create": True, "group_map": groups, "admin_group": "Acme/Admins"})
    _serve(site)
    pages = [[{"login": f"org-{number}"} for number in range(100)], [{"login": "ACME"}]]

    def organisations(handler: BaseHTTPRequestHandler) -> Answer:
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(handler.path).query))
        return answer(pages[int(query["page"]) - 1])

    teams = [{"slug": "vision", "organization": {"login": "ACME"}}, {"slug": "lost"}]
    site.answers |= {"/user/orgs": organisations, "/user/teams": answer(teams)}

    def sign_in() -> tuple[dict[str, str], str]:
        outcome = _sign_in(sso, scope="read:user user:email read:org")
        assert isinstance(outcome, SignedIn)
        user = accounts.users.get(outcome.user_id)
        mine = accounts.teams.of_user(user.id, T0)
        return {team.name: role for team, role, _ in mine}, user.org_role

    assert sign_in() == ({"speech": "viewer", "vision": "admin"}, "member")
    accounts.members.add("vision", accounts.users.create("eve", CLI, T0).name, "admin", CLI, T0)
    pages[1] = []
    teams[:] = [{"slug": "admins", "organization": {"login": "acme"}}]
    site.answers["/user/teams"] = answer(teams)
    assert sign_in() == ({}, "admin")
    site.answers["/user/teams"] = answer({"message": "Forbidden"}, 403)
    assert _sign_in(sso, scope="read:user user:email read:org") == Refused("provider", "/")


def test_github_enterprise(configure: Configure, site: Site) -> None:
    _serve(site, "/api/v3")
    sso = configure(GITHUB | {"issuer": "https://ghe.example/", "auto_create": True})
    assert isinstance(_sign_in(sso, "https://ghe.example"), SignedIn)


@pytest.mark.parametrize("kind", ["sqlite"])
@pytest.mark.parametrize(
    "emails",
    [
        [],
        [{"email": "ada@lab.example", "verified": False, "primary": True}],
        [{"email": "ada@lab.example", "verified": True, "primary": False}],
        [{"email": 7, "verified": True, "primary": True}, "x"],
        {"message": "Not Found"},
    ],
)
def test_addresses_that_are_not_verified_do_not_count(
    configure: Configure, site: Site, emails: object
) -> None:
    _serve(site, emails=emails)
    sso = configure(GITHUB | {"auto_create": ["lab.example"]})
    assert _sign_in(sso) == Refused("no_account", "/")


@pytest.mark.parametrize("kind", ["sqlite"])
@pytest.mark.parametrize(
    "user", [{"login": "ada"}, {"id": "7", "login": "ada"}, {"id": True, "login": "a"}, {"id": 7}]
)
def test_answers_without_an_id_are_refused(configure: Configure, site: Site, user: dict[str, Any]) -> None:
    _serve(site, user=user)
    assert _sign_in(configure(GITHUB | {"auto_create": True})) == Refused("provider", "/")
