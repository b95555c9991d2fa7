"""The day on which a run or a version of an artifact was last read, for who wants to clear up."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final, Literal

from sqlalchemy import Connection, or_, update

from runvitals.model.durations import DAY_MS
from runvitals.server.database.database import Database, StoredTable, among
from runvitals.server.database.tables.artifacts import artifact_version
from runvitals.server.database.tables.runs import run
from runvitals.server.runs.storage.run_locks import lock_runs

_BATCH: Final = 500
_FIRST_DAY: Final = date(1970, 1, 1)
_TABLES: Final = {"run": run, "version": artifact_version}
_Read = tuple[Literal["run", "version"], int]


class ReadDays(StoredTable):
    """Notes reads in memory, and writes each at most once a day. Thread-safe.

    Example:
        >>> metadata_store.read_days.note_run(7, now_ms)
        >>> metadata_store.read_days.write()
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._lock = threading.Lock()
        self._day = 0
        self._noted: set[_Read] = set()
        self._unwritten: dict[_Read, int] = {}

    def note_run(self, run_id: int, now_ms: int) -> None:
        """Note that a run is read."""
        self._note(("run", run_id), now_ms)

    def note_version(self, version_id: int, now_ms: int) -> None:
        """Note that a file of a version is read."""
        self._note(("version", version_id), now_ms)

    def _note(self, read: _Read, now_ms: int) -> None:
        day = now_ms // DAY_MS
        with self._lock:
            if day != self._day:
                self._day = day
                self._noted.clear()
            if read not in self._noted:
                self._noted.add(read)
                self._unwritten[read] = max(day, self._unwritten.get(read, day))

    def write(self) -> None:
        """Write what was noted since the last time; after a failure it is written the next time."""
        with self._lock:
            unwritten = dict(self._unwritten)
        for day in sorted(set(unwritten.values())):
            for kind in _TABLES:
                ids = sorted(number for (of, number), on in unwritten.items() if (of, on) == (kind, day))
                for first in range(0, len(ids), _BATCH):
                    self._write(kind, day, ids[first : first + _BATCH])
        with self._lock:
            for read, day in unwritten.items():
                if self._unwritten.get(read) == day:
                    del self._unwritten[read]

    def _write(self, kind: str, day: int, ids: Sequence[int]) -> None:
        columns = _TABLES[kind].c

        def work(connection: Connection) -> None:
            if kind == "run":
                lock_runs(connection, ids)
            earlier = or_(columns.read_day.is_(None), columns.read_day < day)
            connection.execute(
                update(_TABLES[kind]).where(among(connection, columns.id, ids), earlier).values(read_day=day)
            )

        self._database.write(work, durable=False)


def day_text(day: int | None) -> str | None:
    """Return a day as in responses: `2026-11-29`."""
    return None if day is None else (_FIRST_DAY + timedelta(day)).isoformat()
