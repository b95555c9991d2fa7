"""The page that says what takes the space, of a team that has a project of 3, 300 or 10,000 runs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from tests.server.accounts.routes.people import People, serving_people
from tests.server.browser import Browser, keep_picture
from tests.server.database.artifacts.making import logged
from tests.server.pages.test_account_pages import signed_in
from tests.server.pages.test_shared_page import click

from benchmarks.web.chromium import chromium
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.http import page
from runvitals.server.runs.storage.console import ConsoleLine
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration

ROWS = (3, 300, 10_000)
OTHERS = 300
"""The most further projects, of which each has a run and an artifact."""
TIMES, QUIET_S = 7, 1.0
BATCH = 1000


def measure(folder: Path, quick: bool, peers: bool) -> Iterator[str]:
    """Markdown with the results."""
    times = 1 if quick else TIMES
    yield f"Medians of {times}; the server's processor time is that of the whole process:"
    yield ""
    yield "| runs | projects | projects: call, ms | server, ms | runs: call, ms | server, ms | page, s |"
    yield "|---|---|---|---|---|---|---|"
    with serving_people(folder, static=page.FOLDER) as people, chromium() as browser:
        browser.base = people.served.url
        browser.call("Performance.enable")
        people.add("ada")
        signed_in(browser, "ada")
        for rows in ROWS:
            team = f"team-{rows}"
            _store(people, team, rows)
            calls = [_call(people, f"/storage/{team}{path}?limit=100", times) for path in ("", "/runs")]
            figures = " | ".join(f"{wall_ms:.0f} | {cpu_ms:.0f}" for wall_ms, cpu_ms in calls)
            seconds = statistics.median(_drawn(browser, team) for _ in range(times))
            yield f"| {rows:,} | {min(rows, OTHERS) + 1} | {figures} | {seconds:.3f} |"


def _store(people: People, name: str, rows: int) -> None:
    """Store a team with a project of many runs, and with others of which each has a run and an artifact."""
    store = people.served.metadata_store
    ada = store.accounts.users.by_name("ada")
    team = store.accounts.teams.create(name, CLI, people.now_ms, administrator=ada.id)
    sender = Sender(team.id, ada.id)
    for first in range(0, rows, BATCH):
        numbers = range(first, min(first + BATCH, rows))
        writers = [
            WriterRegistration(f"{name}-{number}", "m.a.1", "runs", sender=sender) for number in numbers
        ]
        joined = store.writers.join(writers, people.now_ms)
        lines = [
            ConsoleLine(one.run_id, one.writer_id, 0, people.now_ms, 1, "x" * (100 + one.run_id % 900))
            for one in joined
        ]
        store.console.add(lines)
    for number in range(min(rows, OTHERS)):
        new = WriterRegistration(f"{name}-of-{number}", "m.a.1", f"project {number}", sender=sender)
        [writer] = store.writers.join([new], people.now_ms)
        logged(store, writer.project_id, {"a": f"{name} {number}".encode()}, "classifier")
    people.rights_changed()


def _call(people: People, path: str, times: int) -> tuple[float, float]:
    walls, cpus = [], []
    client = people.browser("ada")
    for _ in range(times + 1):  # the first one makes the route
        wall, cpu = time.perf_counter(), time.process_time()
        client.get(f"{path}").raise_for_status()
        walls.append((time.perf_counter() - wall) * 1000)
        cpus.append((time.process_time() - cpu) * 1000)
    return statistics.median(walls[1:]), statistics.median(cpus[1:])


def _drawn(browser: Browser, team: str) -> float:
    """The seconds of the page's main thread from the projects to the runs of one."""
    browser.open(f"/{team}/-/settings/usage")
    browser.wait("document.querySelector('main [aria-label=\"Choose runs\"]')")
    keep_picture(browser, f"{team}-projects")
    before = _tasks(browser)
    click(browser, "main section:nth-of-type(2) td button", "runs")
    browser.wait("document.querySelector('nav[aria-label=Storage] b')?.innerText === 'runs'")
    browser.wait("document.querySelectorAll('main section:nth-of-type(2) tbody tr').length > 2")
    time.sleep(QUIET_S)
    keep_picture(browser, f"{team}-runs")
    return _tasks(browser) - before


def _tasks(browser: Browser) -> float:
    listed = {metric["name"]: metric["value"] for metric in browser.call("Performance.getMetrics")["metrics"]}
    return float(listed["TaskDuration"])
