"""The content of an OTLP request, in protocol buffers or JSON. Exemplars are ignored.

https://opentelemetry.io/docs/specs/otel/metrics/data-model/
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import frexp, isfinite, ldexp
from typing import Any, Final, Literal

from runvitals.server.http.request_errors import HttpRejection, too_large

GAUGE: Final = "gauge"
SUM: Final = "sum"
HISTOGRAM: Final = "histogram"
SUMMARY: Final = "summary"
Kind = Literal["gauge", "sum", "histogram", "summary"]
DELTA: Final = 1
"""The temporality of points that count since the previous point; others count since a start."""
NO_VALUE: Final = 1
"""The flag of a point without a value: a gap."""
MAX_ITEMS: Final = 200_000
"""Points, metrics and resources in a request."""
MAX_RESOURCES: Final = 5000
"""Each may be a run of its own, and to store 1000 new ones takes 0.7 s."""
MAX_BUCKETS: Final = 1000
"""The most buckets of one point of a histogram."""
Buckets = Mapping[tuple[float, float], int]
"""Counts by the lower and upper bound."""


NumberPoint = tuple[Hashable, int, int, float]
"""Attributes (encoded, see `Resource`), start and time in ns UTC, value; NaN is a gap. A plain tuple: there
are many."""


@dataclass(frozen=True, slots=True)
class HistogramPoint:
    """The counts of values within bounds.

    Args:
        attributes: encoded, see `Resource`.
        count: None: a gap.
        fault: what is wrong with the buckets.
        bounds: that end its buckets; of the many of an exponential histogram, the powers of two around them.
    """

    attributes: Hashable
    start_ns: int
    time_ns: int
    count: int | None
    sum: float | None
    min: float | None
    max: float | None
    buckets: Buckets
    fault: str = ""
    bounds: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class SummaryPoint:
    """Quantiles that the sender computed. `count` None: a gap."""

    attributes: Hashable
    start_ns: int
    time_ns: int
    count: int | None
    sum: float
    quantiles: Mapping[float, float]


@dataclass(slots=True)
class SentMetric:
    """The points of one instrument.

    Args:
        numbers: of a gauge or sum. The other lists are those of histograms and summaries.
        is_monotonic: a sum that never falls.
        is_delta: the points count since the previous one.
        faults: why points could not be decoded, with how many.
    """

    name: str = ""
    unit: str = ""
    kind: Kind = GAUGE
    is_monotonic: bool = False
    is_delta: bool = False
    faults: dict[str, int] = field(default_factory=dict)
    numbers: list[NumberPoint] = field(default_factory=list)
    histograms: list[HistogramPoint] = field(default_factory=list)
    summaries: list[SummaryPoint] = field(default_factory=list)


@dataclass(slots=True)
class Resource:
    """A producer of metrics, with its metrics.

    Args:
        attributes_of: decodes the attributes of points. Series are recognized by the encoded ones.
    """

    attributes: dict[str, str]
    metrics: list[SentMetric]
    attributes_of: Callable[[Any], Mapping[str, str]]


class ItemCount:
    """Counts what a request has, to bound the memory that it takes."""

    __slots__ = ("left", "resources_left")

    def __init__(self) -> None:
        self.left = MAX_ITEMS
        self.resources_left = MAX_RESOURCES

    def add_resource(self) -> None:
        """Count a resource, or raise HttpRejection 413."""
        self.add()
        self.resources_left -= 1
        if self.resources_left < 0:
            raise too_many_resources()

    def add(self, count: int = 1) -> None:
        """Count points, metrics or resources of a request, or raise HttpRejection 413."""
        self.left -= count
        if self.left < 0:
            raise too_large(f"more than {MAX_ITEMS:,} points, metrics and resources in one request")


def too_many_resources() -> HttpRejection:
    """413: the request has too many resources."""
    return too_large(f"more than {MAX_RESOURCES:,} resources in one request")


def explicit_buckets(bounds: list[float], counts: list[int]) -> tuple[Buckets, str, tuple[float, ...]]:
    """Return the buckets of a histogram with explicit bounds, what is wrong with them, and the bounds.

    Example:
        >>> explicit_buckets([1.0], [2, 0])
        ({(-inf, 1.0): 2}, '', (1.0,))
    """
    if not counts:
        return {}, "", ()
    if len(counts) != len(bounds) + 1 or len(counts) > MAX_BUCKETS:
        expected = f"expected one count more than bounds, and at most {MAX_BUCKETS}"
        return {}, f"a histogram with {len(counts)} counts and {len(bounds)} bounds; {expected}", ()
    if any(not low < high for low, high in pairwise(bounds)):
        return {}, "a histogram whose bounds do not ascend", ()
    edges = [float("-inf"), *bounds, float("inf")]
    buckets = {(edges[i], edges[i + 1]): count for i, count in enumerate(counts) if count}
    return buckets, "", tuple(bounds)


def exponential_buckets(
    scale: int, zeros: int, positive: tuple[int, list[int]], negative: tuple[int, list[int]]
) -> tuple[Buckets, str, tuple[float, ...]]:
    """Return the buckets of an exponential histogram, what is wrong with them, and bounds around them.

    Bucket i is from base^i to base^(i+1), base = 2^(2^-scale).

    Args:
        positive, negative: the number of the first bucket, and the counts.

    Example:
        >>> exponential_buckets(0, 1, (1, [5]), (0, []))
        ({(0.0, 0.0): 1, (2.0, 4.0): 5}, '', (2.0, 4.0))
    """
    if len(positive[1]) + len(negative[1]) > MAX_BUCKETS:
        return {}, f"a histogram with more than {MAX_BUCKETS} buckets", ()
    if not -10 <= scale <= 20:
        return {}, f"an exponential histogram of scale {scale}; expected -10 to 20", ()
    buckets: dict[tuple[float, float], int] = {(0.0, 0.0): zeros} if zeros else {}
    for sign, (offset, counts) in ((1.0, positive), (-1.0, negative)):
        for number, count in enumerate(counts, offset):
            if count:
                low, high = sorted((sign * _edge(scale, number), sign * _edge(scale, number + 1)))
                buckets[low, high] = count
    bounds = {bound for low, high in buckets for bound in (_power_below(low), _power_above(high))}
    return buckets, "", tuple(sorted(bound for bound in bounds if bound and isfinite(bound)))


def _power_above(value: float) -> float:
    """Return the power of two at or above a number, or the negative of one."""
    if value <= 0 or not isfinite(value):
        return -_power_below(-value) if value < 0 else value
    mantissa, exponent = frexp(value)
    exponent -= mantissa == 0.5
    return ldexp(1.0, exponent) if exponent < 1024 else float("inf")


def _power_below(value: float) -> float:
    """Return the power of two at or below a number, or the negative of one."""
    if value <= 0 or not isfinite(value):
        return -_power_above(-value) if value < 0 else value
    return ldexp(1.0, frexp(value)[1] - 1)


def _edge(scale: int, number: int) -> float:
    exponent = number * 2.0**-scale
    return 2.0**exponent if -1074 <= exponent < 1024 else 0.0 if exponent < 0 else float("inf")
