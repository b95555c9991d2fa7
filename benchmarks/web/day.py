"""A day of 60 metrics at 1 s, beside pages with the same series in ECharts and in Plotly."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.server.browser import Browser

from benchmarks.web.chromium import Load, chromium, loaded, repeated, zoomed_by_call, zoomed_by_mouse
from benchmarks.web.peers import PEERS, install
from benchmarks.web.servers import over_files, over_journals
from runvitals.journal import frames
from runvitals.journal.paths import run_dir
from runvitals.journal.writer import JournalWriter

METRICS, DAY_S, QUICK_S = 60, 86_400, 3600
FIRST_MS, ALL_MS, CODE_KB, ZOOM_MS = 500, 1500, 150, 100
_HEAD = (
    "| page | charts | first chart, ms | all in view, ms | code, kB | data, kB | longest task, ms "
    "| zoom to frame, ms | to the finer points, ms |"
)


def measure(folder: Path, quick: bool, peers: bool) -> Iterator[str]:
    """Markdown with the results."""
    seconds, times = (QUICK_S, 1) if quick else (DAY_S, 5)
    record(folder / "data", seconds)
    yield f"{METRICS} metrics × {seconds / 3600:g} h at 1 s, loaded {times} times:"
    yield ""
    yield _HEAD
    yield "|" + "---|" * _HEAD.count(" |")
    with chromium() as browser:
        with over_journals(folder / "data") as server:
            load = repeated(partial(loaded, browser, f"{server.url}/runs/day"), times)
            charts = browser.evaluate("timeline.charts")
            shown = browser.evaluate(
                "[...document.querySelectorAll('figure')].map(figure => figure.dataset.chart.split('\\n')[0])"
            )
            yield _row("runvitals", charts, load, zoomed_by_mouse(browser, "figure .u-over"))
            keys = "&".join(f"keys={key}" for key in shown)
            points = server.ask(f"runs/day/metrics?{keys}&max_points=300")
        if peers:
            yield from _peers(folder / "peers", points, browser, times)
    yield ""
    allowed = f"first chart {FIRST_MS} ms, all in view {ALL_MS} ms, code {CODE_KB} kB, zoom {ZOOM_MS} ms"
    yield f"Allowed: {allowed}."
    if peers:
        yield (
            "The other pages draw the charts that ours has in view and just below, with the same points, "
            "ready in a file. They have no live view, tables, search or links, and zoom without finer points."
        )


def _peers(folder: Path, points: object, browser: Browser, times: int) -> Iterator[str]:
    folder.mkdir()
    (folder / "points.json").write_text(json.dumps(points))
    for peer in PEERS:
        version = install(peer, folder)
        with over_files(folder) as url:
            load = repeated(partial(loaded, browser, f"{url}/{peer.name}.html"), times)
            charts = browser.evaluate("timeline.charts")
            yield _row(f"{peer.title} {version}", charts, load, zoomed_by_call(browser, "window.zoom()"))


def _row(page: str, charts: int, load: Load, zoom: tuple[float, float]) -> str:
    figures = (
        f"{charts}", f"{load.first_ms:.0f}", f"{load.all_ms:.0f}", f"{load.code / 1000:.0f}",
        f"{load.data / 1000:.0f}", f"{load.longest_task_ms:.0f}", f"{zoom[0]:.0f}", f"{zoom[1]:.0f}",
    )  # fmt: skip
    return f"| {page} | {' | '.join(figures)} |"


def record(folder: Path, seconds: int) -> None:
    """Write a run that ended a minute ago."""
    noise = random.Random(1)
    start_ms = time.time_ns() // 1_000_000 - 60_000 - seconds * 1000
    about = {"run": "day", "project": "bench", "host": "node1", "role": "monitor", "t": start_ms}
    journal = JournalWriter(run_dir("day", str(folder)), "monitor.node1.1", {**about, "interval_s": 1.0})
    keys = [f"app.metric{number}" for number in range(METRICS)]
    wander = [0.0] * METRICS
    for second in range(seconds):
        wave = 30 * math.sin(second / 900)
        wander = [value + noise.random() - 0.5 for value in wander]
        values = {key: 50 + wave + number + wander[number] for number, key in enumerate(keys)}
        journal.sample(start_ms + second * 1000, values)
    end_ms = start_ms + seconds * 1000
    journal.json(frames.LIFECYCLE, {"t": end_ms, "what": "end", "state": "finished", "exit_code": 0})
    journal.close()
