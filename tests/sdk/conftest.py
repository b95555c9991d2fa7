"""What tests of the SDK have in common: a data folder, and training scripts in processes of their own."""

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
    """Starts scripts; ends what is left of them after the test."""
    started = []

    def begin(script: str, **more: str) -> Popen[str]:
        started.append(start(tmp_path, script, **more))
        return started[-1]

    yield begin
    for process in started:
        end_group(process)
