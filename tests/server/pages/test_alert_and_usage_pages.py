"""The pages of alerts, automations and usage in a real browser, at one server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

import numpy as np
import pytest

from runvitals.server.alerts.mute_links import PURPOSE, MuteLink
from runvitals.server.alerts.storage.firings import Firing
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.events.outbox import Notification
from runvitals.server.runs.storage.events import StoredEvent
from runvitals.server.runs.storage.writer_registration import RegisteredWriter, Sender, WriterRegistration
from runvitals.server.usage.days import Month
from runvitals.store.samples.interface import SampleBatch
from tests.server.accounts.routes.people import People, serving_people
from tests.server.browser import Browser, keep_picture
from tests.server.database.artifacts.making import logged
from tests.server.pages.accessibility import violations
from tests.server.pages.test_account_pages import at, check, field, fill, signed_in
from tests.server.pages.test_joining_pages import as_user
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_settings_pages import switch
from tests.server.pages.test_shared_page import click, shown
from tests.server.test_build import hook  # noqa: F401
from tests.server.usage.used import A100, H100, use


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


def from_menu(page: Browser, name: str, text: str) -> None:
    """Choose what the menu of a rule or automation has."""
    click(page, f'[aria-label="Actions for {name}"]')
    click(page, "[role=menu] button", text)


def test_an_automation_is_created_tried_and_edited(page: Browser, people: People) -> None:
    signed_in(page, "ada")
    page.open("/vision/-/settings/automations")  # as the page was called
    shown(page, "Nothing is set yet.")
    click(page, "main button", "New automation")
    fill(page, "Name", "told", "dialog")
    fill(page, "Run name", "(", "dialog")
    click(page, "dialog label", "Ada")
    click(page, "dialog button", "Save")
    shown(page, "invalid regular expression", "dialog")
    assert field(page, "Name")["value"] == "told"
    fill(page, "Run name", "^resnet", "dialog")
    click(page, "dialog button", "Save")
    shown(page, "A run is failed or crashed")
    shown(page, "all projects; runs like ^resnet")
    from_menu(page, "told", "Preview")
    shown(page, "would have acted 0 times")
    from_menu(page, "told", "Test")
    shown(page, "an example is finished", "section:last-of-type")
    page.wait(
        "[...document.querySelectorAll('section:last-of-type button')]"
        ".find(e => e.innerText === 'Refresh').click() ||"
        " document.querySelector('section details')?.textContent.includes('this server sends no mail')"
    )
    click(page, "main button", "Send again")
    shown(page, "It will be sent again.")
    from_menu(page, "told", "Edit …")
    page.wait("document.querySelector('dialog')")
    assert field(page, "Run name")["value"] == "^resnet"
    fill(page, "Name", "told all", "dialog")
    click(page, "dialog button", "Save")
    page.wait("document.querySelector('[aria-label=\"Actions for told all\"]')")
    from_menu(page, "told all", "Switch off")
    shown(page, "off", "table .tag")
    page.resize(390, 800)
    check(page, "/vision/-/settings/notifications")
    keep_picture(page, "automations")
    from_menu(page, "told all", "Delete …")
    fill(page, "Type told all to confirm", "told all", "dialog")
    click(page, "dialog button", "Delete")
    shown(page, "Nothing is set yet.")


def idle_run(people: People) -> RegisteredWriter:
    """A run of bob whose GPU is idle twice, for more than a minute, in the last minutes."""
    team, bob = people.accounts.teams.by_name("vision").id, people.accounts.users.by_name("bob").id
    run = WriterRegistration("otter-7", "monitor.node1.1", "digits", sender=Sender(team, author_id=bob))
    store = people.served.metadata_store
    [writer] = store.writers.join([run], people.now_ms)
    keys = store.metrics.schema(["gpu.0.gpu"])
    store.metrics.record_schemas([(writer.writer_id, keys.id)])
    values = np.array([60.0] * 90 + [1.0] * 80 + [70.0] * 60 + [2.0] * 90 + [65.0] * 30)
    t = people.now_ms - 1000 * np.arange(len(values), dtype=np.int64)[::-1]
    people.served.store.append(
        [SampleBatch(writer.lane_id, writer.writer_id, 0, keys.metric_ids, t, values[:, None])]
    )
    people.rights_changed()
    return writer


def test_a_rule_is_tried_on_past_runs_and_its_firings_are_listed(page: Browser, people: People) -> None:
    writer, store = idle_run(people), people.served.metadata_store
    page.resize(1280, 900)
    signed_in(page, "ada")
    page.open("/vision/-/settings/notifications")
    shown(page, "Nothing is set yet.")
    page.wait("document.querySelector('[aria-label=\"Choose GPU idle for 15 minutes\"]')")
    click(page, "main button", "New rule")
    fill(page, "Name", "idle", "dialog")
    fill(page, "Metric", "gpu.*.gpu", "dialog")
    page.evaluate(
        "(option => { option.parentElement.value = '<';"
        " option.parentElement.dispatchEvent(new Event('change', {bubbles: true})); })"
        "(document.querySelector('dialog option[value=\"<\"]'))"
    )
    fill(page, "Value", "low", "dialog")
    fill(page, "For at least", "1m", "dialog")
    click(page, "dialog button", "Preview")
    shown(page, "expected a number", "dialog .error")
    fill(page, "Value", "5", "dialog")
    click(page, "dialog button", "Preview")
    shown(page, "Would have fired 2 times", "dialog")
    page.wait("document.querySelector('dialog .plot canvas')")
    click(page, "dialog button", "Add a time")
    assert violations(page) == []
    keep_picture(page, "rule-editor")
    page.evaluate("document.querySelector('dialog').scrollTo(0, 9999)")
    keep_picture(page, "rule-preview")
    page.resize(390, 800, dark=True)
    page.evaluate("document.querySelector('dialog').scrollTo(0, 9999)")
    keep_picture(page, "rule-preview-phone")
    page.wait("document.querySelector('dialog').scrollWidth <= 390")  # once the chart is drawn anew
    click(page, "dialog button", "Switch on")
    shown(page, "gpu.*.gpu < 5 for 1m")

    [rule] = store.alerts.rules.of_entity(people.accounts.teams.by_name("vision").id)
    at_ms = people.now_ms - 60_000
    fired = Firing(
        rule.id, writer.run_id, writer.lane_id, "gpu.0.gpu", "node1", "error", 1.5, at_ms, told="author"
    )
    notification = Notification(
        f"{fired.key_prefix}user:{people.accounts.users.by_name('bob').id}",
        "rule.fired", f"user:{people.accounts.users.by_name('bob').id}", "rule", "idle", {}, at_ms,
    )  # fmt: skip
    event = StoredEvent(writer.run_id, at_ms, "rule", "error", "idle", {})
    store.alerts.firings.add(fired, event, None, [notification])
    page.wait(
        "[...document.querySelectorAll('main button')].find(e => e.innerText === 'Refresh').click() ||"
        " document.querySelector('section details')?.textContent.includes('this server sends no mail')"
    )
    from_menu(page, "idle", "Mute …")
    click(page, "dialog button", "Mute")
    shown(page, "muted until")
    check(page, "/vision/-/settings/notifications")
    shown(page, "firing: 1 series")
    shown(page, "gpu.0.gpu is 1.5 on node1")
    keep_picture(page, "rules-phone")
    page.resize(1280, 900)
    keep_picture(page, "rules")
    click(page, "main button", "Send again")
    shown(page, "It will be sent again.")
    from_menu(page, "idle", "Unmute")
    shown(page, "idle is no longer muted.")
    from_menu(page, "idle", "Switch off")
    shown(page, "off", "table .tag")
    from_menu(page, "idle", "Delete …")
    fill(page, "Type idle to confirm", "idle", "dialog")
    click(page, "dialog button", "Delete")
    shown(page, "Nothing is set yet.")


def test_a_user_and_a_team_choose_their_alerts(page: Browser, people: People) -> None:
    team, bob = people.accounts.teams.by_name("vision").id, people.accounts.users.by_name("bob").id
    run = WriterRegistration("otter-1", "monitor.a.1", "muted", sender=Sender(team, author_id=bob))
    [writer] = people.served.metadata_store.writers.join([run], people.now_ms)
    people.rights_changed()
    page.resize(390, 800)
    signed_in(page, "ada")
    check(page, "/vision/-/settings/notifications")
    click(page, "[aria-label='Run crashed: E-mail']")
    page.wait(
        "fetch('/api/v1/teams/vision/alerts').then(a => a.json()).then(({events}) => events.crashed.email)"
    )

    as_user(page, "bob")
    check(page, "/-/settings/notifications")
    switch(page, "Quiet hours")
    page.wait("document.querySelectorAll('[type=time]').length === 2")
    click(page, "[aria-label='Run finished: E-mail']")
    page.wait("fetch('/api/v1/account/alerts').then(a => a.json()).then(({events}) => events.finished.email)")
    fill(page, "Project", "vision/none")
    click(page, "main button[type=submit]", "Add")
    page.wait("document.querySelector('[aria-invalid=true]') === document.activeElement")
    assert "there is no project" in field(page, "Project")["error"]
    fill(page, "Project", "vision/muted")
    click(page, "main button[type=submit]", "Add")
    shown(page, "You get no alerts of vision/muted.")
    assert page.evaluate("document.querySelectorAll('[type=time]').length") == 2  # not saved, and still there
    click(page, "main button", "Save")
    shown(page, "Your alerts have other times now.")
    click(page, "main button", "Remove")
    shown(page, "The exception for vision/muted was removed.")
    click(page, ".message button", "Undo")
    shown(page, "vision/muted", "section:last-of-type table")

    key = people.served.app.services.account_services.box.derived_key(PURPOSE)
    page.call("Network.clearBrowserCookies")
    page.resize(390, 800, dark=True)
    check(page, f"/-/mute#{MuteLink(bob, writer.run_id).text(key)}")
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
    check(page, "/-/billing/usage")
    shown(page, "15.00", "dl")
    for group, name in (
        ("project", "speech/digits"),
        ("author", "ada"),
        ("model", A100),
        ("team", "speech"),
    ):
        page.evaluate(
            f"(select => {{ select.value = {group!r}; select.dispatchEvent(new Event('change')); }})"
            "(document.querySelector('main select'))"
        )
        shown(page, name, "main table")
    page.resize(1280, 900)
    page.open("/-/organisation/settings")
    fill(page, "Energy of the site for each kWh of its machines (PUE)", "1.25")
    page.evaluate("document.activeElement.form.requestSubmit()")
    shown(page, "The settings were saved.")
    assert people.accounts.settings.all()["pue"] == 1.25

    page.resize(390, 800, dark=True)
    as_user(page, "ada")
    check(page, "/vision/-/settings/usage")
    shown(page, "13.00", "dl")
    assert page.evaluate("document.querySelectorAll('.bars .part').length") == 2
    keep_picture(page, "usage")
    page.open("/-/settings/usage")
    shown(page, "vision/digits", "table")


BILLING_TABS = (
    "plan",
    "lost-time",
    "budget",
    "alerts",
    "prices",
    "cost-centres",
    "payment",
    "administrators",
    "statements",
)


def test_billing_is_managed_in_the_page(page: Browser, people: People) -> None:
    store = people.served.metadata_store
    team = people.accounts.teams.by_name("vision").id
    use(store, "billed", "2027-01-05", entity_id=team, hours=4, state="crashed")
    signed_in(page, "rita")

    page.open("/-/billing/prices")
    click(page, "main button", "New price")
    fill(page, "Device model", "*H100*", "dialog")
    fill(page, "Price", "2.5", "dialog")
    fill(page, "Note", "list price", "dialog")
    set_date(page, "From", "2027-01-01")
    set_date(page, "Until, included", "2026-01-01")
    click(page, "dialog button", "Save")
    page.wait("document.activeElement.matches('[aria-invalid=true]')")
    assert "not before" in field(page, "Until, included")["error"]
    set_date(page, "Until, included", "")
    click(page, "dialog button", "Save")
    shown(page, "2.50 EUR / h", "table")
    click(page, "main button", "Remove")
    shown(page, "No prices yet")
    click(page, ".message button", "Undo")
    shown(page, "2.50 EUR / h", "table")

    page.open("/-/billing/plan")
    click(page, "main button", "New plan")
    fill(page, "Name", "small", "dialog")
    for label, value in (("Limit of Charges", "8"), ("Device-hours included", "0")):
        page.evaluate(
            f"(e => {{ e.value = {value!r}; e.dispatchEvent(new Event('input', {{bubbles: true}})); }})"
            f"(document.querySelector('[aria-label=\"{label}\"]'))"
        )
    click(page, "dialog button", "Save")
    shown(page, "up to 8.00 EUR")
    click(page, "main button", "Give")
    fill(page, "Team or user", "nobody", "dialog")
    set_date(page, "From", "2027-01-01")
    click(page, "dialog button", "Give")
    page.wait("document.activeElement.matches('[aria-invalid=true]')")
    fill(page, "Team or user", "vision", "dialog")
    click(page, "dialog button", "Give")
    page.wait("[...document.querySelectorAll('meter')].some(e => e.ariaLabel === '125 % of the limit')")

    page.open("/-/billing/alerts")
    fill(page, "Percent of a limit", "85, x")
    click(page, "main button", "Save")
    page.wait("document.activeElement.matches('[aria-invalid=true]')")
    fill(page, "Percent of a limit", "90 100")
    click(page, "main button", "Save")
    shown(page, "The usage alerts were saved.")
    assert store.usage.documents.get("alerts")["percent"] == [90, 100]

    people.served.app.services.statements.compute(Month.named("2027-01"))
    page.open("/-/billing/statements")
    click(page, "main button", "Issue")
    shown(page, "It never changes again", "dialog")
    click(page, "dialog button", "Issue")
    shown(page, "RV-2027-000001", "table")
    assert page.evaluate("document.querySelector('a[download]').href").endswith("RV-2027-000001.pdf")
    page.resize(390, 800, dark=True)
    for tab in BILLING_TABS:
        check(page, f"/-/billing/{tab}")
        keep_picture(page, f"billing-{tab}")
    page.open("/-/billing/budget")
    shown(page, "over", "table")
    page.evaluate(
        "(e => { e.value = '2027-01'; e.dispatchEvent(new Event('input', {bubbles: true})); })"
        "(document.querySelector('[type=month]'))"
    )
    shown(page, "100 %", "section:last-of-type table")
    use(store, "stored", "2027-01-06", entity_id=team, storage_bytes=5120)
    writer = WriterRegistration("heavy", "m.a.1", "space", sender=Sender(team, author_id=None))
    [heavy] = store.writers.join([writer], people.now_ms)
    logged(store, heavy.project_id, {"a": b"weights"}, "classifier")
    check(page, "/-/billing/storage")
    shown(page, "5.12 kB", "table")
    keep_picture(page, "billing-storage")
    as_user(page, "ada")
    check(page, "/vision/-/settings/usage")
    click(page, "main section:nth-of-type(2) button", "space")
    click(page, "[aria-label='Choose heavy']")
    click(page, "main button", "Delete 1")
    shown(page, "in the trash", "section:nth-of-type(2) table")
    keep_picture(page, "storage-runs")
    click(page, ".message button", "Undo")
    page.wait("document.querySelector(\"[aria-label='Choose heavy']\")?.disabled === false")
    click(page, "[aria-label='Choose classifier']")
    click(page, "main button", "Delete artifacts 1")
    shown(page, "gone for good", "dialog")
    click(page, "dialog button", "Delete")
    shown(page, "1 artifact deleted.", ".message")
    click(page, "nav[aria-label=Storage] button", "vision")
    click(page, "[aria-label='Choose space']")
    click(page, "main button", "Delete 1")
    click(page, "dialog button", "Move to trash")
    shown(page, "In the trash: 1 run", "section:nth-of-type(2)")
    keep_picture(page, "storage-projects")
    as_user(page, "bob")
    page.open("/-/billing/plan")
    shown(page, "Page not found")


def set_date(page: Browser, label: str, value: str) -> None:
    """Choose a day, or none, in the date field with this label."""
    page.evaluate(
        f"(e => {{ e.value = {value!r}; e.dispatchEvent(new Event('input', {{bubbles: true}})); }})"
        f"(document.getElementById([...document.querySelectorAll('label')]"
        f".find(e => e.innerText === {label!r}).htmlFor))"
    )
