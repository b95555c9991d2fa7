"""Runs of this machine during which the system clock was set."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from runvitals.journal import frames
from runvitals.journal.clock import RunClock, boot_id, since_boot_ns
from runvitals.journal.writer import JournalWriter
from runvitals.readers.journals.reader import RunReader
from runvitals.readers.journals.runs import RunList

YEAR_MS = 365 * 86_400_000
SET_BY_MS = (11 * YEAR_MS, -55 * YEAR_MS, 3_600_000, -3_600_000)


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def write(directory: Path, clock: RunClock, samples: int, boot: str | None = None) -> JournalWriter:
    """A monitor with one sample per second, the newest of them now."""
    about = {"run": "r1", "host": "n1", "role": "monitor", "interval_s": 1.0}
    about["boot_id"] = boot_id() if boot is None else boot
    journal = JournalWriter(str(directory / "runs" / "r1"), "monitor.n1.1", about, clock=clock)
    for age_s in reversed(range(samples)):
        journal.sample(clock.now_ms() - age_s * 1000, {"cpu": 1.0})
    return journal


@pytest.mark.parametrize("by_ms", SET_BY_MS)
def test_a_run_stays_running_with_its_true_duration(tmp_path: Path, by_ms: int) -> None:
    began = RunClock(RunClock().anchor_ms - by_ms)  # the system's clock was set by so much after it began
    write(tmp_path, began, 3).close()
    run = RunList(str(tmp_path)).run("r1", wall_ms())
    assert run is not None
    assert run.state == "running"
    assert 0 <= run.duration_ms < 600_000
    reader = RunReader("r1", str(tmp_path))
    reader.poll()
    assert reader.run(wall_ms()).state == "running"


@pytest.mark.parametrize("by_ms", SET_BY_MS)
def test_a_run_whose_monitor_is_silent_is_lost_by_any_clock(tmp_path: Path, by_ms: int) -> None:
    minute_ago = RunClock(RunClock().anchor_ms - by_ms, steady_ns=lambda: since_boot_ns() - 60_000_000_000)
    write(tmp_path, minute_ago, 3).close()
    run = RunList(str(tmp_path)).run("r1", wall_ms())
    assert run is not None
    assert run.state == "lost"
    assert run.duration_ms < 600_000


def test_an_ended_run_has_its_true_duration(tmp_path: Path) -> None:
    journal = write(tmp_path, RunClock(RunClock().anchor_ms + 11 * YEAR_MS), 3)
    journal.json(frames.LIFECYCLE, {"t": journal.clock.now_ms(), "what": "end", "state": "finished"})
    journal.close()
    run = RunList(str(tmp_path)).run("r1", wall_ms())
    assert run is not None
    assert (run.state, run.duration_ms < 600_000) == ("finished", True)


def test_records_from_the_future_of_another_boot_do_not_make_a_run_running(tmp_path: Path) -> None:
    write(tmp_path, RunClock(RunClock().anchor_ms + 11 * YEAR_MS), 3, boot="before the crash").close()
    run = RunList(str(tmp_path)).run("r1", wall_ms())
    assert run is not None
    assert run.state == "lost"


def test_another_machine_whose_clock_is_a_little_ahead_is_running(tmp_path: Path) -> None:
    write(tmp_path, RunClock(RunClock().anchor_ms + 60_000), 3, boot="another machine").close()
    run = RunList(str(tmp_path)).run("r1", wall_ms())
    assert run is not None
    assert run.state == "running"
