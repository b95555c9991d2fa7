"""What the mouse does, the keyboard does too: from home to a run, its charts, its log and the palette."""

from __future__ import annotations

import json
from pathlib import Path

from tests.server.browser import Browser
from tests.server.pages.test_page import browser, now_ms, page, static  # noqa: F401
from tests.server.pages.test_run_page import selected_times, spiking
from tests.server.test_build import hook  # noqa: F401

MOST_STOPS = 60
"""Of the Tab key, from one place of a page to another."""
VISIBLE = """(() => {
    const e = document.activeElement, box = e.getBoundingClientRect();
    const marked = [e, e.parentElement, e.parentElement?.parentElement].some((of) => {
        const style = of && getComputedStyle(of);
        return style && style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
    });
    const inView = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
    // After its last stop, the key leaves the page for the browser's own buttons.
    return e === document.body || (e.matches(':focus-visible') && marked && inView);
})()"""


def tab_to(page: Browser, condition: str, back: bool = False) -> None:  # noqa: F811
    """Press Tab until the focused element `e` fits; each that has the focus on the way is seen to have it."""
    fits = f"(e => !!({condition}))(document.activeElement)"
    for _ in range(MOST_STOPS):
        page.press("Tab", shift=back)
        where = page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
        assert page.evaluate(VISIBLE), f"the focus is not seen: {where}"
        if page.evaluate(fits):
            return
    raise AssertionError(f"no stop of the Tab key fits: {condition}")


def is_link(text: str) -> str:
    return f"e.tagName === 'A' && e.innerText.trim().startsWith({json.dumps(text)})"


def test_a_run_is_read_by_the_keyboard_alone(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    begin_ms = spiking(tmp_path)
    page.open("/")
    page.wait("document.querySelector('main a[href*=\"projects/\"]')")

    tab_to(page, is_link("All runs"))
    page.press("Enter", text="\r")
    page.wait("location.pathname === '/runs'")
    page.wait("document.querySelector('main a[href*=\"/runs/abc\"]')")
    tab_to(page, "e !== document.body && e.querySelector('a[href*=\"/runs/abc\"]')")
    page.press("ArrowDown")
    page.press("Enter", text="\r")
    page.wait("document.querySelector('figure .plot canvas')")

    tab_to(page, "e.matches('.plot')")
    for _ in range(3):
        page.press("ArrowLeft", shift=True)
    page.press("+")
    page.wait("new URLSearchParams(location.search).has('from')")
    selected = selected_times(page)

    tab_to(page, is_link("Logs"), back=True)
    page.press("Enter", text="\r")
    page.wait("location.pathname.endsWith('/logs')")
    assert selected_times(page) == selected
    assert begin_ms <= selected[0] < selected[1] <= now_ms()

    page.press("k", ctrl=True)
    page.wait("document.querySelector('dialog[open] input') === document.activeElement")
    page.call("Input.insertText", text="hosts")
    page.wait("document.querySelector('dialog [role=option]')?.innerText.includes('Hosts')")
    page.press("Enter", text="\r")
    page.wait("location.pathname === '/hosts'")
    page.wait("document.querySelector('dialog') === null")
