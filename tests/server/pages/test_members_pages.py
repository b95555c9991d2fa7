"""The lists of members of a team and of the organisation: filters, order, pages, and what each row offers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts.routes.people import People, serving_people
from tests.server.browser import Browser, keep_picture
from tests.server.pages.accessibility import accessible
from tests.server.pages.test_account_pages import at, check, from_menu, signed_in
from tests.server.pages.test_joining_pages import as_user
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.test_build import hook  # noqa: F401

MEMBERS = 60
TEAM, ORGANISATION = "/vision/-/settings/members", "/-/organisation/members"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory, static: str) -> Iterator[People]:  # noqa: F811
    """rita administers vision, which has sixty members more; every third may only look."""
    with serving_people(tmp_path_factory.mktemp("server"), static=static) as people:
        people.accounts.teams.create(
            "vision", CLI, people.now_ms, administrator=people.accounts.users.by_name("rita").id
        )
        for number in range(MEMBERS):
            name, role = f"user-{number:02}", "member" if number % 3 else "viewer"
            people.add(name, display_name=f"User {number}")
            people.accounts.members.add("vision", name, role, CLI, people.now_ms + number)
        people.accounts.invitations.create("vision", "new@lab.example", "member", CLI, people.now_ms)
        people.rights_changed()
        yield people


@pytest.fixture
def page(people: People, browser: Browser) -> Iterator[Browser]:  # noqa: F811
    with at(browser, people.url):
        yield browser


def names(page: Browser) -> list[str]:
    """The names in the list of members, in its order."""
    listed: list[str] = page.evaluate(
        "[...document.querySelectorAll('main tbody .who a')].map(e => e.innerText)"
    )
    return listed


def choose(page: Browser, label: str, value: str) -> None:
    """Choose from a list above the table."""
    page.evaluate(
        f"(e => {{ e.value = {value!r}; e.dispatchEvent(new Event('change', {{bubbles: true}})); }})"
        f"(document.querySelector('[aria-label=\"{label}\"]'))"
    )


def test_a_large_team_is_filtered_sorted_and_read_page_by_page(page: Browser) -> None:
    signed_in(page)
    page.open(TEAM)
    shown(page, f"{MEMBERS + 1} members")
    assert len(names(page)) == 50
    click(page, "main button", "Show more")
    page.wait("document.querySelectorAll('main tbody .who').length === 61")
    click(page, "th button", "Joined")
    page.wait("document.querySelectorAll('main tbody .who').length === 50")
    assert page.text("[aria-sort=ascending]").startswith("Joined")
    click(page, "th button", "Joined")
    page.wait("document.querySelector('main tbody .who a').innerText === 'User 59'")
    choose(page, "Role", "viewer")
    shown(page, f"{MEMBERS // 3} members")
    assert names(page)[:2] == ["User 57", "User 54"]
    keep_picture(page, "members")
    page.resize(390, 800, dark=True)
    choose(page, "Sorted by", "name")
    page.wait("document.querySelector('main tbody .who a').innerText === 'User 0'")
    keep_picture(page, "members-phone")
    check(page, TEAM)


def test_the_menu_of_a_member_is_used_by_keyboard(page: Browser, people: People) -> None:
    signed_in(page)
    page.open(TEAM)
    shown(page, "User 1")
    page.evaluate("document.querySelector('[aria-label=\"Actions for User 1\"]').focus()")
    page.wait("document.activeElement.ariaLabel === 'Actions for User 1'")
    page.press(" ")
    page.wait("document.activeElement.getAttribute('role') === 'menuitemradio'")
    keep_picture(page, "member-menu")
    accessible(page)
    assert page.evaluate("document.activeElement.innerText.trim()") == "Admin"
    page.press("End")
    assert page.evaluate("document.activeElement.innerText") == "Remove …"
    page.press("ArrowDown")
    page.press("Escape")
    page.wait("document.activeElement.ariaLabel === 'Actions for User 1'")
    page.press(" ")
    page.wait("document.activeElement.getAttribute('role') === 'menuitemradio'")
    page.press(" ")
    shown(page, "The role of User 1 was changed.")
    assert people.accounts.members.get("vision", "user-01").role == "admin"
    click(page, '[aria-label="Actions for the invitation of new@lab.example"]')
    click(page, "[role=menu] button", "Resend")
    shown(page, "The invitation of new@lab.example was sent again.")


def test_a_member_of_the_team_may_only_leave(page: Browser) -> None:
    as_user(page, "user-05")
    page.open(TEAM)
    shown(page, f"{MEMBERS + 1} members")
    menus = "[...document.querySelectorAll('button[aria-label^=Actions]')].map(e => e.ariaLabel)"
    assert page.evaluate(menus) == ["Actions for User 5"]
    from_menu(page, "User 5", "Leave the team …")
    shown(page, "Leave vision?", "dialog")


def test_the_organisation_changes_roles_access_and_states(page: Browser, people: People) -> None:
    as_user(page, "rita")
    page.open(ORGANISATION)
    shown(page, f"{MEMBERS + 1} members")
    keep_picture(page, "organisation-members")
    click(page, '[aria-label="Actions for User 0"]')
    click(page, "[role=group][aria-label=Access] button", "View-only")
    shown(page, "The access of User 0 was changed.")
    choose(page, "Access", "viewer")
    shown(page, "1 member")
    from_menu(page, "User 0", "Suspend …")
    click(page, "dialog button", "Suspend")
    shown(page, "User 0 is suspended.")
    from_menu(page, "User 0", "Reactivate")
    shown(page, "User 0 is active again.")
    from_menu(page, "User 0", "Reset the password")
    shown(page, "Pass this link on to User 0.")
    choose(page, "Access", "")
    shown(page, f"{MEMBERS + 1} members")
    click(page, "th button", "Role")
    page.wait("document.querySelector('main tbody .who a').innerText === 'rita'")
    click(page, '[aria-label="Actions for rita"]')
    shown(page, "Administrator", "[role=menu]")
    assert page.evaluate("document.querySelector('[role=menu]').innerText.includes('Delete')") is False
    page.resize(390, 800)
    check(page, ORGANISATION)
    assert people.accounts.users.by_name("user-00").access == "viewer"
