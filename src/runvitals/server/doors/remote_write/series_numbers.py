"""The numbers of series, by their labels as senders encode them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final
from zlib import crc32

from runvitals.base.protobuf import Malformed, fields
from runvitals.server.doors.remote_write.native_histograms import NativeHistogram, bound_text

Labels = tuple[str, ...]
"""Names and values, alternating."""
MAX_LABELS: Final = 128
"""The most labels of one series."""
MAX_CHARACTERS: Final = 16 * 1024
"""The most characters of all labels of one series. A message has a text once that many series share, so a
small message could be of many series with long labels."""
_MAX_TEXT: Final = 1024
"""The most characters of a name or value. Longer ones end in a checksum instead."""
_CHECKSUM_CHARACTERS: Final = 9
_NAME: Final = "__name__"
_LABEL, _VALUE = 0x0A, 0x12
"""Tags of a label and of its name, and of its value."""


class InvalidSeries(Malformed):
    """A series that is left out, because of its labels. The others of the message may be stored."""


class SeriesNumbers:
    """The numbers of series, by their labels.

    Args:
        number: numbers a series that is seen for the first time. It is called with its labels as sent.
    """

    def __init__(self, number: Callable[[Labels], int]) -> None:
        self._number = number
        self.by_bytes: dict[bytes, int] = {}
        self.by_labels: dict[Labels, int] = {}
        self._labels: dict[int, Labels] = {}
        self._histograms: dict[int, _HistogramSeries] = {}

    def of_bytes(self, labels: bytes) -> int:
        """Return the number of a series by its label messages.

        Raises:
            InvalidSeries: it cannot be stored because of its labels.
            Malformed: they are no labels.
        """
        number = self.by_bytes.get(labels)
        if number is None:
            pairs = _usual_labels(labels)
            if pairs is None:
                pairs = _labels(labels)
            number = self.of_labels(tuple(pairs))
            if len(labels) <= MAX_CHARACTERS:
                self.by_bytes[labels] = number
        return number

    def of_labels(self, labels: Labels) -> int:
        """Return the number of a series, or raise InvalidSeries."""
        number = self.by_labels.get(labels)
        if number is None:
            if len(labels) > 2 * MAX_LABELS:
                raise InvalidSeries(
                    f"a series of {len(labels) // 2} labels; at most {MAX_LABELS} are allowed"
                )
            characters = sum(map(len, labels))
            if characters > MAX_CHARACTERS:
                raise InvalidSeries(
                    f"labels of {characters} characters; a series has at most {MAX_CHARACTERS}"
                )
            _check_names(labels[::2])
            number = self.by_labels[labels] = self._number(labels)
            self._labels[number] = labels
        return number

    def of_histogram(self, number: int, histogram: NativeHistogram) -> Iterator[tuple[int, float]]:
        """Yield the samples of a native histogram of a series, the count first."""
        series = self._histograms.get(number)
        if series is None:
            series = self._histograms[number] = _HistogramSeries(self._labels[number])
        series.bounds.update(histogram.buckets)
        yield self._part(series, "_count"), histogram.observations
        yield self._part(series, "_sum"), histogram.sum
        # Earlier bounds too: a series that exists has a value at each time.
        bounds = sorted(series.bounds)
        for bound, count in zip(bounds, histogram.at_most(bounds), strict=True):
            yield self._part(series, "_bucket", bound), count
        if series.bounds:
            yield self._part(series, "_bucket", math.inf), histogram.observations

    def _part(self, series: _HistogramSeries, suffix: str, bound: float | None = None) -> int:
        number = series.numbers.get((suffix, bound))
        if number is None:
            pairs = dict(zip(series.labels[::2], series.labels[1::2], strict=True))
            pairs[_NAME] = pairs.get(_NAME, "") + suffix
            if bound is not None:
                pairs["le"] = bound_text(bound)
            labels = tuple(part for pair in sorted(pairs.items()) for part in pair)
            number = series.numbers[suffix, bound] = self.of_labels(labels)
        return number


class _HistogramSeries:
    """The series that a native histogram is stored as.

    Attributes:
        bounds: all that it has had.
        numbers: by the end of the name, and the bound.
    """

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.bounds: set[float] = set()
        self.numbers: dict[tuple[str, float | None], int] = {}


def _check_names(names: Sequence[str]) -> None:
    """Check the names of a series' labels.

    Raises:
        InvalidSeries: a label has no name, or several have the same, which Prometheus refuses, too.
    """
    if "" in names:
        raise InvalidSeries("a series with a label without a name")
    if len(set(names)) != len(names):
        twice = next(name for index, name in enumerate(names) if name in names[:index])
        raise InvalidSeries(f"a series with several labels {twice[:100]!r}")


def _usual_labels(labels: bytes) -> list[str] | None:
    """Return names and values of label messages, if all of these are short and have both.

    It is five times as fast as reading each.
    """
    pairs: list[str] = []
    at, end = 0, len(labels)
    try:
        while at < end:
            tag, size, name_tag, name_size = labels[at : at + 4]
            value_at = at + 4 + name_size
            value_size = labels[value_at + 1]
            after = value_at + 2 + value_size
            if (
                (tag, name_tag, labels[value_at]) != (_LABEL, _LABEL, _VALUE)
                or size | name_size | value_size >= 0x80
                or after != at + 2 + size
                or after > end
            ):
                return None
            pairs += (text_of(labels[at + 4 : value_at]), text_of(labels[value_at + 2 : after]))
            at = after
    except (IndexError, ValueError):  # truncated
        return None
    return pairs


def _labels(labels: bytes) -> list[str]:
    """Return the same of any valid label messages.

    Raises:
        Malformed: invalid labels.
    """
    pairs: list[str] = []
    for _, _, label in fields(labels):
        if not isinstance(label, bytes):
            raise Malformed("a label is not a message")
        name = value = b""
        for number, _, text in fields(label):
            if number == 1 and isinstance(text, bytes):
                name = text
            elif number == 2 and isinstance(text, bytes):
                value = text
        pairs += (text_of(name), text_of(value))
    return pairs


def text_of(content: bytes) -> str:
    """Return the name or value of a label; a long one ends in a checksum.

    Raises:
        Malformed: it is not UTF-8.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed(f"not UTF-8: {error}") from None
    if len(text) <= _MAX_TEXT:
        return text
    return f"{text[: _MAX_TEXT - _CHECKSUM_CHARACTERS]}~{crc32(content):08x}"
