"""Joining a team in a real browser: by mail domain, by asking, and the administrators' answer."""

from __future__ import annotations

import pytest

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.mail.mailer import Mailer
from tests.server.accounts.routes.people import People
from tests.server.browser import Browser
from tests.server.pages.accessibility import violations
from tests.server.pages.test_account_pages import check_as_shown, fill, page, people, signed_in  # noqa: F401
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.teams.routes.test_notices import ENVIRONMENT
from tests.server.test_build import hook  # noqa: F401


@pytest.fixture
def teams(people: People) -> People:  # noqa: F811
    """ada administers vision; speech is open to people of lab.example; bob is in no team."""
    accounts, now_ms = people.accounts, people.now_ms
    for name in ("ada", "bob"):
        people.add(name, display_name=name.title())
    for team in ("vision", "speech"):
        ada = accounts.users.by_name("ada").id
        accounts.teams.create(team, CLI, now_ms, administrator=ada, display_name=team.title())
    accounts.teams.update(
        "speech", CLI, now_ms, join_domains=["lab.example"], join_by_domain="auto", recommend_by_domain=True
    )
    people.rights_changed()
    return people


def as_user(page: Browser, name: str) -> None:  # noqa: F811
    """Sign in as a user, in place of the one before."""
    page.call("Network.clearBrowserCookies")
    signed_in(page, name)


def test_a_user_asks_to_join_and_an_administrator_approves(page: Browser, teams: People) -> None:  # noqa: F811
    as_user(page, "bob")
    page.open("/vision")
    click(page, "main button", "Ask to join")
    fill(page, "Message", "I label images.", "dialog")
    click(page, "dialog button", "Ask")
    shown(page, "You asked to join")
    page.open("/-/settings/teams")
    shown(page, "Requests to join")
    as_user(page, "ada")
    page.open("/vision/-/settings/members")
    shown(page, "I label images.", "table")
    click(page, "main button", "Approve")
    shown(page, "Bob is now a member.")
    page.wait("!document.querySelector('main').innerText.includes('I label images.')")
    shown(page, "Bob", "section:last-of-type table")
    assert teams.accounts.members.get("vision", "bob").added_by == "ada"


def test_a_request_is_withdrawn_and_one_is_rejected(page: Browser, teams: People) -> None:  # noqa: F811
    bob = teams.accounts.users.by_name("bob")
    as_user(page, "bob")
    page.open("/vision")
    click(page, "main button", "Ask to join")
    click(page, "dialog button", "Ask")
    click(page, "main button", "Withdraw the request")
    shown(page, "Ask to join", "aside")
    teams.accounts.join_requests.create("vision", bob.id, "", CLI, teams.now_ms)
    as_user(page, "ada")
    page.open("/vision/-/settings/members")
    click(page, "main button", "Reject")
    shown(page, "The request of Bob was rejected.")
    assert teams.accounts.join_requests.of_user(bob.id) == []


def test_a_team_of_ones_mail_domain_is_joined_at_once(page: Browser, teams: People) -> None:  # noqa: F811
    as_user(page, "bob")
    page.open("/-/settings/teams")
    shown(page, "Teams that you can join")
    click(page, "main button", "Join")
    shown(page, "You become a member at once", "dialog")
    click(page, "dialog button", "Join")
    shown(page, "You are now a member of Speech.")
    page.wait("!document.querySelector('main').innerText.includes('Teams that you can join')")
    assert teams.accounts.members.get("speech", "bob").role == "member"


def test_who_may_not_make_teams_asks_for_one(page: Browser, teams: People) -> None:  # noqa: F811
    as_user(page, "bob")
    page.open("/-/settings/teams")
    shown(page, "Teams are made by administrators: rita")
    click(page, "main button", "Ask for a team")
    fill(page, "Name of the team", "audio", "dialog")
    fill(page, "Message", "We record speech.", "dialog")
    click(page, "dialog button", "Ask")
    shown(page, "this server sends no mail; ask an administrator yourself: rita", "dialog")
    box = SecretBox({"k": bytes(32)})
    services = teams.served.app.services.account_services
    services.mailer = Mailer(teams.served.metadata_store, box, lambda: teams.now_ms, ENVIRONMENT)
    click(page, "dialog button", "Ask")
    shown(page, "The administrators were asked for a team.")
    [mail] = teams.accounts.outgoing_mail.due(teams.now_ms)
    assert (mail.kind, mail.address) == ("team_wanted", "rita@lab.example")


def test_mail_domains_are_set_with_what_is_wrong_beside_the_field(
    page: Browser,  # noqa: F811
    teams: People,
) -> None:
    as_user(page, "ada")
    page.open("/vision/-/settings/general")
    fill(page, "Mail domains", "lab.example\nnot a domain!")
    click(page, "main button", "Save")
    page.wait("document.querySelector('textarea[aria-invalid=true]')")
    shown(page, "invalid domain")
    fill(page, "Mail domains", "lab.example")
    click(page, "main button", "Save")
    shown(page, "The team was saved.")
    assert teams.accounts.teams.by_name("vision").join_domains == ("lab.example",)
    as_user(page, "rita")
    page.open("/vision/-/settings/privacy")
    click(page, "main label", "Recommend the team by mail domain")
    shown(page, "Recommend the team by mail domain: on.")
    assert teams.accounts.teams.by_name("vision").recommend_by_domain


def test_the_pages_fit_a_phone_and_can_be_read_by_everyone(
    page: Browser,  # noqa: F811
    teams: People,
) -> None:
    accounts = teams.accounts
    teams.add("eve")
    for name in ("bob", "eve"):
        user = accounts.users.by_name(name)
        text = "I label images, and would like to see what becomes of them. " * 4
        accounts.join_requests.create("vision", user.id, text, CLI, teams.now_ms)
    as_user(page, "bob")
    for path in ("/-/settings/teams", "/vision", "/speech"):
        check_as_shown(page, path)
    click(page, "main button", "Join")
    for dark in (False, True):
        page.resize(390, 800, dark)
        assert violations(page, dark, within="dialog") == []
    as_user(page, "ada")
    for path in ("/vision/-/settings/members", "/vision/-/settings/general", "/vision/-/settings/privacy"):
        check_as_shown(page, path)
