"""Which parameters of runs decide a number of theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from runvitals.base.buckets import Floats
from runvitals.server.compare.forest import importance

LEAST_RUNS = 10
MAX_CATEGORIES = 24
Row = Mapping[str, str | float]


@dataclass(frozen=True, slots=True)
class ParameterImportance:
    """A parameter.

    Args:
        share: of what all parameters decide together.
        correlation: of ranks, from -1 to 1; None for texts.
        values: how many different ones there are.
    """

    name: str
    share: float
    correlation: float | None
    values: int


@dataclass(frozen=True, slots=True)
class Importances:
    """The parameters, the most important first.

    Args:
        runs: how many have the number.
        score: the share of the variance of the number that the parameters predict, for runs that were not
            learned from; None with too few runs.
    """

    runs: int
    score: float | None
    parameters: list[ParameterImportance]


def importances(rows: Sequence[Row], names: Sequence[str], target: str) -> Importances:
    """Return how much each of these fields decides a number of some runs.

    Runs without a finite number do not count. What has another text in more than 24 runs is left out.

    Raises:
        TooSlow: the deadline has passed.
    """
    rows_with_target = [
        row for row in rows if isinstance(row.get(target), float) and np.isfinite(row[target])
    ]
    numbers = np.array([row[target] for row in rows_with_target], np.float64)
    columns = {name: _column([row.get(name) for row in rows_with_target]) for name in names}
    used = {name: column for name, column in columns.items() if column is not None}
    if len(rows_with_target) < LEAST_RUNS or not used:
        return Importances(len(rows_with_target), None, [])
    table = np.column_stack([column for column, _ in used.values()])
    scores = importance(table, numbers)
    parameters = [
        ParameterImportance(
            name, float(share), _correlation(column, numbers) if is_number else None, len(np.unique(column))
        )
        for (name, (column, is_number)), share in zip(used.items(), scores.shares, strict=True)
    ]
    parameters.sort(key=lambda parameter: (-parameter.share, parameter.name))
    return Importances(len(rows_with_target), scores.score, parameters)


def _column(values: Sequence[str | float | None]) -> tuple[Floats, bool] | None:
    """Return values as numbers, and whether they are; None if they are all equal or too different texts.

    What is missing is less than everything.
    """
    numbers = [value for value in values if isinstance(value, float)]
    if len(numbers) + values.count(None) == len(values):
        finite = {value for value in numbers if np.isfinite(value)}
        low = min(finite, default=0.0) - 1
        column = np.array([value if value in finite else low for value in values], np.float64)
        return (column, True) if len(np.unique(column)) > 1 else None
    categories = sorted({str(value) for value in values})
    if not 1 < len(categories) <= MAX_CATEGORIES:
        return None
    category_numbers = {category: number for number, category in enumerate(categories)}
    return np.array([float(category_numbers[str(value)]) for value in values]), False


def _correlation(column: Floats, numbers: Floats) -> float | None:
    """Return Spearman's correlation."""
    a, b = _ranks(column), _ranks(numbers)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(np.corrcoef(a, b)[0, 1])


def _ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middles: Floats = (ends - counts + ends - 1) / 2
    return middles[inverse]
