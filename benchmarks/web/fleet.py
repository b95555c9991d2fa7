"""A run of many GPUs: 4 hosts × 8 GPUs × 2 h, about 10 million values."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.server.browser import Browser

from benchmarks.web.chromium import chromium, loaded, repeated, zoomed_by_mouse
from benchmarks.web.servers import PageServer, over_a_store, over_journals

FIRST_MS, MEMORY_MB = 500, 200
_HEAD = (
    "| runs from | first chart, ms | all in view, ms | code, kB | data, kB | longest task, ms | plan, ms "
    "| plan, kB (unpacked) | zoom to frame, ms | to the finer points, ms | server, MB (at most) |"
)


def measure(folder: Path, quick: bool, peers: bool) -> Iterator[str]:
    """Markdown with the results."""
    data = folder / "data"
    nodes, hours, times = (2, 0.1, 1) if quick else (4, 2.0, 5)
    command = [sys.executable, "-m", "runvitals", "simulate", "--profile", "h100x8", "--nodes", str(nodes)]
    command += ["--hours", str(hours), "--speed", "max", "--dir", str(data)]
    subprocess.run(command, check=True, stdout=sys.stderr)
    (run,) = (path.name for path in (data / "runs").iterdir() if path.is_dir())
    yield f"{nodes} hosts × 8 GPUs × {hours:g} h, loaded {times} times:"
    yield ""
    yield _HEAD
    yield "|" + "---|" * _HEAD.count(" |")
    with ExitStack() as stack:
        browser = stack.enter_context(chromium())
        for name, start in (
            ("journals", partial(over_journals, data)),
            ("a store", partial(over_a_store, folder, data)),
        ):
            with start() as server:
                yield _row(name, server, browser, run, times)
    yield ""
    yield f"Allowed: first chart {FIRST_MS} ms, server {MEMORY_MB} MB."


def _row(name: str, server: PageServer, browser: Browser, run: str, times: int) -> str:
    load = repeated(partial(loaded, browser, f"{server.url}/runs/{run}"), times)
    to_frame, complete = zoomed_by_mouse(browser, "figure canvas")
    plan_ms, sent, unpacked = sorted(server.timed(f"runs/{run}/plan") for _ in range(5))[2]
    now_mb, most_mb = server.memory_mb()
    figures = (
        f"{load.first_ms:.0f}", f"{load.all_ms:.0f}", f"{load.code / 1000:.0f}", f"{load.data / 1000:.0f}",
        f"{load.longest_task_ms:.0f}", f"{plan_ms:.0f}", f"{sent / 1000:.1f} ({unpacked / 1000:.0f})",
        f"{to_frame:.0f}", f"{complete:.0f}", f"{now_mb:.0f} ({most_mb:.0f})",
    )  # fmt: skip
    return f"| {name} | {' | '.join(figures)} |"
