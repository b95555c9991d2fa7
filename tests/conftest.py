"""For all tests: default signal handlers, no leftover processes, and in CI no skips for missing packages."""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import re
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
import uvicorn.server
from hypothesis import HealthCheck, settings

import tests.patient_servers  # noqa: F401
from tests.leftovers import left_running
from tests.shared_statements import share_statements

# Before another test module imports them. They are not called test_*, and contain assertions.
pytest.register_assert_rewrite(
    "tests.store.samples.conformance", "tests.store.samples.comparison", "tests.server.pages.accessibility"
)

# A busy machine must not fail a test.
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

# CI accepts a skip whose reason begins like this: no script can install what is missing, such as a kernel's
# feature.
ACCEPTED_SKIP = ("this machine", "this kernel")

_TELLING = re.compile(r"^E  |(Error|Warning|Failed)\b")


def pytest_configure() -> None:
    _restore_signals()
    gc.disable()  # until all tests are collected
    _cache_bytecode()
    share_statements()
    _end_servers_at_once()
    # Each httpx.Client loads the certificates that it trusts: 27 ms of CPU for those of all authorities.
    os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("authority.pem"))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Repeat each failure in a line at the very end: services that run tests show the last lines only."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not os.environ.get("CI"):
        return
    for report in (*reporter.stats.get("failed", ()), *reporter.stats.get("error", ())):
        reporter.write_line(f"{report.nodeid}: {reason_in_brief(report.longreprtext)}")


def reason_in_brief(text: str) -> str:
    """The first and last errors and warnings in the text of a failure, in at most 400 characters."""
    lines = [line.lstrip(" |E").strip() for line in text.splitlines() if _TELLING.search(line)]
    return " / ".join(line[:150] for line in dict.fromkeys(lines[:2] + lines[-2:]))[:400]


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Have each process of pytest-xdist begin with another part of the modules: it finds the others compiled.
    They take 13 s of CPU, because pytest rewrites their assertions."""
    config = session.config
    if not hasattr(config, "workerinput") or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    folder = Path(__file__).parent
    ignored = {str(Path(path).resolve()) for path in config.getoption("ignore") or ()}
    modules = [path for path in sorted(folder.rglob("test_*.py")) if str(path) not in ignored]
    first = len(modules) * int(config.workerinput["workerid"][2:]) // config.workerinput["workercount"]
    for path in (*folder.rglob("conftest.py"), *modules[first:], *modules[:first]):
        with suppress(Exception, pytest.skip.Exception):  # the collection reports it
            importlib.import_module(".".join(path.relative_to(folder.parent).with_suffix("").parts))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the modules that take longest: begun last, they keep one process busy while others wait."""
    order = {path: number for number, path in enumerate(slow_modules())}
    items.sort(key=lambda item: order.get(item.nodeid.partition("::")[0], len(order)))


def slow_modules() -> list[str]:
    """Read which modules take longest, in that order; `scripts/slow-tests` writes the file."""
    return Path(__file__).with_name("slow_modules.txt").read_text().splitlines()


def pytest_collection_finish() -> None:
    """Keep the garbage collector from visiting all modules and tests, and have it look less often: it took an
    eighth of the CPU."""
    gc.freeze()
    gc.set_threshold(2_000, 10, 50)
    gc.enable()


def _cache_bytecode() -> None:
    """Compile each module once, not in every process that a test starts: for a server that is 1 s of CPU."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def _end_servers_at_once() -> None:
    """Let a server of this process end within 60 ms, not 0.3 s: uvicorn sleeps thrice before it does."""
    names = {**vars(asyncio), "sleep": lambda seconds: asyncio.sleep(seconds / 5)}
    vars(uvicorn.server)["asyncio"] = SimpleNamespace(**names)


def _restore_signals() -> None:
    """Restore signals that `nohup`, or `&` in a script, sets to be ignored, also in child processes."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def no_process_is_left_running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fail after the last test if a process still uses the folder of a test."""
    folder = tmp_path_factory.getbasetemp()
    yield
    left = left_running(folder)
    if left:
        pytest.fail("the tests left processes running:\n" + "\n".join(left), pytrace=False)


@pytest.fixture(scope="module", autouse=True)
def garbage_is_collected() -> Iterator[None]:
    """Have a file or socket that was not closed fail its own module, not one that happens to run later.

    What earlier modules left, such as shared servers, is not visited: that took 0.2 s for each module.
    """
    gc.freeze()
    yield
    gc.collect()


@pytest.fixture(autouse=True)
def no_run_is_left_open() -> Iterator[None]:
    """Finish the run that a test left open in this process: `init()` of the next test would return it."""
    yield
    start = sys.modules.get("runvitals.sdk.start")
    run = start.current_run() if start is not None else None
    if run is not None:
        run.finish()
    os.environ.pop("RUNVITALS_OPEN_RUN", None)  # servers that later tests start, and share, would inherit it


def fail_in_ci(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure where `CI` is set, unless nothing that can be installed would prevent it."""
    if not report.skipped or not os.environ.get("CI") or hasattr(report, "wasxfail"):
        return
    _, _, message = report.longrepr  # type: ignore[misc]  # of a skip: file, line, "Skipped: reason"
    reason = str(message).removeprefix("Skipped: ")
    if not reason.startswith(ACCEPTED_SKIP):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not accept: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    fail_in_ci(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    fail_in_ci(report)
    return report
