"""Decoding of remote write messages."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as some

from runvitals.base.protobuf import Malformed, double, text, uint, varint
from runvitals.server.doors.remote_write.message import SentSamples, read_version_1, read_version_2
from runvitals.server.doors.remote_write.native_histograms import UnknownBuckets, decode_histogram
from runvitals.server.doors.remote_write.series_numbers import Labels, SeriesNumbers
from runvitals.server.doors.remote_write.targets import aligned_parts
from tests.server.doors.remote_write.messages import STALE, Series, histogram, version_1, version_2

T = 1_760_000_000_000


def numbered() -> tuple[SeriesNumbers, list[Labels]]:
    """Numbers, and the labels of the series in their order."""
    seen: list[Labels] = []

    def number(labels: Labels) -> int:
        seen.append(labels)
        return len(seen) - 1

    return SeriesNumbers(number), seen


def listed(samples: SentSamples, seen: list[Labels]) -> set[tuple[Labels, int, bytes]]:
    return {
        (seen[series], t, struct.pack("<d", value))
        for series, t, value in zip(
            samples.series.tolist(), samples.t.tolist(), samples.values.tolist(), strict=True
        )
    }


def expected(series: list[Series]) -> set[tuple[Labels, int, bytes]]:
    return {
        (tuple(part for pair in sorted(labels.items()) for part in pair), t, struct.pack("<d", value))
        for labels, samples in series
        for t, value in samples
    }


_TIMES = some.one_of(some.integers(T, T + 10**9), some.integers(-5, 5), some.integers(0, 2**62))
_VALUES = some.one_of(some.just(0.0), some.floats(allow_nan=False)).filter(
    lambda value: value != 0 or math.copysign(1, value) > 0
)
_SERIES = some.lists(
    some.tuples(
        some.dictionaries(
            some.text("abé", min_size=1, max_size=200), some.text(max_size=9), min_size=1, max_size=4
        ),
        some.lists(some.tuples(_TIMES, _VALUES), max_size=4),
    ),
    max_size=6,
)


@given(_SERIES)
def test_both_versions_read_what_was_written_again_and_again(series: list[Series]) -> None:
    for write, read in ((version_1, read_version_1), (version_2, read_version_2)):
        numbers, seen = numbered()
        message = write(series)
        for _ in range(2):  # known series are read another way
            assert listed(read(message, numbers), seen) == expected(series)


def test_a_series_that_sometimes_has_something_else_after_its_labels() -> None:
    numbers, seen = numbered()
    labels = {"__name__": "m"}
    plain = version_1([(labels, [(T, 1.0)])])
    label = text(1, text(1, "__name__") + text(2, "m"))
    exemplar = text(1, label + text(2, double(1, 2.0) + uint(2, T)) + text(3, double(2, 1.0)))
    samples = read_version_1(plain + exemplar + plain, numbers)
    assert sorted(samples.values.tolist()) == [1.0, 1.0, 2.0]
    same_length = text(1, label + text(9, bytes(16)))  # as long as a sample, but of an unknown kind
    assert read_version_1(plain + same_length, numbers).values.tolist() == [1.0]
    assert len(seen) == 1


def buckets_of(*histograms: bytes) -> list[dict[str, float]]:
    """What each histogram is stored as, by the end of its name and `le`."""
    numbers, seen = numbered()
    label = text(1, text(1, "__name__") + text(2, "wait"))
    buckets = []
    for message in histograms:
        samples = read_version_1(text(1, label + text(4, message)), numbers)
        assert set(samples.t.tolist()) == {T}
        pairs = [
            dict(zip(seen[number][::2], seen[number][1::2], strict=True))
            for number in samples.series.tolist()
        ]
        names = [number["__name__"].removeprefix("wait_") + number.get("le", "") for number in pairs]
        buckets.append(dict(zip(names, samples.values.tolist(), strict=True)))
    return buckets


def test_an_exponential_histogram_has_buckets_at_powers_of_two() -> None:
    quarters = histogram(2, {-1: 3, 0: 1, 1: 2, 5: 4}, total=7.5, t=T, negative={1: 1}, around_zero=5)
    later = histogram(2, {-1: 3, 0: 1, 1: 3, 5: 4}, total=8.5, t=T, negative={1: 1}, around_zero=5)
    coarse = histogram(-1, {1: 6, 2: 1}, total=9.0, t=T)
    first, second, third = buckets_of(quarters, later, coarse)
    assert first == {
        "count": 16, "sum": 7.5, "bucket-2": 0, "bucket-1": 1, "bucket0.5": 6, "bucket1": 10, "bucket2": 12,
        "bucket4": 16, "bucket+Inf": 16,
    }  # fmt: skip
    assert second == {**first, "count": 17, "sum": 8.5, "bucket2": 13, "bucket4": 17, "bucket+Inf": 17}
    assert third == {
        "count": 7, "sum": 9.0, "bucket-2": 0, "bucket-1": 0, "bucket0.5": 0, "bucket1": 0, "bucket2": 0,
        "bucket4": 6, "bucket16": 7, "bucket+Inf": 7,
    }  # fmt: skip


def test_a_histogram_with_custom_buckets_has_the_same() -> None:
    [buckets] = buckets_of(histogram(-53, {0: 2, 2: 1, 3: 4}, total=3.0, t=T, bounds=[0.1, 2.5, 10.0]))
    assert buckets == {
        "count": 7, "sum": 3.0, "bucket0.1": 2, "bucket2.5": 2, "bucket10": 3, "bucket+Inf": 7,
    }  # fmt: skip


def test_the_end_of_a_histogram_ends_its_series() -> None:
    usual = histogram(0, {0: 1}, total=1.0, t=T)
    _, ended = buckets_of(usual, histogram(0, {}, total=STALE, t=T))
    assert ended.keys() == {"count", "sum", "bucket0.5", "bucket1", "bucket+Inf"}
    assert all(math.isnan(value) for value in ended.values())


def test_histograms_with_counts_that_are_not_integers() -> None:
    span = text(11, uint(1, 2) + uint(2, 2))  # two buckets from place 1 on
    counts = text(13, struct.pack("<2d", 0.5, 1.5))
    message = double(2, 2.5) + double(3, 1.0) + span + counts + uint(15, T)
    assert buckets_of(message) == [
        {"count": 2.5, "sum": 1.0, "bucket1": 0.0, "bucket2": 0.5, "bucket4": 2.0, "bucket+Inf": 2.5}
    ]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (text(11, uint(2, 5)) + text(12, b"\x02"), "more spans of buckets than counts"),
        (text(12, b"\x02\x02"), "more counts of buckets than spans"),
        (text(11, uint(1, 1 << 31) + uint(2, 1)) + text(12, b"\x02"), "a bucket of a histogram ends at"),
        (uint(4, 105) + text(16, struct.pack("<2d", 2.0, 1.0)), "do not ascend"),
        (text(3, b"1234567"), "is not a double"),
        (uint(3, 5), "is not a double"),
        (double(1, 5.0), "is not a varint"),
        (uint(11, 1), "is not packed"),
    ],
)
def test_damaged_histograms_are_malformed(message: bytes, reason: str) -> None:
    damaged = message + uint(15, T)
    with pytest.raises(Malformed, match=reason):
        decode_histogram(damaged)
    labels = text(1, text(1, "__name__") + text(2, "x"))
    sent = read_version_1(text(1, labels + text(4, damaged) + text(2, double(1, 1.0))), numbered()[0])
    assert (sent.values.tolist(), len(sent.invalid)) == ([1.0], 1)


@given(some.binary(max_size=80))
def test_any_histogram_is_decoded_or_malformed(noise: bytes) -> None:
    try:
        decode_histogram(noise)
    except (Malformed, UnknownBuckets):
        pass


@given(some.binary(max_size=60), some.integers(0, 80))
def test_damaged_messages_are_malformed(noise: bytes, cut: int) -> None:
    whole = version_1([({"__name__": "m"}, [(T, 1.0)]), ({"__name__": "n"}, [(T, 0.0)])])
    for message in (noise, whole[:cut] + noise, whole[:cut]):
        for read in (read_version_1, read_version_2):
            numbers, _ = numbered()
            read_version_1(whole, numbers)
            try:
                read(message, numbers)
            except Malformed:
                pass


@pytest.mark.parametrize(
    ("names", "problem"),
    [(("__name__", "a", "a"), "several labels 'a'"), (("__name__", ""), "without a name")],
)
def test_labels_that_prometheus_refuses(names: tuple[str, ...], problem: str) -> None:
    labels = b"".join(text(1, text(1, name) + text(2, "x")) for name in names)
    symbols = ["", "x", *names]
    references = bytes(place for name in names for place in (symbols.index(name), 1))
    declared = b"".join(text(4, symbol) for symbol in symbols)
    point = text(2, double(1, 1.0) + uint(2, T))
    good = text(1, text(1, "__name__") + text(2, "x"))
    for message, read in (
        (text(1, labels + point) + text(1, good + point), read_version_1),
        (
            declared + text(5, text(1, references) + point) + text(5, text(1, bytes((2, 1))) + point),
            read_version_2,
        ),
    ):
        sent = read(message, numbered()[0])
        assert (len(sent.t), len(sent.invalid)) == (1, 1)
        assert problem in sent.invalid[0]


@pytest.mark.parametrize(
    ("references", "problem"),
    [
        (bytes((1, 5)), "symbol 5 of 1"),
        (varint(1) + varint(2**64 - 1), "of 1"),
        (bytes(3), "3 references"),
        (b"", "0 references"),
    ],
)
def test_a_series_with_wrong_references_is_left_out(references: bytes, problem: str) -> None:
    sent = read_version_2(text(4, "") + text(5, text(1, references)), numbered()[0])
    assert len(sent.invalid) == 1
    assert problem in sent.invalid[0]


def test_a_message_of_another_version_is_no_empty_one() -> None:
    message = version_2([({"__name__": "x"}, [(T, 1.0)])])
    with pytest.raises(Malformed, match=r"needs proto=io.prometheus.write.v2.Request"):
        read_version_1(message, numbered()[0])
    unknown = uint(99, 1) + text(98, "x")  # as a later minor version may add
    assert len(read_version_2(message + unknown, numbered()[0]).t) == 1


@given(some.sets(some.integers(0, 600)))
def test_parts_of_columns_are_aligned_and_complete(columns: set[int]) -> None:
    parts = aligned_parts(sorted(columns))
    assert [column for first, end in parts for column in range(first, end)] == sorted(columns)
    for first, end in parts:
        width = end - first
        assert width & (width - 1) == 0
        assert first % width == 0
