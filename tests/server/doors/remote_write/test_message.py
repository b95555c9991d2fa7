"""Decoding of remote write messages."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as some

from runvitals.protobuf import Malformed, double, text, uint
from runvitals.server.doors.remote_write.message import (
    Labels,
    SentSamples,
    SeriesNumbers,
    read_version_1,
    read_version_2,
)
from runvitals.server.doors.remote_write.targets import aligned_parts
from tests.server.doors.remote_write.messages import Series, version_1, version_2

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
    found = read_version_1(plain + exemplar + plain, numbers)
    assert (sorted(found.values.tolist()), found.exemplars) == ([1.0, 1.0, 2.0], 1)
    same_length = text(1, label + text(9, bytes(16)))  # as long as a sample, but of an unknown kind
    assert read_version_1(plain + same_length, numbers).values.tolist() == [1.0]
    assert len(seen) == 1


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
    for message, read in (
        (text(1, labels + text(2, double(1, 1.0) + uint(2, T))), read_version_1),
        (declared + text(5, text(1, references)), read_version_2),
    ):
        with pytest.raises(Malformed, match=problem):
            read(message, numbered()[0])


def test_a_reference_to_a_symbol_that_is_not_there() -> None:
    with pytest.raises(Malformed, match="symbol 5 of 1"):
        read_version_2(text(4, "") + text(5, text(1, bytes((1, 5)))), numbered()[0])


@given(some.sets(some.integers(0, 600)))
def test_parts_of_columns_are_aligned_and_complete(columns: set[int]) -> None:
    parts = aligned_parts(sorted(columns))
    assert [column for first, end in parts for column in range(first, end)] == sorted(columns)
    for first, end in parts:
        width = end - first
        assert width & (width - 1) == 0
        assert first % width == 0
