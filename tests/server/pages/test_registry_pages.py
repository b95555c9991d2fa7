"""Registries in a real browser: found, compared, protected, requested and decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from runvitals.server.artifacts.storage.protection import Changer
from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts.routes.people import People, serving_people
from tests.server.accounts_server import AccountsServer
from tests.server.browser import Browser
from tests.server.database.artifacts.making import logged
from tests.server.pages.accessibility import looked_at
from tests.server.pages.test_account_pages import at, fill, signed_in
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.reports.runs import record_run
from tests.server.test_build import hook  # noqa: F401

EVIL = "<img src=x onerror=\"document.title='evil'\">"
MODEL = "/vision/-/registries/model"
DIGITS = f"{MODEL}/collections/digits"


class Shelf:
    """The team vision with the registry `model`, which bob administers; vera may only look, carol links."""

    def __init__(self, people: People) -> None:
        self.people = people
        accounts, now_ms, store = people.accounts, people.now_ms, people.served.metadata_store
        rita = accounts.users.by_name("rita").id
        accounts.teams.create("vision", CLI, now_ms, administrator=rita, display_name="Vision lab")
        for name, role in (("bob", "member"), ("carol", "member"), ("vera", "viewer")):
            people.add(name, display_name=name.title())
            accounts.members.add("vision", name, role, CLI, now_ms)
        people.rights_changed()
        served = people.served
        server = AccountsServer(people.url, served.app, store, served.store, lambda: people.now_ms)
        for number in range(3):
            losses = [2.0 ** (-step / (20 + 8 * number)) for step in range(60)]
            config = {"lr": 0.1 * (number + 1), "optimizer": {"name": "adam", "betas": [0.9, 0.99]}}
            record_run(server, f"run-{number}", {"loss": losses}, config=config)
        project = store.projects.id("digits")
        for number in range(3):
            run_id = store.runs.places(f"run-{number}")[0].run_id
            metadata = {"signature": {"inputs": "float32 [-1, 28, 28]"}, "framework": f"torch 2.{number}"}
            files = {"model.bin": b"weights %d" % number, "config.json": b'{"depth": 5}'}
            logged(store, project, files, "weights", type="model", run_id=run_id, metadata=metadata)
            link = {"artifact": "digits/weights", "version": f"v{number}"}
            self.ask("carol", "POST", "/teams/vision/registries", {"name": "model"}, (201, 409))
            self.ask("carol", "POST", f"{self.path}/collections/digits/versions", link)
        self.ask("rita", "PUT", f"{self.path}/admins/bob")
        self.ask("bob", "PUT", f"{self.path}/protected-aliases/production")
        self.ask("bob", "PUT", f"{self.path}/collections/digits/aliases/production", {"version": 0})
        self.ask("carol", "PUT", f"{self.path}/collections/digits/aliases/staging", {"version": 1})
        about = {"description": f"Reads **digits**.\n\n{EVIL}", "tags": ["vision"]}
        self.ask("carol", "PATCH", f"{self.path}/collections/digits", about)

    path = "/teams/vision/registries/model"

    def ask(
        self,
        who: str,
        method: str,
        path: str,
        body: Any = None,
        allowed: Sequence[int] = (),
    ) -> Any:
        response = self.people.browser(who).request(method, path, json={} if body is None else body)
        assert response.status_code < 300 or response.status_code in allowed, response.text
        return response.json() if response.content else None

    def add_collections(self, count: int) -> None:
        """Further collections with one version each."""
        store, now_ms = self.people.served.metadata_store, self.people.now_ms
        registry = store.registries.named(self.people.accounts.teams.by_name("vision").id, "model")
        weights = store.artifacts.collections.member(store.projects.id("digits"), "weights:v0")
        assert registry is not None
        assert weights is not None
        for number in range(count):
            name = f"classifier {number:05} with a name that is longer than most"
            store.artifacts.links.link(weights.version.id, registry.id, name, ["best"], now_ms, Changer(CLI))


@pytest.fixture
def shelf(tmp_path: Path, static: str) -> Iterator[Shelf]:  # noqa: F811
    with serving_people(tmp_path, static=static) as people:
        yield Shelf(people)


@pytest.fixture
def page(shelf: Shelf, browser: Browser) -> Iterator[Browser]:  # noqa: F811
    """A browser at the server, where nobody is signed in. In the end it must have complained of nothing."""
    with at(browser, shelf.people.url):
        yield browser


def typed(page: Browser, label: str, text: str) -> None:
    """Type into a field that has its name only for who does not see it."""
    page.wait(
        f"""(e => e && (e.focus(), e.value = {text!r}, e.dispatchEvent(new Event('input', {{bubbles: true}})),
            true))(document.querySelector('[aria-label={label!r}]'))""".replace(f"{label!r}", f'"{label}"')
    )


def test_a_registry_is_found_from_its_team_and_read_by_a_viewer(page: Browser, shelf: Shelf) -> None:
    shelf.add_collections(60)
    signed_in(page, "vera")
    page.open("/vision")
    click(page, "aside a", "Registries")
    shown(page, "model", "main table")
    looked_at(page, "registries")
    click(page, "main td a", "model")
    shown(page, "classifier 00049", "main table")
    assert page.evaluate("document.querySelectorAll('main tbody tr').length") == 50
    shown(page, "50 of 61")
    looked_at(page, "registry")
    click(page, "main button", "More collections")
    page.wait("document.querySelectorAll('main tbody tr').length === 61")
    typed(page, "Filter collections", "digits")
    page.evaluate("document.querySelector('main form[role=search]').requestSubmit()")
    page.wait("document.querySelectorAll('main tbody tr').length === 1")
    click(page, "main td a", "digits")
    page.wait(f"location.pathname === '{DIGITS}'")
    shown(page, "Reads digits", "main")
    assert page.evaluate("document.title") != "evil"
    buttons = page.evaluate("[...document.querySelectorAll('main button')].map(b => b.textContent).join()")
    assert "Delete" not in buttons
    assert "Edit" not in buttons


def test_versions_are_compared_with_fields_of_their_runs(page: Browser) -> None:
    signed_in(page, "carol")
    page.open(f"{DIGITS}?columns=config.lr,summary.loss")
    shown(page, "0.3", "main tbody tr:nth-child(1)")
    typed(page, "Field of the runs to show", "config.optimizer.name")
    click(page, "main form button", "Add column")
    shown(page, "adam", "main tbody tr:nth-child(1)")
    looked_at(page, "collection")
    for version in (2, 0):
        page.wait(
            f"(e => e && (e.click(), true))(document.querySelector('[aria-label=\"Compare v{version}\"]'))"
        )
    shown(page, "torch 2.2", "[aria-label=Comparison]")
    shown(page, "model.bin", "[aria-label=Comparison]")
    shown(page, "lr", "[aria-label=Comparison]")
    assert "config.json" not in page.evaluate("document.querySelector('[aria-label=Comparison]').textContent")
    looked_at(page, "compare")


def test_a_version_shows_how_to_use_it(page: Browser) -> None:
    signed_in(page, "carol")
    page.open(f"{DIGITS}/versions/v1")
    shown(page, "digits:v1", "main h1")
    shown(page, 'client.registry("vision/model").download("digits:staging")', "main")
    click(page, "main .choices button", "MLflow")
    shown(page, "models:/digits/1", "main")
    shown(page, "float32", "main")
    shown(page, "carol set staging", "main")
    looked_at(page, "version")


def test_a_protected_alias_is_requested_and_approved(page: Browser) -> None:
    signed_in(page, "carol")
    page.open(f"{DIGITS}/versions/2")
    typed(page, "Alias", "production")
    click(page, "main form button", "Request …")
    fill(page, "Why", "It is **better**.", "dialog")
    click(page, "dialog button", "Request")
    page.wait("location.pathname.includes('/requests/')")
    shown(page, "It is better.", "main article")
    request = str(page.evaluate("location.pathname"))
    signed_in(page, "bob")
    page.open(request)
    looked_at(page, "request")
    click(page, "main form button", "Approve")
    shown(page, "approved by bob", "main [role=status]")
    page.open(f"{DIGITS}/versions/production")
    shown(page, "digits:v2", "main h1")
    shown(page, "bob moved production here from v0", "main")


def test_an_administrator_changes_the_rules(page: Browser, shelf: Shelf) -> None:
    signed_in(page, "bob")
    page.open(MODEL)
    typed(page, "Alias to protect", "champion")
    click(page, "[aria-label=Rules] button", "Protect")
    shown(page, "champion", "[aria-label=Rules]")
    typed(page, "Name of an administrator", "vera")
    click(page, "[aria-label=Rules] button", "Add")
    shown(page, "is a viewer of the team", "[aria-label=Rules] [role=alert]")
    assert shelf.ask("vera", "GET", shelf.path)["protected_aliases"] == ["champion", "production"]


def test_a_registry_of_the_organisation_has_teams_and_automations(page: Browser, shelf: Shelf) -> None:
    path = "/teams/organisation/registries"
    shelf.ask("rita", "POST", path, {"name": "gate"})
    shelf.ask("rita", "PUT", f"{path}/gate/admins/bob")
    shelf.ask("rita", "POST", "/teams/organisation/webhooks", {"name": "ci", "url": "https://ci.example/"})
    signed_in(page, "bob")
    page.open("/organisation/-/registries/gate/automations")
    shown(page, "No automations", "main")
    typed(page, "Name of a team", "vision")
    click(page, "[aria-label=Rules] form:has([aria-label='Name of a team']) button", "Add")
    page.wait("document.querySelector('[aria-label=\"Remove the team vision\"]') !== null")
    click(page, "main button", "New automation")
    shown(page, "ci", "dialog")
    fill(page, "Name", "to the CI", "dialog")
    fill(page, "Mail users", "carol", "dialog")
    click(page, "dialog button", "Save")
    shown(page, "to the CI", "main table")
    (made,) = shelf.ask("carol", "GET", f"{path}/gate/automations")["automations"]
    assert made["actions"] == [{"kind": "mail", "members": ["carol"]}]
    looked_at(page, "gate")
    signed_in(page, "rita")
    page.open("/-/organisation/integrations")
    shown(page, "https://ci.example/", "main")
    looked_at(page, "integrations")
