"""Decodes the messages of remote write into arrays.

The labels of a series are the same bytes in every request, so each series is known by them. For a series with
one sample, which is what Prometheus sends, this takes half a microsecond: the message is walked in Python,
and the samples, which have the same length almost always, are decoded together by numpy.

https://prometheus.io/docs/specs/prw/remote_write_spec/
https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from runvitals.base.buckets import Floats, Integers
from runvitals.base.protobuf import (
    FIXED64,
    LENGTH,
    VARINT,
    Malformed,
    fields,
    read_double,
    read_varint,
    to_signed,
)
from runvitals.server.doors.remote_write.native_histograms import (
    NativeHistogram,
    UnknownBuckets,
    decode_histogram,
)
from runvitals.server.doors.remote_write.series_numbers import InvalidSeries, SeriesNumbers, text_of

_SERIES_1, _METADATA_1 = 0x0A, 0x1A
_LABEL: Final = 0x0A
"""Tag of a label."""
_SAMPLE, _ZERO = 18, 9
"""Length of a sample with its tag, and of one whose value is zero, which is left out: its time takes 6 bytes
from 2004 to 2109."""
_NO_TIMES: Final = np.empty(0, np.int64)
_NO_VALUES: Final = np.empty(0)
_SEVENS: Final = 7 * np.arange(6)


class SentSamples(NamedTuple):
    """The samples of a message.

    Args:
        series: the numbers of their series.
        t: ms UTC.
        values: NaN marks the end of a series, or a gap.
        of_histograms: how many of the last ones are those of native histograms.
        counts: of each native histogram, the place of its `_count` among the samples.
        unknown_histograms: how many histograms had buckets of an unknown kind.
        invalid: what is wrong with each series and histogram that is left out.
    """

    series: NDArray[np.int64]
    t: Integers
    values: Floats
    of_histograms: int = 0
    counts: Sequence[int] = ()
    unknown_histograms: int = 0
    invalid: Sequence[str] = ()


_Part = tuple[NDArray[np.int64], Integers, Floats]


class _Collected:
    """Samples that were found in a message. `histograms`: native ones, with the number of their series."""

    def __init__(self) -> None:
        self.series: list[int] = []
        self.t: list[int] = []
        self.values: list[float] = []
        self.histograms: list[tuple[int, NativeHistogram]] = []
        self.unknown_histograms = 0
        self.invalid: list[str] = []

    def add(self, series: int, rest: Iterable[tuple[int, int, int | bytes]]) -> None:
        """Add what a message of a series has besides its labels; `rest`: its fields."""
        for number, _, value in rest:
            if number == 2 and isinstance(value, bytes):
                self._add_sample(series, value)
            elif number == 4 and isinstance(value, bytes):  # 3 is an exemplar
                self._add_histogram(series, value)

    def _add_histogram(self, series: int, message: bytes) -> None:
        try:
            self.histograms.append((series, decode_histogram(message)))
        except UnknownBuckets:
            self.unknown_histograms += 1
        except Malformed as error:
            self.invalid.append(str(error))

    def part(self) -> _Part:
        """Return the samples as arrays."""
        if not self.series:
            return _NO_TIMES, _NO_TIMES, _NO_VALUES
        return np.array(self.series, np.int64), np.array(self.t, np.int64), np.array(self.values)

    def _add_sample(self, series: int, sample: bytes) -> None:
        value, t = 0.0, 0
        for number, kind, content in fields(sample):
            if number == 1 and kind == FIXED64 and isinstance(content, bytes):
                value = read_double(content)
            elif number == 2 and kind == VARINT and isinstance(content, int):
                t = to_signed(content)
        self.series.append(series)
        self.t.append(t)
        self.values.append(value)


def read_version_1(message: bytes, numbers: SeriesNumbers) -> SentSamples:
    """Return the samples of a `prometheus.WriteRequest`.

    Raises:
        Malformed: not such a message.
    """
    find = numbers.by_bytes.get
    series, ends = list[int](), list[int]()  # with samples of the usual length
    tails: dict[int, int] = {}  # of those with several samples, by their place in the list
    zeros, zero_ends = list[int](), list[int]()
    others = _Collected()
    at, end, tail = 0, len(message), _SAMPLE
    try:
        while at < end:
            if message[at] != _SERIES_1:
                at = _after_other(message, at)
                continue
            size, high = message[at + 1], message[at + 2]
            if size < 0x80:
                start = at + 2
            elif high < 0x80:
                size, start = size & 0x7F | high << 7, at + 3
            else:
                size, start = read_varint(message, at + 1)
            at = start + size
            if at > end:
                raise Malformed(f"a series ends at byte {at} of {end}")
            number = find(message[start : at - tail]) if size > tail else None
            if number is None:
                if size > _ZERO and (number := find(message[start : at - _ZERO])) is not None:
                    zeros.append(number)
                    zero_ends.append(at)
                    continue
                labels_end = _end_of_labels(message, start, at)
                try:
                    number = numbers.of_bytes(message[start:labels_end])
                except InvalidSeries as error:
                    others.invalid.append(str(error))
                    continue
                length = at - labels_end
                if length == 0 or length % _SAMPLE:
                    others.add(number, fields(message[labels_end:at]))
                    continue
                tail = length
            if tail != _SAMPLE:
                tails[len(series)] = tail
            series.append(number)
            ends.append(at)
    except IndexError:
        raise Malformed(f"truncated after byte {at} of {end}") from None
    data = np.frombuffer(message, np.uint8)
    usual = _usual(data, message, series, ends, tails, others)
    zero = _zeros(data, message, zeros, zero_ends, others)
    return _join([usual, zero], others, numbers)


def _after_other(message: bytes, at: int) -> int:
    """Return the offset after a field that is not a series: metadata, or one of a later version."""
    tag, start = read_varint(message, at)
    if tag >> 3 in (4, 5):  # else its samples would be ignored
        raise Malformed(
            f"field {tag >> 3}: a message of remote write 2.0 needs proto=io.prometheus.write.v2.Request "
            "in its Content-Type"
        )
    if tag & 7 != LENGTH:
        raise Malformed(f"field {tag >> 3} of wire type {tag & 7} before byte {start}")
    size, start = read_varint(message, start)
    if start + size > len(message):
        raise Malformed(f"field {tag >> 3} ends at byte {start + size} of {len(message)}")
    return start + size


def _end_of_labels(message: bytes, at: int, end: int) -> int:
    """Return the offset after the labels at the beginning of a series."""
    while at < end and message[at] == _LABEL:
        size, start = read_varint(message, at + 1)
        at = start + size
    if at > end:
        raise Malformed(f"a label ends at byte {at}, after its series at {end}")
    return at


def _usual(
    data: NDArray[np.uint8],
    message: bytes,
    series: list[int],
    ends: list[int],
    tails: dict[int, int],
    others: _Collected,
) -> _Part:
    """Return series whose samples may all have the usual length; others are moved to `others`."""
    numbers, stops = np.array(series, np.int64), np.array(ends, np.int64)
    if not tails:
        owner, starts = np.arange(len(series)), stops - _SAMPLE
    else:
        counts = np.ones(len(series), np.int64)
        counts[list(tails)] = [length // _SAMPLE for length in tails.values()]
        total = int(counts.sum())
        owner = np.repeat(np.arange(len(series)), counts)
        offset = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        starts = (stops - counts * _SAMPLE)[owner] + offset * _SAMPLE
    rows = data[starts[:, None] + np.arange(_SAMPLE)]
    fits = (
        (rows[:, 0] == 0x12)
        & (rows[:, 1] == _SAMPLE - 2)
        & (rows[:, 2] == 0x09)
        & (rows[:, 11] == 0x10)
        & (rows[:, 12:17] >= 0x80).all(axis=1)
        & (rows[:, 17] < 0x80)
    )
    if not fits.all():
        wrong = np.unique(owner[~fits])
        for row in wrong.tolist():
            others.add(series[row], fields(message[ends[row] - tails.get(row, _SAMPLE) : ends[row]]))
        keep = ~np.isin(owner, wrong)
        rows, owner = rows[keep], owner[keep]
    values = np.ascontiguousarray(rows[:, 3:11]).view("<f8").reshape(-1)
    return numbers[owner], _times(rows[:, 12:18]), values


def _zeros(
    data: NDArray[np.uint8], message: bytes, series: list[int], ends: list[int], others: _Collected
) -> _Part:
    """Return series that may have one sample with the value zero; others are moved to `others`."""
    numbers, stops = np.array(series, np.int64), np.array(ends, np.int64)
    rows = data[(stops - _ZERO)[:, None] + np.arange(_ZERO)]
    fits = (
        (rows[:, 0] == 0x12)
        & (rows[:, 1] == _ZERO - 2)
        & (rows[:, 2] == 0x10)
        & (rows[:, 3:8] >= 0x80).all(axis=1)
        & (rows[:, 8] < 0x80)
    )
    for row in np.flatnonzero(~fits).tolist():
        others.add(series[row], fields(message[ends[row] - _ZERO : ends[row]]))
    numbers, rows = numbers[fits], rows[fits]
    return numbers, _times(rows[:, 3:9]), np.zeros(len(numbers))


def _times(varints: NDArray[np.uint8]) -> Integers:
    """Return times of 6 bytes with 7 bits each, lowest first."""
    times: Integers = ((varints & 0x7F).astype(np.int64) << _SEVENS).sum(axis=1)
    return times


def _join(parts: list[_Part], others: _Collected, numbers: SeriesNumbers) -> SentSamples:
    derived = _Collected()
    counts: list[int] = []
    for number, histogram in others.histograms:
        counts.append(len(derived.series))
        for series_number, value in numbers.of_histogram(number, histogram):
            derived.series.append(series_number)
            derived.t.append(histogram.t)
            derived.values.append(value)
    present = [part for part in [*parts, others.part(), derived.part()] if len(part[0])]
    total, of_histograms = sum(len(part[0]) for part in present), len(derived.series)
    counts = [total - of_histograms + index for index in counts]
    left_out = (others.unknown_histograms, others.invalid)
    if len(present) == 1:
        return SentSamples(*present[0], of_histograms, counts, *left_out)
    columns = [np.concatenate(column) for column in zip(*present, strict=True)] if present else []
    series, t, values = columns or (_NO_TIMES, _NO_TIMES, _NO_VALUES)
    return SentSamples(series, t, values, of_histograms, counts, *left_out)


def read_version_2(message: bytes, numbers: SeriesNumbers) -> SentSamples:
    """Return the samples of an `io.prometheus.write.v2.Request`.

    Raises:
        Malformed: not such a message.
    """
    symbols: list[str] = []
    series: list[bytes] = []
    for number, _, content in fields(message):
        if not isinstance(content, bytes):
            if number in (4, 5):
                raise Malformed(f"field {number} is not a string or message")
        elif number == 4:
            symbols.append(text_of(content))
        elif number == 5:
            series.append(content)
    if symbols and symbols[0]:
        raise Malformed("the first symbol is not empty")
    collected = _Collected()
    for content in series:
        try:
            _add_version_2(content, symbols, numbers, collected)
        except InvalidSeries as error:
            collected.invalid.append(str(error))
    return _join([], collected, numbers)


def _add_version_2(
    content: bytes, symbols: Sequence[str], numbers: SeriesNumbers, collected: _Collected
) -> None:
    refs: list[int] = []
    rest: list[tuple[int, int, int | bytes]] = []
    for number, kind, value in fields(content):
        if number == 1:
            refs += _references(value)
        elif number in (3, 4):  # histograms and exemplars: the other way round in 1.0
            rest.append((7 - number, kind, value))
        else:
            rest.append((number, kind, value))
    if len(refs) < 2 or len(refs) % 2:
        raise InvalidSeries(f"a series with {len(refs)} references to labels; expected an even number from 2")
    try:
        labels = itemgetter(*refs)(symbols)
    except IndexError:
        raise InvalidSeries(f"a label refers to symbol {max(refs)} of {len(symbols)}") from None
    collected.add(numbers.of_labels(labels), rest)


def _references(packed: int | bytes) -> list[int]:
    if isinstance(packed, int):
        return [packed]
    if max(packed, default=0) < 0x80:
        return list(packed)
    refs, at = [], 0
    while at < len(packed):
        ref, at = read_varint(packed, at)
        refs.append(ref)
    return refs
