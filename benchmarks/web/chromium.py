"""Loads pages in Chromium and reads its timeline."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.server.browser import Browser

TIMELINE = Path(__file__).with_name("timeline.js")
WIDTH, HEIGHT = 1280, 900
LIMIT_S = 60.0
SETTLED_MS = 400
_POLL_S = 0.05


class Load(NamedTuple):
    """One load of a page: ms from the start of the navigation, and bytes as they were sent.

    Args:
        code: scripts and styles.
        data: responses of the API, or of files with data.
    """

    first_ms: float
    all_ms: float
    code: int
    data: int
    longest_task_ms: float


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser whose pages have `window.timeline`."""
    with Browser(full=True) as browser:
        browser.resize(WIDTH, HEIGHT)
        browser.call("Network.enable")
        browser.call("Network.setCacheDisabled", cacheDisabled=True)
        browser.call("Page.addScriptToEvaluateOnNewDocument", source=TIMELINE.read_text())
        yield browser


def loaded(browser: Browser, url: str) -> Load:
    """Load a page, until all charts in view are painted.

    Raises:
        SystemExit: they are not within `LIMIT_S`.
    """
    browser.open("about:blank")
    browser.open(url)
    until(browser, f"window.timeline?.all != null && performance.now() - window.timeline.last > {SETTLED_MS}")
    result = browser.evaluate(
        """(() => {
            const {first, all, longTasks} = window.timeline;
            let code = 0, data = 0;
            for (const {name, initiatorType, encodedBodySize} of performance.getEntriesByType('resource')) {
                const path = new URL(name).pathname;
                if (/[.](js|css)$/.test(path)) code += encodedBodySize;
                else if (path.startsWith('/api/') || path.endsWith('.json')) data += encodedBodySize;
            }
            return {first, all, code, data, longest: Math.max(0, ...longTasks.map(([, took]) => took))};
        })()"""
    )
    return Load(result["first"], result["all"], result["code"], result["data"], result["longest"])


def until(browser: Browser, condition: str, limit_s: float = LIMIT_S) -> None:
    """Wait for a condition in the page.

    Raises:
        SystemExit: it is not true in time.
    """
    end = time.monotonic() + limit_s
    while not browser.evaluate(condition):
        if time.monotonic() > end:
            text = browser.evaluate("document.body?.innerText.slice(0, 500)")
            raise SystemExit(f"not within {limit_s:g} s: {condition}\n{browser.complaints}\n{text}")
        time.sleep(_POLL_S)


def medians(loads: list[Load]) -> Load:
    """The median of each figure of several loads."""
    return Load(*(statistics.median(column) for column in zip(*loads, strict=True)))


def zoomed_by_mouse(browser: Browser, selector: str) -> tuple[float, float]:
    """Zoom by dragging over a chart. Returns ms from releasing the button to the next frame, and until the
    points of the shorter range are drawn.
    """
    left, top, width, height = browser.box(selector)
    browser.evaluate("timeline.inputs.length = 0")
    y = top + height / 2
    browser.mouse("mouseMoved", left + width * 0.3, y)
    browser.mouse("mousePressed", left + width * 0.3, y, clicks=1)
    for share in (0.4, 0.5, 0.6):
        browser.mouse("mouseMoved", left + width * share, y, clicks=1)
    browser.evaluate(
        "addEventListener('mouseup', () => window.releasedAt = performance.now(), "
        "{capture: true, once: true})"
    )
    browser.mouse("mouseReleased", left + width * 0.6, y, clicks=1)
    return _repainted(browser)


def zoomed_by_call(browser: Browser, call: str) -> tuple[float, float]:
    """The same for a page that zooms by a call."""
    browser.evaluate(f"window.releasedAt = performance.now(); {call}; 0")
    return _repainted(browser)


def _repainted(browser: Browser) -> tuple[float, float]:
    until(
        browser,
        "window.releasedAt && timeline.last > releasedAt && "
        f"performance.now() - timeline.last > {SETTLED_MS}",
    )
    result: dict[str, Any] = browser.evaluate(
        """({at: releasedAt, last: timeline.last, input: Math.max(
            0, ...timeline.inputs.filter(([name]) => /up$/.test(name)).map(([, , took]) => took))})"""
    )
    complete = float(result["last"] - result["at"])
    return float(result["input"]) or complete, complete


def heap_mb(browser: Browser) -> float:
    """The memory of the page's objects after a garbage collection."""
    browser.call("HeapProfiler.collectGarbage")
    metrics = browser.call("Performance.getMetrics")["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == "JSHeapUsedSize")) / 1e6


def repeated(load: Callable[[], Load], times: int) -> Load:
    """The medians of several loads, after one that is not counted."""
    load()
    return medians([load() for _ in range(times)])
