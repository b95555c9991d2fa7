"""The monitor before this one, as its files tell of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runvitals.journal import frames
from runvitals.journal.writer import Writer
from runvitals.monitor.predecessor import Predecessor

T0 = 1_760_000_000_000
YEAR_S = 365 * 86_400


def write(folder: Path, end: bool = False) -> Writer:
    journal = Writer(str(folder), "monitor.n1.1", {"run": "r1", "host": "n1", "role": "monitor", "t": T0})
    journal.json(frames.INFO, {"t": T0 + 500, "baselines": {"disk.in": 100.0}})
    for second in range(5):
        journal.sample(T0 + second * 1000, {"cpu": 1.0})
    if end:
        journal.json(frames.LIFECYCLE, {"t": T0 + 5000, "what": "end", "state": "finished"})
    journal.close()
    return journal


@pytest.mark.parametrize("set_by_s", [0, 11 * YEAR_S, -40 * YEAR_S])
def test_the_gap_begins_with_the_last_record_by_the_run_s_clock(tmp_path: Path, set_by_s: int) -> None:
    journal = write(tmp_path)
    os.utime(journal.path, (T0 / 1000 + set_by_s, T0 / 1000 + set_by_s))
    found = Predecessor.find(str(tmp_path), "n1", "monitor.n1.2")
    assert (found.died_ms, found.written_ms) == (T0 + 4000, T0 + set_by_s * 1000)


def test_one_that_ended_leaves_no_gap(tmp_path: Path) -> None:
    write(tmp_path, end=True)
    found = Predecessor.find(str(tmp_path), "n1", "monitor.n1.2")
    assert found.died_ms is None
    assert found.baselines("b") == {"disk.in": 100.0}


def test_a_file_without_a_whole_record_is_as_old_as_the_system_says(tmp_path: Path) -> None:
    journal = write(tmp_path)
    Path(journal.path).write_bytes(b"torn")
    os.utime(journal.path, (T0 / 1000, T0 / 1000))
    assert Predecessor.find(str(tmp_path), "n1", "monitor.n1.2").died_ms == T0


def test_there_was_none(tmp_path: Path) -> None:
    found = Predecessor.find(str(tmp_path), "n1", "monitor.n1.2")
    assert (found.died_ms, found.baselines("b")) == (None, {})
