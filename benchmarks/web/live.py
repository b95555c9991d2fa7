"""Live view: 64 devices × 8 metrics as they come, and an hour of samples played faster."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.server.browser import Browser

from benchmarks.web.chromium import chromium, heap_mb, loaded
from benchmarks.web.servers import PageServer, over_journals
from runvitals.journal.paths import run_dir
from runvitals.journal.writer import JournalWriter

DEVICES, BEFORE_S, HOUR_S, TASK_MS = 64, 600, 3600, 50
SPEED = 60
"""The samples of an hour are played this many times faster than they were taken."""
METRICS = ("gpu", "memory", "memoryAllocated", "temp", "powerWatts", "smClock", "memoryClock", "fanPercent")


def measure(folder: Path, quick: bool, peers: bool) -> Iterator[str]:
    """Markdown with the results."""
    watched_s, played_s = (5, 60) if quick else (60, HOUR_S)
    yield f"{DEVICES} devices × {len(METRICS)} metrics, {BEFORE_S // 60} min recorded before:"
    yield ""
    head = "samples | tasks over 50 ms | the longest, ms | objects before, MB | after, MB | server, MB"
    yield f"| live view | {head} |"
    yield "|---|---|---|---|---|---|---|"
    with chromium() as browser:
        browser.call("Performance.enable")
        for name, samples, pause_s in (
            (f"{watched_s} s, a sample a second", watched_s, 1.0),
            (f"{played_s // 60} min at {SPEED} times their speed", played_s, 1 / SPEED),
        ):
            data = folder / f"data-{samples}"
            with growing_run(data, samples, pause_s) as growing, over_journals(data) as server:
                yield _row(name, browser, server, growing, samples)
    yield ""
    yield f"Allowed: no task over {TASK_MS} ms at a sample a second; memory that does not grow with the time."


def _row(name: str, browser: Browser, server: PageServer, growing: threading.Thread, samples: int) -> str:
    loaded(browser, f"{server.url}/runs/live")
    before_mb = heap_mb(browser)
    browser.evaluate("timeline.longTasks.length = 0")
    growing.start()
    while growing.is_alive():
        browser.evaluate("1")  # takes in what the browser reports
        growing.join(1.0)
    time.sleep(1.0)
    tasks = [took for _, took in browser.evaluate("timeline.longTasks")]
    now_mb, _ = server.memory_mb()
    return (
        f"| {name} | {samples:,} | {len(tasks)} | {max(tasks, default=0):.0f} "
        f"| {before_mb:.1f} | {heap_mb(browser):.1f} | {now_mb:.0f} |"
    )


@contextmanager
def growing_run(folder: Path, samples: int, pause_s: float) -> Iterator[threading.Thread]:
    """A run with some minutes of samples; the thread adds more, a second apart, with pauses between them."""
    start_ms = time.time_ns() // 1_000_000 - BEFORE_S * 1000
    about = {"run": "live", "project": "bench", "host": "node1", "role": "monitor", "t": start_ms}
    journal = JournalWriter(run_dir("live", str(folder)), "monitor.node1.1", {**about, "interval_s": 1.0})
    written = 0

    def write() -> None:
        nonlocal written
        wave = written / 50
        values = {
            f"gpu.{device}.{metric}": 60 + 30 * math.sin(wave + device + position)
            for device in range(DEVICES)
            for position, metric in enumerate(METRICS)
        }
        journal.sample(start_ms + written * 1000, values)
        written += 1

    def grow() -> None:
        for _ in range(samples):
            write()
            time.sleep(pause_s)

    for _ in range(BEFORE_S):
        write()
    thread = threading.Thread(target=grow)
    try:
        yield thread
    finally:
        if thread.ident is not None:
            thread.join()
        journal.close()
