"""A small Gaussian process, for up to some hundred points."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LENGTHS: Final = (0.1, 0.2, 0.35, 0.6, 1.0, 2.0)
_NOISES: Final = (1e-4, 1e-2, 1e-1)
"""Variance of the noise, where that of the values is 1."""
_JITTER: Final = 1e-8


class GaussianProcess:
    """A smooth function that was measured at some points, and how certain it is elsewhere.

    The kernel is Matérn 5/2. Its length and the noise are the likeliest of a few.

    Args:
        points: of shape (points, coordinates), with coordinates from 0 to 1.
        values: one for each point.
    """

    def __init__(self, points: Floats, values: Floats) -> None:
        self._points = points
        self._mean = float(values.mean())
        self._deviation = float(values.std()) or 1.0
        normalized = (values - self._mean) / self._deviation
        distances = _distances(points, points)
        fits = [
            (_likelihood(distances, normalized, length, noise), length, noise)
            for length in _LENGTHS
            for noise in _NOISES
        ]
        _, self._length, noise = max(fits)
        kernel = _matern(distances, self._length) + (noise + _JITTER) * np.eye(len(points))
        self._lower = np.linalg.cholesky(kernel)
        self._weights = np.linalg.solve(self._lower.T, np.linalg.solve(self._lower, normalized))

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """The expected values at some points, and their standard deviations."""
        between = _matern(_distances(points, self._points), self._length)
        solved = np.linalg.solve(self._lower, between.T)
        variance = np.maximum(1.0 - (solved**2).sum(axis=0), 1e-12)
        means: Floats = between @ self._weights * self._deviation + self._mean
        deviations: Floats = np.sqrt(variance) * self._deviation
        return means, deviations

    def expected_improvement(self, points: Floats, best: float) -> Floats:
        """How much less than `best` the values at some points are expected to be, where more counts as 0."""
        means, deviations = self.predict(points)
        gap = (best - means) / deviations
        density = np.exp(-0.5 * gap**2) / math.sqrt(2 * math.pi)
        share = np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in gap.tolist()])
        improvement: Floats = deviations * (gap * share + density)
        return improvement


def _distances(points: Floats, others: Floats) -> Floats:
    squared = (points**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)[None, :] - 2 * points @ others.T
    distances: Floats = np.sqrt(np.maximum(squared, 0.0))
    return distances


def _matern(distances: Floats, length: float) -> Floats:
    scaled = math.sqrt(5) * distances / length
    kernel: Floats = (1 + scaled + scaled**2 / 3) * np.exp(-scaled)
    return kernel


def _likelihood(distances: Floats, values: Floats, length: float, noise: float) -> float:
    """The logarithm of how likely the values are, but for a constant."""
    kernel = _matern(distances, length) + (noise + _JITTER) * np.eye(len(values))
    try:
        lower = np.linalg.cholesky(kernel)
    except np.linalg.LinAlgError:
        return -math.inf
    solved = np.linalg.solve(lower, values)
    return float(-0.5 * (solved @ solved) - np.log(np.diag(lower)).sum())
