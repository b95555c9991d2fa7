"""The limits of PutMetricData, and functions that split data to stay within them.

Per request 1000 data and 1 MB before compression; per datum 150 values and 30 dimensions; values within
±2^360; times from two weeks ago to two hours ahead. See
https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricData.html.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite

from runvitals.relay.destinations.cloudwatch.datum import Datum, Dimensions, MetricSeries
from runvitals.relay.destinations.cloudwatch.split_request import RefusedReadings

DATA_PER_REQUEST = 1000
BYTES_PER_REQUEST = 1_000_000
VALUES_PER_DATUM = 150
DIMENSIONS = 30
NAME_LENGTH = 255
DIMENSION_VALUE_LENGTH = 1024
MAX_VALUE = 2.0**360
OLDEST_S = 14 * 86_400
NEWEST_S = 2 * 3600


def accepts_value(value: float) -> bool:
    """Return whether CloudWatch accepts a value: not NaN or infinite, and within ±2^360."""
    return isfinite(value) and -MAX_VALUE <= value <= MAX_VALUE


def refused_time(datum: Datum, now_s: float) -> str:
    """Return why CloudWatch does not accept a datum's time now; "" if it does."""
    if datum.time_s < now_s - OLDEST_S:
        return "older than two weeks, which CloudWatch does not accept"
    if datum.time_s > now_s + NEWEST_S:
        return "more than two hours in the future, which CloudWatch does not accept"
    return ""


def timely(data: Iterable[Datum], now_s: float, refusals: RefusedReadings) -> list[Datum]:
    """Return the data whose times CloudWatch accepts now; the others are counted."""
    accepted = []
    for datum in data:
        reason = refused_time(datum, now_s)
        if reason:
            refusals.add(reason, datum.readings)
        else:
            accepted.append(datum)
    return accepted


def valid_name(text: str, length: int = NAME_LENGTH) -> str:
    r"""Convert text to a name that CloudWatch accepts.

    Characters other than printable ASCII are escaped. A name that is too long is truncated and ends with a
    checksum, so that different names stay different.

    Example:
        >>> valid_name("disk./données.usagePercent")
        'disk./donn\\xe9es.usagePercent'
    """
    name = "".join(c if " " <= c <= "~" else c.encode("ascii", "backslashreplace").decode() for c in text)
    name = "".join(c if " " <= c <= "~" else f"\\x{ord(c):02x}" for c in name).strip() or "_"
    if len(name) <= length:
        return name
    return f"{name[: length - 9]}~{zlib.crc32(name.encode()):08x}"


def check_namespace(namespace: str) -> str:
    """Return the namespace unchanged.

    Raises:
        ValueError: CloudWatch does not allow it.
    """
    allowed = all(char.isascii() and (char.isalnum() or char in ".-_/#: ") for char in namespace)
    if not (allowed and namespace.strip() and len(namespace) <= NAME_LENGTH) or namespace.startswith(":"):
        raise ValueError(
            f"invalid namespace {namespace!r}; expected 1 to {NAME_LENGTH} characters of "
            "A-Z a-z 0-9 . - _ / # : and space, not starting with a colon"
        )
    if namespace.startswith("AWS/"):
        raise ValueError(f"invalid namespace {namespace!r}: the prefix AWS/ is reserved")
    return namespace


def check_dimensions(dimensions: Dimensions) -> Dimensions:
    """Return the dimensions unchanged.

    Raises:
        ValueError: too many, a duplicate name, or a name or value that CloudWatch does not allow.
    """
    if len(dimensions) > DIMENSIONS:
        raise ValueError(f"too many dimensions: {len(dimensions)}; CloudWatch allows at most {DIMENSIONS}")
    names = [name for name, _ in dimensions]
    for name, value in dimensions:
        if names.count(name) > 1:
            raise ValueError(f"duplicate dimension {name!r}")
        if not _is_printable(name, NAME_LENGTH) or name.startswith(":"):
            raise ValueError(
                f"invalid dimension name {name!r}; expected 1 to {NAME_LENGTH} printable ASCII characters, "
                "not starting with a colon"
            )
        if not _is_printable(value, DIMENSION_VALUE_LENGTH):
            raise ValueError(
                f"invalid value of dimension {name}: {value!r}; expected 1 to {DIMENSION_VALUE_LENGTH} "
                "printable ASCII characters"
            )
    return dimensions


def _is_printable(text: str, length: int) -> bool:
    return bool(text.strip()) and len(text) <= length and all(" " <= char <= "~" for char in text)


def make_data(
    series: MetricSeries,
    time_s: int,
    counts: dict[float, int],
    resolution_s: int,
    max_values: int = VALUES_PER_DATUM,
) -> Iterator[Datum]:
    """Yield the readings of one series and time as data of at most `max_values` distinct values each.

    CloudWatch merges data of the same series and time, so the statistics stay exact.
    """
    values = list(counts)
    for start in range(0, len(values), max_values):
        part = tuple(values[start : start + max_values])
        yield Datum(series, time_s, part, tuple(counts[value] for value in part), resolution_s)


# Upper bounds, in bytes, for the parts of a request's body in the two protocols that versions of boto3 use
# for CloudWatch. A float takes at most 24 characters. The older protocol percent-encodes names and
# dimensions: 3 bytes for 1.
_JSON = {"datum": 140, "value": 26, "dimension": 24, "escape": 2}
_QUERY = {"datum": 260, "value": 110, "dimension": 110, "escape": 3}


def size_bytes(datum: Datum, protocol: str = "json") -> int:
    """Return an upper bound for a datum's share of a request's body, before compression."""
    cost = _QUERY if protocol == "query" else _JSON
    series = datum.series
    texts = len(series.name) + sum(len(name) + len(value) for name, value in series.dimensions)
    return (
        cost["datum"]
        + cost["escape"] * texts
        + cost["dimension"] * len(series.dimensions)
        + (cost["value"] + 8) * len(datum.values)
    )


def pack_requests(data: Iterable[Datum], protocol: str = "json") -> Iterator[Sequence[Datum]]:
    """Pack data, in order, into as few requests as the limits allow."""
    request: list[Datum] = []
    room = BYTES_PER_REQUEST - 2 * NAME_LENGTH
    used = 0
    for datum in data:
        cost = size_bytes(datum, protocol)
        if request and (len(request) == DATA_PER_REQUEST or used + cost > room):
            yield request
            request, used = [], 0
        request.append(datum)
        used += cost
    if request:
        yield request
