"""Runs the tests of a peer: `python -m tests.peers wandb|promql CHECKOUT [arguments of pytest]`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from tests.peers.promql import differences
from tests.peers.wandb_backend import backend

HERE = Path(__file__).parent
_TOOL = """import json
print(json.dumps({"base_port": %d, "fixture_port": %d}))
"""
_AFTER_REPORT_S = 30
_WANDB_TESTS = [
    "tests/system_tests/test_api",
    "tests/system_tests/test_core/test_public_api.py",
    "tests/system_tests/test_core/test_resume.py",
    "tests/system_tests/test_core/test_offline_sync.py",
    "tests/system_tests/test_core/test_file_stream.py",
    "tests/system_tests/test_core/test_metric_full.py",
]


class Outcome(NamedTuple):
    """How many tests passed, which failed, and why others were skipped."""

    passed: int
    failed: Mapping[str, str]
    skipped: int


def wandb(checkout: Path, python: str, arguments: list[str]) -> Outcome:
    """Run the tests of wandb with the installed client of an interpreter.

    Their folder is copied, so that they do not import the checkout's client, which would have to be built.
    """
    with tempfile.TemporaryDirectory(prefix="peers.") as name, backend(Path(name) / "server") as ours:
        folder = Path(name) / "checkout"
        shutil.copytree(checkout / "tests", folder / "tests", symlinks=True)
        shutil.copy(checkout / "pyproject.toml", folder)
        (folder / "tools").mkdir()
        (folder / "tools/local_wandb_server.py").write_text(_TOOL % (ours.port, ours.fixture_port))
        report = Path(name) / "report.xml"
        path = os.pathsep.join((str(Path(python).parent), os.environ["PATH"]))
        words = [python, "-m", "pytest", "-q", "--no-header", "--tb=line", "-o", "addopts=", "--timeout=120"]
        words.append(f"--junitxml={report}")
        home = {"HOME": name, "PATH": path, "TMPDIR": name}
        tests = subprocess.Popen(
            [*words, *(arguments or _WANDB_TESTS)],
            cwd=folder,
            env={**os.environ, **home},
            start_new_session=True,
        )
        _await_end(tests, report)
        return _outcome(report)


def _await_end(tests: subprocess.Popen[bytes], report: Path) -> None:
    """Wait for the tests. Threads of the client may keep their process after the report is written."""
    left_s = _AFTER_REPORT_S
    while left_s > 0:
        try:
            tests.wait(1)
            return
        except subprocess.TimeoutExpired:
            left_s -= report.exists()
    os.killpg(tests.pid, signal.SIGKILL)
    tests.wait()


def _outcome(report: Path) -> Outcome:
    if not report.exists():
        raise SystemExit("no test was collected: see above; is the checkout of the client's version?")
    passed, skipped, failed = 0, 0, dict[str, str]()
    for case in ElementTree.parse(report).iter("testcase"):
        test = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        problem = next((part for part in case if part.tag in ("failure", "error")), None)
        if problem is not None:
            failed[test] = (problem.get("message") or "").partition("\n")[0][:200]
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return Outcome(passed, failed, skipped)


def compared(outcome: Outcome, gaps: Mapping[str, str]) -> int:
    """Print an outcome beside the known gaps; returns 1 if anything else fails, or nothing passed."""
    used, unknown = Counter[str](), dict[str, str]()
    for test, problem in outcome.failed.items():
        gap = next((pattern for pattern in gaps if fnmatchcase(test, pattern)), None)
        if gap is None:
            unknown[test] = problem
        else:
            used[gap] += 1
    print(f"\n{outcome.passed} passed, {len(outcome.failed)} failed, {outcome.skipped} skipped")
    for gap, count in used.items():
        print(f"  known ({count}): {gap}: {gaps[gap]}")
    for gap in gaps.keys() - used.keys():
        print(f"  nothing fails any more: {gap}")
    for test, problem in unknown.items():
        print(f"  NOT KNOWN: {test}: {problem}")
    return 1 if unknown or not outcome.passed else 0


def main(words: list[str]) -> int:
    """Run a peer's tests, or say how to call this."""
    if len(words) < 2 or words[0] not in ("wandb", "promql") or not Path(words[1]).is_dir():
        print("scripts/peers wandb|promql CHECKOUT [arguments of pytest]", file=sys.stderr)
        return 2
    peer, checkout = words[0], Path(words[1]).resolve()
    gaps = json.loads((HERE / f"{peer}_gaps.json").read_text("utf-8"))
    if peer == "promql":
        return compared(Outcome(*differences(checkout)), gaps)
    return compared(wandb(checkout, os.environ["PEERS_PYTHON"], words[2:]), gaps)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
