"""Decodes requests that differ from an earlier one in times and values only.

A program sends the same series at each interval, so its requests have the same bytes in the same places, but
for the times and values of points. Comparing a request with an earlier one takes a tenth of decoding it. Only
requests of gauges and sums are recognized, in the encoding that all known senders use.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Final

import numpy as np
from cachetools import LRUCache

from runvitals.base.protobuf import Malformed, read_varint
from runvitals.server.doors.otlp.message import Resource

_PATH: Final = ((0x0A,), (0x12,), (0x12,), (0x2A, 0x3A), (0x0A,))
"""Tags from a request to its points: resources, scopes, metrics, gauges and sums, points."""
_START, _TIME, _DOUBLE, _INT, _ATTRIBUTES, _FLAGS = 0x11, 0x19, 0x21, 0x31, 0x3A, 0x40
_FIXED: Final = 9
"""Bytes of a number of 8 bytes with its tag."""
_FEWEST: Final = 50
"""Points. Smaller requests are decoded as fast as they are compared."""
_MAX_BYTES: Final = 256 * 1024
_MAX_TEMPLATES: Final = 128
_MAX_TEMPLATE_BYTES: Final = 8 * 1024 * 1024
"""The most bytes of all requests with a template, which takes up to 20 times as much as its request."""
_KEPT: Final = 1000
"""Requests. A template that none of so many had is replaced by a newer one: with more senders than templates
each would otherwise replace another's."""
_MAX_SEEN: Final = 1000
_DIFFERENT: Final = 10
"""Requests that have the length and resource of a template, but other series, before one replaces it."""

_Key = tuple[int, int]
Span = tuple[int, int]
"""The first byte of a message, and the one after its last."""
PointPositions = tuple[int, int, int]
"""The positions in a point: of its start or -1, of its time, and of its value, negative for an integer."""


class _Template:
    """A request and what it says, besides times and values."""

    def __init__(
        self, body: bytes, resources: Sequence[Resource], positions: Sequence[PointPositions]
    ) -> None:
        self.used = self.different = 0
        self._resources = resources
        starts, times, values = (np.array(column, np.int32) for column in zip(*positions, strict=True))
        self._integers = values < 0
        eight = np.arange(8, dtype=np.int32)
        self._times = times[:, None] + eight
        self._values = np.abs(values)[:, None] + eight
        variable = [self._times, self._values, starts[starts >= 0][:, None] + eight]
        self._same = np.full(len(body), 0xFF, np.uint8)
        for bytes_of_numbers in variable:
            self._same[bytes_of_numbers] = 0
        self._body = np.frombuffer(body, np.uint8)

    def read(self, body: bytes) -> list[Resource] | None:
        """Return the resources in a request that differs only in times and values, else None."""
        data = np.frombuffer(body, np.uint8)
        if ((data ^ self._body) & self._same).any():
            self.different += 1
            return None
        packed = data[self._values]
        values = packed.view("<f8").reshape(-1)
        if self._integers.any():
            values = np.where(self._integers, packed.view("<i8").reshape(-1), values)
        times, numbers = data[self._times].view("<u8").reshape(-1).tolist(), values.tolist()
        resources, at = [], 0
        for resource in self._resources:
            metrics = []
            for metric in resource.metrics:
                end = at + len(metric.numbers)
                attributes = [point[0] for point in metric.numbers]
                points = list(zip(attributes, repeat(0), times[at:end], numbers[at:end], strict=False))
                metrics.append(replace(metric, numbers=points))
                at = end
            resources.append(replace(resource, metrics=metrics))
        return resources


class RequestTemplates:
    """The requests that were decoded before. Thread-safe."""

    def __init__(self) -> None:
        self._templates: OrderedDict[_Key, _Template] = OrderedDict()
        self._bytes = 0
        self._seen: LRUCache[_Key, bool] = LRUCache(_MAX_SEEN)
        self._count = 0
        self._lock = threading.Lock()

    def read(self, body: bytes) -> list[Resource] | None:
        """Return the resources in a request; None if it is like none of before."""
        key = _key(body)
        with self._lock:
            self._count += 1
            template = self._templates.get(key)
            if template is None:
                return None
            template.used = self._count
            self._templates.move_to_end(key)
        return template.read(body)

    def add(self, body: bytes, resources: Sequence[Resource]) -> None:
        """Add a request that was decoded, if a similar one came before it."""
        if len(body) > _MAX_BYTES:
            return
        key = _key(body)
        with self._lock:
            if key not in self._seen:
                self._seen[key] = True
                return
            before = self._templates.get(key)
            if before is not None and before.different < _DIFFERENT:
                return
            if before is None and not self._has_room(len(body)):
                oldest = next(iter(self._templates.values()))
                if self._count - oldest.used < _KEPT:
                    return
        numbers = [point for resource in resources for metric in resource.metrics for point in metric.numbers]
        if len(numbers) < _FEWEST or any(
            metric.histograms or metric.summaries for resource in resources for metric in resource.metrics
        ):
            return
        positions = _point_positions(body)
        if positions is None or len(positions) != len(numbers):
            return
        template = _Template(body, resources, positions)
        with self._lock:
            template.used = self._count
            if self._templates.pop(key, None) is not None:
                self._bytes -= len(body)
            while self._templates and not self._has_room(len(body)):
                (size, _), _ = self._templates.popitem(last=False)
                self._bytes -= size
            self._templates[key] = template
            self._bytes += len(body)

    def _has_room(self, size: int) -> bool:
        return len(self._templates) < _MAX_TEMPLATES and self._bytes + size <= _MAX_TEMPLATE_BYTES


def _key(body: bytes) -> _Key:
    """Return the length and the hash of the first resource, which differ for different senders.

    Requests that have the same key by chance differ in their bytes, which are compared.
    """
    try:
        _, at = read_varint(body, 1)
        size, at = read_varint(body, at + 1)
    except Malformed:
        return len(body), 0
    return len(body), hash(body[: at + size])


def _point_positions(body: bytes) -> list[PointPositions] | None:
    """Return the positions in all points; None if any is encoded in another way."""
    positions: list[PointPositions] = []
    for at, end in _find_messages(body, [(0, len(body))], _PATH):
        start = -1
        if at < end and body[at] == _START:
            start, at = at + 1, at + _FIXED
        if at + 2 * _FIXED > end or body[at] != _TIME or body[at + _FIXED] not in (_DOUBLE, _INT):
            return None
        value, after = at + _FIXED + 1, at + 2 * _FIXED
        # Flags say that a point has no value. The same bytes may also be a part of an attribute's value.
        if after < end and (body[after] != _ATTRIBUTES or body[end - 2] == _FLAGS):
            return None
        positions.append((start, at + 1, value if body[at + _FIXED] == _DOUBLE else -value))
    return positions


def _find_messages(body: bytes, spans: Iterable[Span], path: Sequence[Sequence[int]]) -> Iterable[Span]:
    """Return where the messages at the end of a path of tags are."""
    for tags in path:
        spans = [inner for at, end in spans for inner in _messages(body, at, end, tags)]
    return spans


def _messages(body: bytes, at: int, end: int, tags: Sequence[int]) -> Iterator[Span]:
    """Yield where nested messages with some tags are, in a message that was decoded before."""
    while at < end:
        tag, at = read_varint(body, at)
        kind = tag & 7
        if kind == 2:
            size, at = read_varint(body, at)
            if tag in tags:
                yield at, at + size
            at += size
        elif kind == 0:
            _, at = read_varint(body, at)
        else:
            at += 8 if kind == 1 else 4
