"""The units of metrics, and their conversion for systems that expect base units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit, and its base unit in other systems.

    Args:
        symbol: as in `Metric.unit`.
        prometheus: suffix of the base unit in a Prometheus name, "" for plain numbers.
        otel: the base unit in UCUM notation, which OpenTelemetry uses.
        to_base: factor from this unit to the base unit.
        most: no gauge in this unit is higher, unless its definition says so: a larger number is a code for
            "no value", or a fault of a sensor.
        least: no gauge in this unit is lower.

    Example:
        >>> unit = UNITS["MiB"]
        >>> 3 * unit.to_base, unit.prometheus, unit.otel
        (3145728.0, 'bytes', 'By')
    """

    symbol: str
    prometheus: str
    otel: str
    to_base: float = 1.0
    most: float = inf
    least: float = 0.0


_ALL = (
    Unit("1", "", "1"),
    Unit("%", "ratio", "1", 0.01, most=100.0),
    Unit("s", "seconds", "s", most=1e10),
    Unit("ms", "seconds", "s", 1e-3),
    Unit("µs", "seconds", "s", 1e-6),
    Unit("1/s", "per_second", "1/s"),
    Unit("bytes", "bytes", "By", most=2.0**60),
    Unit("MiB", "bytes", "By", 2.0**20, most=2.0**40),
    Unit("GiB", "bytes", "By", 2.0**30, most=2.0**40),
    Unit("bytes/s", "bytes_per_second", "By/s", most=2.0**50),
    Unit("MiB/s", "bytes_per_second", "By/s", 2.0**20),
    Unit("Mb/s", "bytes_per_second", "By/s", 1e6 / 8),
    Unit("bit/s", "bytes_per_second", "By/s", 1 / 8, most=2.0**50),
    Unit("GT/s", "transfers_per_second", "{transfer}/s", 1e9, most=1000.0),
    Unit("MHz", "hertz", "Hz", 1e6, most=50_000.0),
    Unit("°C", "celsius", "Cel", most=200.0, least=-60.0),
    Unit("W", "watts", "W", most=10_000.0),
    Unit("V", "volts", "V", most=100.0),
    Unit("rpm", "rpm", "rpm", most=50_000.0),
    Unit("J", "joules", "J"),
    Unit("mJ", "joules", "J", 1e-3),
)

UNITS: Mapping[str, Unit] = {unit.symbol: unit for unit in _ALL}
