"""Runs training scripts in real processes, and reads their journals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from runvitals.journal import frames
from runvitals.journal.reader import read_run
from runvitals.journal.records import Record
from tests.patience import PATIENCE_S

Start = Callable[..., "subprocess.Popen[str]"]


class Journals:
    """The data folder of one test."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def folders(self) -> list[Path]:
        runs = self.directory / "runs"
        if not runs.is_dir():
            return []
        return sorted(run for run in runs.iterdir() if not run.name.startswith("."))

    def records(self, run_id: str | None = None) -> list[Record]:
        """All records of a run, or of the only one there is."""
        folders = self.folders()
        if run_id is None:
            assert len(folders) == 1, f"expected one run, found {[f.name for f in folders]}"
            run_id = folders[0].name
        return list(read_run(str(self.directory / "runs" / run_id)))

    def lifecycle(self, what: str, run_id: str | None = None) -> list[dict[str, Any]]:
        return [
            r.value for r in self.records(run_id) if r.type == frames.LIFECYCLE and r.value["what"] == what
        ]

    def samples(self, run_id: str | None = None) -> list[Record]:
        return [r for r in self.records(run_id) if r.type == frames.SAMPLE]

    def history(self, run_id: str | None = None) -> list[dict[str, Any]]:
        return [r.value for r in self.records(run_id) if r.type == frames.HISTORY]

    def monitors(self) -> list[int]:
        """Pids of the monitors that write into this folder."""
        pids = [pid for pid in _pids() if self._is_monitor(Path("/proc") / str(pid))]
        parents = {pid: _parent(pid) for pid in pids}
        # Not a child that gathers facts, and may have ended meanwhile.
        return [pid for pid, by in parents.items() if by is not None and not _is_named_monitor(by)]

    def _is_monitor(self, process: Path) -> bool:
        if not _is_named_monitor(int(process.name)):
            return False
        try:
            descriptors = list((process / "fd").iterdir())
        except OSError:
            return False  # it has ended
        return any(str(self.directory) in _target(descriptor) for descriptor in descriptors)

    def end(self, run_id: str | None = None) -> dict[str, Any]:
        """The monitor's verdict, waited for."""
        end = eventually(lambda: [end for end in self.lifecycle("end", run_id) if "expected" not in end])[-1]
        return {"exit_code": None, "signal": None, **end}  # readers leave out what is null


def _is_named_monitor(pid: int) -> bool:
    try:
        return b"runvitals-monitor" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _target(descriptor: Path) -> str:
    try:
        return os.readlink(descriptor)
    except OSError:
        return ""  # closed since it was listed


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def eventually(look: Callable[[], Any]) -> Any:
    """Wait until `look` returns something, and return that."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            value = look()
        except (AssertionError, FileNotFoundError):
            value = None
        if value:
            return value
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.01)


def environment(directory: Path, **more: str) -> dict[str, str]:
    """An environment without the settings and launcher variables of the test process."""
    kept = {
        k: v
        for k, v in os.environ.items()
        if k in ("PATH", "HOME", "TMPDIR", "LANG", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
    }
    source = Path(__file__).parents[2] / "src"
    patience = {"RUNVITALS_FINISH_TIMEOUT": str(PATIENCE_S)}  # a busy machine takes over 5 s
    return {**kept, **patience, "PYTHONPATH": str(source), "RUNVITALS_DIR": str(directory), **more}


def start(directory: Path, script: str, **more: str) -> subprocess.Popen[str]:
    """Start a training script in a separate process."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=environment(directory, **more),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for a script to end; returns (exit code, stdout, stderr)."""
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out, err


def succeeded(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Wait for a script to end without an error; returns (stdout, stderr)."""
    code, out, err = finished(process)
    assert code == 0, err
    return out, err


def say(process: subprocess.Popen[str], text: str) -> None:
    """Answer a script's `input()`."""
    assert process.stdin is not None
    process.stdin.write(text + "\n")
    process.stdin.flush()


def line(process: subprocess.Popen[str]) -> str:
    """The next line that a script prints, which marks its progress."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end_group(process: subprocess.Popen[str]) -> None:
    """End the processes that a failed test left running."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
