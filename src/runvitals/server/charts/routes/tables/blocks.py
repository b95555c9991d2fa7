"""Series, buckets and logged rows as table rows, in blocks with a limited number of cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from runvitals.base.buckets import Floats, Integers
from runvitals.model.batch_format import GAP_BITS
from runvitals.readers.journals.series import Series
from runvitals.server.charts.series import OTHER, LoggedSeries, bucket_values
from runvitals.server.library.run_library import BucketedSeries

MAX_CELLS = 1 << 20
"""Cells in one block: 9 MiB of values and masks."""
Kind = Literal["time", "text", "whole", "number", "logged"]
_NUMBER: Kind = "number"


class TableField(NamedTuple):
    """A column: `time` is ms UTC, `whole` int64, `number` and `logged` float64.

    NaN is a gap in numbers, and a value in what was logged.
    """

    name: str
    kind: Kind


class TableColumn(NamedTuple):
    """The cells of a field in a block. `present` is false for missing values; NaN is a gap, not missing."""

    values: NDArray[Any]
    present: NDArray[np.bool_] | None


Block = list[TableColumn]


@dataclass(frozen=True, slots=True)
class Table:
    """Fields, and blocks with a column for each."""

    fields: list[TableField]
    blocks: Iterable[Block]


class _Part(NamedTuple):
    """Values of one column in some rows, in ascending order of rows."""

    column: int
    rows: Integers
    values: NDArray[Any]


SAMPLE_FIELDS = (TableField("t", "time"), TableField("host", "text"), TableField("role", "text"))
ROW_FIELDS = (
    TableField("step", "number"),
    TableField("t", "time"),
    TableField("host", "text"),
    TableField("rank", "whole"),
)
_BUCKET_FIELDS: tuple[tuple[str, Kind], ...] = (
    ("", "number"),
    (":min", "number"),
    (":max", "number"),
    (":n", "whole"),
)


def sample_fields(keys: Iterable[str]) -> list[TableField]:
    """Return the fields of a table of samples.

    Example:
        >>> [field.name for field in sample_fields(["cpu"])]
        ['t', 'host', 'role', 'cpu']
    """
    return _with_labels(SAMPLE_FIELDS, [(key, "number") for key in keys])


def sample_blocks(keys: Sequence[str], series: Sequence[Series]) -> Iterator[Block]:
    """Samples in order of time, with a row for each time of a host and role; other keys are left out."""
    numbers = {key: number for number, key in enumerate(keys, len(SAMPLE_FIELDS))}
    series_with_number = [item for item in series if item.key in numbers]
    times = _Times((item.host, item.role, item.t) for item in series_with_number)
    parts = [
        _Part(numbers[item.key], times.rows(item.host, item.role, item.t), item.values)
        for item in series_with_number
    ]
    return _cut_blocks(times.leading(), len(numbers), parts)


def bucket_table(series: Sequence[BucketedSeries]) -> Table:
    """Return buckets in order of time, with columns `key`, `key:min`, `key:max` and `key:n`."""
    keys = sorted({item.key for item in series})
    numbers = {key: number * len(_BUCKET_FIELDS) + len(SAMPLE_FIELDS) for number, key in enumerate(keys)}
    times = _Times((item.host, item.role, item.buckets.t) for item in series)
    parts: list[_Part] = []
    for item in series:
        rows = times.rows(item.host, item.role, item.buckets.t)
        columns = (bucket_values(item.key, item.buckets), item.buckets.min, item.buckets.max, item.buckets.n)
        parts += [
            _Part(numbers[item.key] + position, rows, column) for position, column in enumerate(columns)
        ]
    columns_of_table: list[tuple[str, Kind]] = [
        (key + suffix, kind) for key in keys for suffix, kind in _BUCKET_FIELDS
    ]
    blocks = _cut_blocks(
        times.leading(), len(columns_of_table), parts, [kind for _, kind in columns_of_table]
    )
    return Table(_with_labels(SAMPLE_FIELDS, columns_of_table), blocks)


def logged_table(logged: Sequence[LoggedSeries]) -> Table:
    """Logged rows by process and step: a table row for each, with a column for each name.

    A name with both numbers and other values has a column of each.
    """
    names = list(dict.fromkeys(item.key + suffix for item in logged for suffix in item.columns))
    numbers = {name: number for number, name in enumerate(names, len(ROW_FIELDS))}
    labels = list(dict.fromkeys((item.host, item.rank) for item in logged))
    kinds: dict[str, Kind] = dict.fromkeys(names, "logged")
    parts: list[_Part] = []
    calls: list[NDArray[Any]] = []
    first = 0
    for label in labels:
        own = [item for item in logged if (item.host, item.rank) == label]
        distinct = {item.step.tobytes() + item.t.tobytes(): _calls(item.step, item.t) for item in own}
        every: NDArray[Any] = np.unique(np.concatenate(list(distinct.values())))
        rows = {times: np.searchsorted(every, own_calls) + first for times, own_calls in distinct.items()}
        for item in own:
            theirs = rows[item.step.tobytes() + item.t.tobytes()]
            order = np.argsort(theirs)
            for suffix, values in item.columns.items():
                if values.dtype == np.int64:
                    kinds[item.key + suffix] = "whole"
                elif values.dtype == np.object_:
                    kinds[item.key + suffix] = "text"
                rows_with_value = order[_is_value(values[order])]
                parts.append(
                    _Part(numbers[item.key + suffix], theirs[rows_with_value], values[rows_with_value])
                )
        calls.append(every)
        first += len(every)
    lengths = [len(calls_of_place) for calls_of_place in calls]
    joined = np.concatenate(calls) if calls else np.empty(0, _CALL)
    ranks = np.repeat(np.array([-1 if rank is None else rank for _, rank in labels], np.int64), lengths)
    leading = [
        TableColumn(joined["step"], None),
        TableColumn(joined["t"].astype(np.int64), None),
        TableColumn(np.repeat(np.array([host for host, _ in labels], object), lengths), None),
        TableColumn(ranks, ranks >= 0),
    ]
    numbers_too = {name for name in names if kinds[name] != "text"}
    plain = {name: name.removesuffix(OTHER) for name in names if name.removesuffix(OTHER) not in numbers_too}
    fields = _with_labels(ROW_FIELDS, [(plain.get(name, name), kinds[name]) for name in names])
    return Table(fields, _cut_blocks(leading, len(names), parts, [kinds[name] for name in names]))


_TYPES: dict[Kind, type[Any]] = {
    "time": np.int64, "whole": np.int64, "number": np.float64, "logged": np.float64, "text": np.object_,
}  # fmt: skip


def _is_value(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where a column has values; NaN is one."""
    if values.dtype == np.float64:
        is_value: NDArray[np.bool_] = values.view(np.int64) != GAP_BITS
        return is_value
    return np.ones(len(values), np.bool_)


_CALL = np.dtype([("step", np.float64), ("t", np.float64), ("nth", np.int64)])


def _calls(steps: Floats, times: Floats) -> NDArray[Any]:
    """Return the identity of each logged row: step, time, and a count of rows with the same step and time."""
    order = np.lexsort((times, steps))
    fresh = np.ones(len(order), bool)
    fresh[1:] = (np.diff(steps[order]) != 0) | (np.diff(times[order]) != 0)
    positions = np.arange(len(order))
    nth = positions - np.maximum.accumulate(np.where(fresh, positions, 0))
    calls = np.empty(len(order), _CALL)
    calls["step"], calls["t"] = steps, times
    calls["nth"][order] = nth
    return calls


class _Times:
    """The rows of a table: the times of each host and role, merged and sorted."""

    def __init__(self, of: Iterable[tuple[str, str, Integers]]) -> None:
        vectors: dict[tuple[str, str], dict[bytes, Integers]] = {}
        for host, role, t in of:
            vectors.setdefault((host, role), {})[t.tobytes()] = t
        self._owner_numbers = {owners: number for number, owners in enumerate(vectors)}
        own = [np.unique(np.concatenate(list(of_place.values()))) for of_place in vectors.values()]
        t = np.concatenate(own) if own else np.empty(0, np.int64)
        owners = np.repeat(np.arange(len(own)), [len(times) for times in own])
        order = np.lexsort((owners, t))
        row_of = np.empty(len(order), np.int64)
        row_of[order] = np.arange(len(order))
        ends = np.cumsum([len(times) for times in own])
        self._own = own
        self._rows = np.split(row_of, ends[:-1]) if own else []
        self._t, self._owners = t[order], owners[order]
        self._rows_of_times: dict[tuple[int, bytes], Integers] = {}

    def rows(self, host: str, role: str, t: Integers) -> Integers:
        """Return the rows of these times."""
        number = self._owner_numbers[host, role]
        key = (number, t.tobytes())
        if key not in self._rows_of_times:
            self._rows_of_times[key] = self._rows[number][np.searchsorted(self._own[number], t)]
        return self._rows_of_times[key]

    def leading(self) -> list[TableColumn]:
        hosts, roles = (
            np.array([owner[part] for owner in self._owner_numbers] or [""], object) for part in (0, 1)
        )
        return [
            TableColumn(self._t, None),
            TableColumn(hosts[self._owners], None),
            TableColumn(roles[self._owners], None),
        ]


def _with_labels(leading: Sequence[TableField], columns: Iterable[tuple[str, Kind]]) -> list[TableField]:
    """Fields with unique names: a key with the name of a label gets an underscore appended."""
    fields = list(leading)
    names = {field.name for field in fields}
    for name, kind in columns:
        while name in names:
            name += "_"
        names.add(name)
        fields.append(TableField(name, kind))
    return fields


def _cut_blocks(
    leading: list[TableColumn], width: int, parts: Sequence[_Part], kinds: Sequence[Kind] = ()
) -> Iterator[Block]:
    """Yield blocks of rows: the leading columns and `width` others, of `kinds` (numbers if it is empty)."""
    count = len(leading[0].values)
    height = max(1, MAX_CELLS // max(1, width))
    for first in range(0, count, height):
        end = min(count, first + height)
        block = [
            TableColumn(values[first:end], None if present is None else present[first:end])
            for values, present in leading
        ]
        for kind in kinds or [_NUMBER] * width:
            cells: NDArray[Any] = np.zeros(end - first, _TYPES[kind])
            block.append(TableColumn(cells, np.zeros(end - first, bool)))
        for part in parts:
            low, high = np.searchsorted(part.rows, (first, end))
            column = block[part.column]
            rows = part.rows[low:high] - first
            column.values[rows] = part.values[low:high]
            if column.present is not None:
                column.present[rows] = True
        yield block
