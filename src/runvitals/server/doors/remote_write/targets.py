"""The run and host that series belong to, and the columns of their samples.

The store keeps samples as rows of columns, and remembers every set of columns. A request has an arbitrary
part of a scrape, so its columns are split into aligned parts of 1, 2, 4 … 256 columns: a host with n series
has at most 2 n sets of columns, however requests are cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from runvitals.server.doors.exporters.moments import DerivedMetric
from runvitals.server.doors.exporters.translation import Derived, Input
from runvitals.server.doors.routing import Route, writer_host
from runvitals.server.ingest.envelope import WriterDescription

_WIDEST: Final = 256
_encode: Final = msgspec.msgpack.Encoder().encode
INTERVAL_S: Final = 60.0
"""Prometheus' default time between scrapes: a run that sends nothing for five of them is lost."""


class Target:
    """A run and host that receives samples.

    Attributes:
        keys: of the columns.
        about: describes the writer when it is new.
        is_named: whether the name of the run was stored.
    """

    def __init__(self, route: Route) -> None:
        self.route = route
        self.writer = f"monitor.{writer_host(route.host)}.0"
        self.about = WriterDescription(role="monitor", host=route.host, interval_s=INTERVAL_S)
        self.is_named = False
        self.keys: list[str] = []
        self._columns: dict[str, int] = {}
        self._derived: dict[str, DerivedMetric] = {}
        self._encoded: dict[tuple[int, int], bytes] = {}

    def column(self, key: str) -> int:
        """The number of a key's column."""
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = len(self.keys)
            self.keys.append(key)
        return column

    def has(self, key: str) -> bool:
        """Whether there is a column of this key."""
        return key in self._columns

    def encoded_keys(self, first: int, end: int) -> bytes:
        """The keys of a range of columns, as envelopes have them."""
        found = self._encoded.get((first, end))
        if found is None:
            found = self._encoded[first, end] = _encode(self.keys[first:end])
        return found

    def derived(self, of: Derived) -> DerivedMetric:
        """The derived metric of this host."""
        found = self._derived.get(of.name)
        if found is None:
            found = self._derived[of.name] = DerivedMetric(of)
        return found

    def add_input(self, given: Input, t: int, value: float) -> DerivedMetric:
        """Add a value of an input; returns what it is an input of."""
        metric = self.derived(given.of)
        metric.add(given.name, t, value)
        return metric


def aligned_parts(columns: Sequence[int]) -> list[tuple[int, int]]:
    """Ascending columns as ranges that begin at a multiple of their length, a power of two: (first, end).

    Example:
        >>> aligned_parts([0, 1, 2, 3, 4, 6, 7])
        [(0, 4), (4, 5), (6, 8)]
    """
    parts: list[tuple[int, int]] = []
    place, count = 0, len(columns)
    while place < count:
        first = columns[place]
        width = _WIDEST
        while width > 1 and (
            first % width or place + width > count or columns[place + width - 1] != first + width - 1
        ):
            width //= 2
        parts.append((first, first + width))
        place += width
    return parts
