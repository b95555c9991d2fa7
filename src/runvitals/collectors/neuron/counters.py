"""Counts of a period, and running totals of many sources, as counters of the whole machine."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container


class RunningTotals:
    """Sums that only grow. A sum is first told as 0, and its growth from then on: nothing of what happened
    before anybody counted is lost in the first value.

    AWS documents the numbers of errors as counts of the reported period; what machines print are running
    totals of each process. `grow` takes them for totals until one of them falls: its source does not count
    on, so from then on each of its numbers is a count of its own.

    Example:
        >>> totals = RunningTotals()
        >>> totals.add("done", 7)
        >>> counters = {}
        >>> totals.write(counters), counters
        (None, {'done': 0.0})
        >>> totals.write(counters), counters
        (None, {'done': 7.0})
    """

    __slots__ = ("_counts_periods", "_last", "_sums", "_told")

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._told: set[str] = set()
        self._last: dict[tuple[object, str], float] = {}
        self._counts_periods: set[tuple[object, str]] = set()

    def add(self, key: str, count: float) -> None:
        """Count what happened in one period."""
        self._sums[key] = self._sums.get(key, 0.0) + count

    def grow(self, key: str, source: object, value: float, from_zero: bool) -> None:
        """Count what a source's number has grown by.

        Args:
            source: whose number it is: a process, a device.
            from_zero: whether a source that is seen for the first time began at 0 while we looked on; else
                its first value tells of before.
        """
        place = source, key
        last = self._last.get(place)
        self._last[place] = value
        if last is None:
            last = 0.0 if from_zero else value
        elif value < last:
            self._counts_periods.add(place)
        self.add(key, value if place in self._counts_periods else value - last)

    def forget(self, kept: Container[object]) -> None:
        """Drop the last numbers of sources that are no more: another may come with the same name."""
        for place in [place for place in self._last if place[0] not in kept]:
            del self._last[place]
            self._counts_periods.discard(place)

    def write(self, counters: dict[str, float]) -> None:
        for key, total in self._sums.items():
            counters[key] = total if key in self._told else 0.0
        self._told.update(self._sums)
