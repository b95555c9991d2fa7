"""The data types for CloudWatch: series, their readings, and data, each of which holds many readings."""

from __future__ import annotations

from typing import NamedTuple

Dimensions = tuple[tuple[str, str], ...]


class MetricSeries(NamedTuple):
    """A metric as CloudWatch identifies it. The unit is not part of its identity.

    Example:
        >>> MetricSeries("NeuronCoreUtilizationNC0", "Percent", (("InstanceId", "i-0abc"),))
    """

    name: str
    unit: str = "None"
    dimensions: Dimensions = ()


class MetricReading(NamedTuple):
    """One measured value.

    Args:
        series: the series it belongs to.
        value: in the series' unit.
        group: the group used for selection and cost: neuron-monitor's metric group, or the chart of the
            metric definition.
        field: its name at the source: `error_summary.generic`, `gpu.0.temp`.
    """

    series: MetricSeries
    value: float
    group: str
    field: str


class Datum(NamedTuple):
    """Readings of one series within one second or minute: the distinct values, and how often each occurred.

    Args:
        time_s: UTC, the start of the second or minute.
        values: at most 150, distinct.
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
        """The number of values that the datum stands for."""
        return sum(self.counts)
