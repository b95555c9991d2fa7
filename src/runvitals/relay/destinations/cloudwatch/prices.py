"""CloudWatch's list prices, and what metrics, requests and logs cost by them.

The prices are those of us-east-1 without the free tier, as of 2026-11-21. Most commercial Regions have the
same prices for metrics and requests. For other Regions see
https://aws.amazon.com/cloudwatch/pricing/.
"""

from __future__ import annotations

REGION = "us-east-1"
AS_OF = "2026-11-21"

# (up to this many metrics, USD per metric and month): the first 10,000, the next 240,000, …
METRIC_TIERS: tuple[tuple[float, float], ...] = (
    (10_000, 0.30),
    (250_000, 0.10),
    (1_000_000, 0.05),
    (float("inf"), 0.02),
)
PUT_USD = 0.01 / 1000  # per PutMetricData request
LOG_USD_PER_GB = 0.50  # of log events, for the embedded metric format

# Free per account and month. Not subtracted in estimates, because other uses of the account share it.
FREE_METRICS = 10
FREE_REQUESTS = 1_000_000

HOURS_PER_MONTH = 30 * 24


def metrics_usd(count: float) -> float:
    """Return USD per month for custom metrics that are sent all month.

    A metric is a namespace, a name and a set of dimensions with values. High resolution costs the same.

    Example:
        >>> metrics_usd(25), metrics_usd(4), metrics_usd(10_001)
        (7.5, 1.2, 3000.1)
    """
    usd, below = 0.0, 0.0
    for tier, price in METRIC_TIERS:
        usd += max(0.0, min(count, tier) - below) * price
        below = tier
    return round(usd, 6)


def requests_usd(per_hour: float) -> float:
    """Return USD per month for PutMetricData requests.

    Example:
        >>> requests_usd(60), requests_usd(3600)
        (0.432, 25.92)
    """
    return round(per_hour * HOURS_PER_MONTH * PUT_USD, 6)


def logs_usd(bytes_per_hour: float) -> float:
    """Return USD per month for log events in the embedded metric format."""
    return round(bytes_per_hour * HOURS_PER_MONTH / 1e9 * LOG_USD_PER_GB, 6)
