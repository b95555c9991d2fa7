"""The first load of three pages beside Trackio, Aim and MLflow: 300 runs with the same values.

Each tracker is installed from PyPI into a virtual environment of its own in the temporary folder of the
machine, which later measurements use again, and writes the runs with its own library.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from tests.server.browser import Browser
from websockets.exceptions import WebSocketException

from benchmarks.web.chromium import chromium, until
from benchmarks.web.servers import over_journals
from benchmarks.web.writers.values import PROJECT, config_of, rows_of
from runvitals.journal import frames
from runvitals.journal.paths import run_dir
from runvitals.journal.writer import JournalWriter

RUNS: Final = 300
WRITERS: Final = Path(__file__).with_name("writers")
VENVS: Final = Path(tempfile.gettempdir(), "runvitals-bench-trackers")
PORT: Final = 43_811
QUIET_S, LIMIT_S, STARTED_S = 3.0, 20.0, 90.0
INSTALL_LIMIT_S, WRITE_LIMIT_S, STOP_LIMIT_S = 300.0, 240.0, 10.0
_FAILURES: Final = (subprocess.SubprocessError, OSError, SystemExit, AssertionError, WebSocketException)
"""What a part may end with: the other parts are measured all the same."""
PAGES: Final = ("a run", "the list of runs", "all runs over each other")
_HEAD: Final = "| page | tracker | received, kB | script, ms | all tasks, ms | longest task, ms |"


class Tracker(NamedTuple):
    """Another tracker.

    Args:
        serve: its command in its environment.
        pages: addresses of `PAGES`, with what its writer printed last as `{0}`, `{1}`; None: it has no such
            page without a query.
    """

    name: str
    serve: tuple[str, ...]
    pages: tuple[str | None, str | None, str | None]


TRACKERS: Final = (
    Tracker(
        "trackio",
        ("trackio", "show", "--project", PROJECT),
        (f"/?project={PROJECT}&run_names=run000", f"/runs?project={PROJECT}", f"/?project={PROJECT}"),
    ),
    Tracker("aim", ("aim", "up", "--port", str(PORT)), ("/runs/{0}/metrics", "/runs", None)),
    Tracker(
        "mlflow",
        ("mlflow", "ui", "--workers", "1", "--port", str(PORT)),
        (
            "/#/experiments/{0}/runs/{1}/model-metrics",
            "/#/experiments/{0}/runs",
            "/#/experiments/{0}/runs?compareRunsMode=CHART",
        ),
    ),
)


def measure(folder: Path, quick: bool, peers: bool) -> Iterator[str]:
    """Markdown with the results."""
    runs = 5 if quick else RUNS
    quiet = f"until nothing happens for {QUIET_S:g} s, or for {LIMIT_S:g} s"
    yield f"{runs} runs, each loaded once without a cache, {quiet}:"
    yield ""
    yield _HEAD
    yield "|" + "---|" * _HEAD.count(" |")
    versions: list[str] = []
    yield from _part("runvitals", lambda: _ours(folder / "runvitals", runs))
    for tracker in TRACKERS if peers else ():
        yield from _part(tracker.name, partial(_theirs, tracker, folder / tracker.name, runs, versions))
    yield ""
    yield (
        "Received: what the requests of the page brought, as it was sent. Times are of the main thread's own "
        "clock; the longest task is by the wall." + "".join(f" {version};" for version in versions)
    )


def _part(name: str, measured: Callable[[], Iterator[str]]) -> Iterator[str]:
    """Yield the rows of a tracker, or what it failed with."""
    try:
        yield from measured()
    except _FAILURES as problem:
        yield f"| not measured | {name} | {' '.join(str(problem).split())[:200]} | | | |"


def _ours(folder: Path, runs: int) -> Iterator[str]:
    record(folder, runs)
    with over_journals(folder) as server:
        addresses = ("/runs/run000/charts", f"/runs?project={PROJECT}", f"/projects/{PROJECT}")
        yield from _rows("runvitals", server.url, addresses)


def _theirs(tracker: Tracker, folder: Path, runs: int, versions: list[str]) -> Iterator[str]:
    venv = installed(tracker.name)
    versions.append(f"{tracker.name} {_version(venv, tracker.name)}")
    with served(tracker, venv, folder, runs) as (url, printed):
        pages = tuple(None if page is None else page.format(*printed) for page in tracker.pages)
        yield from _rows(tracker.name, url, pages)


def _rows(name: str, url: str, pages: tuple[str | None, ...]) -> Iterator[str]:
    for title, page in zip(PAGES, pages, strict=True):
        if page is None:
            yield f"| {title} | {name} | – | – | – | – |"
            continue
        # A browser of its own: a page that never ends its task would stop those after it.
        with chromium() as browser:
            browser.call("Performance.enable", timeDomain="threadTicks")
            try:
                received, *times = first_load(browser, url + page)
            except _FAILURES as problem:
                yield f"| {title} | {name} | not loaded: {' '.join(str(problem).split())[:200]} | | | |"
                continue
            figures = (received / 1000, *times)
            yield f"| {title} | {name} | {' | '.join(f'{figure:,.0f}' for figure in figures)} |"
            if folder := os.environ.get("PICTURES"):
                browser.screenshot(Path(folder, f"{name}-{title.replace(' ', '-')}.png"))


def first_load(browser: Browser, url: str) -> tuple[float, float, float, float]:
    """Return the bytes that a page receives, and the ms of its scripts, its tasks and its longest task."""
    browser.call("Page.navigate", url="about:blank")
    browser.call("Network.clearBrowserCache")
    browser.call("Page.navigate", url=url)
    until(browser, "document.readyState === 'complete' && document.body?.innerText.length > 40")
    end, state, since = time.monotonic() + LIMIT_S, (0, 0.0), time.monotonic()
    while time.monotonic() < end and time.monotonic() - since < QUIET_S:
        time.sleep(0.25)
        resources = int(browser.evaluate("performance.getEntriesByType('resource').length"))
        now = (resources, round(_metrics(browser)["ScriptDuration"], 1))
        if now != state:
            state, since = now, time.monotonic()
    received, longest = browser.evaluate(
        """(() => {
            const entries = ['resource', 'navigation'].flatMap(kind => performance.getEntriesByType(kind));
            const bytes = entries.reduce((sum, {encodedBodySize}) => sum + encodedBodySize, 0);
            return [bytes, Math.max(0, ...timeline.longTasks.map(([, took]) => took))];
        })()"""
    )
    metrics = _metrics(browser)
    return received, metrics["ScriptDuration"] * 1000, metrics["TaskDuration"] * 1000, longest


def _metrics(browser: Browser) -> dict[str, float]:
    return {one["name"]: one["value"] for one in browser.call("Performance.getMetrics")["metrics"]}


def record(folder: Path, runs: int) -> None:
    """Write the runs into journals of our own."""
    now_ms = time.time_ns() // 1_000_000
    for number in range(runs):
        run, start_ms = f"run{number:03}", now_ms - (runs - number) * 60_000 - 300_000
        about = {"run": run, "project": PROJECT, "host": "node1", "role": "train", "pid": 1, "t": start_ms}
        journal = JournalWriter(run_dir(run, str(folder)), "train.node1.1", about)
        journal.json(frames.INFO, {"t": start_ms, "config": config_of(number), "run": {"name": run}})
        for step, row in enumerate(rows_of(number)):
            journal.json(frames.HISTORY, {"t": start_ms + step * 1000, "step": step, "data": row})
        end = {"t": start_ms + 200_000, "what": "end", "state": "finished", "exit_code": 0}
        journal.json(frames.LIFECYCLE, end)
        journal.close()


def installed(name: str) -> Path:
    """Return the environment of a tracker, made if it is not there yet."""
    venv = VENVS / name
    if not (venv / "bin" / name).exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True, timeout=INSTALL_LIMIT_S)
        pip = [str(venv / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", name]
        subprocess.run(pip, check=True, stdout=sys.stderr, timeout=INSTALL_LIMIT_S)
    return venv


def _version(venv: Path, name: str) -> str:
    code = f"from importlib.metadata import version; print(version({name!r}))"
    return subprocess.check_output([str(venv / "bin" / "python"), "-c", code], text=True).strip()


@contextmanager
def served(tracker: Tracker, venv: Path, folder: Path, runs: int) -> Iterator[tuple[str, list[str]]]:
    """A tracker with the runs; yields its address and what its writer printed last."""
    folder.mkdir()
    environment = {
        **os.environ,
        "PATH": f"{venv / 'bin'}:{os.environ['PATH']}",
        "TRACKIO_DIR": str(folder),
        "GRADIO_SERVER_PORT": str(PORT),
        "GRADIO_ANALYTICS_ENABLED": "False",
        "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db",
        "MLFLOW_BACKEND_STORE_URI": f"sqlite:///{folder}/mlflow.db",
    }
    if tracker.name == "aim":
        init = [str(venv / "bin" / "aim"), "init"]
        subprocess.run(
            init, cwd=folder, env=environment, check=True, stdout=sys.stderr, timeout=WRITE_LIMIT_S
        )
    writer = [str(venv / "bin" / "python"), str(WRITERS / f"{tracker.name}_runs.py"), str(runs)]
    printed = subprocess.check_output(
        writer, cwd=folder, env=environment, text=True, stderr=sys.stderr, timeout=WRITE_LIMIT_S
    )
    with ExitStack() as stack:
        command = [str(venv / "bin" / tracker.serve[0]), *tracker.serve[1:]]
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=sys.stderr,
            stderr=sys.stderr,
            start_new_session=True,
        )
        stack.callback(_stop, process)
        url = f"http://127.0.0.1:{PORT}"
        _wait(url)
        yield url, printed.strip().split("\n")[-1].split()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a server with all processes that it started: the next one needs its port."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_LIMIT_S)


def _wait(url: str) -> None:
    end = time.monotonic() + STARTED_S
    while True:
        try:
            urllib.request.urlopen(url, timeout=10).close()
            return
        except (urllib.error.URLError, OSError):
            if time.monotonic() > end:
                raise SystemExit(f"nothing answers at {url} within {STARTED_S:g} s") from None
            time.sleep(0.3)
