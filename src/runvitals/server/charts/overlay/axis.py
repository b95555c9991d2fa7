"""The x axis of an overlay, and its buckets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Literal

import numpy as np

from runvitals.base.buckets import STEP_WIDTHS, WIDTHS_MS, Floats, Integers, grid

METRIC = "metric:"
_KINDS: tuple[Literal["step", "relative", "wall"], ...] = ("step", "relative", "wall")
LEAST_OF_DECADE = 20
"""Buckets of a logarithmic scale, also where that is more than was requested."""
_ROUNDING = 1e-9
MAX_BUCKETS = 20_000
"""Of a width that was requested; otherwise the number of points decides the width."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The x axis: steps, ms since the start of each run, ms UTC, or the values of a logged metric.

    Args:
        metric: its name, of the kind `metric`.
    """

    kind: Literal["step", "relative", "wall", "metric"]
    metric: str = ""

    def __str__(self) -> str:
        return f"{METRIC}{self.metric}" if self.kind == "metric" else self.kind

    @classmethod
    def parse(cls, text: str) -> Axis:
        """Return the axis of this name.

        Raises:
            ValueError: no axis has this name.
        """
        for kind in _KINDS:
            if text == kind:
                return cls(kind)
        if text.startswith(METRIC) and len(text) > len(METRIC):
            return cls("metric", text.removeprefix(METRIC))
        raise ValueError(f"x={text[:100]!r}: expected step, relative, wall or {METRIC}<logged name>")


@dataclass(frozen=True, slots=True)
class Extract:
    """Which part of an axis is requested, and in how many points.

    Args:
        first, last: both included; None: from the first value, to the last.
        points: buckets of a line at most, unless `width` is given.
        width: that of the buckets; None: the narrowest that suffices.
        log: the buckets are equally wide in log10 of x, and what is not positive is left out; then `width` is
            in decades.
    """

    points: int
    first: float | None = None
    last: float | None = None
    width: float | None = None
    log: bool = False

    def within(self, x: Floats) -> slice:
        """Return the requested part of ascending x."""
        low = 0 if self.first is None else int(np.searchsorted(x, self.first, side="left"))
        if self.log:
            low = max(low, int(np.searchsorted(x, 0.0, side="right")))
        high = len(x) if self.last is None else int(np.searchsorted(x, self.last, side="right"))
        return slice(low, max(low, high))


@dataclass(frozen=True, slots=True)
class Scale:
    """Where the points of all lines of a chart are.

    At multiples of a width, or with None at the very x of each value, because there are few.

    Args:
        log: the width is in decades.
        whole: x is a whole number: of a bucket of a logarithmic scale, the first such number.
    """

    width: float | None
    x_values: Floats | None = None
    log: bool = False
    whole: bool = False

    def indices(self, x: Floats) -> Integers:
        """Return the number of the bucket of each x."""
        if self.width is None:
            assert self.x_values is not None
            return np.searchsorted(self.x_values, x).astype(np.int64)
        if self.log:
            return np.floor(np.log10(x) / self.width + _ROUNDING).astype(np.int64)
        if self.width < 1:
            return np.floor(x / self.width + _ROUNDING).astype(np.int64)  # 0.3 // 0.1 is 2
        return np.floor_divide(x, self.width).astype(np.int64)

    def x(self, indices: Integers) -> Floats:
        """Return where these buckets begin."""
        if self.width is None:
            assert self.x_values is not None
            positions: Floats = self.x_values[indices]
            return positions
        begins: Floats = indices.astype(np.float64) * self.width
        if not self.log:
            return begins
        begins = 10.0**begins
        return np.ceil(begins * (1 - _ROUNDING)) if self.whole else begins


def scale_of(axis: Axis, columns: Sequence[Floats], part: Extract) -> Scale:
    """Return the scale for all lines of a chart, from the ascending x of each.

    Raises:
        ValueError: the requested width is too narrow.
    """
    filled = [x for x in columns if len(x)]
    if not filled:
        return scale_of_width(axis, part.width or 1.0, part.log)
    low, high = min(float(x[0]) for x in filled), max(float(x[-1]) for x in filled)
    if part.width is not None:
        if part.log:
            low, high = log10(low), log10(high)
        check_count(low, high, part.width)
        return scale_of_width(axis, part.width, part.log)
    if max(map(len, filled)) <= part.points:
        positions = np.unique(np.concatenate(filled))
        if len(positions) <= part.points:
            return Scale(None, positions)
    if part.log:
        decades = log10(high) - log10(low)
        of_decade = max(LEAST_OF_DECADE, floor((part.points - 1) / decades))
        return Scale(1 / of_decade, log=True, whole=is_whole(axis, filled))
    low, high = low if part.first is None else part.first, high if part.last is None else part.last
    if not is_whole(axis, filled):
        return Scale(_round_width((high - low) / (part.points - 1)))
    widths = STEP_WIDTHS if axis.kind == "step" else WIDTHS_MS
    return Scale(float(grid(floor(low), max(floor(low), floor(high)), part.points, widths).width_ms))


def scale_of_width(axis: Axis, width: float, log: bool) -> Scale:
    """Return the scale whose buckets have this width; of a logarithmic one, in decades."""
    return Scale(width, log=log, whole=axis.kind != "metric")


def is_whole(axis: Axis, columns: Sequence[Floats]) -> bool:
    """Return whether all x are whole numbers, as times are, and steps if no training logged decimal ones."""
    return axis.kind != "metric" and not (axis.kind == "step" and any(np.any(x % 1) for x in columns))


def check_count(low: float, high: float, width: float) -> None:
    """Raise ValueError if a range has more than `MAX_BUCKETS` buckets."""
    if (high - low) / width > MAX_BUCKETS:
        raise ValueError(f"width={width:g}: more than {MAX_BUCKETS:,} buckets; request a shorter part of x")


def _round_width(least: float) -> float:
    """Return the narrowest of 1, 2, 5, 10, 20 … and their fractions that is not less.

    Example:
        >>> _round_width(0.0013)
        0.002
    """
    if least <= 0:
        return 1.0
    power = floor(log10(least))
    for digit in (1, 2, 5, 10):
        width = float(f"{digit}e{power}")
        if width >= least:
            return width
    return float(f"2e{power + 1}")
