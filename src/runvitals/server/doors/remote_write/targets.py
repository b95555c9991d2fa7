"""The run and host that series belong to, and the columns of their samples.

The store keeps samples as rows of columns, and remembers every set of columns. Each set in a request costs
time, so sets that requests have had before are stored as they are, up to a few of each host. Otherwise a
request may have an arbitrary part of a scrape: its columns are split into aligned parts of 1, 2, 4 … 256
columns, so that a host with n series has at most 2 n further sets, however requests are cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from runvitals.server.doors.exporters.moments import DerivedMetric
from runvitals.server.doors.exporters.translation import Derived, Input
from runvitals.server.doors.routing import Route, writer_host
from runvitals.server.doors.sending_interval import SendingInterval
from runvitals.server.ingest.envelope import WriterDescription

_WIDEST: Final = 256
_MAX_EXACT: Final = 16
"""Sets of columns of a host that are stored as one list: requests are often cut in the same places."""
_WIDEST_EXACT: Final = 4096
_MAX_SEEN: Final = 64
"""Sets of columns that were seen once."""


class ColumnList:
    """Columns whose samples are stored together.

    Attributes:
        width: their number.
        keys: their keys.
        schema: the number of the list of keys, once it is registered: a fleet has more lists than the server
            recognizes by their keys.
    """

    __slots__ = ("keys", "schema", "width")

    def __init__(self, keys: Sequence[str]) -> None:
        self.width = len(keys)
        self.keys = tuple(keys)
        self.schema: int | None = None


class Target:
    """A run and host that receives samples.

    Attributes:
        keys: of the columns.
        about: describes the writer.
        is_named: whether the name of the run was stored.
    """

    def __init__(self, route: Route) -> None:
        self.route = route
        self.writer = f"monitor.{writer_host(route.host)}.0"
        self._interval = SendingInterval()
        self.about = self._description()
        self.is_named = False
        self.keys: list[str] = []
        self._columns: dict[str, int] = {}
        self._derived: dict[str, DerivedMetric] = {}
        self._parts: dict[tuple[int, int], ColumnList] = {}
        self._exact: dict[bytes, list[ColumnList]] = {}
        self._seen: set[int] = set()

    def _description(self) -> WriterDescription:
        return WriterDescription(role="monitor", host=self.route.host, interval_s=self._interval.seconds)

    def add_times(self, times_ms: Iterable[int]) -> None:
        """Note the times of samples, ascending: they say how long silence is normal."""
        for time_ms in times_ms:
            self._interval.add(time_ms)
        if self.about.interval_s != self._interval.seconds:
            self.about = self._description()

    def column(self, key: str) -> int:
        """Return the number of a key's column."""
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = len(self.keys)
            self.keys.append(key)
        return column

    def has(self, key: str) -> bool:
        """Return whether there is a column of this key."""
        return key in self._columns

    def column_lists(self, columns: Sequence[int], packed: bytes) -> list[ColumnList]:
        """Return ascending columns as lists.

        It is one list if requests have had the same columns before, or have all.

        Args:
            packed: the columns as bytes, by which they are recognized.
        """
        exact = self._exact.get(packed)
        if exact is not None:
            return exact
        if len(self._exact) < _MAX_EXACT and len(columns) <= _WIDEST_EXACT:
            number = hash(packed)
            if len(columns) == len(self.keys) or number in self._seen:
                lists = self._exact[packed] = [ColumnList([self.keys[column] for column in columns])]
                return lists
            if len(self._seen) >= _MAX_SEEN:
                self._seen.clear()
            self._seen.add(number)
        return [self._part(first, end) for first, end in aligned_parts(columns)]

    def _part(self, first: int, end: int) -> ColumnList:
        part = self._parts.get((first, end))
        if part is None:
            part = self._parts[first, end] = ColumnList(self.keys[first:end])
        return part

    def forget_schemas(self) -> None:
        """Send the keys again: the store does not know the numbers of the lists."""
        for column_list in (
            *self._parts.values(),
            *(column_list for lists in self._exact.values() for column_list in lists),
        ):
            column_list.schema = None

    def derived_metric(self, of: Derived) -> DerivedMetric:
        """Return the derived metric of this host."""
        derived = self._derived.get(of.name)
        if derived is None:
            derived = self._derived[of.name] = DerivedMetric(of)
        return derived

    def add_input(self, input_: Input, t: int, value: float) -> DerivedMetric:
        """Add a value of an input; returns what it is an input of."""
        metric = self.derived_metric(input_.of)
        metric.add(input_.name, t, value)
        return metric


def aligned_parts(columns: Sequence[int]) -> list[tuple[int, int]]:
    """Return ascending columns as ranges (first, end).

    Each begins at a multiple of its length, a power of two.

    Example:
        >>> aligned_parts([0, 1, 2, 3, 4, 6, 7])
        [(0, 4), (4, 5), (6, 8)]
    """
    parts: list[tuple[int, int]] = []
    index, count = 0, len(columns)
    while index < count:
        first = columns[index]
        width = _WIDEST
        while width > 1 and (
            first % width or index + width > count or columns[index + width - 1] != first + width - 1
        ):
            width //= 2
        parts.append((first, first + width))
        index += width
    return parts
