"""Functions of instant vectors and scalars."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from runvitals.base.buckets import Floats, Integers
from runvitals.server.doors.promql.patterns import compile_pattern
from runvitals.server.doors.promql.syntax import QueryError
from runvitals.server.doors.promql.vectors import (
    Flags,
    Labels,
    Vector,
    VectorSeries,
    sorted_labels,
    without,
    without_name,
)

_MAX_SECONDS: Final = 1e11
_THURSDAY: Final = 4
"""1970-01-01; Sunday is 0."""
MATH: Final[dict[str, Callable[[Floats], Floats]]] = {
    "abs": np.abs,
    "ceil": np.ceil,
    "floor": np.floor,
    "exp": np.exp,
    "ln": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "sgn": np.sign,
    "deg": np.degrees,
    "rad": np.radians,
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}
_Days = NDArray[np.datetime64]


def _calendar(compute: Callable[[Integers, _Days], Integers]) -> Callable[[Floats], Floats]:
    """Return a function of a time in seconds, UTC; `compute` gets it also as a date."""

    def computed(values: Floats) -> Floats:
        valid = np.abs(values) < _MAX_SECONDS
        seconds = np.where(valid, values, 0.0).astype(np.int64)
        return np.where(
            valid, compute(seconds, seconds.astype("datetime64[s]").astype("datetime64[D]")), np.nan
        )

    return computed


def _days(since: _Days, until: _Days) -> Integers:
    days: Integers = (until - since).astype(np.int64)
    return days


def _start_of(unit: str, days: _Days, later: int = 0) -> _Days:
    """Return the first day of the month or year of each day, or of a later one."""
    return (days.astype(f"datetime64[{unit}]") + later).astype("datetime64[D]")


CALENDAR: Final[dict[str, Callable[[Floats], Floats]]] = {
    "minute": _calendar(lambda seconds, days: seconds // 60 % 60),
    "hour": _calendar(lambda seconds, days: seconds // 3600 % 24),
    "day_of_week": _calendar(lambda seconds, days: (days.astype(np.int64) + _THURSDAY) % 7),
    "day_of_month": _calendar(lambda seconds, days: _days(_start_of("M", days), days) + 1),
    "day_of_year": _calendar(lambda seconds, days: _days(_start_of("Y", days), days) + 1),
    "days_in_month": _calendar(lambda seconds, days: _days(_start_of("M", days), _start_of("M", days, 1))),
    "month": _calendar(lambda seconds, days: days.astype("datetime64[M]").astype(np.int64) % 12 + 1),
    "year": _calendar(lambda seconds, days: days.astype("datetime64[Y]").astype(np.int64) + 1970),
}
_MAX_LABEL: Final = 1024
"""Characters. Patterns take long with longer texts, and nested calls would multiply them."""
LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_GROUP = re.compile(r"\$(?:\{(\w+)\}|(\d+)|\$)", re.ASCII)


def map_values(vector: Vector, compute: Callable[[Floats], Floats]) -> Vector:
    """Return the values of each series, computed anew, without the metric's name."""
    with np.errstate(all="ignore"):
        return [
            VectorSeries(without_name(line.labels), np.asarray(compute(line.values), float), line.present)
            for line in vector
        ]


def round_to(values: Floats, nearest: Floats) -> Floats:
    """Round to the nearest multiple; halves upwards."""
    return np.asarray(np.floor(values / nearest + 0.5) * nearest)


def single(vector: Vector, steps: int) -> Floats:
    """Evaluate `scalar`: the value of the only series at each step, else NaN."""
    if not vector:
        return np.full(steps, np.nan)
    present = np.array([line.present for line in vector])
    values = np.where(present, [line.values for line in vector], 0.0).sum(axis=0)
    return np.asarray(np.where(present.sum(axis=0) == 1, values, np.nan))


def absence(vector: Vector, labels: Labels, steps: int) -> Vector:
    """Return 1 where no series is."""
    present = np.zeros(steps, np.bool_)
    for line in vector:
        present |= line.present
    return [VectorSeries(labels, np.ones(steps), ~present)]


def label_replace(vector: Vector, target: str, replacement: str, source: str, pattern: str) -> Vector:
    """Set a label to what a pattern takes out of another one.

    Raises:
        QueryError: invalid label or pattern, a label that is too long, or two series become the same.
    """
    if LABEL_NAME.fullmatch(target) is None:
        raise QueryError(f"invalid destination label name in label_replace(): {target[:100]}", "execution")
    expression = compile_pattern(pattern)
    result = []
    for line in vector:
        labels = dict(line.labels)
        match = expression.fullmatch(labels.get(source, ""))
        if match is not None:
            labels[target] = _check_length(_expand(replacement, match))
        result.append(VectorSeries(sorted_labels(labels), line.values, line.present))
    return unique(result)


def _expand(replacement: str, match: re.Match[str]) -> str:
    def group(reference: re.Match[str]) -> str:
        name = reference[1] or reference[2]
        if name is None:
            return "$"
        try:
            return match[int(name) if name.isdigit() else name] or ""
        except (IndexError, KeyError):
            return ""

    return _GROUP.sub(group, replacement)


def _check_length(value: str) -> str:
    if len(value) > _MAX_LABEL:
        raise QueryError(
            f"a label would have {len(value)} characters; at most {_MAX_LABEL} are allowed", "execution"
        )
    return value


def label_join(vector: Vector, target: str, separator: str, sources: tuple[str, ...]) -> Vector:
    """Set a label to the joined values of others.

    Raises:
        QueryError: an invalid label, one that is too long, or two series become the same.
    """
    if LABEL_NAME.fullmatch(target) is None:
        raise QueryError(f"invalid destination label name in label_join(): {target[:100]}", "execution")
    result = []
    for line in vector:
        labels = dict(line.labels)
        labels[target] = _check_length(separator.join(labels.get(source, "") for source in sources))
        result.append(VectorSeries(sorted_labels(labels), line.values, line.present))
    return unique(result)


def unique(vector: Vector) -> Vector:
    """Return the series, those with the same labels as one.

    Raises:
        QueryError: two of them are there at the same step.
    """
    by_labels: dict[Labels, VectorSeries] = {}
    for line in vector:
        before = by_labels.get(line.labels)
        if before is None:
            by_labels[line.labels] = line
            continue
        if (before.present & line.present).any():
            raise QueryError("vector cannot contain metrics with the same labelset", "execution")
        values = np.where(line.present, line.values, before.values)
        by_labels[line.labels] = VectorSeries(line.labels, values, before.present | line.present)
    return list(by_labels.values())


def histogram_quantile(fractions: Floats, buckets: Vector) -> Vector:
    """Return the quantile of classic histograms: interpolated in the bucket in which it is."""
    result = []
    for labels, bounds, counts, present in bucket_groups(buckets):
        values = [
            _quantile(float(fraction), bounds, counts[:, step]) for step, fraction in enumerate(fractions)
        ]
        result.append(VectorSeries(labels, np.array(values), present))
    return result


def bucket_groups(buckets: Vector) -> Iterator[tuple[Labels, list[float], Floats, Flags]]:
    """Yield the histograms in a vector of buckets.

    Of each the labels, ascending bounds, how many values were at most these at each step, and where it is.
    """
    groups: dict[Labels, list[tuple[float, VectorSeries]]] = {}
    for line in buckets:
        bound = bucket_bound(dict(line.labels).get("le", ""))
        if bound is not None:
            groups.setdefault(without(line.labels, ("le", "__name__")), []).append((bound, line))
    for labels, lines in groups.items():
        lines.sort(key=lambda pair: pair[0])
        counts = np.array([np.where(line.present, line.values, 0.0) for _, line in lines])
        present = np.logical_or.reduce([line.present for _, line in lines])
        yield labels, [bound for bound, _ in lines], np.maximum.accumulate(counts), present


def bucket_bound(text: str) -> float | None:
    """Return the bound that a label `le` names; None if it is no number."""
    try:
        return float(text)
    except ValueError:
        return None


def _quantile(fraction: float, bounds: list[float], counts: Floats) -> float:
    total = float(counts[-1])
    if fraction < 0 or fraction > 1:
        return -math.inf if fraction < 0 else math.inf
    if math.isnan(fraction) or len(bounds) < 2 or not math.isinf(bounds[-1]) or total == 0:
        return math.nan
    rank = fraction * total
    bucket = int(np.searchsorted(counts, rank))
    if bucket >= len(bounds) - 1:
        return bounds[-2]
    if bucket == 0 and bounds[0] <= 0:
        return bounds[0]
    start, below = (bounds[bucket - 1], float(counts[bucket - 1])) if bucket else (0.0, 0.0)
    inside = float(counts[bucket]) - below
    return start + (bounds[bucket] - start) * (rank - below) / inside if inside else bounds[bucket]
