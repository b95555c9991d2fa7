"""Combine counts per period, and running totals of many sources, into counters of the whole machine."""

from __future__ import annotations

from runvitals.monitoring.collectors.plumbing.quantity import is_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container


class RunningTotals:
    """Monotonic sums.

    A sum is first written as 0, and then with its growth, so that what the first value contains is not lost
    when the monitor subtracts it.

    AWS documents error numbers as counts per reported period, but machines print running totals per process.
    `grow` treats a source's numbers as totals until one of them decreases; from then on as counts per period.

    Example:
        >>> totals = RunningTotals()
        >>> totals.add("done", 7)
        >>> counters = {}
        >>> totals.write(counters), counters
        (None, {'done': 0.0})
        >>> totals.write(counters), counters
        (None, {'done': 7.0})
    """

    __slots__ = ("_begun", "_counts_periods", "_last", "_sums")

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._begun: set[str] = set()
        self._last: dict[tuple[object, str], float] = {}
        self._counts_periods: set[tuple[object, str]] = set()

    def add(self, key: str, count: float) -> None:
        """Add the count of one period."""
        if is_code(count):
            return
        self._sums[key] = self._sums.get(key, 0.0) + count

    def grow(self, key: str, source: object, value: float, from_zero: bool) -> None:
        """Add the growth of a source's running total.

        Args:
            key: our key of the counter.
            source: what the number belongs to: a process, a device.
            value: the source's total.
            from_zero: whether a new source started at 0 since the last report; if not, its first value
                belongs to the past and does not count.
        """
        if is_code(value):
            return
        counter = source, key
        last = self._last.get(counter)
        self._last[counter] = value
        if last is None:
            last = 0.0 if from_zero else value
        elif value < last:
            self._counts_periods.add(counter)
        self.add(key, value if counter in self._counts_periods else value - last)

    def forget(self, kept: Container[object]) -> None:
        """Drop the last numbers of sources that have ended: a new one may have the same name."""
        for counter in [counter for counter in self._last if counter[0] not in kept]:
            del self._last[counter]
            self._counts_periods.discard(counter)

    def write(self, counters: dict[str, float]) -> None:
        """Write the sums into the counters."""
        for key, total in self._sums.items():
            counters[key] = total if key in self._begun else 0.0
        self._begun.update(self._sums)
