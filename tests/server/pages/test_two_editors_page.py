"""Two browsers in which one report is edited: each sees the other, and no words are lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.patience import eventually
from tests.server.browser import Browser, keep_picture
from tests.server.pages.test_account_pages import at, signed_in
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_report_pages import ReportLab, address_of, lab, text, texts_of, type_into  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.test_build import hook  # noqa: F401


@pytest.fixture
def editors(lab: ReportLab, browser: Browser) -> Iterator[tuple[Browser, Browser]]:  # noqa: F811
    """Two browsers at the server, in which nobody is signed in."""
    with Browser() as second, at(browser, lab.people.url), at(second, lab.people.url):
        yield browser, second


def look_again(page: Browser) -> None:
    """Have the page ask at once for what others do, as when the user comes back to its tab."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange')); true")


def test_two_people_write_at_once(lab: ReportLab, editors: tuple[Browser, Browser]) -> None:  # noqa: F811
    report = lab.report(blocks=[text("aaaa", "One"), text("bbbb", "Two")])
    path = f"/reports/{report['id']}"
    lab.people.add("gina", display_name="Gina")
    lab.ask("rita", "PUT", f"{path}/shares/gina", role="edit")
    rita, gina = editors
    for page, name in ((rita, "rita"), (gina, "gina")):
        signed_in(page, name)
        page.open(address_of(report, "/edit"))
        page.wait("document.querySelectorAll('.ProseMirror p').length >= 2")
    shown(gina, "rita is editing now", ".bar")
    look_again(rita)
    shown(rita, "Gina is editing now", ".bar")
    keep_picture(rita, "two-editors")
    rita.resize(390, 800, True)
    keep_picture(rita, "two-editors-phone-dark")
    rita.resize(1280, 900)

    type_into(rita, 0, " of rita")
    type_into(gina, 1, " of gina")
    eventually(lambda: texts_of(lab, path) == ["One of rita", "Two of gina"])
    for page in editors:
        look_again(page)
        shown(page, "One of rita", ".ProseMirror")
        shown(page, "Two of gina", ".ProseMirror")

    # Both change the same paragraph: the second sees both texts, and the first's stay until then.
    type_into(rita, 0, " again")
    eventually(lambda: texts_of(lab, path)[0] == "One of rita again")
    type_into(gina, 0, " and gina")
    shown(gina, "One of rita again", "dialog")
    shown(gina, "One of rita and gina", "dialog")
    gina.wait(
        "(e => e && (e.click(), true))"
        "([...document.querySelectorAll('dialog label')].find(e => e.innerText.includes('Keep both')))"
    )
    click(gina, "dialog button", "Go on")
    both = ["One of rita again", "One of rita and gina", "Two of gina"]
    eventually(lambda: texts_of(lab, path) == both)
    look_again(rita)
    shown(rita, "One of rita and gina", ".ProseMirror")

    click(gina, ".bar button", "Read")
    gina.wait("!location.pathname.endsWith('/edit')")
    shown(gina, "rita is editing now", "main .head")
    look_again(rita)
    rita.wait("!document.querySelector('.bar').innerText.includes('editing now')")
