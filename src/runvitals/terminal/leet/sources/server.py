"""Runs on a server, of which only what is shown is requested.

First come the series of the charts of a page, in the detail that their size needs; later requests add new
values.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

from runvitals.findings.finding import Findings, from_json
from runvitals.model.logged_media import LoggedMedia, MediaKey
from runvitals.model.run import Run
from runvitals.readers.journals.console import ConsoleText
from runvitals.readers.servers import responses
from runvitals.readers.servers.connection import ApiConnection
from runvitals.readers.servers.remote_files import RemoteFiles
from runvitals.terminal.leet.charts import SeriesName
from runvitals.terminal.leet.series_column import SeriesColumn
from runvitals.terminal.leet.shared_use import SharedUse
from runvitals.terminal.leet.sources.credentials import with_remedy
from runvitals.terminal.leet.sources.run_source import LoggedLine, SystemKeys

MAX_CONTENT_BYTES = 64 * 1024 * 1024
_POINTS = 1000
_KEYS_PER_REQUEST = 50
_MIN_POINTS = 200
"""A range of times with fewer buckets than this is requested again, in more detail."""


class _Fetched:
    """A series: coarse for the whole run, and in detail from `since_ms` to `until_ms`."""

    def __init__(self) -> None:
        self.column = SeriesColumn()
        self.bucket_ms = 0.0
        self.since_ms, self.until_ms = inf, -inf

    def lacks(self, x_range: tuple[float, float]) -> bool:
        """Return whether a range needs more detail."""
        low, high = x_range
        is_coarse = self.bucket_ms * _MIN_POINTS > high - low
        return is_coarse and not (self.since_ms <= low and high <= self.until_ms)


class ServerSource:
    """A run of a server.

    Args:
        connection: used by this source alone.
        run_id: the run.
        remedy: what the user can do if the server rejects the credentials.
    """

    def __init__(self, connection: ApiConnection, run_id: str, remedy: str = "") -> None:
        self.run: Run | None = None
        self._connection = connection
        self._use = SharedUse(connection.close)
        self._id = run_id
        self._remedy = remedy
        self._files = RemoteFiles(connection, run_id)
        self._cursor = ""
        self._keys: dict[tuple[str, str], set[str]] = {}
        self._series: dict[SeriesName, _Fetched] = {}
        self._names: dict[str, None] = {}
        self._logged: dict[str, dict[tuple[str, int | None], tuple[SeriesColumn, SeriesColumn]]] = {}
        self._missing: dict[SeriesName, tuple[float, float]] = {}
        self._missing_names: set[str] = set()
        self._pieces: list[ConsoleText] = []
        self._media_keys: list[MediaKey] = []
        self._end_ms = 0.0
        self._lock = threading.Lock()  # of what a poll changes
        self._asking = threading.RLock()  # the connection takes one request at a time

    def poll(self) -> bool:
        """Request what is new, and what was wanted since the last poll."""
        with self._use(), self._asking, with_remedy(self._remedy):
            is_new = self._news() if self._cursor else self._start()
            return self._fetch_series() | self._fetch_logged() | is_new

    def _get(self, path: str, parameters: Iterable[tuple[str, Any]] = ()) -> Any:
        return self._connection.get_of_run(self._id, path, parameters)

    # -- the start, and what is new

    def _start(self) -> bool:
        run = responses.run(self._get(""))
        cursor = self._get("/metrics", [("keys", ["cpu"]), ("max_points", 2)])["cursor"]
        infos: list[Mapping[str, Any]] = []
        while page := self._get("/series", [("skip", len(infos))]):
            infos += page
        names: list[str] = []
        while name_page := self._get("/history/names", [("skip", len(names))]):
            names += name_page
        pieces = self._console()
        media_keys = self._files.media_keys()
        with self._lock:
            for info in infos:
                self._keys.setdefault((info["host"], info["role"]), set()).add(info["key"])
            ends = [info["last_ms"] for info in infos if info["last_ms"] is not None]
            self._end_ms = float(max([run.started_ms, *ends]))
            self._names = dict.fromkeys(names)
            self._pieces, self._media_keys = pieces, media_keys
            self.run = run
            self._cursor = cursor
        return True

    def _news(self) -> bool:
        news = self._get("/metrics", [("after", self._cursor)])
        if news.get("reload"):
            self._series.clear()
            self._logged.clear()
            self._missing_names.update(self._names)
            return self._start()
        with self._lock:
            self._add_samples(news.get("samples") or ())
            self._add_calls(news.get("calls") or ())
            if news.get("run"):
                self.run = responses.run(news["run"])
        is_new = news["cursor"] != self._cursor or bool(news.get("run"))
        if is_new:
            self._pieces, self._media_keys = self._console(), self._files.media_keys()
        self._cursor = news["cursor"]
        return is_new

    def _add_samples(self, samples: Iterable[Mapping[str, Any]]) -> None:
        new: dict[SeriesName, tuple[list[float], list[float]]] = {}
        for sample in samples:
            group = (sample["host"], sample["role"])
            self._keys.setdefault(group, set()).update(sample["values"])
            self._end_ms = max(self._end_ms, sample["t"])
            for key, value in sample["values"].items():
                name = SeriesName(key, *group)
                if name in self._series:
                    times, values = new.setdefault(name, ([], []))
                    times.append(sample["t"])
                    values.append(float("nan") if value is None else value)
        for name, (times, values) in new.items():
            _append(self._series[name].column, times, values)

    def _add_calls(self, calls: Iterable[Mapping[str, Any]]) -> None:
        for call in calls:
            process = (call["host"], call["rank"])
            self._end_ms = max(self._end_ms, call["t"])
            for name, value in call["values"].items():
                self._names.setdefault(name)
                if name not in self._logged or value is None:
                    continue
                steps, times = self._logged[name].setdefault(process, (SeriesColumn(), SeriesColumn()))
                if not times.count or call["t"] > times.x[-1] or call["step"] > steps.x[-1]:
                    steps.extend([call["step"]], [value])
                    times.extend([call["t"]], [value])

    def _console(self) -> list[ConsoleText]:
        return [
            ConsoleText(
                piece["time_ms"],
                piece["stream"],
                piece["text"],
                f"{piece['host']} {piece['rank']}",
                piece["host"],
                piece["rank"],
            )
            for piece in self._get("/console")["pieces"]
        ]

    # -- what is wanted

    def _fetch_series(self) -> bool:
        with self._lock:
            requested, self._missing = self._missing, {}
        requests: dict[tuple[float, float] | None, set[str]] = {}
        for name, x_range in requested.items():
            if name not in self._series:
                requests.setdefault(None, set()).add(name.key)
            elif self._series[name].lacks(x_range):
                requests.setdefault(x_range, set()).add(name.key)
        for range_, keys in requests.items():
            ordered = sorted(keys)
            for start in range(0, len(ordered), _KEYS_PER_REQUEST):
                self._fetch(ordered[start : start + _KEYS_PER_REQUEST], range_)
        return bool(requests)

    def _fetch(self, keys: list[str], x_range: tuple[float, float] | None) -> None:
        times = [] if x_range is None else [("t0", int(x_range[0])), ("t1", int(x_range[1]))]
        response = self._get("/metrics", [("keys", keys), ("max_points", _POINTS), *times])
        bucket_ms = float(response["bucket_ms"] or 0.0)
        with self._lock:
            for series in responses.columns(response).series:
                fetched = self._series.setdefault(
                    SeriesName(series.key, series.host, series.role), _Fetched()
                )
                if x_range is None:
                    fetched.column.replace(series.t, series.values)
                    fetched.bucket_ms = bucket_ms
                else:
                    _put_in(fetched.column, series.t, series.values)
            if x_range is not None:
                self._mark_detailed(keys, x_range)

    def _mark_detailed(self, keys: Iterable[str], x_range: tuple[float, float]) -> None:
        is_tail = x_range[1] >= self._end_ms
        for name, fetched in self._series.items():
            if name.key in keys:
                fetched.since_ms, fetched.until_ms = x_range[0], inf if is_tail else x_range[1]

    def _fetch_logged(self) -> bool:
        with self._lock:
            requested = sorted(self._missing_names)
            self._missing_names.clear()
        for start in range(0, len(requested), _KEYS_PER_REQUEST):
            names = requested[start : start + _KEYS_PER_REQUEST]
            response = self._get("/history", [("keys", names), ("max_points", _POINTS)])
            with self._lock:
                for name in names:
                    self._logged[name] = {}
                for group in response["groups"]:
                    if group.get("replaced"):
                        continue  # an older server replaces nothing
                    for name, values in group["series"].items():
                        lines = self._logged.setdefault(name, {})
                        steps, times = lines.setdefault(
                            (group["host"], group["rank"]), (SeriesColumn(), SeriesColumn())
                        )
                        numbers = [float("nan") if value is None else value for value in values]
                        steps.extend(group["step"], numbers)
                        times.extend(group["t"], numbers)
        return bool(requested)

    # -- from memory

    def end_ms(self) -> float:
        """Return the time of the newest sample or `log()` call in ms UTC."""
        return self._end_ms

    def system_keys(self) -> SystemKeys:
        """Return the keys of system metrics of each (host, role)."""
        with self._lock:
            return {group: set(keys) for group, keys in self._keys.items()}

    def system(
        self, names: Iterable[SeriesName], x_range: tuple[float, float]
    ) -> dict[SeriesName, SeriesColumn]:
        """Return the series in memory, and note the missing or coarse ones for the next poll."""
        columns = {}
        with self._lock:
            for name in names:
                series = self._series.get(name)
                if series is None or series.lacks(x_range):
                    self._missing[name] = x_range
                if series is not None and series.column.count:
                    columns[name] = series.column.snapshot()
        return columns

    def logged_names(self) -> list[str]:
        """Return the names of logged numbers."""
        with self._lock:
            return list(self._names)

    def logged_lines(self, name: str) -> list[LoggedLine]:
        """Return the numbers in memory; note the name for the next poll if there are none."""
        with self._lock:
            if name not in self._logged:
                self._missing_names.add(name)
            return [
                LoggedLine(host, rank, f"{host} {rank}", steps.snapshot(), times.snapshot())
                for (host, rank), (steps, times) in sorted(
                    self._logged.get(name, {}).items(), key=lambda entry: (entry[0][0], entry[0][1] or 0)
                )
            ]

    def progress(self) -> float:
        """Return 1.0: the first poll reads everything."""
        return 1.0

    def wants_more(self) -> bool:
        """Return whether series were asked for that are not in memory."""
        return bool(self._missing or self._missing_names)

    def console(self) -> list[ConsoleText]:
        """Return the end of the output, as of the last poll."""
        return self._pieces

    def media_keys(self) -> list[MediaKey]:
        """Return the names of logged media, as of the last poll."""
        return self._media_keys

    def media(self, key: str) -> list[LoggedMedia]:
        """Request the media logged under a name."""
        with self._use(), self._asking:
            return list(self._files.media(key, None, None))

    def content(self, item: Mapping[str, Any]) -> bytes:
        """Download an item's file; raise OSError if it has more than 64 MiB or the server is unreachable."""
        if int(item.get("bytes") or 0) > MAX_CONTENT_BYTES:
            raise OSError(f"the file has {item['bytes']:,} bytes; expected at most {MAX_CONTENT_BYTES:,}")
        with self._use(), self._asking:
            return b"".join(self._files.parts(item))

    def records(self) -> None:
        """Return None: a server keeps values, not records."""

    def findings(self) -> Findings:
        """Ask the server to judge the run."""
        with self._use(), self._asking, with_remedy(self._remedy):
            return from_json(self._get("/findings"))

    def close(self) -> None:
        """Close the connection after the last request."""
        self._use.close()


def _append(column: SeriesColumn, times: list[float], values: list[float]) -> None:
    """Add the values that are newer than the last one: two responses may overlap."""
    last = column.x[-1] if column.count else -inf
    first = next((index for index, time in enumerate(times) if time > last), len(times))
    column.extend(times[first:], values[first:])


def _put_in(column: SeriesColumn, t: Any, values: Any) -> None:
    """Replace the values between the first and the last of these times."""
    if len(t):
        before, after = column.x < t[0], column.x > t[-1]
        x, y = column.x, column.y
        column.replace([*x[before], *t, *x[after]], [*y[before], *values, *y[after]])
