"""The fields that offer what matches while somebody types, in a real browser: projects, time zones, users."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from tests.server.accounts.routes.people import People, serving_people
from tests.server.browser import Browser, keep_picture
from tests.server.pages.accessibility import accessible
from tests.server.pages.test_account_pages import at, field, signed_in
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.test_build import hook  # noqa: F401

PROJECTS = 1200


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory, static: str) -> Iterator[People]:  # noqa: F811
    """rita administers vision, which has more than a thousand projects."""
    with serving_people(tmp_path_factory.mktemp("server"), static=static) as people:
        rita = people.accounts.users.by_name("rita").id
        people.accounts.teams.create("vision", CLI, people.now_ms, administrator=rita)
        sender = Sender(people.accounts.teams.by_name("vision").id, author_id=rita)
        people.served.metadata_store.writers.join(
            [
                WriterRegistration(f"run-{number}", "monitor.a.1", f"digits-{number:04}", sender=sender)
                for number in range(PROJECTS)
            ],
            people.now_ms,
        )
        people.rights_changed()
        yield people


@pytest.fixture
def page(people: People, browser: Browser) -> Iterator[Browser]:  # noqa: F811
    with at(browser, people.url):
        signed_in(browser)
        yield browser


def begin(page: Browser, label: str, text: str, within: str = "main") -> None:
    """Type into the field with this label, in place of what it holds, as by keyboard."""
    page.wait(
        f"(label => label && (document.getElementById(label.htmlFor).select(), "
        f"document.getElementById(label.htmlFor).focus(), true))"
        f"([...document.querySelectorAll({within + ' label'!r})].find(e => e.innerText === {label!r}))"
    )
    page.call("Input.insertText", text=text)


def offered(page: Browser, label: str) -> list[str]:
    """What the field with this label offers."""
    buttons = f"document.querySelectorAll('[role=listbox][aria-label=\"{label}\"] button')"
    listed: list[str] = page.evaluate(f"[...{buttons}].map(e => e.innerText)")
    return listed


def test_a_project_of_a_thousand_is_found_and_chosen_by_keyboard(page: Browser) -> None:
    page.open("/-/settings/notifications")
    begin(page, "Project", "0717")
    page.wait("document.querySelectorAll('[role=listbox][aria-label=Project] button').length === 1")
    assert offered(page, "Project") == ["vision/digits-0717"]
    keep_picture(page, "picker")
    accessible(page)
    page.press("Enter")
    assert field(page, "Project")["value"] == "vision/digits-0717"
    assert page.evaluate("document.querySelector('[role=listbox]:popover-open')") is None
    begin(page, "Project", "digits 07")
    page.wait("document.querySelectorAll('[role=listbox][aria-label=Project] button').length === 20")
    page.press("ArrowDown")
    second = offered(page, "Project")[1]
    page.press("Escape")
    page.wait("!document.querySelector('[role=listbox]:popover-open')")
    assert field(page, "Project")["value"] == "digits 07"
    page.press("ArrowDown")
    page.wait("document.querySelectorAll('[role=listbox][aria-label=Project] button').length === 20")
    page.press("ArrowDown")
    page.press("Enter")
    assert field(page, "Project")["value"] == second
    click(page, "main button", "Add")
    shown(page, f"You get no alerts of {second}.")


def test_several_projects_are_chosen_in_a_dialog(page: Browser) -> None:
    page.open("/vision/-/settings/notifications")
    click(page, "main button", "New automation")
    begin(page, "Projects", "0003", "dialog")
    page.wait("document.querySelectorAll('[role=listbox][aria-label=Projects] button').length === 1")
    page.resize(390, 800, dark=True)
    page.press("ArrowDown")
    page.wait("document.querySelectorAll('[role=listbox][aria-label=Projects] button').length === 1")
    keep_picture(page, "picker-phone")
    click(page, "[role=listbox][aria-label=Projects] button")
    assert field(page, "Projects")["value"] == "digits-0003, "
    page.call("Input.insertText", text="0004")
    page.wait(
        "document.querySelector('[role=listbox][aria-label=Projects] button')?.innerText === 'digits-0004'"
    )
    page.press("Enter")
    page.evaluate("document.activeElement.blur()")
    assert field(page, "Projects")["value"] == "digits-0003, digits-0004"


def test_a_time_zone_is_found_by_its_city(page: Browser, people: People) -> None:
    page.open("/-/settings/preferences")
    begin(page, "Time zone", "new york")
    page.wait("document.querySelectorAll('[role=listbox] button').length === 1")
    assert offered(page, "Time zone")[0].startswith("America/New_York")
    page.press("Enter")
    click(page, "main button", "Save")
    shown(page, "Your preferences were saved.")
    assert people.browser("rita").get("/account/profile").json()["time_zone"] == "America/New_York"
    begin(page, "Time zone", "Mars/Base")
    shown(page, "Nothing matches.", "[role=listbox]")
    click(page, "main button", "Save")
    page.wait("document.querySelector('[aria-invalid=true]') === document.activeElement")
    assert "expected a name such as Europe/Berlin" in field(page, "Time zone")["error"]
