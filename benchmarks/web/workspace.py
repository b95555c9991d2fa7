"""The workspace of a project: 50 runs over each other in 24 charts, live."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.web.chromium import HEIGHT, WIDTH, chromium, heap_mb, loaded, until
from benchmarks.web.servers import over_journals
from runvitals.journal import frames
from runvitals.journal.paths import run_dir
from runvitals.journal.writer import JournalWriter

RUNS, CHARTS, BEFORE_S, TASK_MS = 50, 24, 600, 50
WINDOW = (1800, 2200)
"""So large that all charts are in view."""


def measure(folder: Path, quick: bool, peers: bool) -> Iterator[str]:
    """Markdown with the results."""
    watched_s = 10 if quick else 60
    yield f"{RUNS} runs × {CHARTS} metrics, {BEFORE_S // 60} min recorded before, then a row a second:"
    yield ""
    head = "first chart, ms | all in view, ms | tasks over 50 ms | the longest, ms | objects before, MB"
    yield f"| s watched | {head} | after, MB |"
    yield "|---|---|---|---|---|---|---|"
    with growing_runs(folder, watched_s) as growing, over_journals(folder) as server, chromium() as browser:
        browser.call("Performance.enable")
        browser.resize(*WINDOW)
        load = loaded(browser, f"{server.url}/projects/bench?list=hidden")
        browser.evaluate(
            "[...document.querySelectorAll('button')].find(e => e.innerText === 'Show all')?.click()"
        )
        until(browser, f"document.querySelectorAll('figure canvas').length === {CHARTS}")
        until(browser, "!document.querySelector('[aria-busy=true]')")
        before_mb = heap_mb(browser)
        browser.evaluate("timeline.longTasks.length = 0")
        growing.start()
        while growing.is_alive():
            browser.evaluate("1")  # takes in what the browser reports
            growing.join(1.0)
        time.sleep(1.0)
        tasks = [took for _, took in browser.evaluate("timeline.longTasks")]
        yield (
            f"| {watched_s} | {load.first_ms:.0f} | {load.all_ms:.0f} | {len(tasks)} "
            f"| {max(tasks, default=0):.0f} | {before_mb:.1f} | {heap_mb(browser):.1f} |"
        )
        browser.resize(WIDTH, HEIGHT)
    yield ""
    yield f"Allowed: no task over {TASK_MS} ms."


@contextmanager
def growing_runs(folder: Path, seconds: int) -> Iterator[threading.Thread]:
    """Runs with some minutes of rows; the thread adds a row to each of them a second."""
    start_ms = time.time_ns() // 1_000_000 - BEFORE_S * 1000
    with ExitStack() as stack:
        journals = []
        for run in range(RUNS):
            about = {"run": f"run{run:02}", "project": "bench", "host": "node1", "role": "train", "pid": run}
            run_folder = run_dir(f"run{run:02}", str(folder))
            journal = JournalWriter(run_folder, f"train.node1.{run}", {**about, "t": start_ms + run})
            stack.callback(journal.close)
            journals.append(journal)
        written = 0

        def write() -> None:
            nonlocal written
            for run, journal in enumerate(journals):
                data = {
                    f"metric{chart:02}": math.sin(written / 50 + run / 10 + chart) for chart in range(CHARTS)
                }
                row = {"t": start_ms + written * 1000 + run, "step": written, "data": data}
                journal.json(frames.HISTORY, row)
            written += 1

        def grow() -> None:
            for _ in range(seconds):
                write()
                time.sleep(1.0)

        for _ in range(BEFORE_S):
            write()
        thread = threading.Thread(target=grow)
        yield thread
        if thread.ident is not None:
            thread.join()
