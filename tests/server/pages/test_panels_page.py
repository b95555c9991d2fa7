"""Panels of the user's own in a real browser: added, arranged, undone, kept, exported and imported."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runvitals.server.http.serve import Server
from runvitals.server.local_app import create_app
from tests.patience import PATIENCE_S
from tests.readers.journals.journals import Monitor, Trainer
from tests.server.browser import Browser, keep_picture
from tests.server.page_port import listen_for_page
from tests.server.pages.accessibility import violations
from tests.server.pages.test_page import browser, now_ms, static  # noqa: F401
from tests.server.pages.test_page_charts import click, downloads
from tests.server.test_build import hook  # noqa: F401

HOSTILE = '<img src=x onerror="document.title=1">'
NOTE = f"# Notes\n\n{HOSTILE} and **bold** [docs](https://example.org)\n\n- [x] done"
PANELS = "section[aria-label='Your panels']"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("journals")


@pytest.fixture(scope="module")
def served(browser: Browser, folder: Path, static: str) -> Iterator[Browser]:  # noqa: F811
    """The browser, at one server for all tests: each has a project of its own, and so a layout of its own."""
    listener = listen_for_page()
    server = Server(create_app(str(folder), static=static))
    with listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        browser.base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        yield browser
        browser.leave()
        server.handle_exit(2, None)
        thread.join(timeout=PATIENCE_S)


@pytest.fixture
def page(served: Browser) -> Iterator[Browser]:
    served.complaints.clear()
    served.resize(1280, 900)
    yield served
    assert served.complaints == []


def trained(folder: Path, run: str, gpus: int = 2, project: str = "") -> None:
    """A run that ended, in a project with its name unless another is given."""
    begin = now_ms() - 120_000
    monitor = Monitor(folder, run, start_ms=begin, project=project or run)
    monitor.info(begin, sources={"nvidia": {"state": "on", "reason": "fanSpeed: not supported; fan: x"}})
    trainer = Trainer(folder, run, start_ms=begin, project=project or run)
    for i in range(60):
        values = {f"gpu.{gpu}.powerWatts": 200.0 + 10 * gpu + i for gpu in range(gpus)}
        values |= {f"gpu.{gpu}.gpu": 50.0 + gpu for gpu in range(gpus)}
        monitor.sample(begin + 1000 * i, values)
        row = {"loss": 2 / (1 + i / 10), "train/accuracy": i / 60, "noise": math.sin(i)}
        trainer.log(begin + 1000 * i, i, **row)
    trainer.close()
    monitor.end(begin + 60_000, "finished", exit_code=0)


def panel(name: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "kind": kind, **fields}


ALL_KINDS = [
    panel("lines", "line", metrics=["loss"], title="Loss", smoothing="ema:5"),
    panel("power", "line", metrics=["gpu.*.powerWatts / gpu.*.gpu"], scope="devices"),
    panel("bars", "bar", metrics=["gpu.*.powerWatts"], scope="devices", statistic="mean"),
    panel("dots", "scatter", metrics=["loss"], across='"train/accuracy"', points=True),
    panel("spread", "histogram", metrics=["noise"]),
    panel("shares", "percentile", metrics=["gpu.*.powerWatts"], scope="devices"),
    panel("number", "scalar", metrics=["loss"], statistic="min", columns=2, rows=2),
    panel("table", "table", metrics=["loss", "noise"], statistic="max"),
    panel("note", "text", text=NOTE),
    panel("lacking", "line", metrics=["gpu.*.fanSpeed / 2"]),
    panel("each", "line", pattern="^(loss|noise)$", each=True),
]


def lay_out(page: Browser, project: str, panels: list[dict[str, Any]]) -> None:
    """Keep a layout in the browser, as the page does."""
    layout = {"version": 1, "sections": [{"id": "s1", "title": "Mine", "panels": panels}]}
    page.open("/")
    page.evaluate(f"localStorage.setItem('runvitals.layout./{project}', {json.dumps(json.dumps(layout))})")


def fill(page: Browser, label: str, text: str) -> None:
    """Type into the field of the dialog with this label."""
    page.wait(
        f"(found => found && (found.focus(), found.select(), true))([...document.querySelectorAll("
        f"'dialog input, dialog textarea')].find(e => e.labels[0]?.innerText === {json.dumps(label)}))"
    )
    page.call("Input.insertText", text=text)


def titles(page: Browser) -> list[str]:
    labels: list[str] = page.evaluate(
        "[...document.querySelectorAll('[data-panel]')].map(e => e.getAttribute('aria-label'))"
    )
    return labels


def press(page: Browser, key: str, control: bool = False) -> None:
    codes = {"ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40, "z": 90}
    for kind in ("keyDown", "keyUp"):
        page.call(
            "Input.dispatchKeyEvent",
            type=kind,
            key=key,
            windowsVirtualKeyCode=codes[key],
            modifiers=2 if control else 0,
        )


def test_a_panel_is_added_with_a_preview_and_kept(page: Browser, folder: Path) -> None:
    trained(folder, "adding")
    page.open("/runs/adding/charts")
    click(page, "Add panel", PANELS)
    fill(page, "Metric or expression", "loss +")
    assert "found the end (at character 7)" in page.text("dialog .error")
    fill(page, "Metric or expression", "loss / 2")
    page.wait("document.querySelector('dialog figure canvas')")
    keep_picture(page, "panel-dialog")
    click(page, "Add", "dialog")
    page.wait("document.querySelector('[data-panel] figure canvas')")
    page.open("/runs/adding/charts")
    page.wait("document.querySelector('[data-panel] figure canvas')")
    assert titles(page) == ["loss / 2"]


def test_every_kind_is_shown_and_hostile_text_is_inert(page: Browser, folder: Path) -> None:
    trained(folder, "kinds", gpus=3)
    lay_out(page, "kinds", ALL_KINDS)
    page.resize(1280, 1900)
    page.open("/runs/kinds/charts")
    page.wait("document.querySelectorAll('[data-panel] figure canvas').length === 5")
    page.wait("document.querySelectorAll('[data-panel=dots] circle').length === 60")
    page.wait("document.querySelectorAll('[data-panel=spread] rect title').length >= 5")
    assert page.text("[data-panel=number] .value") == "0.29"
    assert page.text("[data-panel=bars] tbody").split() == [
        *("device", "0", "230", "W", "device", "1", "240", "W", "device", "2", "250", "W")
    ]
    assert page.text("[data-panel=table] tbody").split() == ["kinds", "2", "1"]
    page.wait("document.querySelector('[data-panel=lacking] li')")
    assert page.text("[data-panel=lacking] p") == "None of these runs has gpu.*.fanSpeed / 2."
    assert page.text("[data-panel=lacking] li").split("\n") == [
        "nvidia",
        "partial",
        "fanSpeed: not supported",
    ]
    downloads(page)
    page.evaluate("document.querySelector('[data-panel=bars] [title=\"Save as CSV\"]').click()")
    name, kind, table, _ = page.wait("window.saved[0]")
    assert (name, kind) == ("gpu.-.powerWatts.csv", "text/csv")
    assert table.splitlines()[1].split(",")[5:9:3] == ["gpu.*.powerWatts", "229.5"]  # the metric, its mean
    page.evaluate("document.querySelector('[data-panel=table] [title=\"Save as CSV\"]').click()")
    assert page.wait("window.saved[1]")[2].startswith("run,host,rank,device,name,metric,last,min,mean,max\n")
    note = page.text("[data-panel=note] .markdown")
    assert HOSTILE in note
    assert page.evaluate("document.querySelectorAll('[data-panel=note] img').length") == 0
    assert titles(page)[-2:] == ["loss", "noise"]
    for dark in (False, True):
        page.resize(1280, 1900, dark=dark)
        assert violations(page, dark, within="section[aria-label='Your panels']") == []
        keep_picture(page, f"panels-{'dark' if dark else 'light'}")
    page.resize(390, 844)
    page.wait("document.documentElement.scrollWidth <= 390")
    keep_picture(page, "panels-phone")


def test_panels_of_a_project_show_its_runs(page: Browser, folder: Path) -> None:
    for run in ("first", "second"):
        trained(folder, run, project="shared")
    panels = [
        panel("loss", "line", metrics=["loss"]),
        panel("power", "bar", metrics=["gpu.*.powerWatts"], statistic="last"),
        panel("last", "table", metrics=["gpu.0.powerWatts / gpu.0.gpu"]),
    ]
    lay_out(page, "shared", panels)
    page.open("/projects/shared")
    page.wait("document.querySelector('[data-panel=loss] figure canvas')")
    page.wait("document.querySelectorAll('[data-panel=power] tbody tr').length === 2")
    assert sorted(page.text("[data-panel=power] tbody").split()) == [
        "264",
        "264",
        "W",
        "W",
        "first",
        "second",
    ]
    page.wait("document.querySelectorAll('[data-panel=last] tbody tr').length === 2")
    assert "5.18 W/%" in page.text("[data-panel=last] tbody")
    keep_picture(page, "panels-workspace")
    page.open("/projects/shared?by=state")
    page.wait("document.querySelector('[data-panel=power] tbody')?.innerText.includes('state: finished (2)')")
    assert page.text("[data-panel=power] tbody").split()[-2:] == ["264", "W"]
    page.wait("document.querySelector('[data-panel=loss] .where')?.innerText === 'means of groups'")
    page.wait("document.querySelectorAll('[data-panel=last] tbody tr').length === 1")
    page.open("/projects/shared?shown=first")
    page.wait("document.querySelectorAll('[data-panel=power] tbody tr').length === 1")


def test_panels_are_arranged_by_keys_and_undone(page: Browser, folder: Path) -> None:
    trained(folder, "keys")
    lay_out(page, "keys", [panel(name, "text", title=name, text=name) for name in ("a", "b", "c")])
    page.open("/runs/keys/charts")
    page.wait("document.querySelectorAll('[data-panel]').length === 3")
    page.evaluate("document.querySelector('[data-panel=a] .grip').focus()")
    press(page, "ArrowRight")
    page.wait("document.activeElement?.ariaLabel === 'Move a'")
    press(page, "ArrowRight")
    page.wait("[...document.querySelectorAll('[data-panel]')].map(e => e.ariaLabel).join('') === 'bca'")
    page.evaluate("document.querySelector('[data-panel=a] .size').focus()")
    press(page, "ArrowRight")
    press(page, "ArrowDown")
    page.wait("document.querySelector('[data-panel=a]').style.gridArea.includes('span 5')")
    page.evaluate("document.activeElement.blur()")
    for _ in range(3):
        press(page, "z", control=True)
    page.wait("[...document.querySelectorAll('[data-panel]')].map(e => e.ariaLabel).join('') === 'bac'")
    click(page, "Redo", PANELS)
    page.wait("[...document.querySelectorAll('[data-panel]')].map(e => e.ariaLabel).join('') === 'bca'")
    page.evaluate("document.querySelector('[aria-label=\"Remove b\"]').click()")
    page.wait("document.querySelectorAll('[data-panel]').length === 2")
    click(page, "Undo", ".notice")
    page.wait("document.querySelectorAll('[data-panel]').length === 3")


def test_panels_are_arranged_by_the_mouse(page: Browser, folder: Path) -> None:
    trained(folder, "mouse")
    lay_out(page, "mouse", [panel(name, "text", title=name, text=name) for name in ("a", "b", "c")])
    page.open("/runs/mouse/charts")
    page.wait("document.querySelectorAll('[data-panel]').length === 3")
    page.wait("document.querySelector('.verdict') !== null")  # what is below may move when it arrives
    to_left, to_top, to_width, to_height = page.box("[data-panel=c]")
    left, top, width, height = page.box("[data-panel=a] .grip")
    page.mouse("mousePressed", left + width / 2, top + height / 2, clicks=1)
    for share in (0.4, 0.9):
        page.mouse("mouseMoved", to_left + to_width * share, to_top + to_height / 2, clicks=1)
    page.mouse("mouseReleased", to_left + to_width * 0.9, to_top + to_height / 2, clicks=1)
    page.wait("[...document.querySelectorAll('[data-panel]')].map(e => e.ariaLabel).join('') === 'bca'")

    before = page.box("[data-panel=b]")
    left, top, width, height = page.box("[data-panel=b] .size")
    page.mouse("mousePressed", left + width / 2, top + height / 2, clicks=1)
    page.mouse("mouseMoved", left + before[2] / 2, top + 100, clicks=1)
    page.mouse("mouseReleased", left + before[2] / 2, top + 100, clicks=1)
    page.wait("document.querySelector('[data-panel=b]').style.gridArea.includes('span 6')")


def test_a_layout_is_imported_only_if_it_is_valid(page: Browser, folder: Path) -> None:
    trained(folder, "importing")
    page.open("/runs/importing/charts")
    click(page, "Layout", PANELS)

    def choose_file(text: str) -> None:
        page.wait(
            f"""(input => input && (() => {{
                const files = new DataTransfer();
                files.items.add(new File([{json.dumps(text)}], 'layout.json'));
                input.files = files.files;
                input.dispatchEvent(new Event('change', {{bubbles: true}}));
                return true;
            }})())(document.querySelector('input[type=file]'))"""
        )

    choose_file('{"sections": [{"id": "s", "panels": [{"id": "a", "kind": "iframe"}]}]}')
    assert "expected line, bar" in page.text(".card .error")
    assert titles(page) == []
    good = {"sections": [{"id": "s", "title": HOSTILE, "panels": [panel("a", "text", title=HOSTILE)]}]}
    choose_file(json.dumps(good))
    page.wait("document.querySelectorAll('[data-panel]').length === 1")
    assert titles(page) == [HOSTILE]
    click(page, "Undo", ".notice")
    page.wait("document.querySelectorAll('[data-panel]').length === 0")


def test_a_run_that_has_ended_is_replayed(page: Browser, folder: Path) -> None:
    trained(folder, "replayed")
    page.open("/runs/replayed/system")
    power = "(document.querySelector('figure[aria-label^=\"GPU power\"]')?.innerText ?? '')"
    page.wait(
        f"document.querySelector('figure[aria-label^=\"GPU power\"] canvas') && {power}.includes('269 W')"
    )
    click(page, "Replay", ".tools")
    page.wait("document.querySelector('.replay [aria-label=Pause]')")
    page.evaluate("document.querySelector('.replay [aria-label=Pause]').click()")
    page.evaluate(
        "(input => { input.value = Number(input.min) + 30_000;"
        "input.dispatchEvent(new Event('input', {bubbles: true})); })"
        "(document.querySelector('.replay input'))"
    )
    page.wait(f"{power}.includes('230 W')")
    page.wait("location.search === '?replay=30'")
    page.open("/runs/replayed/system?replay=30&speed=10")
    page.wait(f"document.querySelector('.replay [aria-label=Play]') && {power}.includes('230 W')")
    assert page.evaluate("document.querySelector('.replay select').value") == "10"
    keep_picture(page, "replay")
    page.evaluate("document.querySelector('nav.tabs a[href$=charts]').click()")
    page.wait(
        "document.querySelector('figure[aria-label=loss]')?.innerText.includes('0.5')"
    )  # 2 / (1 + 30 / 10)
    page.wait("location.search === '?replay=30&speed=10'")
    click(page, "End replay", ".replay")
    page.wait("document.querySelector('figure[aria-label=loss]').innerText.includes('0.29')")
    page.wait("location.search === ''")
