"""Queries of native histograms, which are stored as classic ones: what is asked of `x` is asked of its parts.

`histogram_count(rate(x[5m]))` is `rate(x_count[5m])`, and so on.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from runvitals.base.buckets import Floats
from runvitals.server.doors.promql.functions import bucket_bound, bucket_groups
from runvitals.server.doors.promql.syntax import (
    Aggregation,
    Binary,
    Call,
    Expression,
    Matcher,
    Negation,
    Selector,
    Subquery,
)
from runvitals.server.doors.promql.vectors import NAME, Labels, Range, Vector, VectorSeries, without

BUCKET: Final = "_bucket"
_LE: Final = "le"


def part_of(node: Expression, part: str) -> Expression | None:
    """Return an expression of native histograms as one of a part of them: `_count`, `_sum` or `_bucket`.

    None if it has no selector with a name, or only names of that part.

    Example:
        >>> from runvitals.server.doors.promql.parser import parse
        >>> from runvitals.server.doors.promql.texts import text_of
        >>> text_of(part_of(parse("sum by (job) (rate(wait[5m]))"), "_bucket"))
        'sum by (job, le) (rate(wait_bucket[5m]))'
    """
    changed = _changed(node, part)
    return None if changed == node else changed


def _changed(node: Expression, part: str) -> Expression:
    if isinstance(node, Selector):
        matchers = tuple(_renamed(matcher, part) for matcher in node.matchers)
        is_native = node.is_native or (part == BUCKET and matchers != node.matchers)
        return replace(node, matchers=matchers, is_native=is_native)
    if isinstance(node, (Subquery, Negation)):
        return replace(node, expression=_changed(node.expression, part))
    if isinstance(node, Call):
        return replace(node, arguments=tuple(_changed(argument, part) for argument in node.arguments))
    if isinstance(node, Binary):
        return replace(node, left=_changed(node.left, part), right=_changed(node.right, part))
    if isinstance(node, Aggregation):
        inner = _changed(node.expression, part)
        keeps_le = part == BUCKET and not node.without and _LE not in node.labels and inner != node.expression
        return replace(node, expression=inner, labels=(*node.labels, _LE) if keeps_le else node.labels)
    return node


def _renamed(matcher: Matcher, part: str) -> Matcher:
    is_other = matcher.label == NAME and matcher.operator == "=" and not matcher.value.endswith(part)
    return replace(matcher, value=matcher.value + part) if is_other else matcher


def with_all_bounds(buckets: list[Range]) -> list[Range]:
    """Return the buckets of native histograms with a sample at each time at which their histogram has one.

    A bound has samples from the first value near it on. Before, as many values were at most this bound as
    were at most the next lower one.
    """
    groups: dict[Labels, list[tuple[float, Range]]] = {}
    for samples in buckets:
        bound = bucket_bound(dict(samples.labels).get(_LE, ""))
        if bound is not None:
            groups.setdefault(without(samples.labels, (_LE,)), []).append((bound, samples))
    result = []
    for lines in groups.values():
        times = np.unique(np.concatenate([samples.t for _, samples in lines]))
        counts = np.zeros(len(times))
        for _, samples in sorted(lines, key=lambda line: line[0]):
            counts = counts.copy()
            counts[np.searchsorted(times, samples.t)] = samples.values
            result.append(replace(samples, t=times, values=counts))
    return result


def fractions(lower: Floats, upper: Floats, buckets: Vector) -> Vector:
    """Return the share of the values of histograms between two numbers, interpolated within buckets."""
    result = []
    for labels, bounds, counts, present in bucket_groups(buckets):
        shares = [
            _share(float(low), float(high), bounds, counts[:, step])
            for step, (low, high) in enumerate(zip(lower, upper, strict=True))
        ]
        result.append(VectorSeries(labels, np.array(shares), present))
    return result


def _share(lower: float, upper: float, bounds: list[float], counts: Floats) -> float:
    total = float(counts[-1])
    if math.isnan(lower) or math.isnan(upper) or not total or not math.isinf(bounds[-1]):
        return math.nan
    if lower >= upper:
        return 0.0
    return (_at_most(upper, bounds, counts) - _at_most(lower, bounds, counts)) / total


def _at_most(value: float, bounds: list[float], counts: Floats) -> float:
    index = int(np.searchsorted(bounds, value))
    if index >= len(bounds) - 1:
        return float(counts[-1]) if math.isinf(value) else float(counts[-2]) if len(bounds) > 1 else 0.0
    low = bounds[index - 1] if index else min(0.0, bounds[0])
    below = float(counts[index - 1]) if index else 0.0
    if value <= low:
        return 0.0 if value < low else below
    width = bounds[index] - low
    return below + (float(counts[index]) - below) * ((value - low) / width if width else 1.0)
