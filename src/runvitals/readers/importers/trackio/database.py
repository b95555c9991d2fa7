"""The SQLite file of a project of trackio, which is opened for reading only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from runvitals.readers.importers.csv_files.cells import time_ms
from runvitals.readers.importers.sources import open_sqlite

_TABLES: Final = ("metrics", "configs", "system_metrics", "alerts")
_NOT_FINITE: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


@dataclass(frozen=True, slots=True)
class TrackioRow:
    """What was logged at once.

    Args:
        time_ms: UTC.
        step: None for system metrics.
    """

    time_ms: int
    step: int | None
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TrackioAlert:
    """A call of `trackio.alert`."""

    time_ms: int
    title: str
    text: str
    level: str


class TrackioDatabase:
    """The runs of a project.

    Older files identify a run by its name, and have no alerts.

    Raises:
        ValueError: it is not trackio's.

    Attributes:
        damaged: rows that could not be read so far.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self.damaged = 0
        self._database = open_sqlite(path, "trackio", _TABLES)
        self._database.text_factory = lambda content: content.decode("utf-8", "replace")
        self._columns = {
            table: {row[1] for row in self._database.execute(f"PRAGMA table_info({table})")}
            for table in _TABLES
        }
        if not {"run_name", "step", "metrics"} <= self._columns["metrics"]:
            self._database.close()
            raise ValueError(f"{path} is not a SQLite file of trackio: it has no table of metrics")

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def runs(self) -> list[tuple[str, str]]:
        """Return the id and the name of each run, in the order in which they began."""
        parts = [
            f"SELECT {self._id(table)}, run_name, min({time}) FROM {table} GROUP BY 1"
            for table, time in (
                ("metrics", "timestamp"),
                ("system_metrics", "timestamp"),
                ("configs", "created_at"),
            )
            if self._columns[table]
        ]
        names: dict[str, str] = {}
        for run, name, _ in sorted(
            (row for part in parts for row in self._database.execute(part)), key=lambda row: str(row[2])
        ):
            names.setdefault(str(run), str(name))
        return list(names.items())

    def config(self, run: str) -> dict[str, Any]:
        """Return the configuration of a run; trackio's own entries begin with `_`."""
        if not self._columns["configs"]:
            return {}
        query = f"SELECT config FROM configs WHERE {self._id('configs')} = ?"
        rows = self._database.execute(query, (run,)).fetchall()
        return self._values(rows[-1][0]) if rows else {}

    def span(self, run: str) -> tuple[int, int] | None:
        """Return the first and the last time of what a run logged and measured, ms UTC; None without any."""
        moments = []
        for table in ("metrics", "system_metrics"):
            if self._columns[table]:
                query = f"SELECT min(timestamp), max(timestamp) FROM {table} WHERE {self._id(table)} = ?"
                moments += [time_ms(str(text)) for text in self._database.execute(query, (run,)).fetchone()]
        known_ms = [int(moment[0]) for moment in moments if moment is not None]
        return (min(known_ms), max(known_ms)) if known_ms else None

    def rows(self, run: str) -> Iterator[TrackioRow]:
        """Yield what a run logged, in order of time."""
        chosen = f"{self._id('metrics')} = ? ORDER BY timestamp, id"
        query = f"SELECT timestamp, step, metrics FROM metrics WHERE {chosen}"
        yield from self._read(query, run)

    def system_rows(self, run: str) -> Iterator[TrackioRow]:
        """Yield what trackio measured, in order of time."""
        if self._columns["system_metrics"]:
            chosen = f"{self._id('system_metrics')} = ? ORDER BY timestamp, id"
            query = f"SELECT timestamp, NULL, metrics FROM system_metrics WHERE {chosen}"
            yield from self._read(query, run)

    def alerts(self, run: str) -> Iterator[TrackioAlert]:
        """Yield the alerts of a run."""
        if not self._columns["alerts"]:
            return
        query = f"SELECT timestamp, title, text, level FROM alerts WHERE {self._id('alerts')} = ? ORDER BY id"
        for timestamp, title, text, level in self._database.execute(query, (run,)):
            moment = time_ms(str(timestamp))
            if moment is None:
                self.damaged += 1
            else:
                yield TrackioAlert(int(moment[0]), str(title), str(text or ""), str(level))

    def _id(self, table: str) -> str:
        return "run_id" if "run_id" in self._columns[table] else "run_name"

    def _read(self, query: str, run: str) -> Iterator[TrackioRow]:
        for timestamp, step, values in self._database.execute(query, (run,)):
            moment = time_ms(str(timestamp))
            data = self._values(values)
            if moment is None or not data:
                self.damaged += 1
            else:
                yield TrackioRow(int(moment[0]), step if isinstance(step, int) else None, data)

    def _values(self, stored: Any) -> dict[str, Any]:
        """Return the values of a row: JSON, of type text or blob."""
        try:
            values = json.loads(stored)
        except (TypeError, ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            return {}
        return {
            name: _NOT_FINITE.get(value, value) if isinstance(value, str) else value
            for name, value in values.items()
        }
