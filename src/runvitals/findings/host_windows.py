"""The windows of a host whose samples arrive little by little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from runvitals.findings.observation import reads
from runvitals.findings.windows import (
    MAX_VALUE,
    Floats,
    HostColumns,
    Integers,
    TimeWindows,
    WindowColumn,
    windows_of,
)


class HostWindows:
    """The samples of a host, reduced to windows as they arrive.

    Args:
        name: of the host.
        width_ms: of windows; they can be joined to wider ones.
    """

    def __init__(self, name: str, width_ms: int) -> None:
        self.name, self.width_ms = name, width_ms
        self.keys: tuple[str, ...] = ()
        self.first_ms: int | None = None
        self.last_ms = 0
        self._all_keys: set[str] = set()
        self._row_size = -1
        self._pick: Any = None
        self._rows: list[tuple[Any, ...]] = []
        self._times: list[int] = []
        self._first = 0
        self._filled = 0
        self._sums, self._lows, self._highs, self._counts = (np.empty((0, 0)) for _ in range(4))
        self._samples = np.zeros(0, dtype=np.int64)

    @property
    def waiting(self) -> int:
        """How many rows are not reduced yet."""
        return len(self._rows)

    def add_row(self, time_ms: int, values: Mapping[str, Any]) -> None:
        """Take one sample: values by key. None and NaN are gaps."""
        try:
            if len(values) != self._row_size:
                self._learn(values)
            row = self._pick(values) if self.keys else ()
        except KeyError:
            self._learn(values)
            row = tuple(values.get(key) for key in self.keys)
        self._times.append(time_ms)
        self._rows.append(row)

    def _learn(self, values: Mapping[str, Any]) -> None:
        """Take note of the keys of a sample."""
        self._row_size = len(values)
        new = [key for key in values if key not in self._all_keys]
        self._all_keys.update(new)
        read = [key for key in new if reads(key)]
        if not read:
            return
        self.reduce()
        self.keys = (*self.keys, *read)
        picked = itemgetter(*self.keys)
        self._pick = picked if len(self.keys) > 1 else lambda row: (picked(row),)
        self._resize(self._sums.shape[1])

    def add_matrix(self, times_ms: Integers, keys: Sequence[str], values: Floats) -> Floats:
        """Take samples: a row for each time, ascending, and a column for each key; return their mean."""
        self.reduce()
        if set(keys) - self._all_keys:
            self._learn(dict.fromkeys(keys))
        positions = {key: number for number, key in enumerate(keys)}
        order = [positions.get(key, -1) for key in self.keys]
        padded = np.column_stack([values, np.full(len(values), np.nan)])
        return self._take(np.asarray(times_ms, dtype=np.int64), padded[:, order])

    def reduce(self) -> tuple[int, Floats] | None:
        """Reduce the rows that wait; return the time of the last and the mean of them."""
        if not self._rows:
            return None
        matrix = np.array(self._rows, dtype=np.float64).reshape(len(self._rows), len(self.keys))
        times = np.array(self._times, dtype=np.int64)
        self._rows.clear()
        self._times.clear()
        if len(times) > 1 and (np.diff(times) < 0).any():
            order = np.argsort(times, kind="stable")
            times, matrix = times[order], matrix[order]
        return int(times[-1]), self._take(times, matrix)

    def _take(self, times: Integers, matrix: Floats) -> Floats:
        """Reduce samples into windows, and return the mean of all."""
        first, last = int(times[0]), int(times[-1])
        self.first_ms = first if self.first_ms is None else min(self.first_ms, first)
        self.last_ms = max(self.last_ms, last)
        self.widen(windows_of(self.first_ms, self.last_ms, 0.0).width_ms)
        places = times // self.width_ms
        self._cover(int(places[0]), int(places[-1]))
        present = np.abs(matrix) < MAX_VALUE
        begins = np.flatnonzero(np.diff(places, prepend=places[0] - 1))
        windows = places[begins] - self._first
        if present.all():
            sums = np.add.reduceat(matrix, begins)
            counts = np.diff(begins, append=len(places))[:, None] * np.ones(matrix.shape[1])
            lows, highs = np.minimum.reduceat(matrix, begins), np.maximum.reduceat(matrix, begins)
        else:
            sums = np.add.reduceat(np.where(present, matrix, 0.0), begins)
            counts = np.add.reduceat(present.astype(np.float64), begins)
            lows = np.minimum.reduceat(np.where(present, matrix, np.inf), begins)
            highs = np.maximum.reduceat(np.where(present, matrix, -np.inf), begins)
        self._sums[:, windows] += sums.T
        self._counts[:, windows] += counts.T
        self._lows[:, windows] = np.minimum(self._lows[:, windows], lows.T)
        self._highs[:, windows] = np.maximum(self._highs[:, windows], highs.T)
        self._samples[windows] += np.diff(begins, append=len(places))
        total = counts.sum(axis=0)
        return np.where(total > 0, sums.sum(axis=0) / np.maximum(total, 1), np.nan)

    def _cover(self, first: int, last: int) -> None:
        """Make room for windows."""
        if not len(self._samples):
            self._first = first
        if first < self._first:
            self._resize(self._sums.shape[1] + self._first - first, self._first - first)
            self._first = first
        self._filled = max(self._filled, last + 1 - self._first)
        if self._filled > self._sums.shape[1]:
            self._resize(max(64, self._filled + self._filled // 2))

    def _resize(self, windows: int, before: int = 0) -> None:
        """Make room for all keys and so many windows, of which some come before those that are there."""
        shape = (len(self.keys), windows)
        for name, empty in (("_sums", 0.0), ("_counts", 0.0), ("_lows", np.inf), ("_highs", -np.inf)):
            old, new = getattr(self, name), np.full(shape, empty)
            new[: old.shape[0], before : before + old.shape[1]] = old
            setattr(self, name, new)
        samples = np.zeros(windows, dtype=np.int64)
        samples[before : before + len(self._samples)] = self._samples
        self._samples = samples
        self._filled += before

    def widen(self, width_ms: int) -> None:
        """Join windows to wider ones, of a multiple of the width; nothing if they are as wide."""
        factor = width_ms // self.width_ms
        if factor <= 1:
            return
        self.width_ms = width_ms
        if not self._filled:
            return
        places = (self._first + np.arange(self._filled)) // factor
        begins = np.flatnonzero(np.diff(places, prepend=places[0] - 1))
        for name, join in (
            ("_sums", np.add), ("_counts", np.add), ("_lows", np.minimum), ("_highs", np.maximum),
        ):  # fmt: skip
            setattr(self, name, join.reduceat(getattr(self, name)[:, : self._filled], begins, axis=1))
        self._samples = np.add.reduceat(self._samples[: self._filled], begins)
        self._first, self._filled = int(places[0]), len(begins)

    def columns(self, windows: TimeWindows, interval_s: float) -> HostColumns:
        """Return the windows as rules see them."""
        self.reduce()
        shift = self._first - windows.start_ms // windows.width_ms
        here = slice(max(shift, 0), min(shift + self._filled, windows.count))
        mine = slice(here.start - shift, here.stop - shift)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = self._sums[:, mine] / self._counts[:, mine]
        gaps = self._counts[:, mine] == 0
        lows, highs = (np.where(gaps, np.nan, each[:, mine]) for each in (self._lows, self._highs))
        arrays = np.full((3, len(self.keys), windows.count), np.nan)
        for number, each in enumerate((means, lows, highs)):
            arrays[number][:, here] = each
        columns = {
            key: WindowColumn(*arrays[:, row]) for row, key in enumerate(self.keys) if not gaps[row].all()
        }
        samples = np.zeros(windows.count, dtype=np.int64)
        samples[here] = self._samples[mine]
        return HostColumns(self.name, windows, columns, samples, interval_s)
