"""The units of metrics, and their conversion for systems that expect base units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit, and its base unit in other systems.

    Args:
        symbol: as in `Metric.unit`.
        prometheus: suffix of the base unit in a Prometheus name, "" for plain numbers.
        otel: the base unit in UCUM notation, which OpenTelemetry uses.
        to_base: factor from this unit to the base unit.

    Example:
        >>> unit = UNITS["MiB"]
        >>> 3 * unit.to_base, unit.prometheus, unit.otel
        (3145728.0, 'bytes', 'By')
    """

    symbol: str
    prometheus: str
    otel: str
    to_base: float = 1.0


_ALL = (
    Unit("1", "", "1"),
    Unit("%", "ratio", "1", 0.01),
    Unit("s", "seconds", "s"),
    Unit("ms", "seconds", "s", 1e-3),
    Unit("µs", "seconds", "s", 1e-6),
    Unit("1/s", "per_second", "1/s"),
    Unit("bytes", "bytes", "By"),
    Unit("MiB", "bytes", "By", 2.0**20),
    Unit("GiB", "bytes", "By", 2.0**30),
    Unit("bytes/s", "bytes_per_second", "By/s"),
    Unit("MiB/s", "bytes_per_second", "By/s", 2.0**20),
    Unit("Mb/s", "bytes_per_second", "By/s", 1e6 / 8),
    Unit("bit/s", "bytes_per_second", "By/s", 1 / 8),
    Unit("GT/s", "transfers_per_second", "{transfer}/s", 1e9),
    Unit("MHz", "hertz", "Hz", 1e6),
    Unit("°C", "celsius", "Cel"),
    Unit("W", "watts", "W"),
    Unit("V", "volts", "V"),
    Unit("rpm", "rpm", "rpm"),
    Unit("J", "joules", "J"),
    Unit("mJ", "joules", "J", 1e-3),
)

UNITS: Mapping[str, Unit] = {unit.symbol: unit for unit in _ALL}
