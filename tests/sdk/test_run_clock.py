"""All processes of a run on one machine share a clock."""

from __future__ import annotations

import itertools
from pathlib import Path

from runvitals.journal import frames
from runvitals.journal.clock import RunClock, boot_id
from runvitals.journal.writer import JournalWriter
from runvitals.readers.journals.runs import RunList
from runvitals.sdk.run_clock import clock_of_run
from tests.sdk.runs import Journals, Start, succeeded

YEAR_MS = 365 * 86_400_000


def journal(folder: Path, clock: RunClock, boot: str) -> JournalWriter:
    return JournalWriter(
        str(folder), "train.n1.1.0", {"run": "run1", "role": "train", "boot_id": boot}, clock=clock
    )


def test_new_run_uses_the_system_clock(tmp_path: Path) -> None:
    assert clock_of_run(str(tmp_path / "none"), boot_id()).ahead_ms() == 0


def test_joining_process_uses_the_clock_of_the_run(tmp_path: Path) -> None:
    milliseconds = itertools.count(50_000)  # each reading of the clock is a millisecond later
    ahead = RunClock(RunClock().anchor_ms + YEAR_MS, steady_ns=lambda: next(milliseconds) * 1_000_000)
    journal(tmp_path, ahead, boot_id()).close()
    assert clock_of_run(str(tmp_path), boot_id()).anchor_ms == ahead.anchor_ms


def test_system_clock_is_used_after_a_reboot(tmp_path: Path) -> None:
    journal(tmp_path, RunClock(RunClock().anchor_ms + YEAR_MS), "before").close()
    assert clock_of_run(str(tmp_path), boot_id()).ahead_ms() == 0


def test_damaged_journals_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "train.n1.1.0.00000.rvj").write_bytes(b"nonsense" * 1000)
    (tmp_path / "a.00000.rvj").mkdir()
    assert clock_of_run(str(tmp_path), boot_id()).ahead_ms() == 0


def test_training_and_monitor_share_the_clock_of_the_run(
    train: Start, journals: Journals, tmp_path: Path
) -> None:
    """The run started a year ago, according to a clock that was corrected since."""
    behind = RunClock(RunClock().anchor_ms - YEAR_MS)
    journal(tmp_path / "runs" / "run1", behind, boot_id()).close()
    succeeded(
        train("""
            import runvitals
            run = runvitals.init(id="run1", resume="must", settings={"sampling_interval": 0.1})
            run.log({"loss": 1.0})
            run.alert("here")
            run.summary["best"] = 1.0
            run.finish()
        """)
    )
    journals.end()
    times_ms = [record.time_ms for record in journals.records() if record.type != frames.SCHEMA]
    assert len(times_ms) > 8
    assert all(abs(time_ms - behind.now_ms()) < 600_000 for time_ms in times_ms), times_ms
    (event,) = [
        r.value for r in journals.records() if r.type == frames.EVENT and r.value["name"] == "clock_set"
    ]
    assert abs(event["by_ms"] - YEAR_MS) < 2000
    run = RunList(str(tmp_path)).run("run1", RunClock().now_ms())
    assert run is not None
    assert run.duration_ms < 600_000


def test_runvitals_run_and_its_command_share_a_clock(
    train: Start, journals: Journals, tmp_path: Path
) -> None:
    succeeded(
        train("""
            import subprocess, sys
            script = "import runvitals; run = runvitals.init(); run.log({'x': 1}); run.finish()"
            wrapper = [sys.executable, "-m", "runvitals", "run", "--console", "--"]
            sys.exit(subprocess.run([*wrapper, sys.executable, "-c", script]).returncode)
        """)
    )
    journals.end()
    starts = [r.value for r in journals.records() if r.type == frames.START]
    assert {start["role"] for start in starts} == {"monitor", "train", "console"}
    anchors_ms = {start["t"] - start["since_boot_ms"] for start in starts}
    assert max(anchors_ms) - min(anchors_ms) <= 1, "of rounding"
    assert {start["boot_id"] for start in starts} == {boot_id()}
