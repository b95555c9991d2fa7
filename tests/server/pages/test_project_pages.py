"""The pages of projects and of guests in a real browser, at a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.patience import PATIENCE_S
from tests.server.accounts.routes.people import People, serving_people
from tests.server.browser import Browser
from tests.server.pages.test_account_pages import (
    at,
    check_as_shown,
    choose,
    confirm_password,
    fill,
    signed_in,
)
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.test_build import hook  # noqa: F401

DIGITS = "/entities/vision/projects/digits"


class Lab:
    """The team vision, which rita administers, with its project digits: bob owns it, vera may only look."""

    def __init__(self, people: People) -> None:
        self.people = people
        accounts, now_ms = people.accounts, people.now_ms
        rita = accounts.users.by_name("rita").id
        self.team = accounts.teams.create(
            "vision", CLI, now_ms, administrator=rita, display_name="Vision lab"
        )
        self.key = accounts.keys.create("lab", CLI, now_ms, user_id=rita, scope="write")[0]
        for name, role in (("bob", "member"), ("vera", "viewer")):
            people.add(name, display_name=name.title())
            accounts.members.add("vision", name, role, CLI, now_ms)
        people.rights_changed()
        self._seq: dict[tuple[str, str], int] = {}
        self.send("otter-1")
        number = accounts.owned_projects.named("vision", "digits").id
        bob = accounts.users.by_name("bob").id
        text = "# Digits\n\nAll of **MNIST**, again and again.\n\n- small\n- quick"
        changes = {"owner_id": bob, "description": "Digits by a small network", "overview": text}
        accounts.owned_projects.update(number, CLI, now_ms, **changes)
        people.rights_changed()

    def send(self, run: str, entity: str = "vision", project: str = "digits") -> None:
        """Ten more seconds of a run."""
        seq = self._seq[entity, run] = self._seq.get((entity, run), 0) + 10
        begin = self.people.now_ms + 1000 * (seq - 10) - 600_000
        about = {"role": "monitor", "host": "node1", "interval_s": 3600}
        facts = {"t": begin, "run": {"name": f"run {run}"}, "project": project}
        envelope: dict[str, Any] = {
            "run": run,
            "writer": f"monitor.node1.{entity}",
            "seq": seq,
            "entity": entity,
            "project": project,
            "about": about,
            "keys": ["cpu"],
            "t": [begin + 1000 * tick for tick in range(10)],
            "v": [[float(seq + tick) for tick in range(10)]],
            "records": [[seq + 11, "info", facts]],
        }
        headers = {"authorization": f"Bearer {self.key}"}
        url = f"{self.people.url}/api/v1/ingest"
        httpx.post(url, json=envelope, headers=headers, timeout=PATIENCE_S).raise_for_status()

    def link(self, path: str = DIGITS, **new: Any) -> tuple[int, str]:
        """The id and address of a new guest link."""
        response = self.people.browser("rita").post(f"{path}/links", json=new)
        assert response.status_code == 201, response.text
        return response.json()["id"], response.json()["url"]

    @property
    def project(self) -> Any:
        return self.people.accounts.owned_projects.named("vision", "digits")


@pytest.fixture
def lab(tmp_path: Path, static: str) -> Iterator[Lab]:  # noqa: F811
    with serving_people(tmp_path, static=static) as people:
        yield Lab(people)


@pytest.fixture
def page(lab: Lab, browser: Browser) -> Iterator[Browser]:  # noqa: F811
    """A browser at the server, where nobody is signed in. In the end it must have complained of nothing."""
    with at(browser, lab.people.url):
        yield browser


def is_at(page: Browser, path: str) -> None:
    page.wait(f"location.pathname + location.search + location.hash === {path!r}")


def test_a_guest_reads_a_project_until_the_link_is_revoked(page: Browser, lab: Lab) -> None:
    signed_in(page)
    page.open("/vision/digits/settings")
    click(page, "main button", "New link")
    choose_field(page, "Works for", "365")
    click(page, "dialog button", "Create")
    url = page.text("[aria-label='The new link']")
    assert url.startswith(f"{page.base}/-/shared#")
    secret = url.partition("#")[2]
    page.open("/vision/digits/settings")
    shown(page, "Link 1")
    assert secret not in page.evaluate("document.documentElement.outerHTML")

    page.call("Network.clearBrowserCookies")
    page.open(f"/-/shared#{secret}")
    shown(page, "You see this by a link, and can change nothing. It works until")
    is_at(page, "/-/shared")
    shown(page, "Digits by a small network")
    shown(page, "All of MNIST")
    click(page, "tbody a", "run otter-1")
    is_at(page, "/-/shared/runs/otter-1")
    shown(page, "live")
    page.wait("document.querySelector('figure canvas')")
    assert page.evaluate("document.querySelectorAll('.actions button, .account').length") == 0
    lab.send("otter-1")
    page.wait("document.querySelector('figure')?.innerText.includes('19')")
    page.open("/-/shared/runs/otter-1/logs")
    shown(page, "No output was recorded.")
    requested = page.evaluate("performance.getEntriesByType('resource').map(({name}) => name)")
    assert requested
    assert secret not in str(requested)
    revoked = lab.people.browser("rita").request("DELETE", f"{DIGITS}/links/1", json={})
    assert revoked.status_code == 204
    shown(page, "This link was revoked.")
    shown(page, "Ask whoever gave it to you for a new one.")
    is_at(page, "/-/shared/runs/otter-1/logs")
    page.open("/vision/digits")
    is_at(page, "/-/login?next=%2Fvision%2Fdigits")


def test_a_link_to_a_run_is_made_on_its_page_and_revoked(page: Browser, lab: Lab) -> None:
    signed_in(page)
    page.open("/vision/digits/runs/otter-1/overview")
    click(page, "main button", "New link")
    choose_field(page, "Works for", "")
    click(page, "dialog button", "Create")
    secret = page.text("[aria-label='The new link']").partition("#")[2]
    row = lab.people.accounts.guest_links.check(secret, lab.people.now_ms)
    assert row is not None
    assert (row.project_id, row.expires_ms) == (None, None)
    click(page, f'[aria-label="Revoke link {row.id}"]')
    click(page, "dialog button", "Revoke")
    shown(page, "The link was revoked.")
    assert lab.people.accounts.guest_links.check(secret, lab.people.now_ms) is None
    page.call("Network.clearBrowserCookies")
    signed_in(page, "bob")
    page.open("/vision/digits/runs/otter-1/overview")
    shown(page, "node1")
    is_loaded = "performance.getEntriesByType('resource').some(({name}) => name.endsWith('/projects/digits'))"
    page.wait(is_loaded)
    assert "Guest links" not in page.text("main")


def test_a_link_to_a_run_shows_that_run_and_expires(page: Browser, lab: Lab) -> None:
    lab.send("otter-2")
    _, url = lab.link("/runs/otter-1", expires_ms=lab.people.now_ms + 60_000)
    page.open(url)
    shown(page, "run otter-1")
    is_at(page, "/-/shared")
    click(page, "main .tabs a", "Overview")
    is_at(page, "/-/shared/runs/otter-1/overview")
    shown(page, "node1")
    page.open("/-/shared/runs/otter-2")
    shown(page, "No such run")
    lab.people.pass_s(61)
    page.open("/-/shared")
    shown(page, "This link has expired.")
    page.open("/-/shared#wrong")
    shown(page, "never existed")
    page.evaluate("sessionStorage.clear()")
    page.open("/-/shared/runs/otter-1")
    shown(page, "Open the link again")


def test_who_is_signed_in_stays_that_beside_a_link(page: Browser, lab: Lab) -> None:
    lab.people.add("mallory")
    _, url = lab.link()
    signed_in(page, "mallory")
    page.open("/vision/digits")
    shown(page, "No such project")
    page.open(url)
    shown(page, "You see this by a link")
    click(page, "header a", "runvitals")
    page.wait("document.querySelector('.account .picture')")
    shown(page, "There are no runs yet")


def test_addresses_of_runs_have_their_team_and_project(page: Browser, lab: Lab) -> None:
    people = lab.people
    people.accounts.teams.create("speech", CLI, people.now_ms, administrator=lab_user(lab, "rita"))
    people.rights_changed()
    signed_in(page)
    page.open("/runs/otter-1/overview")
    is_at(page, "/vision/digits/runs/otter-1/overview")
    assert page.evaluate("[...document.querySelectorAll('header .crumb')].map(e => e.innerText)") == [
        "vision",
        "digits",
        "run otter-1",
    ]
    page.open("/projects/digits")
    is_at(page, "/vision/digits/workspace")
    click(page, "aside a", "run otter-1")
    is_at(page, "/vision/digits/runs/otter-1")

    lab.send("otter-1", entity="speech")
    people.pass_s(1)  # which runs have an id is remembered for a second
    page.open("/runs/otter-1")
    shown(page, "Several runs have this id")
    click(page, "main a", "speech/otter-1")
    is_at(page, "/speech/digits/runs/otter-1")
    page.open("/projects/digits")
    shown(page, "Several projects have this name")
    click(page, "main a", "vision/digits")
    is_at(page, "/vision/digits")
    page.open("/vision/digits/runs/nothing")
    shown(page, "No such run")


def lab_user(lab: Lab, name: str) -> int:
    return lab.people.accounts.users.by_name(name).id


def test_panels_are_ones_own_until_they_are_published(page: Browser, lab: Lab) -> None:
    run = "/vision/digits/runs/otter-1/charts"
    views = "/views?project=digits&entity=vision&kind=workspace"
    signed_in(page, "bob")
    page.open(run)
    click(page, "section[aria-label='Your panels'] button:enabled", "Add panel")
    choose_field(page, "Kind", "text")
    fill(page, "Title", "What we learned", "dialog")
    click(page, "dialog button[type=submit]", "Add")
    shown(page, "Saved", "section[aria-label='Your panels'] .bar")
    assert lab.people.browser("vera").get(views).json()["views"] == []
    click(page, "section[aria-label='Your panels'] button", "Layout")
    click(page, ":popover-open button", "Publish")
    click(page, "dialog button[type=submit]", "Publish")
    shown(page, "The panels are published")

    page.call("Network.clearBrowserCookies")
    signed_in(page, "vera")
    page.open(run)
    shown(page, "What we learned", "article")
    shown(page, "Published for the project.")
    click(page, "article [aria-label^=Remove]")
    shown(page, "Saved", "section[aria-label='Your panels'] .bar")
    kept = {
        name: {
            view["owner"]: len(view["data"]["sections"][0]["panels"])
            for view in lab.people.browser(name).get(views).json()["views"]
        }
        for name in ("bob", "vera")
    }
    assert kept == {"bob": {"bob": 1, None: 1}, "vera": {"vera": 0, None: 1}}
    click(page, "section[aria-label='Your panels'] button", "Layout")
    click(page, ":popover-open button", "Use the published")
    shown(page, "What we learned", "article")


def choose_field(page: Browser, label: str, value: str) -> None:
    """Choose from the drop-down list of a form's field, as soon as it has this entry."""
    page.wait(
        f"(label => label && (list => [...list.options].some(e => e.value === {value!r}) && "
        f"(list.value = {value!r}, list.dispatchEvent(new Event('change', {{bubbles: true}})), true))"
        "(document.getElementById(label.htmlFor)))"
        f"([...document.querySelectorAll('label')].find(e => e.innerText === {label!r}))"
    )


def test_the_overview_shows_what_a_project_is(page: Browser, lab: Lab) -> None:
    signed_in(page, "vera")
    page.open("/vision")
    click(page, "main a", "digits")
    is_at(page, "/vision/digits")
    for text in ("Digits by a small network", "MNIST", "run otter-1", "Everyone in the team.", "bob"):
        shown(page, text)
    assert page.evaluate("[...document.querySelectorAll('.tabs a')].map(e => e.innerText)") == [
        "Overview",
        "Workspace",
        "Runs",
        "Reports",
        "Lost time",
        "Sweeps",
        "Artifacts",
    ]
    assert page.evaluate("document.querySelectorAll('main button').length") == 0


def test_a_renamed_project_is_found_at_its_old_address(page: Browser, lab: Lab) -> None:
    lab.send("voice", project="letters")
    signed_in(page, "bob")
    page.open("/vision/digits/settings")
    fill(page, "Name", "letters")
    click(page, "main button", "Save")
    shown(page, "already exists")
    fill(page, "Name", "num bers")
    shown(page, "Addresses with the old name lead here for 90 days.")
    click(page, "main button", "Save")
    is_at(page, "/vision/num%20bers/settings")
    page.open("/vision/digits/runs")
    is_at(page, "/vision/num%20bers/runs")
    page.open("/vision/digits/runs/otter-1/logs")
    is_at(page, "/vision/num%20bers/runs/otter-1/logs")


def test_the_visibility_is_changed_once_it_is_understood(page: Browser, lab: Lab) -> None:
    signed_in(page, "bob")
    page.open("/vision/digits/settings")
    click(page, "main label", "Public")
    shown(page, "Everyone on this server sees its runs.", "dialog")
    page.wait("document.querySelector('dialog .main').disabled")
    click(page, "dialog input")
    shown(page, "1 run with consoles", "dialog")
    click(page, "dialog button", "Change")
    shown(page, "digits is public now.")
    assert lab.project.visibility == "public"
    page.wait("!document.querySelector('dialog')")
    click(page, "main label", "Private")
    shown(page, "Everyone but its owner loses access", "dialog")
    click(page, "dialog button", "Change")
    shown(page, "digits is private now.")

    page.call("Network.clearBrowserCookies")
    signed_in(page, "rita")
    page.open("/vision/-/settings/privacy")
    choose(page, "Visibility of digits", "team")
    shown(page, "Everyone in the team sees its runs", "dialog")
    click(page, "dialog button", "Change")
    shown(page, "digits is team now.")
    assert lab.project.visibility == "team"


def test_members_of_a_project_get_roles_of_their_own(page: Browser, lab: Lab) -> None:
    signed_in(page)
    page.open("/vision/digits/settings")
    shown(page, "Nobody has another role than in the team.")
    choose_field(page, "Add", "bob")
    choose_field(page, "Role in this project", "admin")
    click(page, "main button", "Add")
    choose(page, "Role of Bob", "viewer")
    shown(page, "The role of Bob in this project was changed.")
    assert [row.role for row in lab.people.accounts.owned_projects.members(lab.project.id)] == ["viewer"]
    click(page, "main .notice button", "Undo")
    page.wait("document.querySelector('[aria-label=\"Role of Bob\"]').value === 'admin'")
    click(page, '[aria-label="Remove Bob"]')
    click(page, "dialog button", "Remove")
    shown(page, "Nobody has another role than in the team.")
    choose_field(page, "Owner", "rita")
    shown(page, "rita owns the project now.")
    assert lab.project.owner == "rita"


def test_a_project_is_transferred(page: Browser, lab: Lab) -> None:
    signed_in(page)
    lab.people.pass_s(20 * 60)  # the password must be confirmed
    page.open("/vision/digits/settings")
    choose_field(page, "New team", "rita")
    click(page, "main button", "Transfer")
    fill(page, "Type digits to confirm", "digits", "dialog")
    click(page, "dialog button", "Transfer")
    confirm_password(page)
    is_at(page, "/rita/digits")
    shown(page, "digits belongs to rita now.")
    page.open("/vision/digits")
    is_at(page, "/rita/digits")
    page.open("/vision/digits/runs/otter-1")
    is_at(page, "/rita/digits/runs/otter-1")


def test_a_project_is_deleted_and_restored(page: Browser, lab: Lab) -> None:
    signed_in(page)
    page.open("/vision/digits/settings")
    click(page, "main button", "Delete project")
    page.wait("document.querySelector('dialog .danger').disabled")
    fill(page, "Type digits to confirm", "digits", "dialog")
    click(page, "dialog button", "Move to trash")
    shown(page, "This project is in the trash with its runs. It is removed for good on")
    page.open("/vision")
    shown(page, "In the trash")
    click(page, "main a", "digits")
    click(page, "main button", "Restore")
    shown(page, "run otter-1")
    assert lab.project.deleted_ms is None


def test_every_page_fits_a_phone_and_can_be_read_by_everyone(page: Browser, lab: Lab) -> None:
    lab.people.accounts.project_members.add(
        lab.project.id, CLI, lab.people.now_ms, user_id=lab_user(lab, "bob"), role="admin"
    )
    _, url = lab.link(expires_ms=lab.people.now_ms + 86_400_000)
    for path in (url, "/-/shared/runs/otter-1", "/-/shared/runs/nothing"):
        check_as_shown(page, path)
    signed_in(page)
    for path in ("", "/runs", "/settings", "/runs/otter-1", "/runs/otter-1/overview", "/runs/nothing"):
        check_as_shown(page, f"/vision/digits{path}")
    check_as_shown(page, "/vision/-/settings/privacy")
    lab.people.accounts.owned_projects.trash(lab.project.id, CLI, lab.people.now_ms)
    check_as_shown(page, "/vision/digits")
