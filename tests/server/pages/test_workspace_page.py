"""The workspace of a project in a real browser: the charts of several runs over each other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from runvitals.server.http.serve import Server
from runvitals.server.local_app import create_app
from tests.patience import PATIENCE_S, eventually
from tests.readers.journals.journals import Training
from tests.server.browser import Browser, keep_picture
from tests.server.page_port import listen_for_page
from tests.server.pages.accessibility import accessible
from tests.server.pages.test_page import browser, now_ms, static  # noqa: F401
from tests.server.pages.test_page_charts import choose, click, drag, parameters
from tests.server.test_build import hook  # noqa: F401

LOSS = 'figure[data-chart="logged/loss"]'
NAMES = ("anna", "bert", "carl")


class Live(NamedTuple):
    """A folder of runs, and the one that goes on."""

    folder: Path
    training: Training


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Live:
    """Three runs; the last one goes on."""
    folder = tmp_path_factory.mktemp("runs")
    for number, name in enumerate(NAMES):
        start_ms = now_ms() - 60_000 * (3 - number)
        training = Training(folder, name, start_ms=start_ms, gpus=2, seed=number, name=f"run {name}")
        training.advance(60)
        if name != NAMES[-1]:
            training.end()
    return Live(folder, training)


@pytest.fixture(scope="module")
def address(live: Live, static: str) -> Iterator[str]:  # noqa: F811
    listener = listen_for_page()
    server = Server(create_app(str(live.folder), static=static))
    with listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.handle_exit(2, None)
        thread.join(timeout=PATIENCE_S)


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Browser]:  # noqa: F811
    browser.base = address
    browser.complaints.clear()
    browser.resize(1400, 900)
    yield browser
    browser.leave()
    assert browser.complaints == []


def pointed_at(page: Browser, share: float = 0.5) -> list[str]:
    """The runs that are named beside the pointer on the chart of the loss."""
    left, top, width, height = page.box(f"{LOSS} .u-over")
    page.mouse("mouseMoved", left + width * share, top + height / 2)
    page.wait(f"document.querySelector('{LOSS} .label')")
    names: list[str] = page.evaluate(f"[...document.querySelectorAll('{LOSS} .label')].map(e => e.innerText)")
    return sorted(names)


def test_the_newest_runs_are_drawn_over_each_other(page: Browser) -> None:
    page.open("/projects/digits")
    page.wait(f"document.querySelector('{LOSS} .u-over')")
    assert page.text("[role=status].soft") == "3 runs shown"
    assert pointed_at(page, 0.1) == ["run anna", "run bert", "run carl"]  # only one goes on
    gpu = "document.querySelector('section[aria-label=\"System: GPU\"]')"
    assert page.evaluate(f"{gpu}.querySelector('h2 button').ariaExpanded") == "false"
    page.evaluate(f"{gpu}.querySelector('h2 button').click()")
    page.wait(f"{gpu}.querySelector('.u-over')")
    assert parameters(page)["unfold"] == "system%2FGPU"
    page.evaluate(f"{gpu}.querySelector('h2 button').click()")
    page.wait("!new URLSearchParams(location.search).get('unfold')")
    keep_picture(page, "workspace")


def test_axis_zoom_and_folds_are_in_the_address(page: Browser) -> None:
    page.open("/projects/digits?shown=anna,bert")
    page.wait(f"document.querySelector('{LOSS} .u-over')")
    choose(page, "x axis", "relative")
    page.wait("new URLSearchParams(location.search).get('x') === 'relative'")
    page.wait(f"document.querySelector('{LOSS} .u-over')")
    drag(page, f"{LOSS} .u-over", 0.25, 0.75)
    page.wait("new URLSearchParams(location.search).get('axis') === 'relative'")
    is_requested = (
        "performance.getEntriesByType('resource').some(({name}) => /overlay.logged.*x0=/.test(name))"
    )
    page.wait(is_requested)
    assert not page.evaluate("document.body.innerText.includes('Not applied from the address')")
    x0 = float(parameters(page)["from"])
    page.evaluate(f"document.querySelector('{LOSS} .plot').focus()")
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="PageDown", windowsVirtualKeyCode=34)
    page.wait(f"Number(new URLSearchParams(location.search).get('from')) > {x0}")
    click(page, "A part shown · show all")
    page.wait("!new URLSearchParams(location.search).has('from')")
    page.wait("(b => b && (b.click(), true))(document.querySelector('section[aria-label=Charts] h2 button'))")
    page.wait("new URLSearchParams(location.search).get('fold') === 'charts'")
    page.wait(f"!document.querySelector('{LOSS}')")


def test_new_values_of_a_running_run_appear(page: Browser, live: Live) -> None:
    page.open("/projects/digits?shown=carl")
    page.wait(f"document.querySelector('{LOSS} .u-over')")
    is_requested = (
        "performance.getEntriesByType('resource').filter(({name}) => /overlay.(logged|system)/.test(name))"
        ".some(({name}) => /width=/.test(name))"
    )

    def requested() -> bool:
        live.training.advance(5)
        return bool(page.evaluate(is_requested))

    eventually(requested)


def test_groups_are_of_all_runs_that_match(page: Browser) -> None:
    page.open("/projects/digits?shown=anna&by=config.model.depth")
    page.wait(f"document.querySelector('{LOSS} .u-over')")
    assert pointed_at(page) == ["model.depth: 12 (3)"]
    assert page.text(f"{LOSS} .where").startswith("step ")
    page.wait("document.querySelector('tr.group .swatch')?.style.getPropertyValue('--run')")
    page.open("/projects/digits?shown=anna&by=config.seed&q=-id:carl")
    page.wait(f"document.querySelector('{LOSS} .u-over')")
    assert pointed_at(page) == ["seed: 0 (1)", "seed: 1 (1)"]


def test_it_is_used_by_keys_and_on_a_phone(page: Browser) -> None:
    page.open("/projects/digits")
    page.wait(f"document.querySelector('{LOSS} .u-over')")
    page.evaluate("document.querySelector('[role=separator]').focus()")
    before = int(page.evaluate("document.querySelector('[role=separator]').ariaValueNow"))
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="ArrowRight", windowsVirtualKeyCode=39)
    page.wait(f"document.querySelector('[role=separator]').ariaValueNow === '{before + 24}'")
    for dark in (False, True):
        page.resize(1400, 900, dark=dark)
        accessible(page, dark)
    page.resize(390, 844)
    page.wait("!document.querySelector('aside')")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    click(page, "› Runs")
    page.wait("document.querySelector('aside')")
    assert parameters(page)["list"] == "shown"
    keep_picture(page, "workspace on a phone")
