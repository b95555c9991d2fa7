"""Folding: the readings of a minute become one datum a series, with all their values and how often each came.

At 5 s that is a twelfth of the data, and CloudWatch's statistics (percentiles too) are what they would be if
every reading had been sent by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from runvitals.relay.destinations.cloudwatch import limits
from runvitals.relay.destinations.cloudwatch.datum import Datum, MetricSeries


class MinuteAggregation:
    """Readings by series and time. Memory: about 100 bytes a different value.

    Args:
        resolution_s: 60, or 1 for CloudWatch's high resolution: how long one datum's time is.

    Attributes:
        refused: readings that CloudWatch could not take: NaN, infinite, too large.

    Example:
        >>> fold = MinuteAggregation()
        >>> for time_ms in (60_000, 65_000, 70_000):
        ...     fold.add(MetricSeries("cpu", "Percent"), time_ms, 50.0)
        >>> fold.take()
        [Datum(series=Series(name='cpu', …), time_s=60, values=(50.0,), counts=(3,), resolution_s=60)]
    """

    def __init__(self, resolution_s: int = 60, most_values: int = limits.VALUES_PER_DATUM) -> None:
        self.resolution_s = resolution_s
        self.refused = 0
        self._most_values = most_values
        self._open: dict[int, dict[MetricSeries, dict[float, int]]] = {}
        self._full: list[Datum] = []

    def add(self, series: MetricSeries, time_ms: int, value: float) -> None:
        if not limits.takes(value):
            self.refused += 1
            return
        seconds = time_ms // 1000
        bucket = self._open.setdefault(seconds - seconds % self.resolution_s, {})
        counts = bucket.setdefault(series, {})
        counts[value] = counts.get(value, 0) + 1
        # A flood of readings (a file of reports, read at once) is passed on before it fills the memory.
        if len(counts) == self._most_values:
            self._full.extend(self._data(seconds - seconds % self.resolution_s, {series: counts}))
            del bucket[series]

    @property
    def full(self) -> int:
        """How many data have all the values that a datum may have, and need not wait for their time's end."""
        return len(self._full)

    def take(self, before_ms: int | None = None) -> list[Datum]:
        """The data of all times that ended before `before_ms` (None: of all), removed from here.

        A reading that comes late makes another datum of its time, which CloudWatch adds to the first.
        """
        found, self._full = self._full, []
        for start_s in sorted(self._open):
            if before_ms is None or (start_s + self.resolution_s) * 1000 <= before_ms:
                found.extend(self._data(start_s, self._open.pop(start_s)))
        return found

    def _data(self, start_s: int, bucket: dict[MetricSeries, dict[float, int]]) -> Iterator[Datum]:
        for series, counts in bucket.items():
            yield from limits.data(series, start_s, counts, self.resolution_s, self._most_values)
