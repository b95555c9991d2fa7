"""Whether metrics meet the conditions of automations: from each new value and the last ones, without reading
anything again."""

from __future__ import annotations

import operator
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from itertools import islice
from statistics import fmean, pstdev
from typing import Final

from runvitals.server.alerts.automations import (
    Direction,
    MetricChange,
    MetricEvent,
    MetricThreshold,
    MetricZScore,
)

_MOST_WINDOWS: Final = 100_000
_COMPARISONS: Final[dict[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "!=": operator.ne,
}
_STATISTICS: Final[dict[str, Callable[[Sequence[float]], float]]] = {
    "last": lambda values: values[-1],
    "min": min,
    "max": max,
    "mean": fmean,
}


class MetricWindows:
    """The last values of metrics, of each run for each automation.

    They are in memory: after a restart, a window has to fill up again.

    Example:
        >>> windows = MetricWindows()
        >>> windows.add(1, "run:1", MetricThreshold("loss", 10.0), [1.0, 12.0, 3.0])
        12.0
    """

    def __init__(self) -> None:
        self._windows: OrderedDict[tuple[int, str], deque[float]] = OrderedDict()
        self._met: set[tuple[int, str]] = set()

    def add(
        self, automation_id: int, subject: str, event: MetricEvent, values: Sequence[float]
    ) -> float | None:
        """Add values; returns the first with which the condition begins to be met, as the condition sees it;
        None if there is none.

        Args:
            subject: whose values are compared: of a run, or for z-scores of a project.
        """
        key = (automation_id, subject)
        window = self._window(key, _length(event))
        begins: float | None = None
        for value in values:
            if isinstance(event, MetricZScore):  # compared to those before it
                found = _z_score(event, window, value)
            window.append(value)
            if isinstance(event, MetricThreshold):
                found = _threshold(event, window)
            elif isinstance(event, MetricChange):
                found = _change(event, window)
            if found is None:
                self._met.discard(key)
            elif key not in self._met:
                self._met.add(key)
                begins = found if begins is None else begins
        return begins

    def _window(self, key: tuple[int, str], length: int) -> deque[float]:
        window = self._windows.get(key)
        if window is None or window.maxlen != length:
            window = self._windows[key] = deque(maxlen=length)
        self._windows.move_to_end(key)
        if len(self._windows) > _MOST_WINDOWS:
            forgotten, _ = self._windows.popitem(last=False)
            self._met.discard(forgotten)
        return window


def _length(event: MetricEvent) -> int:
    return event.window + event.before if isinstance(event, MetricChange) else event.window


def _threshold(event: MetricThreshold, window: deque[float]) -> float | None:
    if event.statistic != "last" and len(window) < event.window:
        return None
    value = _STATISTICS[event.statistic](window)
    return value if _COMPARISONS[event.comparison](value, event.value) else None


def _change(event: MetricChange, window: deque[float]) -> float | None:
    if len(window) < event.window + event.before:
        return None
    before = fmean(islice(window, event.before))
    after = fmean(islice(window, event.before, None))
    change = after - before
    if event.relative:
        if not before:
            return None
        change /= abs(before)
    return after if _is_beyond(change, event.amount, event.direction) else None


def _z_score(event: MetricZScore, window: deque[float], value: float) -> float | None:
    if len(window) < event.window:
        return None
    deviation = pstdev(window)
    if not deviation:
        return None
    return value if _is_beyond((value - fmean(window)) / deviation, event.value, event.direction) else None


def _is_beyond(change: float, amount: float, direction: Direction) -> bool:
    if direction == "either":
        return abs(change) >= amount
    return change >= amount if direction == "up" else change <= -amount
