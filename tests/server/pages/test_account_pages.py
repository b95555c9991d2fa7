"""The pages of accounts in a real browser, at a real server: first run, sign-in, settings, keys."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from runvitals.server.accounts.passwords import Passwords
from runvitals.server.accounts.totp import STEP_S, code_at
from runvitals.server.audit.storage.audit import CLI, Actor
from tests.patience import eventually
from tests.server.accounts.routes.people import (
    OTHER_PASSWORD,
    PASSWORD,
    CountingHasher,
    People,
    serving_people,
)
from tests.server.browser import Browser
from tests.server.pages.accessibility import violations
from tests.server.pages.test_page import EVIL, browser, static  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.serving import serving
from tests.server.test_build import hook  # noqa: F401

EXPECTED = ("401", "403", "404", "409", "410", "422", "428")
"""Statuses of requests that a test provokes: browsers report each as an error."""

LATER_S = 20 * 60
"""After this, changes of an account need the password again."""


@pytest.fixture
def people(tmp_path: Path, static: str) -> Iterator[People]:  # noqa: F811
    with serving_people(tmp_path, static=static) as people:
        yield people


@pytest.fixture
def page(people: People, browser: Browser) -> Iterator[Browser]:  # noqa: F811
    """A browser at the server, where nobody is signed in. In the end it must have complained of nothing."""
    with at(browser, people.url):
        yield browser


class at(ExitStack):
    """The browser at a server, without cookies."""

    def __init__(self, page: Browser, url: str) -> None:
        super().__init__()
        self._page, self._url = page, url

    def __enter__(self) -> at:
        self._page.base = self._url
        self._page.call("Network.clearBrowserCookies")
        self._page.complaints.clear()
        self._page.resize(1280, 900)
        return self

    def __exit__(self, *raised: object) -> None:
        self._page.leave()
        expected = [f"status of {status}" for status in EXPECTED]
        complaints = [
            text for text in self._page.complaints if not any(status in text for status in expected)
        ]
        assert complaints == []


def fill(page: Browser, label: str, text: str, within: str = "main") -> None:
    """Type into the field with this label, in place of what it holds."""
    page.wait(
        f"(label => label && (document.getElementById(label.htmlFor).select(), "
        f"document.getElementById(label.htmlFor).focus(), true))"
        f"([...document.querySelectorAll({within + ' label'!r})].find(e => e.innerText === {label!r}))"
    )
    page.call("Input.insertText", text=text)


def field(page: Browser, label: str) -> dict[str, str]:
    """The value of the field with this label, and what the page says is wrong with it."""
    state: dict[str, str] = page.evaluate(
        f"(id => ({{value: document.getElementById(id).value, "
        f"error: document.getElementById(`${{id}}-error`)?.innerText ?? ''}}))"
        f"([...document.querySelectorAll('label')].find(e => e.innerText === {label!r}).htmlFor)"
    )
    return state


def sign_in(page: Browser, name: str = "rita", password: str = PASSWORD) -> None:
    page.open("/-/login")
    shown(page, "Sign in")
    fill(page, "E-mail address or username", name)
    fill(page, "Password", password)
    click(page, "main button", "Sign in")


def signed_in(page: Browser, name: str = "rita") -> None:
    sign_in(page, name)
    # Whoever was signed in before has a picture on the page of the form, too.
    page.wait("location.pathname !== '/-/login' && document.querySelector('.account .picture')")


def confirm_password(page: Browser) -> None:
    """Answer the dialog that asks for the password again."""
    shown(page, "Confirm your password", "dialog")
    fill(page, "Password", PASSWORD, "dialog")
    click(page, "dialog button", "Confirm")


@pytest.mark.parametrize("token_required", [False, True])
def test_the_first_administrator_sets_up_the_server(
    browser: Browser,  # noqa: F811
    static: str,  # noqa: F811
    tmp_path: Path,
    token_required: bool,
) -> None:
    passwords = Passwords(CountingHasher())
    with (
        serving(
            tmp_path, static=static, offers_setup=True, token_required=token_required, passwords=passwords
        ) as served,
        at(browser, served.url),
    ):
        accounts = served.metadata_store.accounts
        stranger = Actor("system", "system", ip="127.0.0.1")  # as earlier versions recorded it
        accounts.settings.put({"signup": "open"}, stranger, served.app.services.access.clock())
        secret = accounts.one_time_tokens.create("setup", served.app.services.access.clock())
        browser.open(f"/-/setup#{secret}")
        shown(browser, "Set up this server")
        fill(browser, "Username", "Lovelace")
        assert field(browser, "Username")["value"] == "lovelace"
        fill(browser, "E-mail address", "lovelace@lab.example")
        fill(browser, "Password", "lovelace is my name")
        click(browser, "main button", "Set up")
        browser.wait("document.activeElement.matches('[aria-invalid=true]')")
        fill(browser, "Name of your organisation", "The lab")
        assert field(browser, "Password")["value"] == "lovelace is my name"
        fill(browser, "Password", PASSWORD)
        fill(browser, "Team for the runs that are already here", "vision")
        click(browser, "main button", "Set up")
        shown(browser, "settings: signup", "main li")
        click(browser, "main button", "Continue")
        shown(browser, "Send your first run", "h1")
        browser.wait("document.querySelector('.account .picture')")
        assert accounts.users.by_name("lovelace").org_role == "admin"
        assert [team.name for team in accounts.teams.all()] == ["vision"]

        click(browser, ".picture")
        click(browser, ".menu button", "Sign out")
        shown(browser, "Sign in")
        browser.open("/projects/x?state=failed")
        browser.wait("location.pathname === '/-/login'")
        fill(browser, "E-mail address or username", "lovelace@lab.example")
        fill(browser, "Password", OTHER_PASSWORD)
        click(browser, "main button", "Sign in")
        shown(browser, "is wrong", "main [role=alert]")
        assert field(browser, "E-mail address or username")["value"] == "lovelace@lab.example"
        fill(browser, "Password", PASSWORD)
        click(browser, "main button", "Sign in")
        browser.wait("location.pathname + location.search === '/projects/x?state=failed'")


def test_a_second_factor_is_set_up_and_asked_for(page: Browser, people: People) -> None:
    signed_in(page)
    people.pass_s(LATER_S)
    page.open("/-/settings/security")
    click(page, "main button", "Set up")
    confirm_password(page)
    page.wait("document.querySelector('svg[role=img] path')")
    secret = page.evaluate("document.querySelector('[aria-label=Secret]').innerText")
    fill(page, "Code that the app shows", "000000")
    click(page, "main button", "Turn on")
    page.wait("document.querySelector('[aria-invalid=true]')")
    fill(page, "Code that the app shows", code_of(secret, people))
    click(page, "main button", "Turn on")
    shown(page, "The second factor is on")
    code = page.evaluate("document.querySelector('[aria-label=\"Recovery codes\"]').innerText").split()[0]
    click(page, "main button", "I have kept them")
    shown(page, "10 recovery codes are left")

    page.call("Network.clearBrowserCookies")
    sign_in(page)
    fill(page, "Code", code)
    click(page, "main button", "Sign in")
    page.wait("document.querySelector('.account .picture')")
    page.open("/-/settings/security")
    shown(page, "9 recovery codes are left")


def code_of(secret: str, people: People) -> str:
    padded = secret + "=" * (-len(secret) % 8)
    return code_at(base64.b32decode(padded), people.now_ms // 1000 // STEP_S)


def test_a_key_is_shown_once_and_revoked(page: Browser, people: People) -> None:
    signed_in(page)
    page.open("/-/settings/keys")
    click(page, "main button", "New key")
    fill(page, "Name", "laptop", "dialog")
    people.pass_s(LATER_S)
    click(page, "dialog button", "Create")
    confirm_password(page)
    shown(page, "it is not shown again")
    key = page.evaluate("document.querySelector('[aria-label=\"The new key\"]').innerText")
    assert people.program(key).get("/account").json()["name"] == "rita"
    page.open("/-/settings/keys")
    shown(page, "laptop")
    assert key not in page.text("main")
    click(page, "main .actions button", "Revoke")
    click(page, "dialog button", "Revoke")
    shown(page, "No keys yet.")
    assert people.program(key).get("/account").status_code == 401


def test_a_form_keeps_what_was_typed_and_says_what_is_wrong_beside_the_field(
    page: Browser, people: People
) -> None:
    signed_in(page)
    page.open("/-/settings/profile")
    fill(page, "Display name", EVIL)
    click(page, "main button", "Add a link")
    fill(page, "Label", "Home")
    fill(page, "Address", "ftp://lab.example")
    click(page, "main button", "Save")
    page.wait("document.querySelector('[aria-invalid=true]') === document.activeElement")
    assert field(page, "Address")["value"] == "ftp://lab.example"
    assert "https://" in field(page, "Address")["error"]
    assert field(page, "Display name")["value"] == EVIL
    fill(page, "Address", "https://lab.example")
    click(page, "main button", "Save")
    shown(page, "Your profile was saved.")
    page.open("/rita")
    shown(page, EVIL, "h1")
    assert page.evaluate("document.querySelector('aside li a').href") == "https://lab.example/"
    assert page.evaluate("document.querySelectorAll('main img').length") == 0


def test_the_introduction_is_edited_as_it_will_look(page: Browser, people: People) -> None:
    signed_in(page)
    page.open("/rita")
    click(page, "main button", "Edit")
    page.wait("document.activeElement.classList.contains('ProseMirror')")
    page.call("Input.insertText", text="Hello")
    page.press("Enter")
    page.call("Input.insertText", text="/")
    shown(page, "Bullet list", "[role=listbox]")
    page.call("Input.insertText", text="head")
    page.wait("document.querySelectorAll('[role=option]').length === 3")
    page.press("ArrowDown")
    shown(page, "Heading 2", "[aria-selected=true]")
    page.press("Enter")
    page.wait("document.querySelector('.ProseMirror h2')")
    page.call("Input.insertText", text="World")
    page.press("ArrowUp", alt=True)
    page.wait("document.querySelector('.ProseMirror').firstElementChild.tagName === 'H2'")
    click(page, "main button", "Save")
    shown(page, "Saved.")
    assert intro(people) == "## World\n\nHello"
    shown(page, "World", ".markdown")

    click(page, "main button", "Edit")
    page.wait("document.querySelector('.ProseMirror h2')")
    click(page, ".handle button")
    click(page, ".handle li button", "Delete")
    page.wait("!document.querySelector('.ProseMirror h2')")
    click(page, "main button", "Save")
    page.wait("!document.querySelector('.ProseMirror')")
    assert intro(people) == "Hello"


def test_the_source_of_an_introduction_does_not_change_by_looking_at_it(
    page: Browser, people: People
) -> None:
    source = (
        "Title\n=====\n\n* one\n+ two\n\n1) first\n\n- [x] done\n\n| a | b |\n|:--|--:|\n| 1 | `2` |\n\n"
        '[<img src="https://img.example/b.svg" width="120">](https://x.example)  \n~~gone~~ <b>bold</b>\n'
    )
    assert people.browser("rita").patch("/account/profile", json={"intro": source}).status_code == 200
    stored = intro(people)
    signed_in(page)
    page.open("/rita")
    click(page, "main button", "Edit")
    for _ in range(2):
        page.wait("document.querySelector('.ProseMirror td')")
        click(page, ".choices button", "Markdown")
        page.wait("document.querySelector('textarea')")
        assert field(page, "Text")["value"] == stored
        click(page, ".choices button", "Editor")
    click(page, "main button", "Save")
    page.wait("!document.querySelector('.ProseMirror')")
    assert intro(people) == stored
    assert page.evaluate("document.querySelectorAll('.markdown b').length") == 0


def intro(people: People) -> str:
    return str(people.browser("rita").get("/account/profile").json()["intro"])


def test_an_image_that_cannot_be_loaded_is_a_small_mark_with_its_name(page: Browser, people: People) -> None:
    people.browser("rita").patch(
        "/account/profile", json={"intro": "Before ![the loss](https://nowhere.invalid/loss.png) after"}
    ).raise_for_status()
    signed_in(page)
    page.open("/rita")
    page.wait("document.querySelector('main img.broken')")
    image = page.evaluate(
        "(e => ({alt: e.alt, title: e.title, height: e.offsetHeight, line: e.parentElement.offsetHeight}))"
        "(document.querySelector('main img.broken'))"
    )
    assert image["alt"] == "the loss"
    assert "could not be loaded" in image["title"]
    assert image["height"] <= 24
    assert image["line"] <= 32
    page.complaints[:] = [text for text in page.complaints if "/-/image" not in text]


def test_another_session_is_ended(page: Browser, people: People) -> None:
    other = people.browser("rita")
    signed_in(page)
    page.open("/-/settings/security")
    page.wait("document.querySelectorAll('tbody tr').length === 2")
    click(page, "tbody button", "End")
    page.wait("document.querySelectorAll('tbody tr').length === 1")
    assert other.get("/account").status_code == 401


def test_a_password_is_reset_by_a_link(page: Browser, people: People) -> None:
    user = people.accounts.users.by_name("rita")
    secret = people.accounts.one_time_tokens.create("reset_password", people.now_ms, user_id=user.id)
    page.open(f"/-/reset#{secret}")
    fill(page, "New password", OTHER_PASSWORD)
    click(page, "main button", "Change password")
    shown(page, "Your password was changed")
    fill(page, "E-mail address or username", "rita")
    fill(page, "Password", OTHER_PASSWORD)
    click(page, "main button", "Sign in")
    page.wait("document.querySelector('.account .picture')")
    page.open(f"/-/reset#{secret}")
    fill(page, "New password", PASSWORD)
    click(page, "main button", "Change password")
    shown(page, "Request a new link")


def test_a_user_signs_up_with_an_invitation(page: Browser, people: People) -> None:
    team = people.accounts.teams.create("vision", CLI, people.now_ms)
    secret, _ = people.accounts.invitations.create(team.name, "bob@lab.example", "member", CLI, people.now_ms)
    page.open(f"/-/invitation#{secret}")
    shown(page, "invites you to vision as Member")
    assert field(page, "E-mail address")["value"] == "bob@lab.example"
    fill(page, "Username", "rita")
    fill(page, "Password", PASSWORD)
    click(page, "main button", "Create account")
    shown(page, "taken", "main [role=alert]")
    fill(page, "Username", "bob")
    click(page, "main button", "Create account")
    page.wait("location.pathname === '/vision'")
    assert [member.name for member in people.accounts.members.of_team("vision")] == ["bob"]


def test_a_team_is_made_and_a_member_invited_promoted_and_removed(page: Browser, people: People) -> None:
    people.add("bob")
    signed_in(page)
    page.open("/-/settings/teams")
    click(page, "main button", "New team")
    fill(page, "Team name", "rita", "dialog")
    click(page, "dialog button", "Create")
    shown(page, "taken", "dialog [role=alert]")
    fill(page, "Team name", "vision", "dialog")
    fill(page, "Display name", "Vision lab", "dialog")
    click(page, "dialog button", "Create")
    page.wait("location.pathname === '/vision/-/settings/members'")
    click(page, "main button", "Invite")
    fill(page, "E-mail addresses or usernames", "bob\nnobody-here", "dialog")
    click(page, "dialog button", "Send invitations")
    shown(page, "bob: invited")
    shown(page, "nobody-here: was refused")

    bob = people.browser("bob")
    (invitation,) = bob.get("/account/invitations").json()["invitations"]
    assert bob.post("/invitations/accept", json={"id": invitation["id"]}).status_code == 200
    page.open("/vision/-/settings/members")
    from_menu(page, "bob", "Admin")
    shown(page, "The role of bob was changed.")
    eventually(lambda: roles(people) == {"bob": "admin", "rita": "admin"})
    click(page, "main .notice button", "Undo")
    has_role(page, "bob", "Member")
    eventually(lambda: roles(people) == {"bob": "member", "rita": "admin"})
    from_menu(page, "rita", "Member")
    shown(page, "administrator", "main .notice.bad")
    has_role(page, "rita", "Admin")

    from_menu(page, "bob", "Remove …")
    assert "runs stay in the team" in page.text("dialog")
    click(page, "dialog button", "Remove")
    shown(page, "bob is no longer a member.")
    assert roles(people) == {"rita": "admin"}


def roles(people: People) -> dict[str, str]:
    return {member.name: member.role for member in people.accounts.members.of_team("vision")}


def from_menu(page: Browser, name: str, text: str) -> None:
    """Choose what the menu of a member has."""
    click(page, f'[aria-label="Actions for {name}"]')
    click(page, "[role=menu] button", text)


def has_role(page: Browser, name: str, role: str) -> None:
    page.wait(
        f"document.querySelector('[aria-label=\"Actions for {name}\"]')?.closest('tr')"
        f".querySelector('[data-label=Role]').innerText === {role!r}"
    )


def choose(page: Browser, label: str, value: str) -> None:
    """Choose from the drop-down list with this label, as soon as it has this entry."""
    selector = json.dumps(f'[aria-label="{label}"]')
    page.wait(
        f"(list => list && [...list.options].some(e => e.value === {value!r}) && "
        f"(list.value = {value!r}, list.dispatchEvent(new Event('change', {{bubbles: true}})), true))"
        f"(document.querySelector({selector}))"
    )


def test_a_member_sees_no_settings_and_a_stranger_no_organisation(page: Browser, people: People) -> None:
    people.add("bob")
    people.accounts.teams.create("vision", CLI, people.now_ms)
    people.accounts.members.add("vision", "bob", "viewer", CLI, people.now_ms)
    people.rights_changed()
    signed_in(page, "bob")
    page.open("/vision/-/settings/members")
    shown(page, "1 member")
    assert page.evaluate("[...document.querySelectorAll('.side a')].map(e => e.innerText)") == [
        "General",
        "Members",
        "Roles",
        "Notifications",
    ]
    assert page.evaluate("document.querySelectorAll('button[aria-label^=Actions]').length") == 1
    page.open("/-/organisation/members")
    shown(page, "Page not found")
    click(page, ".picture")
    shown(page, "Settings", ".menu")
    assert "Organisation" not in page.text(".menu")


def test_a_team_is_deleted_after_its_name_was_typed_and_can_be_restored(
    page: Browser, people: People
) -> None:
    people.accounts.teams.create("vision", CLI, people.now_ms)
    people.rights_changed()
    signed_in(page)
    page.open("/vision/-/settings")
    click(page, "main button", "Delete team")
    page.wait("document.querySelector('dialog .danger').disabled")
    fill(page, "Type vision to confirm", "vision", "dialog")
    click(page, "dialog button", "Move to trash")
    shown(page, "vision is in the trash.")
    shown(page, "in the trash", "tbody")
    click(page, "main .notice button", "Restore")
    page.wait("!document.querySelector('tbody')?.innerText.includes('in the trash')")
    assert people.accounts.teams.by_name("vision").deleted_ms is None


def test_every_page_fits_its_window_and_can_be_read_by_everyone(page: Browser, people: People) -> None:
    people.accounts.teams.create("vision", CLI, people.now_ms)
    people.accounts.members.add("vision", "rita", "admin", CLI, people.now_ms)
    people.accounts.invitations.create("vision", "new@lab.example", "member", CLI, people.now_ms)
    people.rights_changed()
    for path in ("/-/login", "/-/signup", "/-/reset", "/-/setup", "/-/verify#x"):
        check_as_shown(page, path)
    signed_in(page)
    for path in PAGES:
        check_as_shown(page, path)


PAGES = (
    "/rita",
    "/vision",
    *[
        f"/-/settings/{tab}"
        for tab in ("profile", "preferences", "emails", "security", "keys", "teams", "account")
    ],
    *[
        f"/-/organisation/{tab}"
        for tab in ("members", "teams", "roles", "service-accounts", "issuers", "keys", "sign-in", "mail")
    ],
    *[f"/-/organisation/{tab}" for tab in ("settings", "audit")],
    *[
        f"/vision/-/settings/{tab}"
        for tab in ("general", "members", "privacy", "roles", "service-accounts", "audit")
    ],
)


def check_as_shown(page: Browser, path: str) -> None:
    """The checks on a phone, then the same page on a desktop; of both also in dark colours."""
    page.resize(390, 800)
    check(page, path)
    page.resize(390, 800, dark=True)
    assert (path, "dark", violations(page, dark=True)) == (path, "dark", [])
    page.resize(1280, 900)
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280, path
    assert (path, violations(page)) == (path, [])
    page.resize(1280, 900, dark=True)
    assert (path, "dark", violations(page, dark=True)) == (path, "dark", [])


def check(page: Browser, path: str) -> None:
    """Nothing is wider than the window, and nothing is hard to read, to operate or to hear."""
    page.open(path)
    page.wait(
        "(text => text && text.length > 20 && !text.includes('Loading'))"
        "(document.querySelector('main')?.innerText)"
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    assert (path, violations(page)) == (path, [])
