"""No program of this machine is found, but for those that a test installs; no child outlives its test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.trainium.collector import Trainium
from tests.monitoring.collectors.trainium import machines

Open = Callable[..., Trainium]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of programs, first on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.delenv("NEURON_PROCESS_TAG", raising=False)
    return folder


@pytest.fixture
def machine(tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens the collector on the machine in the test's folder."""
    # The driver's files are read in a thread. Here a tick waits for it.
    opened: list[Trainium] = []

    def open_it(pids: tuple[int, ...] = (), **options: str) -> Trainium:
        collector = machines.open_machine(tmp_path, pids, **options)
        if collector._reader is not None:
            collector._reader._patience_s = 10.0
        opened.append(collector)
        return collector

    yield open_it
    for collector in opened:
        collector.close()
