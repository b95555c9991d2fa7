"""A run that is deleted while its page is open, and a stop that nobody answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.patience import PATIENCE_S
from tests.server.browser import Browser
from tests.server.pages.test_fleet_pages import page, send  # noqa: F401
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.serving import Served, serving
from tests.server.test_build import hook  # noqa: F401


@pytest.fixture
def served(tmp_path: Path, static: str) -> Iterator[Served]:  # noqa: F811
    with serving(tmp_path, static=static) as served:
        send(served, "gone", "node1", "soon gone", lr=0.1, loss=0.5)
        yield served


def test_an_open_page_says_once_that_its_run_was_deleted(page: Browser, served: Served) -> None:  # noqa: F811
    page.open("/runs/gone/system")
    shown(page, "live", "[role=status]")
    address = f"{served.url}/api/v1/runs/gone"
    response = httpx.request("DELETE", address, json={}, timeout=PATIENCE_S)
    assert response.status_code == 200, response.text
    shown(page, "soon gone was deleted", "main")
    assert page.evaluate("document.querySelectorAll('main h1').length") == 1
    click(page, "main a", "Runs of digits")
    page.wait("location.pathname.startsWith('/projects/digits')")
    page.wait("!document.querySelector('main').innerText.includes('soon gone')")
    # What the page had asked for at that moment, such as the findings.
    page.complaints[:] = [text for text in page.complaints if "404 (Not Found)" not in text]


def test_a_stop_without_an_answer_says_why_and_is_offered_again(
    page: Browser,  # noqa: F811
    served: Served,
) -> None:
    page.open("/runs/gone/system")
    click(page, ".actions button", "Stop …")
    click(page, "dialog button", "Stop the run")
    shown(page, "stop requested", "main")
    page.evaluate("(now => Date.now = () => now() + 240_000)(Date.now)")
    shown(page, "its process cannot be reached: last heard", "main")
    click(page, ".actions button", "Stop again …")
