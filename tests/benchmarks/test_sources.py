"""The benchmarks of sources and of a backlog run: the fakes and collectors that they use still fit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("nvidia", "amd", "apple", "tpu", "trainium", "graphcore", "others", "openmetrics")


def output(*arguments: str) -> str:
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_every_source_has_a_cost() -> None:
    heading, *lines = output("benchmarks.sources", "--quick").splitlines()
    assert heading.split() == ["what", "ms", "of", "CPU"]
    assert {name for name in SOURCES if any(line.startswith(f"{name}: ") for line in lines)} == set(SOURCES)
    assert all(float(line.split()[-1]) >= 0 for line in lines)


def test_a_backlog_is_delivered() -> None:
    row = output("benchmarks.backlog", "--seconds", "600").splitlines()[-1]
    assert row.startswith("| 60 | 3,600 |")
