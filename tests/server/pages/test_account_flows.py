"""What users do from beginning to end, in a real browser: invitations by mail, roles, sessions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.patience import eventually
from tests.server.accounts.routes.people import PASSWORD, People, serving_people, token_in
from tests.server.browser import Browser
from tests.server.mail.receiver import Receiver
from tests.server.pages.test_account_pages import at, fill, from_menu, roles, signed_in
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.test_build import hook  # noqa: F401


@pytest.fixture
def mailing(tmp_path: Path, static: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[People]:  # noqa: F811
    """A server that sends mail. Its time is that of the machine: runs are sent to it."""
    with (
        serving_people(tmp_path, static=static, clock=now_ms, monotonic=time.monotonic) as people,
        people.mail,
    ):
        people.now_ms = now_ms()
        monkeypatch.setenv("RUNVITALS_SMTP_URL", people.mail.url)
        monkeypatch.setenv("RUNVITALS_MAIL_FROM", "runs@lab.example")
        monkeypatch.setenv("RUNVITALS_URL", "https://runs.lab.example")
        yield people


@pytest.fixture
def page(mailing: People, browser: Browser) -> Iterator[Browser]:  # noqa: F811
    with at(browser, mailing.url):
        yield browser


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def path_in(mail: Receiver, number: int) -> str:
    """The path of the link in a mail, as a browser at this server opens it."""
    mail.wait_for(number)
    part = mail.received[number - 1].get_body(("plain",))
    assert part is not None
    address = next(word for word in part.get_content().split() if word.startswith("https://"))
    assert address.startswith("https://runs.lab.example/-/")
    return address.removeprefix("https://runs.lab.example")


def logged(people: People, key: str, run: str) -> int:
    """Send a sample as a training on another machine does; returns the status."""
    sample = {
        "run": run,
        "writer": f"monitor.{run}",
        "seq": 1,
        "entity": "vision",
        "project": "digits",
        "about": {"interval_s": 3600, "host": "node7"},
        "keys": ["cpu"],
        "t": [now_ms()],
        "v": [[1.0]],
    }
    return people.program(key).post("/ingest", json=sample).status_code


def test_from_an_invitation_by_mail_to_the_first_run_and_out_of_the_team(
    page: Browser, mailing: People
) -> None:
    mailing.accounts.teams.create(
        "vision", CLI, mailing.now_ms, administrator=mailing.accounts.users.by_name("rita").id
    )
    mailing.rights_changed()
    signed_in(page)
    page.open("/vision/-/settings/members")
    click(page, "main button", "Invite")
    fill(page, "E-mail addresses or usernames", "bob@lab.example", "dialog")
    click(page, "dialog button", "Send invitations")
    shown(page, "bob@lab.example: invited")

    link = path_in(mailing.mail, 1)
    page.call("Network.clearBrowserCookies")
    page.open(link)
    shown(page, "invites you to vision as Member")
    fill(page, "Username", "bob")
    fill(page, "Password", PASSWORD)
    click(page, "main button", "Create account")
    page.wait("location.pathname === '/vision'")
    assert token_in(mailing.mail.received[0]) not in page.evaluate("location.href")

    page.open("/-/settings/keys")
    click(page, "main button", "New key")
    fill(page, "Name", "node7", "dialog")
    click(page, "dialog button", "Create")
    shown(page, "it is not shown again")
    key = page.evaluate("document.querySelector('[aria-label=\"The new key\"]').innerText")
    assert logged(mailing, key, "first-run") == 200
    page.open("/runs")
    shown(page, "first-run", "tbody")
    shown(page, "bob", "tbody")

    page.call("Network.clearBrowserCookies")
    signed_in(page)
    page.open("/vision/-/settings/members")
    from_menu(page, "bob", "Remove …")
    click(page, "dialog button", "Remove")
    shown(page, "bob is no longer a member.")
    assert roles(mailing) == {"rita": "admin"}
    page.open("/runs/first-run")
    shown(page, "first-run", "h1")
    eventually(lambda: logged(mailing, key, "second-run") in (403, 404))
    page.call("Network.clearBrowserCookies")
    signed_in(page, "bob")
    page.open("/runs/first-run")
    shown(page, "there is no run")


def test_a_custom_role_is_made_given_changed_and_deleted(page: Browser, mailing: People) -> None:
    mailing.add("bob")
    mailing.accounts.teams.create("vision", CLI, mailing.now_ms)
    for name, role in (("rita", "admin"), ("bob", "viewer")):
        mailing.accounts.members.add("vision", name, role, CLI, mailing.now_ms)
    mailing.rights_changed()
    signed_in(page)
    page.open("/-/organisation/roles")
    click(page, "main button", "New role")
    fill(page, "Name", "member", "dialog")
    tick(page, "run:delete")
    click(page, "dialog button", "Create")
    page.wait("document.querySelector('dialog [aria-invalid=true]')")
    assert page.evaluate("document.querySelector('dialog input[value=\"run:delete\"]').checked") is True
    fill(page, "Name", "Labeller", "dialog")
    page.evaluate(
        "(list => (list.value = 'viewer', list.dispatchEvent(new Event('change', {bubbles: true}))))"
        "(document.querySelector('dialog select'))"
    )
    click(page, "dialog button", "Create")
    shown(page, "Labeller was created.")
    (made,) = mailing.accounts.roles.all()
    assert (made.name, made.base, sorted(made.actions)) == ("Labeller", "viewer", ["run:delete"])

    page.open("/vision/-/settings/members")
    from_menu(page, "bob", "Labeller")
    shown(page, "The role of bob was changed.")
    page.open("/-/organisation/roles")
    shown(page, "1 member", "tbody")
    click(page, '[aria-label="Edit Labeller"]')
    shown(page, "The change affects 1 member.", "dialog")
    tick(page, "run:stop")
    click(page, "dialog button", "Save")
    shown(page, "Labeller was changed for everyone who has it.")
    click(page, '[aria-label="Delete Labeller"]')
    shown(page, "will have the role View-only instead", "dialog")
    click(page, "dialog button", "Delete")
    shown(page, "No custom roles yet.")
    assert roles(mailing) == {"rita": "admin", "bob": "viewer"}


def tick(page: Browser, action: str) -> None:
    page.wait(
        f"(box => box && (box.click(), true))(document.querySelector('dialog input[value=\"{action}\"]'))"
    )


def test_all_other_sessions_are_ended(page: Browser, mailing: People) -> None:
    others = [mailing.browser("rita") for _ in range(2)]
    signed_in(page)
    page.open("/-/settings/security")
    page.wait("document.querySelectorAll('tbody tr').length === 3")
    assert page.evaluate("document.querySelectorAll('tbody button').length") == 2
    click(page, "main button", "Sign out everywhere else")
    shown(page, "All other sessions were ended.")
    page.wait("document.querySelectorAll('tbody tr').length === 1")
    assert [other.get("/account").status_code for other in others] == [401, 401]
    page.open("/-/settings/security")
    shown(page, "this one")


def test_the_role_beside_a_long_name_stays_one_word(page: Browser, mailing: People) -> None:
    mailing.add("bob", display_name="Barnabas-Bartholomew-Of-The-Very-Long-Name")
    mailing.accounts.teams.create("vision", CLI, mailing.now_ms)
    for name in ("rita", "bob"):
        mailing.accounts.members.add("vision", name, "member", CLI, mailing.now_ms)
    mailing.rights_changed()
    signed_in(page)
    page.resize(390, 800)
    page.open("/vision")
    shown(page, "Barnabas")
    heights = page.evaluate("[...document.querySelectorAll('.who > .soft')].map(role => role.offsetHeight)")
    assert heights[0] == heights[1] > 0
