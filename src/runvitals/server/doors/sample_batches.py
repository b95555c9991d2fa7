"""Turns points of many series into envelopes: points of the same times share a batch.

NaN is a gap, so a batch cannot leave a series out of a row. And each list of keys is stored once and for all,
so that senders whose series come and go must not make a new list with every request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from runvitals.base.buckets import Floats
from runvitals.model.names import sanitized_name

ALIGN_MS: Final = 50
"""Times of one request that are this close are taken as one, unless a series has both: senders read the clock
once for each instrument."""
MAX_KEYS: Final = 10_000
"""The most keys of one run in the life of a server process. More are rejected."""
_ESCAPED: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_MAX_LISTS = 64
_UNCOVERED_LISTS = 8
Points = Mapping[str, Mapping[int, float]]
"""By key and time in ms."""


FOREIGN: Final = "foreign."
"""The beginning of the keys of others that would otherwise be metrics of ours, perhaps in another unit."""


def folded_key(name: str, attributes: Mapping[str, str]) -> str:
    """Return a key for a metric with attributes, as Prometheus writes them.

    One that is too long ends in a checksum.

    Example:
        >>> folded_key("http.requests", {"route": "/users", "code": "200"})
        'http.requests{code="200",route="/users"}'
    """
    if not attributes:
        return sanitized_name(name)
    inner = ",".join(f'{key}="{attributes[key].translate(_ESCAPED)}"' for key in sorted(attributes))
    return sanitized_name(f"{name}{{{inner}}}")


class KeyLists:
    """The lists of keys that one writer has used. Others are put together from these where possible."""

    def __init__(self) -> None:
        self._lists: dict[frozenset[str], tuple[str, ...]] = {}

    def split(self, keys: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the keys as lists: a known list of all, or else known ones of some and new ones.

        Example:
            >>> KeyLists().split(["b", "a"])
            [('a', 'b')]
        """
        all_keys = frozenset(keys)
        if all_keys in self._lists:
            return [self._lists[all_keys]]
        lists: list[tuple[str, ...]] = []
        rest = set(all_keys)
        if len(self._lists) >= _UNCOVERED_LISTS:
            for key_set, ordered in sorted(self._lists.items(), key=lambda pair: -len(pair[0])):
                if key_set <= rest:
                    lists.append(ordered)
                    rest -= key_set
        if len(self._lists) >= _MAX_LISTS:
            return [*lists, *((key,) for key in sorted(rest))]
        if rest:
            ordered = self._lists[frozenset(rest)] = tuple(sorted(rest))
            lists.append(ordered)
        return lists


def batches(points: Points, lists: KeyLists) -> Iterator[tuple[tuple[str, ...], list[int], Floats]]:
    """Yield keys, times and values (rows × keys) of each batch.

    Example:
        >>> [(keys, times) for keys, times, _ in batches({"a": {5: 1.0}, "b": {7: 2.0}}, KeyLists())]
        [(('a', 'b'), [5])]
    """
    different = set[int]().union(*points.values())
    if len(different) == 1:  # a program that reads its clock once; this takes a third of the time
        (time,) = different
        for listed in lists.split(list(points)):
            yield listed, [time], np.array([[points[key][time] for key in listed]], np.float64)
        return
    aligned = _align(points, sorted(different))
    groups: dict[tuple[int, ...], dict[str, list[float]]] = {}
    times: tuple[int, ...]
    for key, values in points.items():
        if len(values) == 1:  # nearly all senders; this takes half of the time
            ((time, value),) = values.items()
            times, column = (aligned[time],), [value]
        else:
            ordered = sorted(values.items())
            times, column = tuple([aligned[time] for time, _ in ordered]), [value for _, value in ordered]
        group = groups.get(times)
        if group is None:
            group = groups[times] = {}
        group[key] = column
    for times, columns in groups.items():
        for listed in lists.split(list(columns)):
            yield listed, list(times), np.array([columns[key] for key in listed], np.float64).T


def _align(points: Points, times: Sequence[int]) -> dict[int, int]:
    """Return the time to use for each of some ascending times: the first within `ALIGN_MS` before it."""
    aligned: dict[int, int] = {}
    first = -ALIGN_MS
    for time in times:
        if time - first >= ALIGN_MS:
            first = time
        aligned[time] = first
    several = (values for values in points.values() if len(values) > 1)
    if any(len({aligned[time] for time in values}) < len(values) for values in several):
        return {time: time for time in times}
    return aligned
