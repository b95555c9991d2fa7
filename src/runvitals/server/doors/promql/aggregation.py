"""Aggregation operators: sum, avg, topk and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from runvitals.base.buckets import Floats, Integers
from runvitals.server.doors.promql.functions import LABEL_NAME
from runvitals.server.doors.promql.label_hash import label_fraction
from runvitals.server.doors.promql.range_functions import quantile
from runvitals.server.doors.promql.responses import number
from runvitals.server.doors.promql.syntax import Aggregation, QueryError
from runvitals.server.doors.promql.vectors import (
    NAME,
    Flags,
    Labels,
    Vector,
    VectorSeries,
    only,
    sorted_labels,
    without,
)

_CHOOSING: Final = frozenset(("topk", "bottomk", "limitk", "limit_ratio"))
_MAX_COUNT: Final = 2.0**63
MAX_VALUES: Final = 1000
"""Different values that are counted in a group."""
Reduce = Callable[[Floats, Flags], Floats]
"""(values, present): series × steps → value at each step."""


def _mean(values: Floats, present: Flags) -> Floats:
    return np.asarray(_sum(values, present) / present.sum(axis=0))


def _sum(values: Floats, present: Flags) -> Floats:
    return np.asarray(np.where(present, values, 0.0).sum(axis=0))


def _variance(values: Floats, present: Flags) -> Floats:
    deviations = np.where(present, values - _mean(values, present), 0.0)
    return np.asarray((deviations**2).sum(axis=0) / present.sum(axis=0))


_REDUCE: Final[dict[str, Reduce]] = {
    "sum": _sum,
    "avg": _mean,
    "min": lambda values, present: np.fmin.reduce(np.where(present, values, np.nan), axis=0),
    "max": lambda values, present: np.fmax.reduce(np.where(present, values, np.nan), axis=0),
    "count": lambda values, present: present.sum(axis=0).astype(float),
    "group": lambda values, present: np.ones(values.shape[1]),
    "stdvar": _variance,
    "stddev": lambda values, present: np.sqrt(_variance(values, present)),
}


def aggregate(node: Aggregation, vector: Vector, parameters: Floats) -> Vector:
    """Return the result of an aggregation; `parameters`: of those that have one, at each step."""
    result: Vector = []
    for labels, lines in _group(node, vector).items():
        values = np.array([line.values for line in lines])
        present = np.array([line.present for line in lines])
        if node.operator in _CHOOSING:
            if node.operator == "limitk":
                is_chosen = _first(lines, present, parameters)
            elif node.operator == "limit_ratio":
                is_chosen = present & _shares(lines, parameters)
            else:
                is_chosen = _extremes(values, present, parameters, largest=node.operator == "topk")
            result += [
                VectorSeries(line.labels, line.values, keep)
                for line, keep in zip(lines, is_chosen, strict=True)
                if keep.any()
            ]
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            if node.operator == "quantile":
                reduced = np.array(
                    [
                        quantile(float(fraction), values[present[:, step], step])
                        for step, fraction in enumerate(parameters)
                    ]
                )
            else:
                reduced = _REDUCE[node.operator](values, present)
        result.append(VectorSeries(labels, reduced, np.asarray(present.any(axis=0), np.bool_)))
    return result


def _group(node: Aggregation, vector: Vector) -> dict[Labels, Vector]:
    groups: dict[Labels, Vector] = {}
    for line in vector:
        labels = only(line.labels, node.labels)
        if node.without:
            labels = without(line.labels, (*node.labels, NAME))
        groups.setdefault(labels, []).append(line)
    return groups


def count_values(node: Aggregation, vector: Vector, label: str) -> Vector:
    """Return how many series of each group have each value; it is in a label.

    Raises:
        QueryError: an invalid label, or too many values.
    """
    if LABEL_NAME.fullmatch(label) is None:
        raise QueryError(f"invalid label name {label[:100]!r}", "execution")
    result: Vector = []
    unlabelled = [VectorSeries(without(line.labels, (label,)), line.values, line.present) for line in vector]
    for labels, lines in _group(node, unlabelled).items():
        values = np.array([line.values for line in lines])
        present = np.array([line.present for line in lines])
        series_index, steps = np.nonzero(present)
        different, value_index = np.unique(values[series_index, steps], return_inverse=True)
        if len(different) > MAX_VALUES:
            text = f"count_values: {len(different)} different values; at most {MAX_VALUES} are allowed"
            raise QueryError(text, "execution")
        counts = np.zeros((len(different), values.shape[1]))
        np.add.at(counts, (value_index.reshape(-1), steps), 1.0)
        for value, counted in zip(different.tolist(), counts, strict=True):
            value_labels = sorted_labels({**dict(labels), label: number(value)})
            result.append(VectorSeries(value_labels, counted, counted > 0))
    return result


def _extremes(values: Floats, present: Flags, counts: Floats, largest: bool) -> Flags:
    """Return which series are among the largest or smallest at each step; NaN is last.

    Raises:
        QueryError: a count that is no integer of 64 bits.
    """
    ranked = np.where(present & ~np.isnan(values), -values if largest else values, np.inf)
    order = np.argsort(np.where(present, ranked, np.nan), axis=0, kind="stable")  # NaN is sorted last
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(len(values))[:, None], axis=0)
    is_chosen: Flags = present & (rank < _limits(counts, len(values)))
    return is_chosen


def _first(lines: Vector, present: Flags, counts: Floats) -> Flags:
    """Return which series are among the first ones at each step, in the order of their labels.

    Raises:
        QueryError: a count that is no integer of 64 bits.
    """
    order = sorted(range(len(lines)), key=lambda index: lines[index].labels)
    before = np.empty_like(present, dtype=np.int64)
    before[order] = np.cumsum(present[order], axis=0) - present[order]
    is_chosen: Flags = present & (before < _limits(counts, len(lines)))
    return is_chosen


def _shares(lines: Vector, ratios: Floats) -> Flags:
    """Return which series are in the share of all at each step, by their labels.

    A negative ratio chooses those that its opposite, the ratio of the rest, leaves out.

    Raises:
        QueryError: a ratio that is no number.
    """
    if np.isnan(ratios).any():
        raise QueryError("Ratio value is NaN", "execution")
    limits = np.clip(ratios, -1.0, 1.0)
    fractions = np.array([label_fraction(line.labels) for line in lines])[:, None]
    return np.asarray(np.where(limits >= 0, fractions < limits, fractions >= 1.0 + limits), np.bool_)


def _limits(counts: Floats, most: int) -> Integers:
    wrong = counts[~(np.abs(counts) < _MAX_COUNT)]
    if len(wrong):
        raise QueryError(f"Scalar value {number(float(wrong[0]))} overflows int64", "execution")
    return np.clip(counts, 0, most).astype(np.int64)
