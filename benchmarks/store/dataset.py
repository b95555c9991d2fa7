"""A fleet made of one machine's samples: each run is the capture turned, stretched and roughened differently.

Every value keeps the granularity of its source (a page, a hundredth, a whole number, a share of so many clock
ticks), because that is what a codec lives on. Accelerators are synthetic: numbers as coarse as NVML gives
them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.store.capture import Capture

HOST_METRICS, GPU_METRICS = 50, 10
METRICS = tuple(range(1, HOST_METRICS + GPU_METRICS + 1))
MONTH_START_MS = 1_790_812_800_000  # 2026-10-01
MONTH_MS = 31 * 86_400_000
_INTERVALS_S = (1, 2, 5, 10, 15)
_QUANTA = (4096.0, 1024.0, 512.0, 100.0, 10.0, 1.0, 0.1, 0.01, 1 / 256, 1 / 2048, 0.001)
_OFF = 0.001
"""How far values may be from whole multiples of a step; float64 rounds far below, chance does far above."""
_MOST_STEPS = 1e9
"""Beyond, what looks like a step is the rounding of float64."""
_STRETCH = 50
_MOST_TICKS = 64
_OFTEN = 0.9


@dataclass(frozen=True)
class RunSamples:
    """One run: times (ms UTC) and values (ticks × METRICS)."""

    run: int
    t: NDArray[np.int64]
    values: NDArray[np.float64]


class Fleet:
    """Runs made of a capture, each anywhere in one month.

    Args:
        ticks: samples of each run.
    """

    def __init__(self, capture: Capture, ticks: int) -> None:
        values = _filled(capture.values)
        columns = np.flatnonzero(~np.isnan(values).any(axis=0))[:HOST_METRICS]
        self._sources = [values[:, column] for column in np.resize(columns, HOST_METRICS)]
        self._counter = np.resize(capture.counter[columns], HOST_METRICS)
        self._quanta = [_quantum(source) for source in self._sources]
        self._few = [_are_few(source) for source in self._sources]
        self.ticks = ticks

    def run(self, number: int) -> RunSamples:
        """Run `number`, the same at every call."""
        rng = np.random.default_rng(number)
        columns = [self._host(rng, i) for i in range(HOST_METRICS)]
        columns += [_gpu(rng, self.ticks, i) for i in range(GPU_METRICS)]
        return RunSamples(number, _times(rng, self.ticks), np.column_stack(columns))

    def _host(self, rng: np.random.Generator, index: int) -> NDArray[np.float64]:
        source = self._sources[index]
        if self._counter[index]:
            steps = np.maximum(np.diff(source, prepend=source[0]), 0.0)
            made = np.cumsum(_tiled(rng, steps, self.ticks))
        elif self._quanta[index] is None and self._few[index]:
            return _stitched(rng, source, self.ticks)
        else:
            made = _tiled(rng, source, self.ticks)
        return _rounded(made, self._quanta[index])


def _tiled(rng: np.random.Generator, source: NDArray[np.float64], ticks: int) -> NDArray[np.float64]:
    """The source from anywhere on, again and again, a little higher or lower and a little rougher."""
    if np.all(source == source[0]):
        return np.full(ticks, source[0])
    turned = np.resize(np.roll(source, rng.integers(len(source))), ticks)
    noise = 1.0 + 0.002 * rng.standard_normal(ticks) * (turned != np.roll(turned, 1))
    tiled: NDArray[np.float64] = turned * rng.uniform(0.5, 1.0) * noise
    return tiled


def _stitched(rng: np.random.Generator, source: NDArray[np.float64], ticks: int) -> NDArray[np.float64]:
    """Stretches of the source in any order, with its very values: what is a share of a few clock ticks is no
    such share any more when it is stretched.
    """
    starts = rng.integers(len(source), size=-(-ticks // _STRETCH))
    places = (starts[:, None] + np.arange(_STRETCH)).ravel()[:ticks] % len(source)
    stitched: NDArray[np.float64] = source[places]
    return stitched


def _rounded(values: NDArray[np.float64], quantum: float | None) -> NDArray[np.float64]:
    """Multiples of a quantum, the way who measured them rounded them."""
    if quantum is None:
        return values
    if quantum in (0.1, 0.01, 0.001):  # a number of so many decimals is a quotient, not a product
        return np.round(values / quantum) / round(1 / quantum)
    return np.round(values / quantum) * quantum


def _quantum(column: NDArray[np.float64]) -> float | None:
    """The coarsest step that all values are multiples of; None where they are not rounded at all."""
    for quantum in _QUANTA:
        if np.array_equal(_rounded(column, quantum), column):
            return quantum
    step = float(np.diff(np.unique(column)).min())  # of percents of a total: a page of it
    multiples = column / step
    are_whole = bool((np.abs(multiples - np.round(multiples)) < _OFF).all())
    return step if are_whole and multiples.max() < _MOST_STEPS else None


def _are_few(column: NDArray[np.float64]) -> bool:
    """Whether the same values come again and again: shares of a few clock ticks, most often."""
    values = np.unique(column)
    shares = np.outer(values / 100, np.arange(1, _MOST_TICKS))
    is_share = (np.abs(shares - np.round(shares)) < _OFF / _MOST_TICKS).any(axis=1)
    return len(values) * 2 < len(column) or bool(is_share.all())


def _filled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """A sample in which a source had nothing to say, now and then, repeats the one before; columns of sources
    that are read less often than the others stay as they are.
    """
    there = ~np.isnan(values)
    rows = np.maximum.accumulate(np.where(there, np.arange(len(values))[:, None], 0), axis=0)
    filled = np.take_along_axis(values, rows, axis=0)
    filled[0] = np.where(there[0], values[0], values[np.argmax(there, axis=0), np.arange(values.shape[1])])
    often = there.mean(axis=0) > _OFTEN
    return np.where(often, np.where(np.isnan(filled), filled[0], filled), values)


def _gpu(rng: np.random.Generator, ticks: int, index: int) -> NDArray[np.float64]:
    busy = np.clip(np.cumsum(rng.normal(0, 2, ticks)) % 140, 0, 100)
    made = (
        np.round(busy),  # utilisation, %
        np.round(busy * 0.6),  # memory utilisation, %
        np.round(np.cumsum(rng.random(ticks) < 0.01) % 40) * 2.0**21 + 2.0**33,  # bytes allocated
        np.round(40 + busy * 0.4),  # °C
        np.round((80 + busy * 3 + rng.normal(0, 8, ticks)) * 1000) / 1000,  # W, in mW
        np.round((1980 - busy) / 15) * 15,  # SM clock, MHz
        np.full(ticks, 2619.0),  # memory clock, MHz
        np.round((80 + busy * 3) / 700 * 10000) / 100,  # % of the power limit
        np.zeros(ticks),  # uncorrected errors
        np.floor(np.cumsum(busy) * 3.1),  # energy, mJ
    )
    return made[index]


def _times(rng: np.random.Generator, ticks: int) -> NDArray[np.int64]:
    interval_ms = int(rng.choice(_INTERVALS_S)) * 1000
    start = MONTH_START_MS + int(rng.integers(max(MONTH_MS - ticks * interval_ms, 1)))
    late = np.where(rng.random(ticks) < 0.002, rng.integers(0, interval_ms // 2, ticks), 0)
    return start + np.arange(ticks, dtype=np.int64) * interval_ms + rng.integers(0, 2, ticks) + late
