"""Home, hosts and comparison in a real browser, at one server with a few hosts and runs."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.patience import PATIENCE_S
from tests.server.browser import Browser
from tests.server.pages.accessibility import looked_at
from tests.server.pages.test_page import EVIL, browser, static, type_into  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.serving import Served, serving
from tests.server.test_build import hook  # noqa: F401

GPUS = 8
MINUTES = 30


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, static: str) -> Iterator[Served]:  # noqa: F811
    """Four hosts: a busy one, one with idle devices, one whose run failed, and one whose run was lost."""
    with serving(tmp_path_factory.mktemp("fleet"), static=static) as served:
        for number in range(3):
            name = f"sweep {number}"
            send(served, f"sweep-{number}", "node1", name, lr=10.0 ** -(number + 1), loss=0.5 - 0.1 * number)
        send(served, "idle", "node2", "forgotten notebook", use=0.0, lr=0.1, loss=0.9)
        send(served, "failed", "node10", EVIL, end="failed", lr=0.3, loss=float(2))
        yield served


def send(
    served: Served,
    run: str,
    host: str,
    name: str,
    use: float = 90.0,
    end: str | None = None,
    **values: float,
) -> None:
    """Half an hour of a run, up to now."""
    random.seed(run)
    now_ms = time.time_ns() // 1_000_000
    begin = now_ms - MINUTES * 60_000
    keys = ["cpu", "memory_percent"]
    for gpu in range(GPUS):
        keys += [f"gpu.{gpu}.{key}" for key in ("gpu", "memoryAllocated", "powerWatts", "temp")]
    rows = []
    for _ in range(MINUTES + 1):
        row = [random.uniform(20, 40), 55.0]
        for gpu in range(GPUS):
            busy = use * random.uniform(0.9, 1.05) if use else 0.0
            row += [min(100.0, busy), 40.0 + gpu, 80 + 6 * busy, 88.0 if use and gpu == 7 else 40 + busy / 4]
        rows.append(row)
    devices = [
        {"index": gpu, "uuid": f"GPU-{host}-{gpu}", "name": "H100", "used": True} for gpu in range(GPUS)
    ]
    facts = {
        "t": begin,
        "run": {"name": name, "tags": ["sweep"]},
        "config": {"lr": values["lr"], "optimizer": "adam" if values["lr"] < 0.05 else "sgd", "seed": 1},
        "summary": {"loss": values["loss"]},
        "metrics": {"loss": {"goal": "minimize"}},
        "machine": {"gpu_nvidia": devices, "git": {"commit": run, "branch": "main"}, "os": "Debian"},
    }
    records: list[Any] = [[100, "info", facts]]
    if end:
        records.append([101, "lifecycle", {"t": now_ms, "what": "end", "state": end, "exit_code": 3}])
    envelope = {
        "run": run,
        "writer": f"monitor.{host}.{run}",
        "seq": 1,
        "project": "digits",
        "about": {"role": "monitor", "host": host, "interval_s": 3600},
        "keys": keys,
        "t": [begin + minute * 60_000 for minute in range(MINUTES + 1)],
        "v": [list(column) for column in zip(*rows, strict=True)],
        "records": records,
    }
    response = httpx.post(f"{served.url}/api/v1/ingest", json=envelope, timeout=PATIENCE_S)
    assert response.status_code == 200, response.text


@pytest.fixture
def page(browser: Browser, served: Served) -> Iterator[Browser]:  # noqa: F811
    browser.base = served.url
    browser.complaints.clear()
    browser.resize(1280, 900)
    yield browser
    browser.leave()
    assert browser.complaints == []


def test_home(page: Browser) -> None:
    page.open("/")
    shown(page, "sweep 0", "[aria-label='Running now']")
    shown(page, EVIL, "[aria-label='Failed since your last visit']")
    shown(page, "exit code 3", "[aria-label='Failed since your last visit']")
    assert page.evaluate("document.querySelectorAll('main img').length") == 0
    click(page, "main button", "How to send a run")
    shown(page, f"export RUNVITALS_SERVER={page.base}")
    assert page.evaluate("location.search") == "?guide=1"
    looked_at(page, "home")
    click(page, ".projects a", "digits")
    page.wait("location.pathname === '/projects/digits'")


def test_the_first_run_guide(browser: Browser, static: str, tmp_path: Path) -> None:  # noqa: F811
    with serving(tmp_path, static=static) as empty:
        browser.base = empty.url
        browser.complaints.clear()
        browser.open("/")
        shown(browser, "Send your first run", "h1")
        assert browser.evaluate("document.querySelectorAll('.ways section').length") == 3
        looked_at(browser, "first-run")
        send(empty, "first", "node1", "the first one", lr=0.1, loss=1.0)
        shown(browser, "the first one", "[aria-label='Running now']")  # by itself
        browser.leave()
    assert browser.complaints == []


def test_hosts(page: Browser) -> None:
    page.open("/hosts")
    page.wait("document.querySelectorAll('tbody tr').length === 3")
    rows = page.evaluate("[...document.querySelectorAll('tbody td:first-child')].map(e => e.innerText)")
    assert rows == ["node1", "node2", "node10"]
    assert page.evaluate("document.querySelectorAll('tbody tr:nth-child(2) li.idle').length") == GPUS
    assert page.evaluate("document.querySelectorAll('tbody tr:nth-child(1) li.hot').length") == 1
    text = page.text("tbody tr:nth-child(1) li:last-child .hidden")
    assert text.startswith("GPU 7: ")
    assert text.endswith("hot")
    looked_at(page, "hosts")
    click(page, "[aria-label='Stands out'] button", "idle")
    page.wait("document.querySelectorAll('tbody tr').length === 1")
    click(page, "[aria-label=Rows] button", "Devices")
    page.wait(f"document.querySelectorAll('tbody tr').length === {GPUS}")
    assert page.evaluate("location.search") == "?flag=idle&rows=devices"
    looked_at(page, "devices")
    page.evaluate("document.activeElement.blur()")
    page.press("/")
    page.call("Input.insertText", text="nobody")
    shown(page, "No hosts match.")
    click(page, "button", "Show all")
    page.wait(f"document.querySelectorAll('tbody tr').length === {2 * GPUS}")


def test_one_host(page: Browser) -> None:
    page.open("/hosts/node1")
    page.wait("document.querySelectorAll('figure canvas').length >= 4")
    assert page.evaluate("document.querySelectorAll('.timeline li').length") == 3
    label = page.evaluate("document.querySelector('.timeline a').getAttribute('aria-label')")
    assert "sweep" in label
    assert "running" in label
    looked_at(page, "host")
    click(page, "[aria-label=Time] button", "1h")
    page.wait("location.search === '?range=1h'")
    click(page, ".timeline a", "sweep 0")
    page.wait("location.pathname === '/runs/sweep-0'")
    page.open("/hosts/node7")
    shown(page, "No such host", "h1")
    page.complaints[:] = [text for text in page.complaints if "404" not in text]


COMPARED = "/compare?" + "&".join(f"runs=sweep-{number}" for number in range(3)) + "&runs=failed&runs=none"


def test_runs_are_compared(page: Browser) -> None:
    page.open(COMPARED)
    shown(page, "One run does not exist, or you may not see it: none")
    page.wait("document.querySelectorAll('[aria-label^=\"Table of facts\"] th.section').length >= 2")
    names = page.evaluate(
        "[...document.querySelectorAll('[aria-label^=\"Table of facts\"] th[scope=row]')]"
        ".map(e => e.innerText)"
    )
    assert {"lr", "optimizer", "commit"} <= set(names)
    assert not {"seed", "branch", "os"} & set(names)
    assert page.text("[aria-label='Table of statistics'] tbody tr .best").startswith("0.3")
    assert page.evaluate("document.querySelectorAll('main img').length") == 0
    looked_at(page, "compare")

    page.evaluate(
        "document.querySelector('#differences').closest('section').querySelector('[type=checkbox]').click()"
    )
    page.wait("[...document.querySelectorAll('th[scope=row]')].some(e => e.innerText === 'seed')")
    page.evaluate("[...document.querySelectorAll('summary')].at(-1).click()")
    page.evaluate("document.querySelector('[aria-label=\"config.lr, to\"]').focus()")
    page.call("Input.insertText", text="0.05")
    page.press("Enter")
    page.evaluate("document.activeElement.blur()")
    shown(page, "2 of 4 selected")
    assert "brush=" in page.evaluate("location.search")
    assert page.evaluate("document.querySelectorAll('path.out').length") == 2
    click(page, "button", "Select all")
    page.wait("document.querySelectorAll('path.out').length === 0")


def test_an_axis_is_brushed_by_the_mouse(page: Browser) -> None:
    page.open(COMPARED)
    left, top, width, height = page.box("svg .grip")
    page.mouse("mousePressed", left + width / 2, top + 2, clicks=1)
    page.mouse("mouseMoved", left + width / 2, top + height / 3, clicks=1)
    page.mouse("mouseReleased", left + width / 2, top + height / 3, clicks=1)
    shown(page, "selected")
    assert page.evaluate("document.querySelectorAll('path.out').length") > 0
    page.press("Escape")
