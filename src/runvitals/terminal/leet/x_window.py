"""The part of the x-axis that a grid shows: the newest part, everything, or a fixed part."""

from __future__ import annotations

import math
from collections.abc import Callable

_PARTS = 128
_MAX_ZOOM = 1e-7
"""The smallest part of everything that is shown."""


class XWindow:
    """A window on the x-axis.

    Args:
        span: length of the newest part; None: everything is shown.
        steps: the spans that the keys go through; without any, each is half or double the one before.

    Example:
        >>> window = XWindow(span=60.0)
        >>> window.range((0.0, 100.0))
        (40.0, 100.0)
        >>> window.zoom(0.5, 70.0, (0.0, 100.0))
        >>> window.range((0.0, 100.0)), window.is_frozen
        ((55.0, 85.0), True)
    """

    def __init__(self, span: float | None = None, steps: tuple[float, ...] = ()) -> None:
        self.span = span
        self._steps = steps
        self._frozen: tuple[float, float] | None = None

    @property
    def is_frozen(self) -> bool:
        """Whether the window stays in place while values are added."""
        return self._frozen is not None

    def range(self, extent: tuple[float, float]) -> tuple[float, float]:
        """Return the range to show of everything from `extent[0]` to `extent[1]`."""
        if self._frozen is not None:
            return self._frozen
        low, high = extent
        return (low if self.span is None else max(low, high - self.span)), high

    def steady(self, extent: tuple[float, float], dots: int) -> tuple[float, float]:
        """Return the same range, rounded up so that a growing chart is not redrawn for each value.

        It changes when the newest part has moved by a dot, or everything has grown by a hundredth.
        """
        low, high = self.range(extent)
        if self._frozen is not None or high <= low:
            return low, high
        if low > extent[0]:
            dot = (high - low) / max(dots, 1)
            end = math.ceil(high / dot) * dot
            return end - (high - low), end
        step = 2.0 ** math.ceil(math.log2((high - low) / _PARTS))
        return low, low + math.ceil((high - low) / step) * step

    def zoom(self, factor: float, at: float, extent: tuple[float, float]) -> None:
        """Show `factor` times as much, while `at` stays in its place."""
        low, high = self.range(extent)
        self._show(at - (at - low) * factor, at + (high - at) * factor, extent)

    def step(self, by: int, extent: tuple[float, float]) -> None:
        """Show less (-1) or more (1); of the newest part, the next of the steps."""
        low, high = self.range(extent)
        if self._frozen is not None or not self._steps:
            at = (low + high) / 2.0 if self._frozen is not None else high
            self.zoom(2.0**by, at, extent)
            return
        spans = [*self._steps, None]
        nearest = len(self._steps) if self.span is None else _nearest_step(self._steps, self.span)
        self.span = spans[min(max(nearest + by, 0), len(self._steps))]

    def pan(self, share: float, extent: tuple[float, float]) -> None:
        """Move by a share of what is shown: back if it is negative. At the end it goes on with new values."""
        low, high = self.range(extent)
        by = (high - low) * share
        by = max(min(by, extent[1] - high), extent[0] - low)
        self._show(low + by, high + by, extent)

    def show(self, low: float, high: float) -> None:
        """Show a part, and stay there."""
        if high > low:
            self._frozen = (low, high)

    def follow(self) -> None:
        """Show the newest part again."""
        self._frozen = None

    def show_all(self) -> None:
        """Show everything."""
        self.span = self._frozen = None

    def _show(self, low: float, high: float, extent: tuple[float, float]) -> None:
        everything = extent[1] - extent[0]
        if high - low < everything * _MAX_ZOOM:
            return
        is_newest, is_oldest = high >= extent[1], low <= extent[0]
        self._frozen = None
        if is_newest:
            self.span = None if is_oldest else extent[1] - low
        else:
            self._frozen = (max(low, extent[0]), high)

    def note(self, label: Callable[[float], str], full_label: str) -> str:
        """Return a description of the range, such as `last 10m`."""
        if self._frozen is not None:
            return f"frozen, {label(self._frozen[1] - self._frozen[0])}"
        return full_label if self.span is None else f"last {label(self.span)}"


def _nearest_step(steps: tuple[float, ...], span: float) -> int:
    return min(range(len(steps)), key=lambda index: abs(steps[index] - span))
