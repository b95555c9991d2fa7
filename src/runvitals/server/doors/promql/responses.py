"""Results in the JSON of Prometheus."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from runvitals.base.buckets import Integers
from runvitals.server.doors.promql.vectors import Range, ScalarValues, Vector


def number(value: float) -> str:
    """Return a value as Prometheus writes it.

    Example:
        >>> number(1.0), number(0.1), number(float("inf")), number(1e21)
        ('1', '0.1', '+Inf', '1000000000000000000000')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = repr(value)
    if "e" in text:
        text = format(Decimal(text), "f")
    return text.removesuffix(".0")


def seconds(t: int) -> float | int:
    """Return a time as Prometheus writes it: seconds, with up to three decimals."""
    return t // 1000 if t % 1000 == 0 else t / 1000


def instant(evaluated: ScalarValues | Vector, t: int, keeps_order: bool) -> dict[str, Any]:
    """Return the result of an instant query."""
    if isinstance(evaluated, ScalarValues):
        return {"resultType": "scalar", "result": [seconds(t), number(float(evaluated.values[0]))]}
    lines = evaluated if keeps_order else sorted(evaluated, key=lambda line: line.labels)
    result = [
        {"metric": dict(line.labels), "value": [seconds(t), number(float(line.values[0]))]}
        for line in lines
        if line.present[0]
    ]
    return {"resultType": "vector", "result": result}


def samples(ranges: list[Range]) -> dict[str, Any]:
    """Return the result of an instant query for a range vector."""
    result = [
        {
            "metric": dict(line.labels),
            "values": [
                [seconds(t), number(value)]
                for t, value in zip(line.t.tolist(), line.values.tolist(), strict=True)
            ],
        }
        for line in sorted(ranges, key=lambda line: line.labels)
    ]
    return {"resultType": "matrix", "result": result}


def matrix(evaluated: ScalarValues | Vector, steps: Integers) -> dict[str, Any]:
    """Return the result of a range query."""
    times = [seconds(t) for t in steps.tolist()]
    if isinstance(evaluated, ScalarValues):
        values = [[t, number(value)] for t, value in zip(times, evaluated.values.tolist(), strict=True)]
        return {"resultType": "matrix", "result": [{"metric": {}, "values": values}]}
    result = []
    for line in sorted(evaluated, key=lambda line: line.labels):
        samples = [
            [t, number(value)]
            for t, value, present in zip(times, line.values.tolist(), line.present.tolist(), strict=True)
            if present
        ]
        if samples:
            result.append({"metric": dict(line.labels), "values": samples})
    return {"resultType": "matrix", "result": result}
