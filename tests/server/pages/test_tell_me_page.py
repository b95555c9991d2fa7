"""The page of notifications in a real browser: what users say becomes preferences, rules and automations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from tests.server.accounts.routes.people import People, serving_people
from tests.server.browser import Browser, keep_picture
from tests.server.pages.accessibility import accessible
from tests.server.pages.test_account_pages import at, check, field, fill, signed_in
from tests.server.pages.test_joining_pages import as_user
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_pickers import begin
from tests.server.pages.test_settings_pages import choose
from tests.server.pages.test_shared_page import click, shown
from tests.server.test_build import hook  # noqa: F401

MINE, TEAM = "/-/settings/notifications", "/vision/-/settings/notifications"


@pytest.fixture
def people(tmp_path_factory: pytest.TempPathFactory, static: str) -> Iterator[People]:  # noqa: F811
    """ada administers vision, which has the project digits; bob is a member."""
    with serving_people(tmp_path_factory.mktemp("server"), static=static) as people:
        for name in ("ada", "bob"):
            people.add(name, display_name=name.title())
        ada = people.accounts.users.by_name("ada").id
        people.accounts.teams.create("vision", CLI, people.now_ms, administrator=ada, display_name="Vision")
        people.accounts.members.add("vision", "bob", "member", CLI, people.now_ms)
        sender = Sender(people.accounts.teams.by_name("vision").id, author_id=ada)
        run = WriterRegistration("otter-1", "monitor.a.1", "digits", sender=sender)
        people.served.metadata_store.writers.join([run], people.now_ms)
        people.rights_changed()
        yield people


@pytest.fixture
def page(people: People, browser: Browser) -> Iterator[Browser]:  # noqa: F811
    with at(browser, people.url):
        yield browser


def ask(people: People, path: str, name: str = "ada") -> Any:
    return people.browser(name).get(path).json()


def test_what_a_user_says_becomes_a_preference_a_rule_or_an_automation(page: Browser, people: People) -> None:
    signed_in(page, "ada")
    page.open(MINE)
    choose(page, "When", "a run finishes")
    click(page, "main button", "Tell me")
    shown(page, "Set: A run finishes.")
    page.wait("document.querySelector('[aria-label=\"Run finished: E-mail\"]').checked")
    assert ask(people, "/account/alerts")["events"]["finished"]["email"] is True
    click(page, ".message button", "Undo")
    page.wait("document.querySelector('[aria-label=\"Run finished: E-mail\"]').checked === false")

    choose(page, "When", "a metric crosses a value")
    fill(page, "Metric", "loss")
    fill(page, "Value", "low")
    click(page, "main button", "Tell me")
    page.wait("document.querySelector('[aria-invalid=true]') === document.activeElement")
    assert "expected a number" in field(page, "Value")["error"]
    fill(page, "Value", "5")
    click(page, "main button", "Tell me")
    shown(page, "Set: loss > 5.")
    page.wait("document.querySelector('[aria-label=\"Actions for loss > 5\"]')")
    (rule,) = ask(people, "/entities/ada/alert-rules")["rules"]
    assert rule["rule"]["condition"] == {"kind": "threshold", "metric": "loss", "operator": ">", "value": 5}
    assert rule["rule"]["tell"] == ["author"]

    choose(page, "When", "a version of an artifact gets an alias")
    begin(page, "Only of these projects", "dig")
    page.wait("document.querySelector('[role=listbox] button[role=option]')?.innerText === 'digits'")
    page.press("Enter")
    click(page, "main button", "Tell me")
    shown(page, "Set: A version gets the alias production (digits).")
    shown(page, "A version gets an alias like ^production$")  # among what the teams have set
    (automation,) = ask(people, "/teams/vision/automations")["automations"]
    assert automation["filter"]["projects"] == ["digits"]
    assert automation["actions"] == [{"kind": "mail", "members": ["ada"]}]
    keep_picture(page, "tell-me")
    accessible(page)
    page.resize(390, 800, dark=True)
    check(page, MINE)
    keep_picture(page, "tell-me-phone")


def test_a_team_says_it_on_its_own_page(page: Browser, people: People) -> None:
    as_user(page, "ada")
    page.open(TEAM)
    choose(page, "When", "a part of the plan is used")
    fill(page, "Percent of the plan", "0")
    click(page, "main button", "Tell me")
    page.wait("document.querySelector('[aria-invalid=true]') === document.activeElement")
    error = field(page, "Percent of the plan")["error"]
    assert error == "expected a whole number of at least 1"
    fill(page, "Percent of the plan", "90")
    click(page, "main button", "Tell me")
    shown(page, "Set: 90 % of the plan is used.")
    shown(page, "The team has used 90 % of its plan")
    choose(page, "When", "something is found")
    click(page, "main label", "mail to me")
    click(page, "main button", "Tell me")
    shown(page, "Choose at least one way.", "main form")
    click(page, "main label", "mail to me")
    click(page, "main button", "Tell me")
    shown(page, "Finding of any kind, warning or worse, opens")
    keep_picture(page, "tell-me-team")
    page.resize(390, 800)
    check(page, TEAM)


def test_it_is_said_by_keyboard_alone(page: Browser, people: People) -> None:
    signed_in(page, "ada")
    page.open(MINE)
    shown(page, "Tell me when")
    page.evaluate("document.querySelector('main h1').scrollIntoView()")
    tab_to(page, "SELECT", "When")
    for _ in range(2):
        page.press("ArrowDown")
    page.wait("document.activeElement.value === 'metric'")
    tab_to(page, "INPUT", "Metric")
    page.call("Input.insertText", text="loss")
    tab_to(page, "INPUT", "Value")
    page.call("Input.insertText", text="3")
    tab_to(page, "BUTTON", "Tell me")
    page.press(" ")
    shown(page, "Set: loss > 3.")


def tab_to(page: Browser, tag: str, label: str) -> None:
    """Press Tab until a field or button has the focus."""
    name = "e.labels?.[0]?.innerText ?? e.innerText"
    for _ in range(60):
        page.press("Tab")
        if page.evaluate(f"(e => e.tagName === {tag!r} && ({name}) === {label!r})(document.activeElement)"):
            return
    raise AssertionError(f"Tab does not lead to {label}")


def test_a_member_reads_what_the_team_has_set(page: Browser, people: People) -> None:
    event = {"kind": "run.state", "states": ["failed"]}
    made = {"name": "failed", "event": event, "actions": [{"kind": "mail", "members": ["bob"]}]}
    assert people.browser("ada").post("/teams/vision/automations", json=made).status_code == 201
    as_user(page, "bob")
    page.open(TEAM)
    shown(page, "The administrators of Vision change them.")
    shown(page, "A run is failed")
    assert page.evaluate("document.querySelectorAll('main [aria-label^=Actions]').length") == 0
    assert "Tell me when" not in page.text("main")
    page.open(MINE)
    shown(page, "A run is failed")
    assert page.evaluate(
        "[...document.querySelector('main select').options].every(e => !e.text.includes('alias'))"
    )
