"""Finding the previous monitor of a run, with damaged files too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runvitals.journal import frames
from runvitals.journal.frames import frame
from runvitals.journal.writer import JournalWriter
from runvitals.monitoring.monitor.predecessor import Predecessor

BOOT = "boot"


def _find(folder: Path) -> Predecessor:
    return Predecessor.find(str(folder), "n1", "monitor.n1.ff")


def test_the_baselines_of_a_monitor_that_died(tmp_path: Path) -> None:
    journal = JournalWriter(str(tmp_path), "monitor.n1.1", {"boot_id": BOOT})
    journal.json(frames.INFO, {"t": 1, "baselines": {"disk.in": 5.0}})
    predecessor = _find(tmp_path)
    assert predecessor.died_ms is not None
    assert predecessor.baselines(BOOT) == {"disk.in": 5.0}
    assert predecessor.baselines("another") == {}


@pytest.mark.parametrize(
    "payload",
    [
        b"[1]",
        b'{"t":1,"baselines":[5]}',
        b'{"t":1,"baselines":{"disk.in":"5"}}',
        b'{"t":1,"baselines":{"disk.in":NaN}}',
        b'{"t":1,"baselines":{"disk.in":1e400}}',
        b"{",
    ],
)
def test_damaged_records_are_skipped(tmp_path: Path, payload: bytes) -> None:
    good = b'{"t":1,"baselines":{"disk.out":7.0}}'
    data = frame(frames.INFO, 0, payload) + frame(frames.LIFECYCLE, 1, b"[]") + frame(frames.INFO, 2, good)
    (tmp_path / "monitor.n1.1.00000.rvj").write_bytes(data)
    predecessor = _find(tmp_path)
    assert predecessor.died_ms is not None
    assert predecessor.baselines(BOOT) == {"disk.out": 7.0}


def test_a_pipe_with_the_name_of_a_journal_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "monitor.n1.1.00000.rvj")
    (tmp_path / "monitor.n1.zz.00000.rvj").touch()
    predecessor = _find(tmp_path)
    assert predecessor.baselines(BOOT) == {}
