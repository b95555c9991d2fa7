"""Generates a fleet from one machine's samples: each run is the capture, shifted, stretched and with noise.

Values keep the granularity of their source (a page, a hundredth, an integer, a ratio of clock ticks), because
codecs depend on it. Accelerators are synthetic, with the resolution of NVML.
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
_TOLERANCE = 0.001
"""Deviation from integer multiples of a step: far above float64 rounding, far below chance."""
_MAX_STEPS = 1e9
"""Beyond, an apparent step is float64 rounding."""
_SEGMENT = 50
_MAX_CLOCK_TICKS = 64
_MOSTLY_PRESENT = 0.9


@dataclass(frozen=True)
class RunSamples:
    """One run: times (ms UTC) and values of shape (ticks, metrics)."""

    run: int
    t: NDArray[np.int64]
    values: NDArray[np.float64]


class Fleet:
    """Runs generated from a capture, each at a random time in one month.

    Args:
        ticks: samples per run.
    """

    def __init__(self, capture: Capture, ticks: int) -> None:
        values = _filled(capture.values)
        columns = np.flatnonzero(~np.isnan(values).any(axis=0))[:HOST_METRICS]
        self._sources = [values[:, column] for column in np.resize(columns, HOST_METRICS)]
        self._counter = np.resize(capture.counter[columns], HOST_METRICS)
        self._quanta = [_quantum(source) for source in self._sources]
        self._repetitive = [_are_repetitive(source) for source in self._sources]
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
            values = np.cumsum(_tiled(rng, steps, self.ticks))
        elif self._quanta[index] is None and self._repetitive[index]:
            return _stitched(rng, source, self.ticks)
        else:
            values = _tiled(rng, source, self.ticks)
        return _rounded(values, self._quanta[index])


def _tiled(rng: np.random.Generator, source: NDArray[np.float64], ticks: int) -> NDArray[np.float64]:
    """Repeat the source from a random position, scaled, with noise."""
    if np.all(source == source[0]):
        return np.full(ticks, source[0])
    shifted = np.resize(np.roll(source, rng.integers(len(source))), ticks)
    noise = 1.0 + 0.002 * rng.standard_normal(ticks) * (shifted != np.roll(shifted, 1))
    tiled: NDArray[np.float64] = shifted * rng.uniform(0.5, 1.0) * noise
    return tiled


def _stitched(rng: np.random.Generator, source: NDArray[np.float64], ticks: int) -> NDArray[np.float64]:
    """Random segments of the source, with unchanged values: scaling would destroy ratios of clock ticks."""
    starts = rng.integers(len(source), size=-(-ticks // _SEGMENT))
    indices = (starts[:, None] + np.arange(_SEGMENT)).ravel()[:ticks] % len(source)
    stitched: NDArray[np.float64] = source[indices]
    return stitched


def _rounded(values: NDArray[np.float64], quantum: float | None) -> NDArray[np.float64]:
    """Round to multiples of a quantum, like the source does."""
    if quantum is None:
        return values
    if quantum in (0.1, 0.01, 0.001):  # decimal numbers are quotients, not products
        return np.round(values / quantum) / round(1 / quantum)
    return np.round(values / quantum) * quantum


def _quantum(column: NDArray[np.float64]) -> float | None:
    """The largest step of which all values are multiples; None if they are not rounded."""
    for quantum in _QUANTA:
        if np.array_equal(_rounded(column, quantum), column):
            return quantum
    distinct = np.unique(column)
    if len(distinct) < 2:
        return None
    step = float(np.diff(distinct).min())  # of a percentage of a total: one page of it
    multiples = column / step
    are_multiples = bool((np.abs(multiples - np.round(multiples)) < _TOLERANCE).all())
    return step if are_multiples and multiples.max() < _MAX_STEPS else None


def _are_repetitive(column: NDArray[np.float64]) -> bool:
    """Whether the same values repeat, usually ratios of small numbers of clock ticks."""
    values = np.unique(column)
    ratios = np.outer(values / 100, np.arange(1, _MAX_CLOCK_TICKS))
    is_ratio = (np.abs(ratios - np.round(ratios)) < _TOLERANCE / _MAX_CLOCK_TICKS).any(axis=1)
    return len(values) * 2 < len(column) or bool(is_ratio.all())


def _filled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Replace occasional gaps by the value before; columns of slower sources are not changed."""
    present = ~np.isnan(values)
    rows = np.maximum.accumulate(np.where(present, np.arange(len(values))[:, None], 0), axis=0)
    filled = np.take_along_axis(values, rows, axis=0)
    filled[0] = np.where(
        present[0], values[0], values[np.argmax(present, axis=0), np.arange(values.shape[1])]
    )
    mostly_present = present.mean(axis=0) > _MOSTLY_PRESENT
    return np.where(mostly_present, np.where(np.isnan(filled), filled[0], filled), values)


def _gpu(rng: np.random.Generator, ticks: int, index: int) -> NDArray[np.float64]:
    busy = np.clip(np.cumsum(rng.normal(0, 2, ticks)) % 140, 0, 100)
    values = (
        np.round(busy),  # utilization, %
        np.round(busy * 0.6),  # memory utilization, %
        np.round(np.cumsum(rng.random(ticks) < 0.01) % 40) * 2.0**21 + 2.0**33,  # bytes allocated
        np.round(40 + busy * 0.4),  # °C
        np.round((80 + busy * 3 + rng.normal(0, 8, ticks)) * 1000) / 1000,  # W, in mW
        np.round((1980 - busy) / 15) * 15,  # SM clock, MHz
        np.full(ticks, 2619.0),  # memory clock, MHz
        np.round((80 + busy * 3) / 700 * 10000) / 100,  # % of the power limit
        np.zeros(ticks),  # uncorrected errors
        np.floor(np.cumsum(busy) * 3.1),  # energy, mJ
    )
    return values[index]


def _times(rng: np.random.Generator, ticks: int) -> NDArray[np.int64]:
    interval_ms = int(rng.choice(_INTERVALS_S)) * 1000
    start = MONTH_START_MS + int(rng.integers(max(MONTH_MS - ticks * interval_ms, 1)))
    late = np.where(rng.random(ticks) < 0.002, rng.integers(0, interval_ms // 2, ticks), 0)
    return start + np.arange(ticks, dtype=np.int64) * interval_ms + rng.integers(0, 2, ticks) + late
