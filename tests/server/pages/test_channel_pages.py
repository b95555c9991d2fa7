"""The pages of channels in a real browser, at one server: the operator's app of Slack, Slack's and Apprise's
dialogs, severity routes, and billing roles among the members."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.patience import eventually
from tests.server.accounts.routes.people import People, serving_people
from tests.server.browser import Browser, keep_picture
from tests.server.pages.accessibility import violations
from tests.server.pages.test_account_pages import at, check_as_shown, field, fill, signed_in
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_settings_pages import switch
from tests.server.pages.test_shared_page import click, shown
from tests.server.test_build import hook  # noqa: F401
from tests.server.usage.used import use

HOOK = "https://hooks.slack.com/services/T0001/B0001/SecretSecretAbCd"
INTEGRATIONS = "/vision/-/settings/integrations"
VARIABLES = ("RUNVITALS_SLACK_CLIENT_ID", "RUNVITALS_SLACK_CLIENT_SECRET")


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory, static: str) -> Iterator[People]:  # noqa: F811
    """ada administers vision, in which bob is a member; rita administers the organisation."""
    with pytest.MonkeyPatch.context() as patch:
        for name in VARIABLES:
            patch.delenv(name, raising=False)
        patch.setenv("RUNVITALS_URL", "https://runs.example")
        with serving_people(tmp_path_factory.mktemp("server"), static=static) as people:
            for name in ("ada", "bob"):
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


def looks_right(page: Browser, path: str, name: str) -> None:
    """The page fits a phone and a desktop, light and dark."""
    check_as_shown(page, path)
    if "PICTURES" in os.environ:
        for width in (390, 1280):
            for colours in ("light", "dark"):
                page.resize(width, 900, colours == "dark")
                keep_picture(page, f"{name}-{width}-{colours}")
    page.resize(1280, 900)


def test_the_operator_sets_the_app_of_slack_and_a_channel_comes_back(page: Browser, people: People) -> None:
    signed_in(page, "rita")
    page.open("/-/organisation/slack")
    shown(page, "https://runs.example/api/v1/account/slack/callback")
    fill(page, "Client ID", "acme")
    fill(page, "Client secret", "the-secret")
    click(page, "main button", "Save")
    page.wait("document.querySelector('[aria-invalid=true]') === document.activeElement")
    fill(page, "Client ID", "17.42")
    click(page, "main button", "Save")
    shown(page, "The app was saved.")
    assert field(page, "Client secret")["value"] == ""
    assert not page.evaluate("document.body.innerHTML.includes('the-secret')")
    looks_right(page, "/-/organisation/slack", "organisation-slack")
    page.open("/-/settings/notifications?slack=%23training")
    shown(page, "#training is connected.")
    shown(page, "Choose a channel at Slack")
    page.open("/-/settings/notifications?slack_error=it%20was%20cancelled")
    shown(page, "Slack was not connected: it was cancelled")
    page.open("/-/organisation/slack")
    click(page, "main button", "Remove")
    click(page, "dialog button", "Remove")
    shown(page, "The app was removed.")
    assert people.accounts.settings.all()["slack_client_secret"] is None


def test_a_team_adds_channels_and_leads_severities_to_them(page: Browser, people: People) -> None:
    signed_in(page, "ada")
    page.open(INTEGRATIONS)
    click(page, "main button", "Add a channel")
    fill(page, "Channel", "#runs", "dialog")
    fill(page, "Webhook URL", "https://example.org/hook", "dialog")
    click(page, "dialog button", "Save")
    page.wait("document.querySelector('dialog [aria-invalid=true]')")
    fill(page, "Webhook URL", HOOK, "dialog")
    click(page, "dialog button", "Save")
    shown(page, "hooks.slack.com/…/AbCd", "table")
    click(page, "main button", "Add a service")
    fill(page, "Name", "On call", "dialog")
    fill(page, "URL of Apprise", "gopher://somewhere", "dialog")
    click(page, "dialog button", "Add")
    shown(page, "Apprise knows no service with this URL", "dialog .error")
    fill(page, "URL of Apprise", "ntfys://ntfy.sh/our-secret-topic", "dialog")
    page.resize(390, 800)
    assert violations(page) == []
    keep_picture(page, "apprise-dialog")
    page.resize(1280, 900)
    click(page, "dialog button", "Add")
    page.wait("[...document.querySelectorAll('table')].some(e => e.innerText.includes('On call'))")
    assert not page.evaluate("document.body.innerHTML.includes('our-secret-topic')")
    looks_right(page, INTEGRATIONS, "integrations")

    page.open("/vision/-/settings/notifications")
    team = people.accounts.teams.by_name("vision").id
    for target in ("Slack: #runs", "ntfy: On call"):  # without waiting in between
        switch(page, target)
    settings = people.served.metadata_store.alerts.settings

    def routed() -> list[str]:
        routes = settings.of_team(team).get("routes", {})
        return sorted(target.partition(":")[0] for target in routes.get("info", ()))

    eventually(lambda: routed() == ["apprise", "slack"])
    looks_right(page, "/vision/-/settings/notifications", "routes")
    sections = "[...document.querySelectorAll('main section')]"
    routes = f"{sections}.find(e => e.innerText.startsWith('Rules that name'))"
    assert page.evaluate(f"{routes}.querySelectorAll('input:checked').length") == 2

    page.open(INTEGRATIONS)
    click(page, "button[aria-label='Delete On call']", "Delete")
    fill(page, "Type On call to confirm", "On call", "dialog")
    click(page, "dialog button", "Delete")
    shown(page, "No services yet.")


def test_billing_roles_are_given_among_the_members(page: Browser, people: People) -> None:
    signed_in(page, "rita")
    looks_right(page, "/-/organisation/members", "members")
    click(page, '[aria-label="Actions for Bob"]')
    click(page, "[role=group][aria-label='Billing role'] button", "Viewer")
    shown(page, "None → Viewer", "dialog")
    click(page, "dialog button", "Change billing user")
    shown(page, "The billing role of Bob was changed.")
    shown(page, "Viewer", "tbody")
    assert people.accounts.users.by_name("bob").billing_role == "viewer"


def test_waste_and_cost_centres_can_be_read_everywhere(page: Browser, people: People) -> None:
    store = people.served.metadata_store
    team = people.accounts.teams.by_name("vision").id
    day = "2026-11-05"
    use(store, "crashed", day, entity_id=team, hours=4, state="crashed")
    use(store, "idle", day, entity_id=team, hours=3, idle_hours=1)
    rita = people.browser("rita")
    price = {"category": "device_hours", "price": 2.5, "valid_from": "2026-11-01"}
    assert rita.post("/billing/rates", json=price).status_code == 201
    centre = {"code": "CC-1", "name": "Vision", "contact": "pay@example.org", "purchase_order": "PO 7"}
    assert rita.post("/billing/cost-centres", json=centre).status_code == 201
    signed_in(page, "rita")
    for tab in ("budget", "cost-centres", "usage"):
        looks_right(page, f"/-/billing/{tab}", f"billing-{tab}")
