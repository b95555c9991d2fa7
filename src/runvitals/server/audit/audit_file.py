"""The audit log as a file of JSON lines, which tools that collect logs can read: `--audit-file`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import BinaryIO, Final

from runvitals.server.audit.storage.audit import AuditEvent, AuditTable, event_as_dict
from runvitals.store import private_files
from runvitals.store.supervised_thread import SupervisedThread

_POLL_S: Final = 1.0
_SETTLED_MS: Final = 60_000
"""An event is written within this time of its `time_ms`: until then one with a lower id may still come."""
_TAIL_BYTES: Final = 1 << 20


class AuditFile:
    """Appends every event of the audit log, of all processes, to a file. `with` ends it.

    An event is written once, also over restarts. Rotate the file by renaming it: the next event starts a new
    one.

    Args:
        clock: the time now, ms UTC.

    Attributes:
        thread: writes what is new; start and close it.
    """

    def __init__(self, path: str, audit: AuditTable, clock: Callable[[], int]) -> None:
        self._path = path
        self._audit = audit
        self._clock = clock
        self._written: dict[int, int] = {}
        self._settled_id = 0
        self.thread = SupervisedThread("audit-file", self._turn, every_s=_POLL_S)
        self._resume()

    def write_new(self) -> int:
        """Write what is new; returns how many events."""
        count = 0
        after_id = self._settled_id
        while events := self._audit.since(after_id):
            new = [event for event in events if event.id not in self._written]
            self._append(new)
            count += len(new)
            after_id = events[-1].id
        self._forget_settled()
        return count

    def _append(self, events: list[AuditEvent]) -> None:
        if not events:
            return
        lines = "".join(f"{json.dumps(event_as_dict(event))}\n" for event in events)
        with open(self._path, "ab+", opener=_private) as file:
            if file.tell() and not _ends_in_line_break(file):
                file.write(b"\n")  # a crash or a full disk cut off the line before, which is written again
            file.write(lines.encode("ascii"))
            file.flush()
            os.fsync(file.fileno())
        for event in events:
            self._written[event.id] = event.time_ms

    def _forget_settled(self) -> None:
        before_ms = self._clock() - _SETTLED_MS
        for event_id in sorted(self._written):
            if self._written[event_id] >= before_ms:
                break
            self._settled_id = event_id
            del self._written[event_id]

    def _resume(self) -> None:
        """Continue after what the file contains; start a new file with the events from now on."""
        self._written = _newest_events(self._path)
        if self._written:
            before_ms = max(self._written.values()) - _SETTLED_MS
            settled = [event_id for event_id, time_ms in self._written.items() if time_ms < before_ms]
            self._settled_id = max(settled, default=min(self._written) - 1)
        else:
            self._settled_id = self._audit.newest_id()

    def _turn(self) -> bool:
        if self.thread.closing.is_set():
            return False
        self.write_new()
        return True

    def __enter__(self) -> AuditFile:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.thread.close()
        self.write_new()


def _newest_events(path: str) -> dict[int, int]:
    """Return times by id of the events at the end of a file, back to one that is settled.

    The ids of those after it need not be in order. Empty if there is no file.
    """
    size = _TAIL_BYTES
    while True:
        try:
            with open(path, "rb") as file:
                end = file.seek(0, os.SEEK_END)
                file.seek(max(0, end - size))
                events = _events_of(file.read().splitlines())
        except FileNotFoundError:
            return {}
        times_ms = events.values()
        if size >= end or (events and min(times_ms) < max(times_ms) - _SETTLED_MS):
            return events
        size *= 4


def _events_of(lines: Iterable[bytes]) -> dict[int, int]:
    times = {}
    for line in lines:
        try:
            event = json.loads(line)
            times[int(event["id"])] = int(event["time_ms"])
        except (ValueError, KeyError, TypeError):
            continue  # the first line of the part that was read, or one that a crash cut off
    return times


def _ends_in_line_break(file: BinaryIO) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, private_files.MODE)
