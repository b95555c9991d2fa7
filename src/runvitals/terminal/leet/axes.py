"""Ranges, marks and labels of axes, with units."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence

_BINARY = {"bytes": "B", "bytes/s": "B/s", "MiB": "B", "GiB": "B", "MiB/s": "B/s"}
_BYTES = {"bytes": 1.0, "bytes/s": 1.0, "MiB": 2.0**20, "GiB": 2.0**30, "MiB/s": 2.0**20}
_PREFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi")
_DECIMAL = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_MARGIN = 0.05
_MIN_POWER, _MAX_POWER = -307, 308  # of ten, as a float
_MAX_PERCENT = 101.0
"""Shares of an interval are measured as a little more than all of it at times."""


def y_range(lowest: float, highest: float, unit: str, log: bool) -> tuple[float, float]:
    """Return the range of the y-axis: 0 to 100 for percentages, others with a margin.

    The range is not empty, and its length is finite.

    Example:
        >>> y_range(3.0, 97.0, "%", log=False)
        (0.0, 100.0)
    """
    if log:
        powers = math.floor(math.log10(lowest)), math.ceil(math.log10(highest))
        first, last = (min(max(power, _MIN_POWER), _MAX_POWER) for power in powers)
        if first == last:
            first, last = max(first - 1, _MIN_POWER), min(last + 1, _MAX_POWER)
        return 10.0**first, 10.0**last
    low, high = _linear_range(lowest, highest, unit)
    low, high = max(low, -sys.float_info.max), min(high, sys.float_info.max)
    if math.isfinite(high - low):
        return low, high
    return max(low, -sys.float_info.max / 2.0), min(high, sys.float_info.max / 2.0)


def _linear_range(lowest: float, highest: float, unit: str) -> tuple[float, float]:
    if unit == "%" and lowest >= 0.0 and highest <= _MAX_PERCENT:
        return 0.0, 100.0
    if lowest == highest:
        half = abs(lowest) / 2.0 or 1.0
        return (0.0 if lowest >= 0.0 else lowest - half), max(highest + half, highest)
    margin = (highest - lowest) * _MARGIN
    low = 0.0 if 0.0 <= lowest <= margin else lowest - margin
    return low, highest + margin


def position(value: float, low: float, high: float, log: bool) -> float:
    """Return the position of a value in a range, 0 to 1; NaN if a log scale cannot show it.

    Example:
        >>> position(10.0, 1.0, 100.0, log=True)
        0.5
    """
    if not log:
        return (value - low) / (high - low)
    if value <= 0.0:
        return math.nan
    return (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))


def at(share: float, low: float, high: float, log: bool) -> float:
    """Return the value at a position from 0 to 1, the inverse of `position`."""
    if log:
        return math.exp(math.log(low) + (math.log(high) - math.log(low)) * share)
    return low + (high - low) * share


def labels(values: Sequence[float], unit: str) -> list[str]:
    """Return values with their unit, with as many digits as tell them apart, up to six.

    Example:
        >>> labels([14.02, 14.01], "MiB")
        ['14.02 MiB', '14.01 MiB']
    """
    for digits in range(3, 7):
        texts = [label(value, unit, digits) for value in values]
        if len(set(texts)) == len(texts):
            break
    return texts


def label(value: float, unit: str, digits: int = 3) -> str:
    """Return a value with its unit in few characters: bytes with binary prefixes, others with decimal ones.

    Example:
        >>> label(1536.0, "MiB"), label(0.00123, ""), label(1_250_000.0, "1"), label(83.25, "%")
        ('1.5 GiB', '0.00123', '1.25M', '83.2 %')
    """
    if not math.isfinite(value):
        return "–"
    if unit in _BINARY:
        amount, power = value * _BYTES[unit], 0
        while abs(amount) >= 1000.0 and power < len(_PREFIXES) - 1:
            amount, power = amount / 1024.0, power + 1
        return f"{_short(amount, digits)} {_PREFIXES[power]}{_BINARY[unit]}"
    if unit in ("", "1"):
        return _with_prefix(value, digits)
    return f"{value:,.0f} {unit}" if 1000.0 <= abs(value) < 1e9 else f"{_short(value, digits)} {unit}"


def _with_prefix(value: float, digits: int) -> str:
    for factor, prefix in _DECIMAL:
        if factor <= abs(value) < 1e15:
            return f"{_short(value / factor, digits)}{prefix}"
    return _short(value, digits)


def _short(value: float, digits: int) -> str:
    if value == 0.0:
        return "0"
    return (
        f"{value:.{digits}g}"
        if abs(value) < 1000.0
        else f"{value:.0f}"
        if abs(value) < 1e6
        else f"{value:.2e}"
    )


def elapsed(ms: float) -> str:
    """Return a duration as text, in its two largest units.

    Example:
        >>> elapsed(83_000), elapsed(600_000), elapsed(93_784_000)
        ('1m23s', '10m', '1d2h')
    """
    sign, seconds = ("-" if ms < 0 else ""), abs(round(ms / 1000.0))
    parts = ((seconds // 86_400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "m"))
    counts = [*((count, unit) for count, unit in parts), (seconds % 60, "s")]
    first = next((i for i, (count, _) in enumerate(counts) if count), len(counts) - 1)
    first_counts = [part for part in counts[first : first + 2] if part[0]] or counts[first:]
    return sign + "".join(f"{count}{unit}" for count, unit in first_counts)


def extent(ranges: Iterable[tuple[float, float]]) -> tuple[float, float] | None:
    """Return the range that covers all ranges; None without any."""
    filled = [(low, high) for low, high in ranges if low <= high]
    return (min(low for low, _ in filled), max(high for _, high in filled)) if filled else None
