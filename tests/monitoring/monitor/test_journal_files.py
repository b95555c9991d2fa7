"""Maintenance of a run's journal files."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.journal import frames
from runvitals.journal.writer import JournalWriter
from runvitals.monitoring.monitor.journal_files import SYNC_EVERY_S, JournalFiles


class Disk:
    """Stands in for `os.fsync`: notes the flushed files, and may fail."""

    def __init__(self) -> None:
        self.flushed: list[str] = []
        self.fails = False

    def fsync(self, fd: int) -> None:
        if self.fails:
            raise OSError(errno.EIO, "Input/output error")
        self.flushed.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")).split(".")[0])

    def since(self) -> list[str]:
        """The files that were flushed since the last call."""
        flushed, self.flushed = self.flushed, []
        return sorted(flushed)


class Run:
    """A run with the journals of a monitor and a training process."""

    def __init__(self, folder: Path) -> None:
        self.monitor = JournalWriter(str(folder), "monitor.node1.0", {"role": "monitor"})
        self.training = JournalWriter(str(folder), "train.node1.1", {"role": "train"})
        self.warnings: list[str] = []
        self._now_s = 0.0
        self.files = JournalFiles(self.monitor, lambda name, text: self.warnings.append(name), self._now_s)

    def log(self) -> None:
        self.training.json(frames.HISTORY, {"t": 1, "data": {"loss": 0.5}})

    def sync(self) -> None:
        """Let the time pass until the files are flushed."""
        self._now_s += SYNC_EVERY_S
        self.files.maintain(self._now_s)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(os, "fsync", disk.fsync)
    return disk


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path)
    yield run
    run.files.reserve.release()
    run.monitor.close()
    run.training.close()


def test_only_files_with_new_records_are_flushed(run: Run, disk: Disk) -> None:
    run.sync()
    assert disk.since() == ["monitor", "train"]
    run.sync()
    assert disk.since() == []
    run.log()
    run.sync()
    assert disk.since() == ["train"]


def test_a_file_that_could_not_be_flushed_is_flushed_again(run: Run, disk: Disk) -> None:
    disk.fails = True
    run.sync()
    run.sync()
    assert run.warnings == ["sync_failed"]
    disk.fails = False
    run.sync()
    assert disk.since() == ["monitor", "train"]
