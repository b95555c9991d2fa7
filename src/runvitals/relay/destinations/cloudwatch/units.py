"""CloudWatch's units, and how the units of the metric definitions map to them."""

from __future__ import annotations

from typing import NamedTuple

from runvitals.model.metrics import Metric


class CloudWatchUnit(NamedTuple):
    """A unit as CloudWatch spells it, and the factor from our unit to it."""

    name: str
    factor: float = 1.0


# CloudWatch has no binary multiples and converts nothing: 1 MiB sent as 1 Megabyte would be 5 % too small.
# It has no degrees, watts, joules or hertz either: those are sent without a unit.
_BY_SYMBOL = {
    "1": CloudWatchUnit("None"),
    "%": CloudWatchUnit("Percent"),
    "s": CloudWatchUnit("Seconds"),
    "ms": CloudWatchUnit("Milliseconds"),
    "µs": CloudWatchUnit("Microseconds"),
    "1/s": CloudWatchUnit("Count/Second"),
    "bytes": CloudWatchUnit("Bytes"),
    "MiB": CloudWatchUnit("Bytes", 2.0**20),
    "GiB": CloudWatchUnit("Bytes", 2.0**30),
    "bytes/s": CloudWatchUnit("Bytes/Second"),
    "MiB/s": CloudWatchUnit("Bytes/Second", 2.0**20),
    "Mb/s": CloudWatchUnit("Megabits/Second"),
    "bit/s": CloudWatchUnit("Bits/Second"),
}
_PLAIN = CloudWatchUnit("None")


def unit_of(metric: Metric | None) -> CloudWatchUnit:
    """Return the unit for a metric definition: "None" for unknown keys and units CloudWatch does not have.

    Example:
        >>> unit_of(DEFINITIONS.find("proc.memory.rssMB").metric)
        CloudWatchUnit(name='Bytes', factor=1048576.0)
    """
    if metric is None:
        return _PLAIN
    if metric.unit == "1" and metric.kind == "counter":
        return CloudWatchUnit("Count")
    return _BY_SYMBOL.get(metric.unit, _PLAIN)
