"""The previous monitor of the same run on the same host.

If it died, the new one records the gap, and continues the counters from the same baselines.
"""

from __future__ import annotations

import os

from runvitals.journal import frames, paths
from runvitals.model.ending import ProcessExit
from runvitals.monitoring.monitor.workers import EarlierProcess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Read from the start of a file, which contains the first baselines, and from its end, which contains an end
# record.
_PEEK_BYTES = 256 * 1024
_HEXADECIMAL = frozenset("0123456789abcdef")


class Predecessor:
    """The previous monitor, as known from its files.

    Args:
        first: path of its first file; None if there was no previous monitor.
        last: path of its newest file.

    Attributes:
        died_ms: time of its last record if it recorded no end, because nothing was sampled since then; else
            None.
        written_ms: modification time of its newest file.
        processes: those that it watched, as far as its newest file has them.
    """

    __slots__ = ("_first", "died_ms", "processes", "written_ms")

    def __init__(self, first: str | None = None, last: str | None = None) -> None:
        self._first = first
        self.died_ms: int | None = None
        self.written_ms = 0
        self.processes: list[EarlierProcess] = []
        if last is not None:
            self._read_end(last)

    def _read_end(self, last: str) -> None:
        status = os.stat(last)
        self.written_ms = status.st_mtime_ns // 1_000_000
        data = _read_range(last, max(0, status.st_size - _PEEK_BYTES))
        lifecycle = _json_records(data, (frames.LIFECYCLE,))
        self.processes = _processes(lifecycle)
        if all(value.get("what") != "end" for value in lifecycle):
            self.died_ms = max(_times_ms(data), default=self.written_ms)

    @classmethod
    def find(cls, folder: str, host: str, successor: str) -> Predecessor:
        """Return the newest monitor of `host` in a run's folder other than the writer `successor`."""
        name = f"monitor.{paths.safe_name(host)}"
        files_by_start = {}
        for writer, numbers in paths.segments(folder).items():
            role_and_host, _, start = writer.rpartition(".")
            if role_and_host == name and writer != successor and _HEXADECIMAL.issuperset(start):
                files = [paths.segment_path(folder, writer, number) for number in numbers]
                files_by_start[int(start, 16)] = files
        if not files_by_start:
            return cls()
        newest = files_by_start[max(files_by_start)]
        return cls(newest[0], newest[-1])

    def baselines(self, boot_id: str) -> dict[str, float]:
        """Return the raw totals of its counters at the run's first sample.

        Empty after a reboot, which resets totals.
        """
        if self._first is None:
            return {}
        baselines: dict[str, float] = {}
        for value in _json_records(_read_range(self._first, 0), (frames.START, frames.INFO)):
            if (value.get("boot_id") or boot_id) != boot_id:
                return {}
            baselines.update(value.get("baselines") or {})
        return baselines


def _processes(lifecycle: list[dict[str, Any]]) -> list[EarlierProcess]:
    """Return the processes that attached, and how they ended."""
    processes: dict[int, EarlierProcess] = {}
    for value in lifecycle:
        pid = int(value.get("pid") or 0)
        if value.get("what") == "attach":
            processes[pid] = EarlierProcess(pid, str(value.get("role")), ProcessExit(None, None))
        elif value.get("what") in ("finish", "exit") and pid in processes:
            code = value.get("exit_code")
            signal = value.get("signal")
            is_exit = value["what"] == "exit"
            processes[pid].exit = ProcessExit(code if is_exit else code or 0, signal)
    return list(processes.values())


def _read_range(path: str, start: int) -> bytes:
    try:
        return paths.read_range(path, start, _PEEK_BYTES)
    except OSError:
        return b""  # not a regular file, or unreadable


def _times_ms(data: bytes) -> list[int]:
    """Return the times of all records in part of a file."""
    samples_ms = [
        int.from_bytes(frame.payload[8:16], "little", signed=True)
        for frame in _records(data)
        if frame.type == frames.SAMPLE and len(frame.payload) >= 16
    ]
    others = _json_records(data, (frames.START, frames.INFO, frames.EVENT, frames.LIFECYCLE))
    return [*samples_ms, *(value["t"] for value in others if value.get("t"))]


def _json_records(data: bytes, types: tuple[int, ...]) -> list[dict[str, Any]]:
    from runvitals.journal.records import json_records  # most monitors have no predecessor: saves memory

    return json_records(data, types)


def _records(data: bytes) -> Iterator[frames.Frame]:
    from runvitals.journal.sealing import whole_records

    return whole_records(data)
