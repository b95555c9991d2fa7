"""Fixtures of the SDK's tests: a data folder, and training scripts in separate processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import pytest

from tests.sdk.runs import Journals, Start, end_group, start


@pytest.fixture
def journals(tmp_path: Path) -> Journals:
    return Journals(tmp_path)


@pytest.fixture
def train(tmp_path: Path) -> Iterator[Start]:
    """Starts scripts, and ends those still running after the test."""
    started = []

    def begin(script: str, **more: str) -> Popen[str]:
        started.append(start(tmp_path, script, **more))
        return started[-1]

    yield begin
    for process in started:
        end_group(process)
