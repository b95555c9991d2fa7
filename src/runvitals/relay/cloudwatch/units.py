"""CloudWatch's units, and which of them each of the catalogue's becomes."""

from __future__ import annotations

from typing import NamedTuple

from runvitals.catalog import Metric


class Unit(NamedTuple):
    """A unit as CloudWatch spells it, and what a value of ours is multiplied by to be in it."""

    name: str
    factor: float = 1.0


# CloudWatch has no binary multiples, and converts nothing: 1 MiB sent as 1 Megabyte would be 5 % too few.
# It has no degrees, watts, joules or hertz either: those go as they are, without a unit.
_BY_SYMBOL = {
    "1": Unit("None"),
    "%": Unit("Percent"),
    "s": Unit("Seconds"),
    "ms": Unit("Milliseconds"),
    "µs": Unit("Microseconds"),
    "1/s": Unit("Count/Second"),
    "bytes": Unit("Bytes"),
    "MiB": Unit("Bytes", 2.0**20),
    "GiB": Unit("Bytes", 2.0**30),
    "bytes/s": Unit("Bytes/Second"),
    "MiB/s": Unit("Bytes/Second", 2.0**20),
    "Mb/s": Unit("Megabits/Second"),
    "bit/s": Unit("Bits/Second"),
}
_PLAIN = Unit("None")


def unit_of(metric: Metric | None) -> Unit:
    """The unit of a row of the catalogue; "None" for a key it does not know, and for what has no name there.

    Example:
        >>> unit_of(CATALOG.find("proc.memory.rssMB").metric)
        Unit(name='Bytes', factor=1048576.0)
    """
    if metric is None:
        return _PLAIN
    if metric.unit == "1" and metric.kind == "counter":
        return Unit("Count")
    return _BY_SYMBOL.get(metric.unit, _PLAIN)
