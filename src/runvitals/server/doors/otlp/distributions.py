"""Count, sum, mean and percentiles of histograms, which charts show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from runvitals.server.doors.otlp.message import Buckets

PERCENTILES: Final[Mapping[str, float]] = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def difference(buckets: Buckets, before: Buckets) -> Buckets | None:
    """Return what was counted since `before`; None if the bounds have changed, or the counts began anew.

    Example:
        >>> difference({(0.0, 1.0): 3, (1.0, 2.0): 5}, {(0.0, 1.0): 3})
        {(1.0, 2.0): 5}
    """
    if not before.keys() <= buckets.keys():
        return None
    grown = {bounds: count - before.get(bounds, 0) for bounds, count in buckets.items()}
    if any(count < 0 for count in grown.values()):
        return None
    return {bounds: count for bounds, count in grown.items() if count}


def quantile(
    buckets: Buckets, share: float, least: float | None = None, greatest: float | None = None
) -> float | None:
    """Return the value below which a share of the values is, as if those of a bucket were evenly spread.

    None if there are none. In a bucket without an end it is the end that there is.

    Args:
        least, greatest: between which all values are, if that is known.

    Example:
        >>> quantile({(0.0, 10.0): 4, (10.0, 20.0): 4}, 0.75)
        15.0
        >>> quantile({(0.0, 10.0): 4}, 0.5, least=1.0, greatest=2.0)
        1.5
    """
    total = sum(buckets.values())
    if not total:
        return None
    rank, below, value = share * total, 0, 0.0
    for bounds, count in sorted(buckets.items()):
        low, high = _narrow(bounds, least, greatest)
        if low == float("-inf"):
            value = high
        elif high == float("inf"):
            value = low
        else:
            value = low + (high - low) * min(max((rank - below) / count, 0.0), 1.0)
        below += count
        if below >= rank:
            break
    return value


def _narrow(bounds: tuple[float, float], least: float | None, greatest: float | None) -> tuple[float, float]:
    """Return where the values of a bucket can be. Its own bounds, if what was sent contradicts them."""
    low = bounds[0] if least is None else max(bounds[0], least)
    high = bounds[1] if greatest is None else min(bounds[1], greatest)
    return (low, high) if low <= high else bounds
