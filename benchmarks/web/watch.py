"""Pages that are watched while a run of 8 GPUs is live at 1 Hz: what moves, and what the page costs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.server.browser import Browser

from benchmarks.web.chromium import chromium, until
from benchmarks.web.servers import over_journals

WATCHED_S: Final = 120.0
HOUR_ROWS: Final = 20
"""The page of the run is watched so many times as long."""
SHIFT, CPU_PERCENT, TASK_MS = 0.02, 5.0, 50
_BEFORE_HOURS: Final = "0.2"
_STARTED: Final = "document.querySelector('h1') && !document.body.innerText.includes('Loading …')"
_HEAD: Final = (
    "| page | layout shift | process, % of a core | tasks, % | script, % | tasks over 50 ms "
    "| the longest, ms | objects, MB | nodes | listeners |"
)


class Reading(NamedTuple):
    """What the browser counted since the page was opened.

    Args:
        process_s: processor time of the page's process, all its threads.
        tasks_s: processor time of its main thread in tasks; `script_s`: of these, in scripts.
    """

    process_s: float
    tasks_s: float
    script_s: float
    heap_mb: float
    nodes: int
    listeners: int


def measure(folder: Path, quick: bool, peers: bool) -> Iterator[str]:
    """Markdown with the results."""
    watched_s, rows = (5.0, 2) if quick else (WATCHED_S, HOUR_ROWS)
    yield f"h100x8 at 1 Hz, each page for {watched_s:g} s, then the page of the run {rows} times as long:"
    yield ""
    yield _HEAD
    yield "|" + "---|" * _HEAD.count(" |")
    with live_run(folder) as run, over_journals(folder) as server, chromium() as browser:
        browser.call("Performance.enable", timeDomain="threadTicks")
        browser.base = server.url
        addresses = (("home", "/"), ("runs", "/runs"), ("hosts", "/hosts"), ("charts", f"/runs/{run}/charts"))
        for name, path in addresses:
            opened(browser, path)
            yield watched(browser, name, watched_s)
        opened(browser, f"/runs/{run}/system")
        for row in range(1, rows + 1):
            yield watched(browser, f"system, {row * watched_s / 60:g} min", watched_s)
    yield ""
    yield (
        f"Allowed: layout shift {SHIFT:g} in {WATCHED_S:g} s with the load, {CPU_PERCENT:g} % of a core, "
        f"no task over {TASK_MS} ms after the load."
    )


@contextmanager
def live_run(folder: Path) -> Iterator[str]:
    """A simulated run of a host with 8 GPUs that writes a sample a second; yields its id."""
    environment = {**os.environ, "RUNVITALS_SAMPLING_INTERVAL": "1"}
    command = [sys.executable, "-m", "runvitals", "simulate", "--profile", "h100x8", "--dir", str(folder)]
    past = [*command, "--hours", _BEFORE_HOURS, "--speed", "max", "--seed", "1"]
    subprocess.run(past, check=True, env=environment, stdout=sys.stderr)
    before = set((folder / "runs").iterdir())
    live = [*command, "--hours", "2", "--speed", "1"]
    process = subprocess.Popen(live, env=environment, stdout=subprocess.DEVNULL)
    try:
        while not (started := set((folder / "runs").iterdir()) - before):
            if process.poll() is not None:
                raise SystemExit(f"simulate ended with {process.returncode}")
            time.sleep(0.1)
        yield started.pop().name
    finally:
        process.terminate()
        process.wait()


def opened(browser: Browser, path: str) -> None:
    """Open a page, and wait until it has what it shows."""
    browser.call("Page.navigate", url="about:blank")
    browser.open(path)
    until(browser, _STARTED)
    time.sleep(2.0)
    browser.evaluate("timeline.longTasks.length = 0")


def watched(browser: Browser, name: str, seconds: float) -> str:
    """The row of a page: what happens in some seconds, and what it keeps at their end."""
    before, began = reading(browser), time.monotonic()
    while time.monotonic() - began < seconds:
        time.sleep(1.0)
        browser.evaluate("1")  # takes in what the browser reports
    took = time.monotonic() - began
    moved, tasks = browser.evaluate("[timeline.shift, timeline.longTasks.splice(0).map(([, took]) => took)]")
    after = reading(browser)
    figures = (
        f"{moved:.4f}",
        *(f"{100 * (after[i] - before[i]) / took:.1f}" for i in range(3)),
        f"{len(tasks)}",
        f"{max(tasks, default=0):.0f}",
        f"{after.heap_mb:.1f}",
        f"{after.nodes:,}",
        f"{after.listeners:,}",
    )
    return f"| {name} | {' | '.join(figures)} |"


def reading(browser: Browser) -> Reading:
    """The browser's counters of the page, after a garbage collection."""
    browser.call("HeapProfiler.collectGarbage")
    metrics = {one["name"]: one["value"] for one in browser.call("Performance.getMetrics")["metrics"]}
    return Reading(
        metrics["ProcessTime"],
        metrics["TaskDuration"],
        metrics["ScriptDuration"],
        metrics["JSHeapUsedSize"] / 1e6,
        int(metrics["Nodes"]),
        int(metrics["JSEventListeners"]),
    )
