"""Estimates what a selection of metrics costs per month, and what excluding the others saves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil

from runvitals.relay.destinations.cloudwatch import limits, prices
from runvitals.relay.destinations.cloudwatch.datum import Datum, MetricReading, MetricSeries
from runvitals.relay.destinations.cloudwatch.emf import lines


@dataclass
class Estimate:
    """The metrics of one instance, and the cost of them on a number of instances.

    Args:
        instances: the number of instances.
        per_instance: whether a dimension distinguishes their metrics. If not, all instances share one set of
            metrics, which is billed once.
        interval_s: seconds between two readings of a metric.
        every_s: how often data are sent.
        resolution_s: 1 or 60.
        dimensions: as returned by `dimensions.parse`.

    Attributes:
        sent: the last reading of each selected metric.
        left_out: the last reading of each other metric.

    Example:
        >>> estimate = Estimate()
        >>> for reading in readings:
        ...     estimate.add(reading, selection.wants(reading))
        >>> estimate.metrics_usd()
        7.5
    """

    instances: int = 1
    per_instance: bool = False
    interval_s: float = 5.0
    every_s: float = 60.0
    resolution_s: int = 60
    dimensions: Mapping[str, str | None] = field(default_factory=dict)
    sent: dict[MetricSeries, MetricReading] = field(default_factory=dict)
    left_out: dict[MetricSeries, MetricReading] = field(default_factory=dict)

    def add(self, reading: MetricReading, is_wanted: bool) -> None:
        """Count the series of a reading as sent, or as left out."""
        (self.sent if is_wanted else self.left_out)[reading.series] = reading

    @property
    def metric_sets(self) -> int:
        """The number of times each metric is billed."""
        return self.instances if self.per_instance else 1

    def metrics_usd(self, count: int | None = None) -> float:
        """Return USD per month for `count` metrics of each instance, by default those in `sent`."""
        return prices.metrics_usd((len(self.sent) if count is None else count) * self.metric_sets)

    def requests_per_hour(self) -> float:
        """Return the least requests of one instance: data that exceed 1 MB take more."""
        every_s = max(self.every_s, self.resolution_s)  # a datum is sent once its time span has ended
        data_per_metric = max(1.0, every_s / max(self.resolution_s, self.interval_s))
        return ceil(len(self.sent) * data_per_metric / limits.DATA_PER_REQUEST) * 3600 / every_s

    def requests_usd(self) -> float:
        """Return the price of the requests of all instances, USD per month."""
        return prices.requests_usd(self.requests_per_hour() * self.instances)

    def unbatched_requests_usd(self) -> float:
        """Return USD per month for the requests if every report were sent as a request."""
        return prices.requests_usd(3600 / self.interval_s * self.instances)

    def logs_usd(self, namespace: str) -> float:
        """Return USD per month for log events, if the embedded metric format is used instead of requests."""
        dimensions = tuple((name, value or "0" * 20) for name, value in self.dimensions.items())
        readings = max(1, round(60 / self.interval_s))
        data = [
            Datum(series._replace(dimensions=dimensions), 0, (reading.value,), (readings,))
            for series, reading in self.sent.items()
        ]
        bytes_per_minute = sum(len(line) + 1 for line in lines(namespace, data))
        return prices.logs_usd(bytes_per_minute * 60 * self.instances)

    def total_usd(self) -> float:
        """Return the price of metrics and requests, USD per month."""
        return self.metrics_usd() + self.requests_usd()

    def groups(self) -> Iterator[tuple[str, int, float, int, float]]:
        """Return each group: its name, metrics sent, USD per month for them, metrics left out, USD saved."""
        sent_counts, left_out_counts = _count(self.sent.values()), _count(self.left_out.values())
        for name in sent_counts | left_out_counts:
            sent, left_out = sent_counts.get(name, 0), left_out_counts.get(name, 0)
            share = self.metrics_usd() * sent / len(self.sent) if sent else 0.0
            saved = self.metrics_usd(len(self.sent) + left_out) - self.metrics_usd()
            yield name, sent, share, left_out, saved


def _count(readings: Iterable[MetricReading]) -> Counter[str]:
    """Return the number of readings in each group."""
    return Counter(reading.group for reading in readings)
