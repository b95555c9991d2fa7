"""The command palette, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from tests.server.accounts.routes.people import People, serving_people
from tests.server.browser import Browser, keep_picture
from tests.server.pages.accessibility import violations
from tests.server.pages.test_account_pages import at, signed_in
from tests.server.pages.test_page import browser, live_run, page, static  # noqa: F401
from tests.server.pages.test_shared_page import shown
from tests.server.test_build import hook  # noqa: F401

ROWS = "[...document.querySelectorAll('dialog .row')].map(e => e.querySelector('.name').innerText)"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory, static: str) -> Iterator[People]:  # noqa: F811
    """ada administers vision, bob is a member; carla is in no team. Each has a run called whale."""
    with serving_people(tmp_path_factory.mktemp("server"), static=static) as people:
        for name in ("ada", "bob", "carla"):
            people.add(name, display_name=name.title())
        ada = people.accounts.users.by_name("ada").id
        people.accounts.teams.create("vision", CLI, people.now_ms, administrator=ada)
        people.accounts.members.add("vision", "bob", "member", CLI, people.now_ms)
        for owner, entity in (("bob", people.accounts.teams.by_name("vision").id), ("carla", None)):
            user = people.accounts.users.by_name(owner).id
            sender = Sender(user if entity is None else entity, author_id=user)
            writer = WriterRegistration(f"whale-of-{owner}", "monitor.node1.1", "digits", sender=sender)
            [joined] = people.served.metadata_store.writers.join([writer], people.now_ms)
            note = {"notes": "<img src=x onerror=alert(1)> baleen", "name": f"Whale <b>{owner}</b>"}
            people.served.metadata_store.sections.merge(
                [SectionUpdate(joined.run_id, "run", note, people.now_ms)]
            )
        people.rights_changed()
        yield people


@pytest.fixture
def server_page(people: People, browser: Browser) -> Iterator[Browser]:  # noqa: F811
    with at(browser, people.url):
        yield browser


def ctrl_k(page: Browser) -> None:  # noqa: F811
    page.wait("document.querySelector('header .search')")
    page.evaluate(
        "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'k', ctrlKey: true, bubbles: true}))"
    )
    page.wait("document.querySelector('dialog[open] input') === document.activeElement")


def write(page: Browser, text: str) -> None:  # noqa: F811
    page.evaluate(
        f"(field => {{ field.value = {text!r}; field.dispatchEvent(new Event('input', {{bubbles: true}})) }})"
        "(document.querySelector('dialog input'))"
    )


def test_a_run_is_found_by_its_notes_and_opened_by_keys(
    server_page: Browser,
    people: People,
) -> None:
    signed_in(server_page, "bob")
    server_page.wait("document.querySelector('main h1')")
    ctrl_k(server_page)
    assert violations(server_page) == []
    write(server_page, "baleen")
    server_page.wait(f"{ROWS}.includes('Whale <b>bob</b>')")
    assert "Whale <b>carla</b>" not in server_page.evaluate(ROWS)  # bob may not read it
    keep_picture(server_page, "palette-runs")
    server_page.press("Enter")
    server_page.wait("location.pathname === '/vision/digits/runs/whale-of-bob'")
    server_page.wait("document.querySelector('dialog') === null")


def test_settings_people_and_actions_are_found(server_page: Browser, people: People) -> None:
    signed_in(server_page, "ada")
    ctrl_k(server_page)
    write(server_page, "api keys of whales")
    shown(server_page, "Nothing matches “api keys of whales”.", "dialog")
    write(server_page, "api keys")
    server_page.wait(f"{ROWS}[0] === 'Keys'")
    write(server_page, "security")
    server_page.wait(f"{ROWS}[0] === 'Security'")
    write(server_page, "bo")
    server_page.wait(f"{ROWS}.includes('Bob')")
    write(server_page, "dark")
    server_page.wait(f"{ROWS}.includes('Dark colours')")
    server_page.resize(390, 800)
    keep_picture(server_page, "palette-phone")
    server_page.press("Enter")
    server_page.wait("document.documentElement.dataset.theme === 'dark'")
    ctrl_k(server_page)
    keep_picture(server_page, "palette-phone-dark")
    write(server_page, "light")
    server_page.wait(f"{ROWS}.includes('Light colours')")
    # At once again, before the browser tells that the dialog was closed.
    server_page.evaluate(
        "(async () => { const press = (on, key) =>"
        " on.dispatchEvent(new KeyboardEvent('keydown', {...key, bubbles: true, cancelable: true}));"
        "press(document.activeElement, {key: 'Enter'}); await null; await null;"
        "press(document.body, {key: 'k', ctrlKey: true}) })()"
    )
    server_page.wait("document.documentElement.dataset.theme === 'light'")
    server_page.wait("document.querySelector('dialog[open] input') === document.activeElement")


def test_the_local_page_goes_to_a_chart_and_shows_the_keys(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    live_run(tmp_path, interval_s=60.0)
    page.open("/runs/abc/system")
    page.wait("document.querySelectorAll('figure .plot').length > 2")
    ctrl_k(page)
    title = page.evaluate("document.querySelectorAll('figure[data-chart]')[2].getAttribute('aria-label')")
    write(page, title)
    page.wait(f"{ROWS}.includes({title!r})")
    keep_picture(page, "palette-local")
    page.wait(f"{ROWS}[0] === {title!r}")
    page.press("Enter")
    page.wait(f"document.activeElement.closest('figure')?.getAttribute('aria-label') === {title!r}")
    page.wait("document.querySelector('dialog') === null")
    page.evaluate(
        "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: '?', bubbles: true}))"
    )
    shown(page, "Search everything", "dialog")
