"""Values of several processes or devices as one line: their mean in each bucket, with extremes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from runvitals.base import deadline
from runvitals.base.buckets import Buckets, Floats, Integers


@dataclass(frozen=True, slots=True)
class LinePart:
    """The buckets of one process or device, and the value that stands for each of them."""

    buckets: Buckets
    values: Floats


@dataclass(frozen=True, slots=True)
class Line:
    """One metric of one run. `x` is where the buckets begin; `n` is 0 and the statistics are NaN in a gap."""

    run: str
    x: Floats
    y: Floats
    low: Floats
    high: Floats
    n: Integers


class KeyLines(NamedTuple):
    """The lines of one key, and the width of their buckets; None if these are single values."""

    key: str
    width: float | None
    lines: Sequence[Line]


COLUMNS = ("key", "run", "name", "x", "value", "min", "max", "n")


def rows_of(lines: KeyLines, names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the points of lines as rows of a table with these columns.

    Args:
        names: of the runs, by id.
    """
    for line in lines.lines:
        deadline.check()
        columns = (line.x, line.y, line.low, line.high, line.n)
        for x, value, low, high, n in zip(*(column.tolist() for column in columns), strict=True):
            numbers = (value, low, high) if n else (None, None, None)
            point = (lines.key, line.run, names.get(line.run, line.run), x, *numbers, n)
            yield dict(zip(COLUMNS, point, strict=True))


def combine_parts(parts: Sequence[LinePart]) -> LinePart:
    """Return several parts as one. Each counts the same, however many values it has.

    A single part stays as it is, to the last bit.
    """
    if len(parts) == 1:
        return parts[0]
    t = np.unique(np.concatenate([part.buckets.t for part in parts]))
    n = np.zeros(len(t), np.int64)
    counts = np.zeros(len(t), np.int64)
    total = np.zeros(len(t))
    low, high, least, most = (np.full(len(t), np.nan) for _ in range(4))
    for part in parts:
        deadline.check()
        at = np.searchsorted(t, part.buckets.t)
        has_value = ~np.isnan(part.values)
        n[at] += part.buckets.n
        counts[at] += has_value
        total[at] += np.where(has_value, part.values, 0.0)
        low[at], high[at] = np.fmin(low[at], part.buckets.min), np.fmax(high[at], part.buckets.max)
        least[at], most[at] = np.fmin(least[at], part.values), np.fmax(most[at], part.values)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        mean = total / counts
    mean = np.minimum(np.maximum(mean, least), most)  # summation rounds, and may overflow
    return LinePart(Buckets(t, n, low, high, mean, mean), mean)


def grouped_lines(lines: Iterable[Line], extremes: bool) -> list[dict[str, Any]]:
    """Lines as JSON: those with the same x together."""
    groups: dict[bytes, dict[str, Any]] = {}
    for line in lines:
        deadline.check()
        key = line.x.tobytes()
        if key not in groups:
            groups[key] = {"x": line.x.tolist(), "lines": []}
        group: dict[str, Any] = {"run": line.run, "y": line.y.tolist(), "min": None, "max": None, "n": None}
        if extremes and bool((line.n > 1).any()):
            group |= {"min": line.low.tolist(), "max": line.high.tolist(), "n": line.n.tolist()}
        groups[key]["lines"].append(group)
    return list(groups.values())
