"""The integrations of a team in a real browser: Slack channels, webhooks and secrets."""

from __future__ import annotations

from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts.routes.people import People
from tests.server.browser import Browser
from tests.server.pages.accessibility import violations
from tests.server.pages.test_account_pages import check_as_shown, fill, page, people, signed_in  # noqa: F401
from tests.server.pages.test_joining_pages import teams  # noqa: F401
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.test_build import hook  # noqa: F401

PATH = "/vision/-/settings/integrations"
URL = "https://hooks.slack.com/services/T0001/B0001/SecretSecretAbCd"


def test_a_secret_and_a_webhook_that_uses_it(page: Browser, teams: People) -> None:  # noqa: F811
    signed_in(page, "ada")
    page.open(PATH)
    shown(page, "Where the rules and automations of the team send what happened")
    click(page, "main button", "New secret")
    fill(page, "Name", "CI_TOKEN", "dialog")
    fill(page, "Value", "s3cret-value", "dialog")
    click(page, "dialog button", "Save")
    shown(page, "CI_TOKEN", "table")
    assert not page.evaluate("document.body.innerHTML.includes('s3cret-value')")
    click(page, "main button", "New webhook")
    fill(page, "Name", "ci", "dialog")
    fill(page, "URL", "https://127.0.0.1/hook", "dialog")
    click(page, "dialog button", "Save")
    page.wait("document.querySelector('dialog [aria-invalid=true]')")
    shown(page, "the address is the server's own", "dialog")
    assert page.evaluate("document.querySelector('dialog input').value") == "ci"
    fill(page, "URL", "https://ci.example/hook", "dialog")
    click(page, "dialog button", "Save")
    shown(page, "https://ci.example/hook", "table")
    click(page, "main button", "Add a channel")
    fill(page, "Channel", "#runs", "dialog")
    fill(page, "Webhook URL", URL, "dialog")
    click(page, "dialog button", "Save")
    shown(page, "hooks.slack.com/…/AbCd", "table")
    click(page, "main section:nth-of-type(2) button.danger", "Delete")
    fill(page, "Type #runs to confirm", "#runs", "dialog")
    click(page, "dialog button", "Delete")
    shown(page, "No channels yet.")
    team = teams.accounts.teams.by_name("vision").id
    assert teams.served.metadata_store.alerts.destinations.of_team("slack", team) == []
    webhooks = teams.served.metadata_store.alerts.destinations.of_team("webhook", team)
    assert [webhook.name for webhook in webhooks] == ["ci"]


def test_the_page_fits_a_phone_and_can_be_read_by_everyone(
    page: Browser,  # noqa: F811
    teams: People,  # noqa: F811
) -> None:
    team = teams.accounts.teams.by_name("vision").id
    teams.accounts.team_secrets.put(team, "A_LONG_NAME_OF_A_SECRET_" * 2, b"x", CLI, teams.now_ms)
    url = "https://ci.example/" + "a-long-path/" * 12
    name, values = "Continuous integration", {"url": url, "enabled": False}
    teams.served.metadata_store.alerts.destinations.create("webhook", team, name, values, CLI, teams.now_ms)
    signed_in(page, "ada")
    check_as_shown(page, PATH)
    click(page, "main button", "New webhook")
    for dark in (False, True):
        page.resize(390, 800, dark)
        assert violations(page, dark, within="dialog") == []
