"""Binary operators between scalars and vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from runvitals.base.buckets import Floats
from runvitals.server.doors.promql.parser import COMPARISONS, SETS
from runvitals.server.doors.promql.syntax import Binary, Matching, QueryError
from runvitals.server.doors.promql.vectors import (
    NAME,
    Flags,
    Labels,
    ScalarValues,
    Vector,
    VectorSeries,
    only,
    sorted_labels,
    without,
    without_name,
)

_ARITHMETIC: Final[dict[str, Callable[[Floats, Floats], Floats]]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
    "^": np.power,
    "atan2": np.arctan2,
}
_COMPARE: Final[dict[str, Callable[[Floats, Floats], Flags]]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    ">": np.greater,
    "<=": np.less_equal,
    ">=": np.greater_equal,
}


def combine(node: Binary, left: ScalarValues | Vector, right: ScalarValues | Vector) -> ScalarValues | Vector:
    """Return the result of an operator.

    Raises:
        QueryError: the operands do not fit.
    """
    if node.matching.labels and (isinstance(left, ScalarValues) or isinstance(right, ScalarValues)):
        raise QueryError("parse error: vector matching only allowed between instant vectors")
    if node.operator in SETS:
        if isinstance(left, ScalarValues) or isinstance(right, ScalarValues):
            raise QueryError("parse error: set operator not allowed in binary scalar expression")
        return _sets(node, left, right)
    if isinstance(left, ScalarValues) and isinstance(right, ScalarValues):
        if node.operator in COMPARISONS and not node.returns_bool:
            raise QueryError("parse error: comparisons between scalars must use BOOL modifier")
        return ScalarValues(_compute(node, left.values, right.values)[0])
    if isinstance(right, ScalarValues):
        assert not isinstance(left, ScalarValues)
        return [_with_scalar(node, line, line.values, right.values) for line in left]
    if isinstance(left, ScalarValues):
        return [_with_scalar(node, line, left.values, line.values) for line in right]
    return _vectors(node, left, right)


def _compute(node: Binary, left: Floats, right: Floats) -> tuple[Floats, Flags]:
    """Return the values, and where a comparison that filters holds."""
    with np.errstate(all="ignore"):
        if node.operator in _ARITHMETIC:
            values = np.asarray(_ARITHMETIC[node.operator](left, right), float)
            return values, np.ones(len(values), np.bool_)
        holds = np.asarray(_COMPARE[node.operator](left, right), np.bool_)
    if node.returns_bool:
        return holds.astype(float), np.ones(len(holds), np.bool_)
    return left, holds


def _with_scalar(node: Binary, line: VectorSeries, left: Floats, right: Floats) -> VectorSeries:
    values, holds = _compute(node, left, right)
    filters = node.operator in COMPARISONS and not node.returns_bool
    labels = line.labels if filters else without_name(line.labels)
    return VectorSeries(labels, line.values if filters else values, line.present & holds)


def _signature(labels: Labels, matching: Matching) -> Labels:
    if matching.on:
        return only(labels, matching.labels)
    return without(labels, (*matching.labels, NAME))


def _groups(vector: Vector, matching: Matching) -> dict[Labels, Vector]:
    by_signature: dict[Labels, Vector] = {}
    for line in vector:
        by_signature.setdefault(_signature(line.labels, matching), []).append(line)
    return by_signature


def _sets(node: Binary, left: Vector, right: Vector) -> Vector:
    """Evaluate `and`, `or` or `unless`."""
    theirs = {
        signature: np.logical_or.reduce([line.present for line in lines])
        for signature, lines in _groups(right, node.matching).items()
    }
    if node.operator == "or":
        ours = {
            signature: np.logical_or.reduce([line.present for line in lines])
            for signature, lines in _groups(left, node.matching).items()
        }
        added = []
        for line in right:
            match = ours.get(_signature(line.labels, node.matching))
            added.append(
                line if match is None else VectorSeries(line.labels, line.values, line.present & ~match)
            )
        return [*left, *added]
    result = []
    for line in left:
        match = theirs.get(_signature(line.labels, node.matching))
        if node.operator == "and" and match is not None:
            result.append(VectorSeries(line.labels, line.values, line.present & match))
        elif node.operator == "unless":
            present = line.present if match is None else line.present & ~match
            result.append(VectorSeries(line.labels, line.values, present))
    return result


def _vectors(node: Binary, left: Vector, right: Vector) -> Vector:
    matching = node.matching
    many, one_side = (right, left) if matching.side == "right" else (left, right)
    singles = {
        signature: _single(lines, signature, "left" if matching.side == "right" else "right")
        for signature, lines in _groups(one_side, matching).items()
    }
    result: Vector = []
    matched: dict[Labels, Flags] = {}
    for line in many:
        signature = _signature(line.labels, matching)
        other = singles.get(signature)
        if other is None:
            continue
        pair = (other.values, line.values) if matching.side == "right" else (line.values, other.values)
        values, holds = _compute(node, *pair)
        present = line.present & other.present
        labels = _result_labels(node, line.labels, other.labels)
        key = labels if matching.side else signature
        if (matched.get(key, np.zeros(len(present), np.bool_)) & present).any():
            side = (
                "grouping labels must ensure unique matches"
                if matching.side
                else ("matching labels must be unique on one side")
            )
            raise QueryError(f"multiple matches for labels: {side}", "execution")
        matched[key] = matched.get(key, np.zeros(len(present), np.bool_)) | present
        result.append(VectorSeries(labels, values, present & holds))
    return result


def _single(lines: Vector, signature: Labels, side: str) -> VectorSeries:
    """Return the one series of a group; different ones may be there at different steps.

    Raises:
        QueryError: two are there at the same step.
    """
    if len(lines) == 1:
        return lines[0]
    values, present = lines[0].values.copy(), lines[0].present.copy()
    for line in lines[1:]:
        if (present & line.present).any():
            labels = ", ".join(f'{name}="{value}"' for name, value in signature)
            raise QueryError(
                f"found duplicate series for the match group {{{labels}}} on the {side} hand-side of the "
                "operation: many-to-many matching not allowed: matching labels must be unique on one side",
                "execution",
            )
        values[line.present] = line.values[line.present]
        present |= line.present
    return VectorSeries(lines[0].labels, values, present)


def _result_labels(node: Binary, many: Labels, one_side: Labels) -> Labels:
    matching = node.matching
    filters = node.operator in COMPARISONS and not node.returns_bool
    if not matching.side:
        labels = many if filters else without_name(many)
        if matching.on:
            return only(labels, matching.labels)
        return without(labels, matching.labels)
    labels = many if filters else without_name(many)
    other = dict(one_side)
    copied = {name: other.get(name, "") for name in matching.include}
    return sorted_labels({**dict(labels), **copied})
