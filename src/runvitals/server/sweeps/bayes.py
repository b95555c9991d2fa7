"""A bayes search: the next values are where a Gaussian process expects the greatest improvement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from runvitals.server.sweeps.gaussian_process import GaussianProcess
from runvitals.server.sweeps.parameters import Parameter

Floats = NDArray[np.float64]
Tried = tuple[Sequence[Any], float | None, bool]
"""The values of a run, its cost, and whether it has ended."""

_FIRST_RANDOM: Final = 5
"""Runs whose parameters are random, before there is something to learn from."""
_MAX_TRIED: Final = 300
"""Runs that are learned from: the time grows with their third power, 300 take about 0.1 s."""
_MAX_PENDING: Final = 100
_CANDIDATES: Final = 1000
_NEAR_BEST: Final = 300
_MAX_COST: Final = 1e100
_KEPT: Final = 0.5
"""How likely a candidate near the best run keeps each of its values."""


def next_values(parameters: Sequence[Parameter], tried: Sequence[Tried], random: Random) -> list[Any]:
    """The values of the next run, in the order of the parameters."""
    measured = [
        (values, max(-_MAX_COST, min(_MAX_COST, cost)))
        for values, cost, _ in tried
        if cost is not None and math.isfinite(cost)
    ]
    if len(measured) < _FIRST_RANDOM:
        return _sample(parameters, random)
    best = min(measured, key=lambda candidate: candidate[1])
    candidates = [_sample(parameters, random) for _ in range(_CANDIDATES)]
    candidates += [_near(parameters, best[0], random) for _ in range(_NEAR_BEST)]
    learned, costs = _learn(tried, measured, best)
    process = GaussianProcess(_coordinates(parameters, learned), np.array(costs))
    improvement = process.expected_improvement(_coordinates(parameters, candidates), best[1])
    return candidates[int(np.argmax(improvement))]


def _learn(
    tried: Sequence[Tried],
    measured: Sequence[tuple[Sequence[Any], float]],
    best: tuple[Sequence[Any], float],
) -> tuple[list[Sequence[Any]], list[float]]:
    """Return the values and costs to learn from: of the newest runs and the best one.

    A failed run counts as the worst, so that the search keeps away from what fails. One that still runs
    counts as average, so that runs at the same time try different values.
    """
    costs = [cost for _, cost in measured]
    worst, average = max(costs), sum(costs) / len(costs)
    newest = list(measured[-_MAX_TRIED:])
    if best not in newest:
        newest.append(best)
    failed = [(values, worst) for values, cost, ended in tried if ended and cost is None]
    running = [(values, average) for values, cost, ended in tried if not ended and cost is None]
    newest += failed[-_MAX_PENDING:] + running[-_MAX_PENDING:]
    return [values for values, _ in newest], [cost for _, cost in newest]


def _sample(parameters: Sequence[Parameter], random: Random) -> list[Any]:
    return [parameter.distribution.sample(random) for parameter in parameters]


def _near(parameters: Sequence[Parameter], best: Sequence[Any], random: Random) -> list[Any]:
    return [
        value if random.random() < _KEPT else parameter.distribution.sample(random)
        for parameter, value in zip(parameters, best, strict=True)
    ]


def _coordinates(parameters: Sequence[Parameter], rows: Sequence[Sequence[Any]]) -> Floats:
    points = [
        [
            coordinate
            for parameter, value in zip(parameters, values, strict=True)
            for coordinate in _coordinates_of(parameter, value)
        ]
        for values in rows
    ]
    return np.array(points, np.float64).reshape(len(rows), -1)


def _coordinates_of(parameter: Parameter, value: Any) -> tuple[float, ...]:
    """Coordinates of a value; of one that a run changed to something that is no number, the middle."""
    try:
        return parameter.distribution.coordinates(value)
    except (TypeError, ValueError, OverflowError):
        return (0.5,)
