"""Addresses in a real browser: what a page does not apply is named, devices of one number break no page."""

from __future__ import annotations

import time
from pathlib import Path

from tests.readers.journals.journals import Monitor
from tests.server.browser import Browser
from tests.server.pages.test_page import browser, live_run, now_ms, page, static  # noqa: F401
from tests.server.test_build import hook  # noqa: F401


def test_a_host_with_two_kinds_of_devices_of_the_same_numbers_is_shown(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    began_ms = now_ms() - 60_000
    monitor = Monitor(tmp_path, start_ms=began_ms)
    devices = [
        f"{kind}.{index}.{use}" for kind, use in (("gpu", "gpu"), ("tpu", "dutyCycle")) for index in (0, 1)
    ]
    for second in range(60):
        monitor.sample(began_ms + second * 1000, dict.fromkeys(devices, 50.0))

    page.open("/hosts/node1")
    labels = page.wait(
        "(found => found.length === 4 && found)([...document.querySelectorAll('figure')].find("
        "f => f.innerText.includes('Device use'))?.querySelectorAll('.keys li') ?? [])"
        " && document.querySelector('figure .keys').innerText"
    )
    assert labels.split() == ["GPU", "0", "TPU", "0", "GPU", "1", "TPU", "1"]


def test_parameters_that_are_not_applied_are_named(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    live_run(tmp_path, run_id="r1")

    page.open("/runs?project=digits&colour=red")
    page.wait("location.pathname === '/projects/digits'")
    page.open("/runs/r1/system?charts=cpu&window=soon&colour=red")
    said = page.text("main [role=status].warn")
    assert "window: “soon” is no value of it; colour: this page has no such parameter" in said
    page.evaluate("[...document.querySelectorAll('main .warn button')][0].click()")
    page.wait("location.search === '?charts=cpu'")
    page.wait("!document.body.innerText.includes('Not applied')")


def test_the_menu_of_groups_closes_after_a_choice(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    live_run(tmp_path)

    page.open("/runs")
    page.wait("document.querySelector('[aria-label=\"Group by\"]')")
    page.evaluate("document.querySelector('[aria-label=\"Group by\"]').click()")
    left, top, width, height = page.box("[role=menuitemcheckbox]")
    for kind in ("mousePressed", "mouseReleased"):
        page.mouse(kind, left + width / 2, top + height / 2, 1)
    page.wait("new URLSearchParams(location.search).has('by') && !document.querySelector('[role=menu]')")


def test_no_values_of_a_missing_run_are_asked_for(page: Browser) -> None:  # noqa: F811
    page.open("/runs/nobody/system")
    page.wait("document.querySelector('h1')?.innerText === 'No such run'")
    time.sleep(1.0)  # a request too many would be made by now
    entries = "performance.getEntriesByType('resource').map(e => e.name)"
    asked = page.evaluate(f"{entries}.filter(name => name.includes('/runs/nobody'))")
    # The page asks for the run, and for what it has, before it knows that there is none.
    assert {path.partition("/runs/nobody")[2] for path in asked} <= {"", "/plan", "/headline"}
    page.complaints.clear()  # the browser reports each response 404
