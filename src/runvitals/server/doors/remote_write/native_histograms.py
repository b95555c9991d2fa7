"""Native histograms as the series of classic ones: `NAME_count`, `NAME_sum` and `NAME_bucket`.

Counts and sums are exact, and so are the counts of buckets. An exponential histogram has finer buckets than
are kept: those that end at a power of two. A native histogram with custom buckets has the classic ones.

https://prometheus.io/docs/specs/native_histograms/
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from runvitals.base.protobuf import (
    Malformed,
    fields,
    read_double,
    read_doubles,
    read_varint,
    to_signed,
    unzigzag,
)

_CUSTOM: Final = -53
_FINEST, _COARSEST = 8, -4
MAX_BUCKETS: Final = 10_000
"""The most buckets of one histogram."""
_POSITIVE: Final = (11, 12, 13)
_NEGATIVE: Final = (8, 9, 10)
_MAX_EXPONENT: Final = 1024
"""2¹⁰²⁴ is infinity."""


class UnknownBuckets(ValueError):
    """A histogram with buckets of a kind that this server does not know."""


class NativeHistogram(NamedTuple):
    """A histogram at a time.

    Args:
        t: ms UTC.
        observations: how many; `sum`: of their values. NaN marks the end of the series.
        buckets: how many were at most a bound, for each bound but infinity.
    """

    t: int
    observations: float
    sum: float
    buckets: Mapping[float, float]

    def at_most(self, bounds: Sequence[float]) -> list[float]:
        """Return the number of observations up to each of some ascending bounds, since the histogram began.

        Example:
            >>> NativeHistogram(0, 5, 7.0, {1.0: 2, 4.0: 5}).at_most([0.5, 1.0, 2.0])
            [0, 2, 2]
        """
        ordered = sorted(self.buckets)
        indices = (bisect_right(ordered, bound) for bound in bounds)
        return [self.buckets[ordered[index - 1]] if index else 0 * self.observations for index in indices]


def decode_histogram(message: bytes) -> NativeHistogram:
    """Return the histogram in a `Histogram` of remote write.

    Raises:
        Malformed: invalid message.
        UnknownBuckets: it has buckets of another kind.
    """
    value_by_field: dict[int, int | bytes] = {}
    lists: dict[int, list[tuple[int, int | bytes]]] = {}
    for number, kind, value in fields(message):
        if number in (8, 9, 10, 11, 12, 13, 16):
            lists.setdefault(number, []).append((kind, value))
        else:
            value_by_field[number] = value
    schema = unzigzag(_integer(value_by_field.get(4, 0)))
    total = _number(value_by_field, 1, 2)
    t, observed = to_signed(_integer(value_by_field.get(15, 0))), _double(value_by_field.get(3, bytes(8)))
    if math.isnan(observed):
        return NativeHistogram(t, math.nan, math.nan, {})
    positive = list(_buckets(lists, _POSITIVE, 2 in value_by_field))
    if schema == _CUSTOM:
        bounds = [bound for _, value in lists.get(16, ()) for bound in read_doubles(_bytes(value))]
        return NativeHistogram(t, total, observed, _custom(bounds, positive))
    if not _COARSEST <= schema <= _FINEST:
        raise UnknownBuckets(f"schema {schema}")
    negative = list(_buckets(lists, _NEGATIVE, 2 in value_by_field))
    cumulative = _exponential(schema, negative, _number(value_by_field, 6, 7), positive)
    return NativeHistogram(t, total, observed, cumulative)


def _custom(bounds: Sequence[float], buckets: Iterable[tuple[int, float]]) -> dict[float, float]:
    counts = dict(buckets)
    if len(bounds) > MAX_BUCKETS or any(not low < high for low, high in pairwise(bounds)):
        raise Malformed("the custom bounds of a histogram do not ascend")
    by_bound: dict[float, float] = {}
    below = 0.0
    for index, bound in enumerate(bounds):
        below += counts.get(index, 0)
        if bound != math.inf:
            by_bound[bound] = below
    return by_bound


def _exponential(
    schema: int,
    negative: Iterable[tuple[int, float]],
    around_zero: float,
    positive: Iterable[tuple[int, float]],
) -> dict[float, float]:
    """Return the counts up to powers of two, for those that begin or end a bucket with observations."""
    step = 1 if schema >= 0 else 1 << -schema
    above, below = Counter[int](), Counter[int]()
    for counts, buckets in ((above, positive), (below, negative)):
        for index, count in buckets:
            counts[_exponent(index, schema)] += count  # type: ignore[assignment]
    by_bound: dict[float, float] = {}
    total = 0.0
    for exponent in sorted(below, reverse=True):  # from -2^exponent to -2^(exponent - step)
        by_bound.setdefault(-_power(exponent), total)
        total += below[exponent]
        by_bound[-_power(exponent - step)] = total
    total += around_zero
    for exponent in sorted(above):
        by_bound.setdefault(_power(exponent - step), total)
        total += above[exponent]
        by_bound[_power(exponent)] = total
    return {bound: count for bound, count in by_bound.items() if math.isfinite(bound)}


def _exponent(index: int, schema: int) -> int:
    """Return the exponent of the power of two at or above the upper end of a bucket."""
    exponent = -(-index >> schema) if schema >= 0 else index << -schema
    if abs(exponent) > _MAX_EXPONENT + 64:
        raise Malformed(f"a bucket of a histogram ends at 2^{exponent}")
    return exponent


def _power(exponent: int) -> float:
    return math.ldexp(1.0, exponent) if exponent < _MAX_EXPONENT else math.inf


def _buckets(
    lists: Mapping[int, Sequence[tuple[int, int | bytes]]], numbers: tuple[int, int, int], has_floats: bool
) -> Iterator[tuple[int, float]]:
    """Yield the places of buckets and their counts."""
    spans, deltas, floats = (lists.get(number, ()) for number in numbers)
    if has_floats:
        counts = [count for _, value in floats for count in read_doubles(_bytes(value))]
    else:
        counts, last = [], 0
        for _, value in deltas:
            for delta in _integers(value):
                last += unzigzag(delta)
                counts.append(float(last))
    if len(counts) > MAX_BUCKETS:
        raise Malformed(f"a histogram of {len(counts)} buckets; at most {MAX_BUCKETS} are allowed")
    index = used = 0
    for _, value in spans:
        offset = length = 0
        for number, _, part in fields(_bytes(value)):
            if number == 1:
                offset = unzigzag(_integer(part))
            elif number == 2:
                length = _integer(part)
        index += offset
        if used + length > len(counts):
            raise Malformed("a histogram has more spans of buckets than counts")
        for count in counts[used : used + length]:
            yield index, count
            index += 1
        used += length
    if used != len(counts):
        raise Malformed("a histogram has more counts of buckets than spans")


def _integers(value: int | bytes) -> list[int]:
    """Return packed varints, or one that is not packed."""
    if isinstance(value, int):
        return [value]
    integers, at = [], 0
    while at < len(value):
        number, at = read_varint(value, at)
        integers.append(number)
    return integers


def _number(value_by_field: Mapping[int, int | bytes], integer: int, double: int) -> float:
    return (
        _double(value_by_field[double])
        if double in value_by_field
        else float(_integer(value_by_field.get(integer, 0)))
    )


def _integer(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise Malformed("a number of a histogram is not a varint")
    return value


def _double(value: int | bytes) -> float:
    if not isinstance(value, bytes) or len(value) != 8:
        raise Malformed("a number of a histogram is not a double")
    return read_double(value)


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise Malformed("a list of a histogram is not packed")
    return value


def bound_text(bound: float) -> str:
    """Return a bound as the label `le` has it.

    Example:
        >>> bound_text(0.25), bound_text(1048576.0), bound_text(math.inf)
        ('0.25', '1048576', '+Inf')
    """
    if bound == math.inf:
        return "+Inf"
    return str(int(bound)) if bound.is_integer() and abs(bound) < 1e15 else repr(bound)
