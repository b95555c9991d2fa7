"""A random forest for a few hundred rows: how much of a number each of its columns decides.

scikit-learn has one; with SciPy it would add over 100 MB to a server for this alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from runvitals.base import deadline
from runvitals.base.buckets import Floats, Integers

MOST_TREES = 64
LEAST_TREES = 16
_CELLS = 150_000
"""Cells of the table times trees: about half a second."""
_MAX_DEPTH = 12
_LEAST_ROWS = 3
"""In a leaf."""
_PERMUTATIONS = 2
_SEED = 20


@dataclass(frozen=True, slots=True)
class Importance:
    """What a forest learned.

    Args:
        score: the share of the variance that it predicts for rows that it has not learned from; 0 or less: it
            predicts nothing.
        shares: of the columns: how much worse predictions get if the values of one are shuffled, as shares of
            all columns; all 0 if nothing is predicted.
    """

    score: float
    shares: Floats


@dataclass(slots=True)
class _Tree:
    """By node: the column and value that divide its rows (-1: none), its children, the mean of its rows."""

    columns: list[int]
    limits: list[float]
    children: list[tuple[int, int]]
    means: list[float]

    def predict(self, rows: Floats) -> Floats:
        columns, limits = np.array(self.columns), np.array(self.limits)
        children, means = np.array(self.children), np.array(self.means)
        nodes = np.zeros(len(rows), np.int64)
        for _ in range(_MAX_DEPTH):
            inner = columns[nodes] >= 0
            if not inner.any():
                break
            at = np.flatnonzero(inner)
            is_right = rows[at, columns[nodes[at]]] > limits[nodes[at]]
            nodes[at] = children[nodes[at], is_right.astype(np.int64)]
        predictions: Floats = means[nodes]
        return predictions


def importance(rows: Floats, target: Floats) -> Importance:
    """Return how much each column of some rows decides a number of theirs.

    The same rows always give the same result.

    Raises:
        TooSlow: the deadline has passed.
    """
    random = np.random.default_rng(_SEED)
    count, width = rows.shape
    sums, counts = np.zeros(count), np.zeros(count)
    worse = np.zeros(width)
    for _ in range(max(LEAST_TREES, min(MOST_TREES, _CELLS // (count * width)))):
        deadline.check()
        drawn = random.integers(0, count, count)
        others = np.setdiff1d(np.arange(count), drawn)
        tree = _grown(rows[drawn], target[drawn], random)
        if not len(others):
            continue
        predictions = tree.predict(rows[others])
        sums[others] += predictions
        counts[others] += 1
        error = float(np.mean((predictions - target[others]) ** 2))
        for column in sorted(set(tree.columns) - {-1}):
            worse[column] += _error_when_shuffled(tree, rows[others], target[others], column, random) - error
    is_predicted = counts > 0
    spread = float(np.var(target[is_predicted])) if is_predicted.any() else 0.0
    if spread == 0.0:
        return Importance(0.0, np.zeros(width))
    score = (
        1 - float(np.mean((sums[is_predicted] / counts[is_predicted] - target[is_predicted]) ** 2)) / spread
    )
    shares = np.maximum(worse, 0.0)
    if score <= 0 or shares.sum() == 0:
        return Importance(score, np.zeros(width))
    return Importance(score, shares / shares.sum())


def _error_when_shuffled(
    tree: _Tree, rows: Floats, target: Floats, column: int, random: np.random.Generator
) -> float:
    errors = []
    for _ in range(_PERMUTATIONS):
        shuffled = rows.copy()
        shuffled[:, column] = random.permutation(shuffled[:, column])
        errors.append(float(np.mean((tree.predict(shuffled) - target) ** 2)))
    return sum(errors) / len(errors)


def _grown(rows: Floats, target: Floats, random: np.random.Generator) -> _Tree:
    tree = _Tree([], [], [], [])
    _add_node(tree, rows, target, np.arange(len(rows)), 0, random)
    return tree


def _add_node(
    tree: _Tree, rows: Floats, target: Floats, members: Integers, depth: int, random: np.random.Generator
) -> int:
    number = len(tree.means)
    of_node = target[members]
    tree.columns.append(-1)
    tree.limits.append(0.0)
    tree.children.append((0, 0))
    tree.means.append(float(of_node.mean()))
    if depth + 1 >= _MAX_DEPTH or len(members) < 2 * _LEAST_ROWS or np.ptp(of_node) == 0:
        return number
    width = rows.shape[1]
    tried = random.permutation(width)[: max(1, -(-width // 3))]
    best_split = max(_splits(rows[members], of_node, tried), default=None)
    if best_split is None:
        return number
    _, column, limit = best_split
    is_right = rows[members, column] > limit
    tree.columns[number], tree.limits[number] = column, limit
    left = _add_node(tree, rows, target, members[~is_right], depth + 1, random)
    right = _add_node(tree, rows, target, members[is_right], depth + 1, random)
    tree.children[number] = left, right
    return number


def _splits(rows: Floats, target: Floats, columns: Integers) -> Iterator[tuple[float, int, float]]:
    """Yield the best split of each column: how good it is, the column, the limit."""
    count = len(target)
    for column in columns.tolist():
        order = np.argsort(rows[:, column], kind="stable")
        values, numbers = rows[order, column], target[order]
        sums = np.cumsum(numbers)[:-1]
        left_counts = np.arange(1, count)
        gain = sums**2 / left_counts + (sums[-1] + numbers[-1] - sums) ** 2 / (count - left_counts)
        allowed = (
            (values[1:] > values[:-1]) & (left_counts >= _LEAST_ROWS) & (count - left_counts >= _LEAST_ROWS)
        )
        if not allowed.any():
            continue
        at = int(np.argmax(np.where(allowed, gain, -np.inf)))
        yield float(gain[at]), column, float((values[at] + values[at + 1]) / 2)
