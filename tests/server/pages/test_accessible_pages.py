"""Each page of the local server, light and dark, on a screen and on a phone: axe finds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.browser import Browser
from tests.server.pages.accessibility import looked_at
from tests.server.pages.test_page import browser, live_run, now_ms, page, static  # noqa: F401
from tests.server.test_build import hook  # noqa: F401

PAGES = {
    "home": "/",
    "runs": "/runs",
    "hosts": "/hosts",
    "host": "/hosts/node1",
    "compare": "/compare?runs=abc",
    "workspace": "/projects/digits",
    "run-charts": "/runs/abc/charts",
    "run-system": "/runs/abc/system",
    "run-overview": "/runs/abc/overview",
    "run-logs": "/runs/abc/logs",
    "run-files": "/runs/abc/files",
    "run-artifacts": "/runs/abc/artifacts",
    "run-alerts": "/runs/abc/alerts",
}

BELOW = "e => e.getBoundingClientRect().top > innerHeight + 200"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible(page: Browser, tmp_path: Path, name: str) -> None:  # noqa: F811
    training = live_run(tmp_path, 60, interval_s=60.0, gpus=8)
    training.monitor.printed(now_ms(), "step 1\nTraceback: error\n")
    training.monitor.event(now_ms(), "checkpoint", "warning", "slow")
    page.open(PAGES[name])
    page.wait("document.querySelector('main')?.innerText.length > 60")
    page.wait("!document.querySelector('main').innerText.includes('Loading …')")
    page.wait(f"[...document.querySelectorAll('main [aria-busy=true]')].every({BELOW})")
    looked_at(page, name)
