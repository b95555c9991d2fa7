"""The lineage of a data set that many runs used, each of which made a model: 3 and 300 nodes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
from tests.server.artifacts.graph import link_runs
from tests.server.browser import Browser
from tests.server.database.runs import made
from tests.server.serving import Served, serving

from benchmarks.web.chromium import chromium
from runvitals.server.http import page

RUNS, ALLOWED_S = (1, 150), 0.3
TIMES, QUIET_S = 7, 1.0
NODES = "document.querySelectorAll('main svg g.node').length"
METRICS = ("TaskDuration", "ScriptDuration", "LayoutDuration")


def measure(folder: Path, quick: bool, peers: bool) -> Iterator[str]:
    """Markdown with the results."""
    times = 1 if quick else TIMES
    yield f"Medians of {times}: the nodes of a project without accounts, all shown apart:"
    yield ""
    yield "| nodes | call, ms | kB | drawn again: all tasks, s | scripts, s | layout, s |"
    yield "|---|---|---|---|---|---|"
    with serving(folder, static=page.FOLDER) as served, chromium() as browser:
        browser.base = served.url
        browser.call("Performance.enable")
        for runs in RUNS:
            project = f"wide-{runs}"
            _store(served, project, runs)
            call_ms, size = _call(f"{served.url}/api/v1/projects/{project}/artifacts/data/v0/lineage", times)
            drawn = [_drawn(browser, project, 1 + 2 * runs) for _ in range(times)]
            seconds = [statistics.median(values) for values in zip(*drawn, strict=True)]
            figures = " | ".join(f"{value:.3f}" for value in seconds)
            yield f"| {1 + 2 * runs} | {call_ms:.0f} | {size / 1000:.1f} | {figures} |"
    yield ""
    yield f"Allowed: {ALLOWED_S} s of tasks."


def _store(served: Served, project: str, runs: int) -> None:
    store = served.metadata_store
    for number in range(runs):
        made(store, f"run-{runs}-{number}", project=project)
    chains = (f"data > run-{runs}-{number} > model-{number}" for number in range(runs))
    link_runs(store, project, ";".join(chains))


def _call(url: str, times: int) -> tuple[float, int]:
    took, size = [], 0
    for _ in range(times + 1):  # the first one makes the route
        before = time.perf_counter()
        size = len(httpx.get(url).raise_for_status().content)
        took.append((time.perf_counter() - before) * 1000)
    return statistics.median(took[1:]), size


def _drawn(browser: Browser, project: str, nodes: int) -> list[float]:
    """The seconds of the page's main thread for a layout and drawing of all nodes."""
    toggle = "document.querySelector('main label input[type=checkbox]')"
    browser.open(f"/projects/{project}?artifacts=1&name=data&version=data%3Av0&lineage=version")
    browser.wait(f"{NODES} > 0")
    if not browser.evaluate(f"{toggle}.checked"):
        browser.evaluate(f"{toggle}.click()")
    time.sleep(QUIET_S)
    before = _metrics(browser)
    browser.evaluate(f"{toggle}.click()")
    browser.wait(f"{NODES} === {nodes}")
    time.sleep(QUIET_S)
    return [after - earlier for earlier, after in zip(before, _metrics(browser), strict=True)]


def _metrics(browser: Browser) -> list[float]:
    listed = {metric["name"]: metric["value"] for metric in browser.call("Performance.getMetrics")["metrics"]}
    return [listed[name] for name in METRICS]
