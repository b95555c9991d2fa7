"""What would be sent, what that costs a month, and what is saved by what is left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil

from runvitals.relay.destinations.cloudwatch import limits, prices
from runvitals.relay.destinations.cloudwatch.datum import Datum, MetricReading, MetricSeries
from runvitals.relay.destinations.cloudwatch.emf import lines


@dataclass
class Estimate:
    """The metrics of one machine, and the prices of so many machines.

    Args:
        instances: how many machines send.
        apart: whether their metrics are told apart by a dimension. If not, they all pay for one set together.
        interval_s: seconds between two readings of a metric.
        every_s: how often data are sent.
        resolution_s: 1 or 60.
        dimensions: as they were asked for.

    Example:
        >>> estimate = Estimate()
        >>> for reading in readings:
        ...     estimate.add(reading, selection.wants(reading))
        >>> estimate.metrics_usd()
        7.5
    """

    instances: int = 1
    apart: bool = False
    interval_s: float = 5.0
    every_s: float = 60.0
    resolution_s: int = 60
    dimensions: Mapping[str, str | None] = field(default_factory=dict)
    sent: dict[MetricSeries, MetricReading] = field(default_factory=dict)
    left_out: dict[MetricSeries, MetricReading] = field(default_factory=dict)

    def add(self, reading: MetricReading, wanted: bool) -> None:
        (self.sent if wanted else self.left_out)[reading.series] = reading

    @property
    def sets(self) -> int:
        """How many times each metric is paid for."""
        return self.instances if self.apart else 1

    def metrics_usd(self, count: int | None = None) -> float:
        """USD a month for the metrics of all machines; of `count` metrics of a machine instead."""
        return prices.metrics_usd((len(self.sent) if count is None else count) * self.sets)

    def requests_an_hour(self) -> float:
        """Of one machine; more if its data do not fit into 1 MB."""
        every_s = max(self.every_s, self.resolution_s)  # what has not ended is not sent yet
        data_a_metric = max(1.0, every_s / max(self.resolution_s, self.interval_s))
        return ceil(len(self.sent) * data_a_metric / limits.DATA_PER_REQUEST) * 3600 / every_s

    def requests_usd(self) -> float:
        return prices.requests_usd(self.requests_an_hour() * self.instances)

    def one_by_one_usd(self) -> float:
        """USD a month for the requests, if every report were one."""
        return prices.requests_usd(3600 / self.interval_s * self.instances)

    def logs_usd(self, namespace: str) -> float:
        """USD a month for the log's bytes, if the embedded metric format is written instead of requests."""
        dimensions = tuple((name, value or "0" * 20) for name, value in self.dimensions.items())
        readings = max(1, round(60 / self.interval_s))
        data = [
            Datum(series._replace(dimensions=dimensions), 0, (reading.value,), (readings,))
            for series, reading in self.sent.items()
        ]
        a_minute = sum(len(line) + 1 for line in lines(namespace, data))
        return prices.logs_usd(a_minute * 60 * self.instances)

    def total_usd(self) -> float:
        return self.metrics_usd() + self.requests_usd()

    def groups(self) -> Iterator[tuple[str, int, float, int, float]]:
        """Of each group: its name, metrics sent, their USD a month; metrics left out, and the USD saved."""
        here, there = _count(self.sent.values()), _count(self.left_out.values())
        for name in here | there:
            sent, left_out = here.get(name, 0), there.get(name, 0)
            share = self.metrics_usd() * sent / len(self.sent) if sent else 0.0
            saved = self.metrics_usd(len(self.sent) + left_out) - self.metrics_usd()
            yield name, sent, share, left_out, saved


def _count(readings: Iterable[MetricReading]) -> dict[str, int]:
    found: dict[str, int] = {}
    for reading in readings:
        found[reading.group] = found.get(reading.group, 0) + 1
    return found
