"""The settings of the organisation and the preferences of users, in a real browser."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from runvitals.server.account_services import BetaFeature
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.organisation.settings import SETTINGS
from tests.server.accounts.routes.people import People, serving_people
from tests.server.browser import Browser
from tests.server.mail.receiver import Receiver
from tests.server.outbound.site import Site
from tests.server.outbound.site import serving as serving_site
from tests.server.pages.accessibility import accessible
from tests.server.pages.test_account_pages import at, field, fill, signed_in
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.sign_on.provider import Idp
from tests.server.test_build import hook  # noqa: F401

OTHER_PLACES = ("features/mail/OrganisationMail.svelte", "features/organisation/BetaPolicySection.svelte")
RED, BLUE = (220, 20, 20), (20, 20, 220)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with serving_site(tmp_path, "idp.example") as running:
        yield running


@pytest.fixture
def people(tmp_path: Path, static: str, site: Site) -> Iterator[People]:  # noqa: F811
    with serving_people(tmp_path, static=static, fetcher=site.fetcher()) as people:
        yield people


@pytest.fixture
def page(people: People, browser: Browser) -> Iterator[Browser]:  # noqa: F811
    with at(browser, people.url):
        yield browser


def choose(page: Browser, label: str, text: str, within: str = "main") -> None:
    """Choose the entry with this text in the list with this label."""
    page.wait(
        f"(select => {{ const option = select && [...select.options].find(e => e.text.startsWith({text!r}));"
        "if (!option) return false; select.value = option.value;"
        "select.dispatchEvent(new Event('change', {bubbles: true})); return true; })"
        f"(document.getElementById([...document.querySelectorAll({within + ' label'!r})]"
        f".find(e => e.innerText === {label!r})?.htmlFor))"
    )


def switch(page: Browser, label: str) -> None:
    """Press the switch with this label."""
    page.wait(
        f"(label => label && (label.click(), true))"
        f"([...document.querySelectorAll('main label')].find(e => e.innerText === {label!r}))"
    )


def test_the_mail_server_is_set_and_tried(page: Browser, people: People) -> None:
    signed_in(page)
    page.open("/-/organisation/mail")
    shown(page, "There is no mail server yet.")
    with Receiver() as receiver:
        fill(page, "Mail server", "127.0.0.1")
        choose(page, "Encryption", "TLS")
        assert field(page, "Port")["value"] == "465"
        choose(page, "Encryption", "None")
        assert field(page, "Port")["value"] == "25"
        fill(page, "Port", str(receiver.port))
        fill(page, "Sender", "runs@nowhere@lab")
        click(page, "main button", "Save")
        page.wait("document.querySelector('input[type=email]:invalid')")  # the browser itself sees it
        fill(page, "Sender", "runs@lab.example")
        fill(page, "User", "runs")
        click(page, "main button", "Save")
        page.wait("document.querySelector('[aria-invalid=true]') === document.activeElement")
        assert field(page, "Password")["error"] == "the password of the user is missing"
        assert field(page, "Mail server")["value"] == "127.0.0.1"
        fill(page, "User", "")
        click(page, "main button", "Save")
        shown(page, "The mail server was saved.")
        assert field(page, "To")["value"] == "rita@lab.example"
        click(page, "main button", "Send a test mail")
        shown(page, "The mail server has accepted the mail to rita@lab.example.")
        receiver.wait_for(1)
    assert people.url in people.accounts.settings.all()["url"]
    click(page, "main button", "Send a test mail")
    page.wait("document.querySelector('main .notice.bad[role=alert]')")
    page.complaints[:] = [text for text in page.complaints if "status of 502" not in text]
    click(page, "main button", "Remove")
    click(page, "dialog button", "Remove")
    shown(page, "There is no mail server yet.")


def test_groups_of_a_provider_are_mapped_to_teams(page: Browser, people: People, idp: Idp) -> None:
    for team in ("vision", "speech"):
        people.accounts.teams.create(team, CLI, people.now_ms, display_name=team.title())
    people.accounts.roles.create("Labeller", "viewer", ["run:update"], "", CLI, people.now_ms)
    people.rights_changed()
    signed_in(page)
    page.open("/-/organisation/sign-in")
    click(page, "main button", "Add a provider")
    for label, text in (
        ("Name", "Lab"),
        ("Id", "lab"),
        ("Issuer", idp.issuer),
        ("Client id", "runs"),
        ("Client secret", "hunter2"),
    ):
        fill(page, label, text, "dialog")
    assert page.evaluate("!document.querySelector('dialog fieldset')")
    fill(page, "Claim with the groups of a user", "groups", "dialog")
    click(page, "dialog button", "Add a group")
    fill(page, "Group", "eyes", "dialog .row:nth-of-type(1)")
    choose(page, "Team", "Vision", "dialog")
    choose(page, "Role", "Labeller", "dialog")
    fill(page, "Group of administrators", "chiefs", "dialog")
    accessible(page)
    click(page, "dialog button", "Save")
    shown(page, "Lab was saved.")
    shown(page, "2 mapped")
    (stored,) = people.accounts.settings.all()["providers"]
    assert stored["group_map"] == {"eyes": {"team": "vision", "role": "Labeller"}}
    assert (stored["group_claim"], stored["admin_group"]) == ("groups", "chiefs")
    assert "hunter2" not in json.dumps(stored)

    click(page, "main button", "Edit")
    page.wait("document.querySelector('dialog fieldset')")
    click(page, "dialog button", "Remove")
    click(page, "dialog button", "Save")
    shown(page, "1 mapped")
    (after,) = people.accounts.settings.all()["providers"]
    assert (after["group_map"], after["sealed_secret"]) == ({}, stored["sealed_secret"])


def test_provisioning_has_a_token_that_is_shown_once(page: Browser, people: People) -> None:
    signed_in(page)
    page.open("/-/organisation/sign-in")
    shown(page, "There is no token")
    click(page, "main button", "Create a token")
    first = page.text("[aria-label='Token for SCIM']")
    assert people.accounts.scim.check(first)
    assert page.text("[aria-label='Address for SCIM']") == f"{people.url}/scim/v2"
    people.accounts.scim.note_use(people.now_ms)
    page.open("/-/organisation/sign-in")
    shown(page, "Last request of the provider")
    assert first not in page.evaluate("document.body.innerText")
    click(page, "main button", "New token")
    click(page, "dialog button", "Create a token")
    second = page.text("[aria-label='Token for SCIM']")
    assert not people.accounts.scim.check(first)
    assert people.accounts.scim.check(second)
    click(page, "main button", "End")
    click(page, "dialog button", "End")
    shown(page, "Provisioning has ended.")
    assert not people.accounts.scim.check(second)


@pytest.fixture
def idp(site: Site, people: People) -> Idp:
    return Idp(site, "idp.example", people.now_ms / 1000, {})


def test_tokens_of_an_issuer_act_as_a_service_account(page: Browser, people: People, idp: Idp) -> None:
    team = people.accounts.teams.create("vision", CLI, people.now_ms, display_name="Vision")
    people.accounts.service_accounts.create("ci", team.id, CLI, people.now_ms)
    people.rights_changed()
    signed_in(page)
    page.open("/-/organisation/issuers")
    shown(page, "None: programs need an API key.")
    click(page, "main button", "Add an issuer")
    assert field(page, "Issuer")["value"] == "https://token.actions.githubusercontent.com"
    assert field(page, "Audience")["value"] == people.url
    choose(page, "Service", "Another service", "dialog")
    fill(page, "Name", "Runners", "dialog")
    fill(page, "Issuer", "https://127.0.0.1", "dialog")
    click(page, "dialog button", "Add")
    page.wait("document.querySelector('[aria-invalid=true]') === document.activeElement")
    assert "server's own" in field(page, "Issuer")["error"]
    fill(page, "Issuer", idp.issuer, "dialog")
    click(page, "dialog button", "Add")
    shown(page, "No subjects: its tokens act as no service account yet.")
    click(page, "main button", "Add a subject")
    fill(page, "Subject", "*", "dialog")
    shown(page, "There is no service account yet.", "dialog")
    accessible(page)
    choose(page, "Service account of", "Vision", "dialog")
    choose(page, "Service account", "ci", "dialog")
    click(page, "dialog button", "Add")
    page.wait("document.querySelector('dialog [aria-invalid=true]')")
    fill(page, "Subject", "repo:lab/vision:*", "dialog")
    click(page, "dialog button", "Add")
    shown(page, "ci of vision")
    accessible(page)
    (issuer,) = people.accounts.jwt_issuers.all()
    assert [row.subject for row in people.accounts.jwt_issuers.identities(issuer.id)] == ["repo:lab/vision:*"]
    click(page, "main td button", "Remove")
    shown(page, "The subject was removed.")
    click(page, ".message button", "Undo")
    shown(page, "ci of vision")
    switch(page, "Accept tokens of Runners")
    page.wait("document.querySelector('[role=switch]')?.checked === false")
    page.wait("fetch('/api/v1/organisation/issuers').then(a => a.json()).then(a => !a.issuers[0].enabled)")


def test_what_the_settings_file_sets_cannot_be_changed(page: Browser, people: People) -> None:
    people.accounts.settings.fix({"name": "The lab", "providers": []}, "/etc/runvitals.toml")
    people.rights_changed()
    signed_in(page)
    page.open("/-/organisation/settings")
    shown(page, "Set by /etc/runvitals.toml.")
    assert page.evaluate(
        "[...document.querySelectorAll('main input')].find(e => e.value === 'The lab').disabled"
    )
    page.open("/-/organisation/sign-in")
    shown(page, "The providers are set by /etc/runvitals.toml")
    assert "Add a provider" not in page.text("main")


def test_settings_of_the_organisation_are_saved(page: Browser, people: People) -> None:
    signed_in(page)
    page.open("/-/organisation/settings")
    fill(page, "Time zone", "Mars/Olympus")
    click(page, "main button", "Save")
    page.wait("document.querySelector('[aria-invalid=true]') === document.activeElement")
    assert "Europe/Berlin" in field(page, "Time zone")["error"]
    fill(page, "Time zone", "Europe/Berlin")
    click(page, "main button", "Save")
    shown(page, "The settings were saved.")
    assert people.accounts.settings.all() == {"time_zone": "Europe/Berlin"}
    fill(page, "Proxy", "http://proxy.lab.example:3128")
    fill(page, "Private networks that may be reached", "10.1.0.0/16")
    click(page, "section:last-of-type button", "Save")
    page.wait(
        "fetch('/api/v1/organisation/settings')"
        ".then(a => a.json()).then(a => a.settings.outbound_proxy.value)"
    )
    assert people.accounts.settings.all()["outbound_allow"] == ["10.1.0.0/16"]


def test_the_organisation_and_users_choose_features_under_development(page: Browser, people: People) -> None:
    services = people.served.app.services.account_services
    services.beta_features = (
        BetaFeature("fast-lists", "Lists load in parts.", "0.9"),
        BetaFeature("old-lists", "Lists as before.", "0.1", "retiring"),
    )
    signed_in(page)
    page.open("/-/settings/preferences")
    switch(page, "fast-lists")
    shown(page, "It will be removed.")
    page.wait("fetch('/api/v1/account/beta').then(a => a.json()).then(a => a.features[0].on)")
    page.open("/-/organisation/settings")
    choose(page, "fast-lists", "Off for everyone")
    shown(page, "The settings were saved.")
    assert people.accounts.settings.all()["beta_features"] == {"fast-lists": "off"}
    page.open("/-/settings/preferences")
    shown(page, "Switched off by the organisation.")
    assert (
        page.evaluate("[...document.querySelectorAll('[role=switch]')].map(e => e.disabled)").count(True) == 1
    )


def test_preferences_are_followed_everywhere(page: Browser, people: People) -> None:
    people.accounts.teams.create("vision", CLI, people.now_ms, display_name="Vision")
    people.accounts.members.add("vision", "rita", "admin", CLI, people.now_ms)
    people.rights_changed()
    signed_in(page)
    page.open("/-/settings/preferences")
    fill(page, "Time zone", "Mars/Olympus")
    click(page, "main button", "Save")
    page.wait("document.querySelector('[aria-invalid=true]') === document.activeElement")
    fill(page, "Time zone", "Asia/Kolkata")
    choose(page, "Dates", "German")
    choose(page, "Colours", "Dark")
    choose(page, "First page", "Vision")
    choose(page, "Runs that name no team go to", "Vision")
    click(page, "main button", "Save")
    shown(page, "Your preferences were saved.")
    page.wait("document.documentElement.dataset.theme === 'dark'")
    page.open("/-/settings/account")
    shown(page, "15.01.2027, 13:30")  # 08:00 UTC

    page.call("Network.clearBrowserCookies")
    page.evaluate("localStorage.clear()")
    signed_in(page)
    shown(page, "Vision", "h1")
    page.wait("location.pathname === '/vision' && document.documentElement.dataset.theme === 'dark'")
    click(page, ".home")
    shown(page, "Send your first run", "h1")
    page.open("/")
    page.wait("location.pathname === '/vision'")
    click(page, "header button[aria-label^='Colours']")
    page.wait("fetch('/api/v1/account').then(a => a.json()).then(a => a.theme === 'system')")
    assert people.browser("rita").get("/account").json()["default_entity"] == "vision"


def give_file(page: Browser, path: Path) -> None:
    """Choose a file in the first field for files."""
    page.wait("document.querySelector('input[type=file]')")
    root = page.call("DOM.getDocument")["root"]["nodeId"]
    node = page.call("DOM.querySelector", nodeId=root, selector="input[type=file]")["nodeId"]
    page.call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])


def picture_of(people: People) -> Image.Image:
    """The stored picture of rita."""
    rita = people.browser("rita")
    digest = rita.get("/account").json()["picture"]
    body = rita.get(f"{people.url}/-/picture/{digest}?s=512").content
    return Image.open(io.BytesIO(body)).convert("RGB")


def near(image: Image.Image, x: int, y: int, colour: tuple[int, int, int]) -> bool:
    pixel = image.getpixel((x, y))
    assert isinstance(pixel, tuple)
    return all(abs(part - value) < 30 for part, value in zip(pixel, colour, strict=True))


def test_a_part_of_a_picture_is_chosen_by_mouse_and_keyboard(
    page: Browser, people: People, tmp_path: Path
) -> None:
    image = Image.new("RGB", (800, 400), RED)
    image.paste(BLUE, (400, 0, 800, 400))
    image.save(tmp_path / "two.png")
    (tmp_path / "text.png").write_text("no picture")
    signed_in(page)
    page.open("/-/settings/profile")
    give_file(page, tmp_path / "text.png")
    shown(page, "text.png is not a picture that this browser can read.")
    give_file(page, tmp_path / "two.png")
    shown(page, "Choose the part to show", "dialog")
    accessible(page)
    click(page, "dialog button", "Save")
    page.wait("document.querySelector('.picture img')")
    middle = picture_of(people)
    assert middle.size == (512, 512)
    assert near(middle, 100, 256, RED)
    assert near(middle, 400, 256, BLUE)

    give_file(page, tmp_path / "two.png")
    page.wait(
        "(document.querySelector('dialog [role=application]')?.focus(), "
        "document.activeElement.matches('[role=application]'))"
    )
    for _ in range(12):
        page.press("ArrowRight")
    for _ in range(5):
        page.press("+")
    click(page, "dialog button", "Save")
    page.wait("!document.querySelector('dialog')")
    right = picture_of(people)
    assert near(right, 10, 10, BLUE)
    assert near(right, 500, 500, BLUE)

    give_file(page, tmp_path / "two.png")
    left, top, width, height = page.box("dialog canvas")
    x, y = left + width / 4, top + height / 2
    page.mouse("mousePressed", x, y, 1)
    page.mouse("mouseMoved", x + width / 2, y, 1)
    page.mouse("mouseReleased", x + width / 2, y, 1)
    click(page, "dialog button", "Save")
    page.wait("!document.querySelector('dialog')")
    dragged = picture_of(people)
    assert near(dragged, 10, 256, RED)
    assert near(dragged, 500, 256, RED)
    click(page, "main button", "Remove")
    page.wait("!document.querySelector('.picture img')")


def test_every_setting_is_on_a_page() -> None:
    sources = Path(__file__).parents[3] / "web" / "src"
    settings = (sources / "features/organisation/organisationSettings.ts").read_text()
    listed = set(re.findall(r"'([a-z0-9_]+)'", settings))
    others = "".join((sources / path).read_text() for path in OTHER_PLACES)
    assert {name for name in SETTINGS if name not in listed and name not in others} == set()
