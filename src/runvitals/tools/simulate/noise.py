"""Cheap, reproducible noise: slices of one table of normally distributed numbers."""

from __future__ import annotations

import random

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SIZE = 8192
_WIDTH = 64
# Odd, so that the slices of successive ticks do not overlap.
_STRIDE = 337
_STREAM_STRIDE = 1021


class Noise:
    """A table of normally distributed numbers (mean 0, standard deviation 1, clipped at ±3).

    Args:
        seed: the seed of the random numbers.
    """

    def __init__(self, seed: int) -> None:
        numbers = random.Random(seed)
        table = [min(3.0, max(-3.0, numbers.gauss(0.0, 1.0))) for _ in range(_SIZE + _WIDTH)]
        self.table: Floats = np.array(table)


class NoiseBlock:
    """Independent rows of noise over a block of ticks.

    Args:
        noise: the table.
        ticks: numbers of the samples.
        stream: a different one for each host and device.

    Example:
        >>> z = NoiseBlock(Noise(7), np.arange(256), 3)
        >>> z[0].shape
        (256,)
    """

    __slots__ = ("_starts", "_table")

    def __init__(self, noise: Noise, ticks: NDArray[np.int64], stream: int) -> None:
        self._table = noise.table
        self._starts = (ticks * _STRIDE + stream * _STREAM_STRIDE) % _SIZE

    def __getitem__(self, row: int) -> Floats:
        """Return a row, 0 to 63."""
        values: Floats = self._table[self._starts + row]
        return values
