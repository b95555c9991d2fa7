"""What goes to CloudWatch: series, readings of them, and data, each of which holds many readings."""

from __future__ import annotations

from typing import NamedTuple

Dimensions = tuple[tuple[str, str], ...]


class MetricSeries(NamedTuple):
    """One metric as CloudWatch tells metrics apart (the unit makes no other metric, and no other price).

    Example:
        >>> MetricSeries("NeuronCoreUtilizationNC0", "Percent", (("InstanceId", "i-0abc"),))
    """

    name: str
    unit: str = "None"
    dimensions: Dimensions = ()


class MetricReading(NamedTuple):
    """One number that was read.

    Args:
        series: what it is a value of.
        value: in the series' unit.
        group: what it is chosen and priced with: neuron-monitor's metric group, or the catalogue's chart.
        field: its name where it comes from: `error_summary.generic`, `gpu.0.temp`.
    """

    series: MetricSeries
    value: float
    group: str
    field: str


class Datum(NamedTuple):
    """Readings of one series within one second or minute: the different values, and how often each came.

    Args:
        time_s: UTC, the beginning of the second or minute.
        values: at most 150, none twice.
        counts: as many as values, at least 1 each.
        resolution_s: CloudWatch's StorageResolution, 1 or 60.
    """

    series: MetricSeries
    time_s: int
    values: tuple[float, ...]
    counts: tuple[int, ...]
    resolution_s: int = 60

    @property
    def readings(self) -> int:
        return sum(self.counts)
