"""The pages of alerts, automations and usage in a real browser, at one server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timezone
from importlib.resources import files
from pathlib import Path

import pytest

from runvitals.alerts.mute_links import PURPOSE, MuteLink
from runvitals.store.metadata import WriterRegistration
from runvitals.store.metadata.accounts.audit import CLI
from runvitals.store.metadata.writer_registration import Sender
from tests.server.api.accounts.people import People, serving_people
from tests.server.browser import Browser
from tests.server.test_account_pages import at, check, field, fill, signed_in
from tests.server.test_build import hook  # noqa: F401
from tests.server.test_joining_pages import as_user
from tests.server.test_page import browser, static  # noqa: F401
from tests.server.test_settings_pages import switch
from tests.server.test_shared_page import click, shown
from tests.server.usage.used import A100, H100, use

AXE = files("axe_core_python").joinpath("axe.min.js").read_text()


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory, static: str) -> Iterator[People]:  # noqa: F811
    """ada administers vision and speech; bob is a member of vision."""
    with serving_people(tmp_path_factory.mktemp("server"), static=static) as people:
        for name in ("ada", "bob"):
            people.add(name, display_name=name.title())
        ada = people.accounts.users.by_name("ada").id
        for team in ("vision", "speech"):
            people.accounts.teams.create(team, CLI, people.now_ms, administrator=ada)
        people.accounts.members.add("vision", "bob", "member", CLI, people.now_ms)
        people.rights_changed()
        yield people


@pytest.fixture
def page(people: People, browser: Browser) -> Iterator[Browser]:  # noqa: F811
    with at(browser, people.url):
        yield browser


def keep_picture(page: Browser, name: str) -> None:
    """For who wants to look: PICTURES=folder."""
    if folder := os.environ.get("PICTURES"):
        page.screenshot(Path(folder, f"{name}.png"))


def test_an_automation_is_created_tried_and_edited(page: Browser, people: People) -> None:
    signed_in(page, "ada")
    page.open("/vision/-/settings/automations")
    shown(page, "No automations yet.")
    click(page, "main button", "New automation")
    fill(page, "Name", "told", "dialog")
    fill(page, "Run name", "(", "dialog")
    click(page, "dialog label", "Ada")
    click(page, "dialog button", "Save")
    shown(page, "invalid regular expression", "dialog")
    assert field(page, "Name")["value"] == "told"
    fill(page, "Run name", "^resnet", "dialog")
    click(page, "dialog button", "Save")
    shown(page, "A run is failed or crashed", "table")
    click(page, "main button", "Preview")
    shown(page, "would have acted 0 times")
    click(page, "main button", "Test")
    shown(page, "an example is finished", "section:last-of-type")
    page.wait(
        "[...document.querySelectorAll('main button')].find(e => e.innerText === 'Refresh').click() ||"
        " document.querySelector('main details')?.textContent.includes('this server sends no mail')"
    )
    click(page, "main button", "Send again")
    shown(page, "It will be sent again.")
    click(page, "main button", "Edit")
    assert field(page, "Run name")["value"] == "^resnet"
    fill(page, "Name", "told all", "dialog")
    click(page, "dialog button", "Save")
    shown(page, "told all", "table")
    click(page, "main button", "Switch off")
    shown(page, "off", "table .tag")
    page.resize(390, 800)
    check(page, "/vision/-/settings/automations", AXE)
    keep_picture(page, "automations")
    click(page, "main button", "Delete")
    fill(page, "Type told all to confirm", "told all", "dialog")
    click(page, "dialog button", "Delete")
    shown(page, "No automations yet.")


def test_a_user_and_a_team_choose_their_alerts(page: Browser, people: People) -> None:
    team, bob = people.accounts.teams.by_name("vision").id, people.accounts.users.by_name("bob").id
    run = WriterRegistration("otter-1", "monitor.a.1", "muted", sender=Sender(team, author_id=bob))
    [writer] = people.served.metadata_store.writers.join([run], people.now_ms)
    people.rights_changed()
    page.resize(390, 800)
    signed_in(page, "ada")
    check(page, "/vision/-/settings/alerts", AXE)
    click(page, "[aria-label='Run crashed: E-mail']")
    page.wait(
        "fetch('/api/v1/teams/vision/alerts').then(a => a.json()).then(({events}) => events.crashed.email)"
    )

    as_user(page, "bob")
    check(page, "/-/settings/alerts", AXE)
    switch(page, "Quiet hours")
    page.wait("document.querySelectorAll('[type=time]').length === 2")
    click(page, "[aria-label='Run finished: E-mail']")
    page.wait("fetch('/api/v1/account/alerts').then(a => a.json()).then(({events}) => events.finished.email)")
    fill(page, "Project", "vision/none")
    click(page, "main button", "Add")
    page.wait("document.querySelector('[aria-invalid=true]') === document.activeElement")
    assert "there is no project" in field(page, "Project")["error"]
    fill(page, "Project", "vision/muted")
    click(page, "main button", "Add")
    shown(page, "You get no alerts of vision/muted.")
    assert page.evaluate("document.querySelectorAll('[type=time]').length") == 2  # not saved, and still there
    click(page, "main button", "Save")
    shown(page, "Your alerts have other times now.")
    click(page, "main button", "Remove")
    shown(page, "The exception for vision/muted was removed.")
    click(page, ".message button", "Undo")
    shown(page, "vision/muted", "section:last-of-type table")

    key = people.served.app.api.state.account_services.box.derived_key(PURPOSE)
    page.call("Network.clearBrowserCookies")
    page.resize(390, 800, dark=True)
    check(page, f"/-/mute#{MuteLink(bob, writer.run_id).text(key)}", AXE)
    shown(page, "You get no alerts of the project vision/muted.")
    click(page, "main button", "Unmute")
    shown(page, "You may get alerts of the project vision/muted.")
    keep_picture(page, "mute")


def test_usage_is_shown_by_team_project_user_and_model(page: Browser, people: People) -> None:
    month = datetime.now(timezone.utc).strftime("%Y-%m")  # the page starts with the browser's month
    ada = people.accounts.users.by_name("ada").id
    for day, team, hours, models in (
        ("02", "vision", 3, (H100,)),
        ("03", "vision", 5, (A100, H100)),
        ("04", "speech", 2, (H100,)),
    ):
        entity = people.accounts.teams.by_name(team).id
        how = {"entity_id": entity, "author_id": ada, "hours": hours, "models": models}
        use(people.served.metadata_store, f"run-{day}", f"{month}-{day}", **how)
    page.resize(390, 800)
    signed_in(page, "rita")
    check(page, "/-/billing/usage", AXE)
    shown(page, "15.00", "dl")
    for group, found in (
        ("project", "speech/digits"),
        ("author", "ada"),
        ("model", A100),
        ("team", "speech"),
    ):
        page.evaluate(
            f"(select => {{ select.value = {group!r}; select.dispatchEvent(new Event('change')); }})"
            "(document.querySelector('main select'))"
        )
        shown(page, found, "main table")
    page.resize(1280, 900)
    page.open("/-/organisation/settings")
    fill(page, "Energy of the site for each kWh of its machines (PUE)", "1.25")
    page.evaluate("document.activeElement.form.requestSubmit()")
    shown(page, "The settings were saved.")
    assert people.accounts.settings.all()["pue"] == 1.25

    page.resize(390, 800, dark=True)
    as_user(page, "ada")
    check(page, "/vision/-/settings/usage", AXE)
    shown(page, "13.00", "dl")
    assert page.evaluate("document.querySelectorAll('.bars .part').length") == 2
    keep_picture(page, "usage")
    page.open("/-/settings/usage")
    shown(page, "vision/digits", "table")
