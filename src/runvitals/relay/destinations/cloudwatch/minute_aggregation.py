"""Aggregates the readings of a minute into one datum per series, with all values and their counts.

For samples every 5 s this is a twelfth of the data, and CloudWatch's statistics (including percentiles) are
the same as if every reading had been sent individually.
"""

from __future__ import annotations

from collections.abc import Iterator

from runvitals.relay.destinations.cloudwatch import limits
from runvitals.relay.destinations.cloudwatch.datum import Datum, MetricSeries


class MinuteAggregation:
    """Readings by series and time. Uses about 100 bytes of memory per distinct value.

    Args:
        resolution_s: the time span of one datum: 60, or 1 for CloudWatch's high resolution.

    Attributes:
        rejected: readings that CloudWatch does not accept: NaN, infinite, too large.

    Example:
        >>> aggregation = MinuteAggregation()
        >>> for time_ms in (60_000, 65_000, 70_000):
        ...     aggregation.add(MetricSeries("cpu", "Percent"), time_ms, 50.0)
        >>> aggregation.take()
        [Datum(series=Series(name='cpu', …), time_s=60, values=(50.0,), counts=(3,), resolution_s=60)]
    """

    def __init__(self, resolution_s: int = 60, max_values: int = limits.VALUES_PER_DATUM) -> None:
        self.resolution_s = resolution_s
        self.rejected = 0
        self._max_values = max_values
        self._open: dict[int, dict[MetricSeries, dict[float, int]]] = {}
        self._full: list[Datum] = []

    def add(self, series: MetricSeries, time_ms: int, value: float) -> None:
        """Add a value to the datum of its series and minute, or count it as rejected."""
        if not limits.accepts_value(value):
            self.rejected += 1
            return
        seconds = time_ms // 1000
        bucket = self._open.setdefault(seconds - seconds % self.resolution_s, {})
        counts = bucket.setdefault(series, {})
        counts[value] = counts.get(value, 0) + 1
        # Bounds the memory used when many reports arrive together (from a file).
        if len(counts) == self._max_values:
            self._full.extend(self._data(seconds - seconds % self.resolution_s, {series: counts}))
            del bucket[series]

    @property
    def full(self) -> int:
        """The number of data with as many values as allowed, which need not wait for their minute's end."""
        return len(self._full)

    def take(self, before_ms: int | None = None) -> list[Datum]:
        """Remove and return the data of all times that ended before `before_ms` (None: all).

        A late reading yields another datum of the same time, which CloudWatch merges with the first.
        """
        data, self._full = self._full, []
        for start_s in sorted(self._open):
            if before_ms is None or (start_s + self.resolution_s) * 1000 <= before_ms:
                data.extend(self._data(start_s, self._open.pop(start_s)))
        return data

    def _data(self, start_s: int, bucket: dict[MetricSeries, dict[float, int]]) -> Iterator[Datum]:
        for series, counts in bucket.items():
            yield from limits.make_data(series, start_s, counts, self.resolution_s, self._max_values)
