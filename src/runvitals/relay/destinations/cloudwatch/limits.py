"""The limits of PutMetricData, and how data are split to meet them.

The limits are those of the API's reference: 1000 data a request, 1 MB a request before compression, 150
values a datum, 30 dimensions, values within ±2^360, times from two weeks ago to two hours ahead.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite

from runvitals.relay.destinations.cloudwatch.datum import Datum, Dimensions, MetricSeries

DATA_PER_REQUEST = 1000
BYTES_PER_REQUEST = 1_000_000
VALUES_PER_DATUM = 150
DIMENSIONS = 30
NAME_LENGTH = 255
DIMENSION_VALUE_LENGTH = 1024
LARGEST_VALUE = 2.0**360
OLDEST_S = 14 * 86_400
NEWEST_S = 2 * 3600

# Leaves room for clocks that differ and for a request that is tried again for a while.
_AGE_MARGIN_S = 300


def takes(value: float) -> bool:
    """Whether a value can be sent: NaN, infinities and what lies outside ±2^360 cannot."""
    return isfinite(value) and -LARGEST_VALUE <= value <= LARGEST_VALUE


def in_time(datum: Datum, now_s: float) -> bool:
    """Whether a datum's time is within what CloudWatch takes now."""
    return now_s - OLDEST_S + _AGE_MARGIN_S <= datum.time_s <= now_s + NEWEST_S - _AGE_MARGIN_S


def legal_name(text: str, length: int = NAME_LENGTH) -> str:
    """A metric's name that CloudWatch takes: what is not printable ASCII is written out, what is too long is
    cut and keeps a check sum, so that different names stay different.

    Example:
        >>> legal_name("disk./données.usagePercent")
        'disk./donn\\\\xe9es.usagePercent'
    """
    written = "".join(c if " " <= c <= "~" else c.encode("ascii", "backslashreplace").decode() for c in text)
    written = "".join(c if " " <= c <= "~" else f"\\x{ord(c):02x}" for c in written).strip() or "_"
    if len(written) <= length:
        return written
    return f"{written[: length - 9]}~{zlib.crc32(written.encode()):08x}"


def check_namespace(namespace: str) -> str:
    """The namespace itself.

    Raises:
        ValueError: one that CloudWatch refuses.
    """
    legal = all(char.isascii() and (char.isalnum() or char in ".-_/#: ") for char in namespace)
    if not (legal and namespace.strip() and len(namespace) <= NAME_LENGTH) or namespace.startswith(":"):
        raise ValueError(
            f"namespace {namespace!r}: allowed are 1 to {NAME_LENGTH} of A-Z a-z 0-9 . - _ / # : and blanks, "
            "not beginning with a colon"
        )
    if namespace.startswith("AWS/"):
        raise ValueError(f"namespace {namespace!r}: names that begin with AWS/ are Amazon's own")
    return namespace


def check_dimensions(dimensions: Dimensions) -> Dimensions:
    """The dimensions themselves.

    Raises:
        ValueError: too many, one name twice, or one that CloudWatch refuses.
    """
    if len(dimensions) > DIMENSIONS:
        raise ValueError(f"{len(dimensions)} dimensions: CloudWatch takes at most {DIMENSIONS}")
    names = [name for name, _ in dimensions]
    for name, value in dimensions:
        if names.count(name) > 1:
            raise ValueError(f"dimension {name!r} is given twice")
        if not _is_plain(name, NAME_LENGTH) or name.startswith(":"):
            raise ValueError(
                f"dimension {name!r}: a name has 1 to {NAME_LENGTH} ASCII characters, the first no colon"
            )
        if not _is_plain(value, DIMENSION_VALUE_LENGTH):
            raise ValueError(
                f"dimension {name}={value!r}: a value has 1 to {DIMENSION_VALUE_LENGTH} ASCII characters"
            )
    return dimensions


def _is_plain(text: str, length: int) -> bool:
    return bool(text.strip()) and len(text) <= length and all(" " <= char <= "~" for char in text)


def data(
    series: MetricSeries,
    time_s: int,
    counts: dict[float, int],
    resolution_s: int,
    most: int = VALUES_PER_DATUM,
) -> Iterator[Datum]:
    """The data of one series and time; more than one where it had more than `most` different values.

    CloudWatch adds data of the same series and time up, so the statistics stay exact.
    """
    values = list(counts)
    for start in range(0, len(values), most):
        part = tuple(values[start : start + most])
        yield Datum(series, time_s, part, tuple(counts[value] for value in part), resolution_s)


# Upper bounds of what a request's body takes, in the protocols that boto3 has had for CloudWatch. A float is
# written with at most 24 characters. Names and dimensions of the older one are percent-encoded: 3 for 1.
_JSON = {"datum": 140, "value": 26, "dimension": 24, "escape": 2}
_QUERY = {"datum": 260, "value": 110, "dimension": 110, "escape": 3}


def size(datum: Datum, protocol: str = "json") -> int:
    """At most so many bytes of a request's body does a datum take, before compression."""
    cost = _QUERY if protocol == "query" else _JSON
    series = datum.series
    texts = len(series.name) + sum(len(name) + len(value) for name, value in series.dimensions)
    return (
        cost["datum"]
        + cost["escape"] * texts
        + cost["dimension"] * len(series.dimensions)
        + (cost["value"] + 8) * len(datum.values)
    )


def requests(found: Iterable[Datum], protocol: str = "json") -> Iterator[Sequence[Datum]]:
    """Data put together into as few requests as the limits allow."""
    request: list[Datum] = []
    room = BYTES_PER_REQUEST - 2 * NAME_LENGTH
    used = 0
    for datum in found:
        cost = size(datum, protocol)
        if request and (len(request) == DATA_PER_REQUEST or used + cost > room):
            yield request
            request, used = [], 0
        request.append(datum)
        used += cost
    if request:
        yield request
