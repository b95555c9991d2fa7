"""Cost of reports: what a page of 30 live panels takes, in the browser and at the server.

    scripts/bench reports [--quick]

Two reports of 30 panels of one metric each, in two columns, below a page of text: over 10 runs and over 300
runs (three run sets of 100), each with 30 metrics × 1,000 steps. The page's processor time is that of
Chromium's renderer, all its threads, from the start of the navigation: until the panels in view are drawn,
and until the reader has scrolled to the end. The server's is that of its process, which answers all panels;
beside it, the same lines by the requests of a workspace, a chart each. Every figure is the median of several
loads. `--quick` measures fewer runs once and records nothing.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.server.accounts.routes.people import COOKIE, People, serving_people
from tests.server.accounts_server import AccountsServer, Clock
from tests.server.browser import Browser
from tests.server.reports.runs import record_run

from benchmarks.web.chromium import chromium, until
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.http.page import FOLDER

PANELS, METRICS, STEPS, SET_RUNS = 30, 30, 1000, 100
PROJECT: Final = "/entities/vision/projects/digits"
_FORGOTTEN_S: Final = 60.0
FIRST_CPU_S: Final = 0.5
_OVERLAY: Final = "/api/v1/overlay/logged?entity=vision&project=digits"
_DRAWN: Final = (
    "[...document.querySelectorAll('[data-panel]')].every(panel => {"
    "const {top, bottom} = panel.getBoundingClientRect();"
    "return bottom < 0 || top > innerHeight || panel.querySelector('canvas') })"
)
_READY: Final = "document.querySelectorAll('[data-panel]').length > 0 && " + _DRAWN
_CLIENT: Final = """
import sys, urllib.request
url, cookie, *paths = sys.argv[1:]
for path in paths:
    request = urllib.request.Request(url + path, headers={"cookie": cookie, "accept-encoding": "gzip"})
    urllib.request.urlopen(request).read()
"""


class PageLoad(NamedTuple):
    """Seconds of processor time, of the page's process and its main thread, and ms until it is drawn."""

    first_s: float
    first_main_s: float
    whole_s: float
    server_s: float
    drawn_ms: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer runs, loaded once, nothing recorded")
    quick = parser.parse_args().quick
    times, most = (1, 30) if quick else (5, 300)
    with tempfile.TemporaryDirectory(prefix="runvitals-bench-") as folder:
        for line in measure(Path(folder), times, most):
            print(line, flush=True)


def measure(folder: Path, times: int, most: int) -> Iterator[str]:
    """Markdown with the results."""
    yield f"{PANELS} panels, {METRICS} metrics × {STEPS:,} steps, loaded {times} times:"
    yield ""
    yield (
        "| runs | page at first paint, s | its main thread, s | first paint, ms after the start "
        "| page scrolled to the end, s | server, all panels, s | server, a workspace's requests, s |"
    )
    yield "|---|---|---|---|---|---|---|"
    with serving_people(folder, static=FOLDER) as people:
        session = record(people, most)
        ids = [f"run-{number:03}" for number in range(most)]
        for shown in (ids[:10], ids):
            requests_s = statistics.median(by_requests(people.url, session, shown) for _ in range(times))
            with chromium() as browser:
                browser.base = people.url
                browser.call("Performance.enable", timeDomain="threadTicks")
                browser.call("Network.setCookie", name=COOKIE, value=session, url=people.url)
                yield measured(people, browser, shown, times) + f" {requests_s:.2f} |"
    yield ""
    yield f"Allowed: {FIRST_CPU_S:g} s on the page's main thread at first paint."


def record(people: People, runs: int) -> str:
    """Store runs that have ended, and sign in who wrote them; returns the session."""
    accounts, served = people.accounts, people.served
    rita = accounts.users.by_name("rita").id
    accounts.teams.create("vision", CLI, people.now_ms, administrator=rita)
    people.rights_changed()
    clock = Clock()
    clock.now_ms = people.now_ms
    server = AccountsServer(people.url, served.app, served.metadata_store, served.store, clock)
    for number in range(runs):
        rate = 100 + number % 37
        logged = {
            f"metric{metric:02}": [2.0 ** (-step / rate) + metric / 10 for step in range(STEPS)]
            for metric in range(METRICS)
        }
        record_run(server, f"run-{number:03}", logged, author="rita")
    return people.browser("rita").secret


def measured(people: People, browser: Browser, ids: Sequence[str], times: int) -> str:
    """The row of a report over some runs."""
    report = people.browser("rita").post(f"{PROJECT}/reports", json=document(ids)).json()
    path = f"/vision/digits/reports/{report['slug']}--{report['id']}"
    loads = []
    for _ in range(times + 1):
        people.pass_s(_FORGOTTEN_S)  # what the server kept for the load before
        loads.append(loaded(browser, path))
    figures = PageLoad(*(statistics.median(column) for column in zip(*loads[1:], strict=True)))
    return (
        f"| {len(ids)} | {figures.first_s:.2f} | {figures.first_main_s:.2f} | {figures.drawn_ms:.0f} "
        f"| {figures.whole_s:.2f} | {figures.server_s:.2f} |"
    )


def document(ids: Sequence[str]) -> dict[str, Any]:
    """A published report of all panels over some runs, below some text."""
    usual = {"entity": "vision", "project": "digits", "limit": SET_RUNS}
    run_sets = [
        {**usual, "id": f"set{first:03}", "runs": ids[first : first + SET_RUNS]}
        for first in range(0, len(ids), SET_RUNS)
    ]
    panels = [
        {
            "id": f"panel{number:02}",
            "kind": "line",
            "columns": 6,
            "rows": 4,
            "run_sets": [run_set["id"] for run_set in run_sets],
            "settings": {"metrics": [f'logged:"metric{number:02}"']},
            "queries": [{"source": "logged", "name": f"metric{number:02}"}],
        }
        for number in range(PANELS)
    ]
    blocks: list[dict[str, Any]] = [
        {"id": "head", "kind": "text", "text": "# Which rate is best?"},
        {"id": "text", "kind": "text", "text": "A rate of **0.1** is best. " * 20},
        {"id": "grid", "kind": "panels", "run_sets": run_sets, "panels": panels},
    ]
    return {"title": f"Rates of {len(ids)} runs", "blocks": blocks, "publish": True}


def loaded(browser: Browser, path: str) -> PageLoad:
    """Open a report, and read it to its end."""
    browser.call("Page.navigate", url="about:blank")
    until(browser, "location.href === 'about:blank'")
    before, server_before = clocks(browser), time.process_time()
    browser.call("Page.navigate", url=browser.base + path)
    until(browser, _READY)
    drawn_ms = browser.evaluate("performance.now()")
    until(browser, "new Promise(done => requestAnimationFrame(() => setTimeout(() => done(true), 0)))")
    first = clocks(browser)
    for _ in range(2 * PANELS):
        browser.evaluate("scrollBy(0, innerHeight / 2); 0")
        until(browser, "new Promise(done => setTimeout(() => done(true), 50))")
        until(browser, _DRAWN)
        if browser.evaluate("scrollY + innerHeight >= document.documentElement.scrollHeight - 1"):
            break
    whole, server_s = clocks(browser), time.process_time() - server_before
    return PageLoad(first[0] - before[0], first[1] - before[1], whole[0] - before[0], server_s, drawn_ms)


def clocks(browser: Browser) -> tuple[float, float]:
    """Processor time of the page's process, and of the tasks of its main thread."""
    metrics = {one["name"]: one["value"] for one in browser.call("Performance.getMetrics")["metrics"]}
    return metrics["ProcessTime"], metrics["TaskDuration"]


def by_requests(url: str, session: str, ids: Sequence[str]) -> float:
    """Return the server's processor time for the lines of all panels, a request of a workspace each."""
    paths = [
        f"{_OVERLAY}&keys=metric{number:02}&runs=" + "&runs=".join(ids[first : first + SET_RUNS])
        for number in range(PANELS)
        for first in range(0, len(ids), SET_RUNS)
    ]
    began = time.process_time()
    subprocess.run([sys.executable, "-c", _CLIENT, url, f"{COOKIE}={session}", *paths], check=True)
    return time.process_time() - began


if __name__ == "__main__":
    main()
