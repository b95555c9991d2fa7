"""The monitor before this one, of the same run on the same host: one that died leaves a gap to mark and a
zero to count on from.
"""

from __future__ import annotations

import os

from runvitals.journal import frames, paths
from runvitals.journal.sealing import whole_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Enough for the head of a file, where the first baselines are, and for its tail, where an end record would
# be.
_PEEK_BYTES = 256 * 1024
_HEXADECIMAL = frozenset("0123456789abcdef")


class Predecessor:
    """What an earlier monitor left in the run's folder.

    Args:
        first: path of its first file, or None where there was no earlier monitor.
        last: path of its newest file.
    """

    __slots__ = ("_first", "died_ms", "written_ms")

    def __init__(self, first: str | None = None, last: str | None = None) -> None:
        self._first = first
        # The time of its last record, if it never wrote that it ended: nothing was sampled since.
        self.died_ms: int | None = None
        # When the system says that it wrote it.
        self.written_ms = 0
        if last is not None:
            self._look_at(last)

    def _look_at(self, last: str) -> None:
        status = os.stat(last)
        self.written_ms = status.st_mtime_ns // 1_000_000
        data = _stretch(last, max(0, status.st_size - _PEEK_BYTES))
        if all(value.get("what") != "end" for value in _json_records(data, (frames.LIFECYCLE,))):
            self.died_ms = max(_times_ms(data), default=self.written_ms)

    @classmethod
    def find(cls, folder: str, host: str, successor: str) -> Predecessor:
        """The newest monitor of `host` in a run's folder but for `successor`, the writer that asks."""
        name = f"monitor.{paths.safe_name(host)}"
        lives = {}
        for writer, numbers in paths.segments(folder).items():
            of, _, started = writer.rpartition(".")
            if of == name and writer != successor and _HEXADECIMAL.issuperset(started):
                lives[int(started, 16)] = [paths.segment_path(folder, writer, number) for number in numbers]
        if not lives:
            return cls()
        files = lives[max(lives)]
        return cls(files[0], files[-1])

    def baselines(self, boot_id: str) -> dict[str, float]:
        """Its counters' raw totals at the run's first sample; none after a reboot, when all totals began
        again.
        """
        if self._first is None:
            return {}
        found: dict[str, float] = {}
        for value in _json_records(_stretch(self._first, 0), (frames.START, frames.INFO)):
            if (value.get("boot_id") or boot_id) != boot_id:
                return {}
            found.update(value.get("baselines") or {})
        return found


def _stretch(path: str, start: int) -> bytes:
    try:
        return paths.read_range(path, start, _PEEK_BYTES)
    except OSError:
        return b""  # no file at all, or one that cannot be read, tells nothing


def _times_ms(data: bytes) -> list[int]:
    """The times of the samples and of the events in a stretch of a file."""
    samples_ms = [
        int.from_bytes(frame.payload[8:16], "little", signed=True)
        for frame in whole_records(data)
        if frame.type == frames.SAMPLE and len(frame.payload) >= 16
    ]
    others = _json_records(data, (frames.START, frames.INFO, frames.EVENT, frames.LIFECYCLE))
    return [*samples_ms, *(value["t"] for value in others if value.get("t"))]


def _json_records(data: bytes, types: tuple[int, ...]) -> list[dict[str, Any]]:
    """Records of some types in a stretch of a file. What is damaged tells nothing."""
    from runvitals.journal.records import decode  # memory that a monitor without a predecessor saves

    found: list[dict[str, Any]] = []
    for frame in whole_records(data):
        if frame.type in types:
            try:
                record = decode("", frame, {})
            except ValueError:
                continue
            if record is not None:
                found.append(record.value)
    return found
