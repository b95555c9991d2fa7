"""What readers of reports do in a real browser: comment, star, follow, share, and read by a link."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.patience import eventually
from tests.server.accounts.routes.people import People, serving_people
from tests.server.accounts_server import AccountsServer
from tests.server.browser import Browser, keep_picture
from tests.server.pages.test_account_pages import at, fill, signed_in
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_project_pages import choose_field
from tests.server.pages.test_report_pages import type_into
from tests.server.pages.test_shared_page import click, shown
from tests.server.reports.documents import panels, text
from tests.server.reports.runs import record_run
from tests.server.test_build import hook  # noqa: F401

PROJECT = "/entities/vision/projects/digits"
EVIL = "<img src=x onerror=\"document.title='evil'\"> [a](javascript:alert(1)) <style>*{display:none}</style>"


class Desk:
    """The team vision with three runs in digits: bob writes reports, vera may only look."""

    def __init__(self, people: People) -> None:
        self.people = people
        accounts, now_ms = people.accounts, people.now_ms
        rita = accounts.users.by_name("rita").id
        accounts.teams.create("vision", CLI, now_ms, administrator=rita, display_name="Vision lab")
        for name, role in (("bob", "member"), ("vera", "viewer")):
            people.add(name, display_name=name.title())
            accounts.members.add("vision", name, role, CLI, now_ms)
        people.rights_changed()
        served = people.served
        server = AccountsServer(
            people.url, served.app, served.metadata_store, served.store, lambda: people.now_ms
        )
        for number in range(3):
            losses = [2.0 ** (-step / (20 + 8 * number)) for step in range(100)]
            record_run(
                server,
                f"run-{number}",
                {"loss": losses, "acc": [1 - loss for loss in losses]},
                system={"cpu": [10.0 * number + step % 7 for step in range(60)]},
                config={"lr": 0.1 * (number + 1)},
                printed=f"epoch {number}\n",
            )

    def report(self, by: str = "bob", **new: Any) -> dict[str, Any]:
        """A new report."""
        response = self.people.browser(by).post(f"{PROJECT}/reports", json=new)
        assert response.status_code == 201, response.text
        report: dict[str, Any] = response.json()
        return report

    def blocks(self, report: int, by: str = "bob") -> list[dict[str, Any]]:
        """The blocks of the working copy."""
        found: list[dict[str, Any]] = (
            self.people.browser(by).get(f"/reports/{report}", params={"draft": "true"}).json()["blocks"]
        )
        return found


@pytest.fixture
def desk(tmp_path: Path, static: str) -> Iterator[Desk]:  # noqa: F811
    with serving_people(tmp_path, static=static) as people:
        yield Desk(people)


@pytest.fixture
def page(desk: Desk, browser: Browser) -> Iterator[Browser]:  # noqa: F811
    """A browser at the server, where nobody is signed in. In the end it must have complained of nothing."""
    with at(browser, desk.people.url):
        yield browser


def look(page: Browser, name: str) -> None:
    """For who wants to look: PICTURES=folder."""
    for what, size in (("", (1440, 1000)), ("-phone", (390, 800)), ("-dark", (1440, 1000, True))):
        page.resize(*size)
        keep_picture(page, f"{name}{what}")
    page.resize(1280, 900)


def path_of(report: dict[str, Any], editing: bool = False) -> str:
    return f"/vision/digits/reports/{report['slug']}--{report['id']}" + ("/edit" if editing else "")


def write(page: Browser, selector: str, words: str) -> None:
    """Type into a field, where its cursor is."""
    page.wait(f"(e => e && (e.focus(), true))(document.querySelector({selector!r}))")
    page.call("Input.insertText", text=words)


def rich(desk: Desk, **more: Any) -> dict[str, Any]:
    """A published report with every kind of text and two panels."""
    grid = panels("grid", settings={"metrics": ['logged:"loss"']}, title="Loss")
    grid["panels"].append(
        {
            **grid["panels"][0],
            "id": "gridtwo",
            "kind": "bar",
            "title": "Last accuracy",
            "settings": {"metrics": ['logged:"acc"']},
            "queries": [{"source": "logged", "name": "acc"}],
        }
    )
    blocks = [
        text("intro", "# What we found\n"),
        text("para", "A smaller rate is **slower**, as $e^{-t/\\tau}$ says. Ask @vera."),
        text("second", "## Runs"),
        grid,
        text("third", "## Next steps"),
        text("tasks", "- [x] measure\n- [ ] repeat"),
        text("code", "```python\nfor lr in (0.1, 0.2):\n    train(lr)  # a comment\n```"),
        text("formula", "$$\nL = \\sum_i (y_i - \\hat y_i)^2\n$$"),
        text("note", "> [!NOTE]\n> Only three seeds."),
        text("table", "| lr | loss |\n|---|---|\n| 0.1 | 0.03 |\n| 0.2 | 0.05 |"),
        text("evil", EVIL),
    ]
    return desk.report(title="Rates", description="Which rate is best?", blocks=blocks, publish=True, **more)


def test_readers_comment_star_and_follow(page: Browser, desk: Desk) -> None:
    report = rich(desk)
    signed_in(page, "vera")
    page.open(path_of(report))
    click(page, "[aria-label='Star this report']")
    page.wait("document.querySelector('[aria-label=\"Star this report\"]').ariaPressed === 'true'")
    click(page, "main button", "Follow")
    shown(page, "Following")
    click(page, "#block-para .beside button")
    write(page, "#block-para textarea", "Which seeds? @bo")
    shown(page, "@bob", "#block-para [role=listbox]")
    page.press("Enter")
    write(page, "#block-para textarea", "knows")
    click(page, "#block-para section button", "Comment")
    shown(page, "Which seeds? @bob knows", "#block-para section")
    click(page, "#block-para section [aria-label^='Actions for the comment']")
    click(page, "#block-para [role=menuitem]", "🎉")
    shown(page, "🎉 1", "#block-para section")
    look(page, "comment")
    click(page, "#block-para section button", "Reply")
    write(page, "#block-para .thread textarea", "0 to 2.")
    click(page, "#block-para .thread .form button", "Reply")
    shown(page, "0 to 2.", "#block-para .reply")
    click(page, "#block-para section [aria-label^='Actions for the comment']")
    click(page, "#block-para [role=menuitem]", "Resolve")
    shown(page, "Show 1 resolved", "#block-para")
    listed = desk.people.browser("bob").get(f"/reports/{report['id']}/comments").json()["comments"]
    assert [(one["block"], one["author"], one["resolved_by"]) for one in listed] == [
        ("para", "vera", "vera"),
        ("para", "vera", None),
    ]


def test_a_chart_is_added_to_a_report(page: Browser, desk: Desk) -> None:
    report = desk.report(title="Rates", blocks=[text("aaaa", "first")])
    signed_in(page, "bob")
    page.open("/vision/digits/workspace")
    click(page, "figure figcaption button.icon")
    click(page, "figure [popover] button", "Add to a report")
    shown(page, "Rates", "dialog")
    look(page, "add")
    click(page, "dialog label:last-of-type")
    click(page, "dialog button", "Add")
    page.wait("document.body.innerText.includes('Added to the end of “Rates”')")
    first, added = desk.blocks(report["id"])
    assert first == text("aaaa", "first")
    assert sorted(added["run_sets"][0]["runs"]) == ["run-0", "run-1", "run-2"]
    assert added["panels"][0]["queries"][0]["name"] in ("acc", "loss", "cpu")
    page.open(path_of(report))
    page.wait("document.querySelector('[data-panel] canvas')")


def test_a_report_is_shared_with_people_and_by_a_link(page: Browser, desk: Desk) -> None:
    report = rich(desk)
    desk.people.add("gina")
    signed_in(page, "bob")
    page.open(path_of(report))
    click(page, "main button", "Share")
    fill(page, "Share with", "gina", "dialog")
    click(page, "dialog button", "Share")
    shown(page, "gina", "dialog ul")
    click(page, "dialog button", "New link")
    choose_field(page, "Works for", "365")
    click(page, "dialog dialog button", "Create")
    url = page.text("[aria-label='The new link']")
    look(page, "share")
    click(page, "dialog button", "Done")
    page.call("Network.clearBrowserCookies")
    page.open(url.removeprefix(page.base))
    shown(page, "You see this by a link, and can change nothing. It works until")
    shown(page, "Which rate is best?")
    page.wait("document.querySelectorAll('[data-panel] canvas').length >= 1")
    look(page, "guest")
    assert page.evaluate("document.querySelectorAll('main .actions button, main .beside').length") == 0


def test_parts_of_a_comparison_are_added_to_a_report(page: Browser, desk: Desk) -> None:
    report = desk.report(title="Rates", blocks=[text("aaaa", "first")])
    signed_in(page, "bob")
    page.open("/compare?entity=vision&runs=run-0&runs=run-1&runs=run-2&across=config.lr&up=summary.loss")
    parts = ("statistics", "parallel coordinates", "scatter plot", "differences")
    for number, part in enumerate(parts):
        click(page, f"[aria-label='Add the {part} to a report']")
        shown(page, "Rates", "dialog")
        click(page, "dialog label:last-of-type")
        click(page, "dialog button", "Add")
        page.wait("!document.querySelector('dialog[open]')")
        added = desk.blocks(report["id"])
        assert len(added) == number + 2
    kinds = [block["panels"][0]["kind"] for block in added[1:]]
    assert kinds == ["table", "parallel", "scatter", "config_diff"]
    assert added[3]["panels"][0]["queries"] == [{"source": "logged", "name": "loss", "pattern": None}]
    page.open(path_of(report))
    page.wait("document.querySelector('[data-kind=parallel] svg path')")
    page.wait("document.querySelectorAll('[data-kind=scatter] svg circle').length === 3")
    shown(page, "lr", "[data-kind=config_diff] table")
    look(page, "compared")
    page.evaluate("document.querySelector('[data-kind=config_diff]').scrollIntoView(); true")
    look(page, "compared-end")


def test_the_importance_of_parameters_is_added_to_a_report(page: Browser, desk: Desk) -> None:
    desk.report(title="Rates")
    signed_in(page, "bob")
    page.open("/vision/digits/workspace")
    importance = "document.querySelector('[aria-label=\"Importance of parameters\"] button')"
    page.wait(f"(window.scrollTo(0, document.documentElement?.scrollHeight ?? 0), !!{importance})")
    click(page, "[aria-label='Importance of parameters'] button", "Add to a report")
    shown(page, "With the runs that the filter selects on the day", "dialog")
    click(page, "dialog button", "Create")
    page.wait("document.querySelector('.ProseMirror [data-kind=importance]')")


def test_people_and_runs_are_mentioned_from_a_menu(page: Browser, desk: Desk) -> None:
    report = desk.report(title="Rates", blocks=[text("aaaa", "Ask")])
    signed_in(page, "bob")
    page.open(path_of(report, editing=True))
    page.wait("document.querySelector('.ProseMirror p')")
    type_into(page, 0, " @ve")
    shown(page, "@vera", ".editor [role=listbox]")
    page.press("Enter")
    page.call("Input.insertText", text="about @run-1")
    shown(page, "run-1", ".editor [role=listbox]")
    keep_picture(page, "mentions")
    page.press("ArrowDown")
    page.press("ArrowUp")
    page.press("Enter")
    page.call("Input.insertText", text="or @nothing-of-this-name")
    page.wait("!document.querySelector('.editor [role=listbox]')")
    page.press("Escape")
    written = "Ask @vera about [run-1](/vision/digits/runs/run-1) or @nothing-of-this-name"
    eventually(lambda: desk.blocks(report["id"])[0]["text"] == written)
    click(page, ".bar button", "Publish")
    shown(page, "Ask @vera about run-1", "article")
    links = "[...document.querySelectorAll('article .markdown a')].map(a => a.pathname)"
    assert page.evaluate(links) == ["/vera", "/vision/digits/runs/run-1"]
