"""The bell of the page's head, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.events.run_events import DONE, EventKind, RunEvent
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from tests.server.accounts.routes.people import People, serving_people
from tests.server.browser import Browser, keep_picture
from tests.server.pages.accessibility import violations
from tests.server.pages.test_account_pages import at, signed_in
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_shared_page import shown
from tests.server.test_build import hook  # noqa: F401

BELL = "document.querySelector('.bell button')"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory, static: str) -> Iterator[People]:  # noqa: F811
    """ada administers vision; bob is a member, carla wants to be one."""
    with serving_people(tmp_path_factory.mktemp("server"), static=static) as people:
        for name in ("ada", "bob", "carla"):
            people.add(name, display_name=name.title())
        ada = people.accounts.users.by_name("ada").id
        people.accounts.teams.create("vision", CLI, people.now_ms, administrator=ada)
        people.accounts.members.add("vision", "bob", "member", CLI, people.now_ms)
        people.rights_changed()
        yield people


@pytest.fixture
def page(people: People, browser: Browser) -> Iterator[Browser]:  # noqa: F811
    with at(browser, people.url):
        yield browser


def happen(people: People, author: str, uid: str, event: EventKind, **data: str) -> None:
    """Something happened to a run, and was told."""
    store, now_ms = people.served.metadata_store, people.now_ms
    sender = Sender(
        people.accounts.teams.by_name("vision").id, author_id=people.accounts.users.by_name(author).id
    )
    [writer] = store.writers.join([WriterRegistration(uid, "monitor.a.1", "digits", sender=sender)], now_ms)
    level = "info" if event == "finished" else "error"
    store.alerts.events.add([RunEvent(writer.run_id, 0, event, now_ms, uid, level, data)])
    ids = [row.id for row in store.alerts.events.in_state("new") if row.run_id == writer.run_id]
    store.alerts.events.settle(ids, DONE, note={"told": True, "told_ms": now_ms})


def test_the_bell_counts_lists_and_leads_to_what_is_new(page: Browser, people: People) -> None:
    happen(people, "bob", "whale-1", "finished")
    happen(people, "bob", "whale-2", "custom", title="<img src=x onerror=alert(1)>", text="loss is NaN " * 40)
    happen(people, "bob", "whale-3", "crashed")
    signed_in(page, "bob")
    page.wait(f"{BELL}?.getAttribute('aria-label') === 'Notifications: 3 new'")
    page.evaluate(f"{BELL}.click()")
    shown(page, "whale-3 crashed", ".bell")
    shown(page, "<img src=x onerror=alert(1)>", ".bell")
    page.wait(f"{BELL}.getAttribute('aria-label') === 'Notifications'")  # seen
    assert page.evaluate("document.querySelectorAll('.bell .fresh').length") == 3
    assert violations(page) == []
    keep_picture(page, "bell")
    page.resize(390, 800, dark=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert violations(page, dark=True) == []
    keep_picture(page, "bell-phone-dark")
    page.resize(1280, 900)
    page.evaluate(
        "[...document.querySelectorAll('.bell li a')].find(e => e.innerText.includes('whale-3')).click()"
    )
    page.wait("location.pathname === '/vision/digits/runs/whale-3'")
    page.wait("document.querySelector('[popover]:popover-open') === null")


def test_who_waits_for_an_answer_stays_marked(page: Browser, people: People) -> None:
    carla = people.accounts.users.by_name("carla")
    people.accounts.join_requests.create("vision", carla.id, "I label whales", CLI, people.now_ms)
    signed_in(page, "ada")
    page.wait(f"{BELL}?.getAttribute('aria-label') === 'Notifications: 1 new'")
    for _ in range(2):
        page.evaluate(f"{BELL}.click()")
        shown(page, "Carla asks to join vision", ".bell")
        shown(page, "waits for you", ".bell")
        assert page.evaluate("document.querySelectorAll('.bell .fresh').length") == 1
        page.press("Escape")
        page.evaluate(f"{BELL}.click()")
        page.evaluate("document.querySelector('[popover]:popover-open') && " + f"{BELL}.click()")
        page.wait("document.querySelector('[popover]:popover-open') === null")
