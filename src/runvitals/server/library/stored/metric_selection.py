"""The stored metrics that match some patterns, cached."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from runvitals.readers.journals.key_filter import KeyFilter
from runvitals.server.metadata_store import MetadataStore

_MAX_CACHED = 64
_NEAR = 200


@dataclass(slots=True)
class _MatchedMetrics:
    """Metrics that match.

    `recent`: the newest numbers that were compared, matching or not; `lock`: held while comparing.
    """

    numbers: frozenset[int] = frozenset()
    recent: frozenset[int] = frozenset((0,))
    lock: threading.Lock = field(default_factory=threading.Lock)


class MetricSelection:
    """Caches the metrics that match patterns.

    Lists of runs request the same few patterns again and again, and one run may have added a hundred thousand
    names.
    """

    def __init__(self, metadata_store: MetadataStore) -> None:
        self._metadata_store = metadata_store
        self._cached: dict[tuple[str, ...], _MatchedMetrics] = {}

    def numbers(self, matches: Callable[[str], bool]) -> frozenset[int] | None:
        """Return the numbers of the matching metrics; None means all."""
        if not isinstance(matches, KeyFilter):
            return self._update(_MatchedMetrics(), matches)
        if not matches.patterns:
            return None
        matched = self._cached.pop(matches.patterns, None) or _MatchedMetrics()
        self._cached[matches.patterns] = matched  # the least recently used is dropped first
        while len(self._cached) > _MAX_CACHED:
            self._cached.pop(next(iter(self._cached)), None)
        with matched.lock:
            return self._update(matched, matches)

    def _update(self, matched: _MatchedMetrics, matches: Callable[[str], bool]) -> frozenset[int]:
        upto = max(matched.recent)
        # In PostgreSQL a number may become visible shortly after a higher one.
        newest = self._metadata_store.metrics.added_after(max(0, upto - _NEAR))
        new = {number: key for number, key in newest.items() if number not in matched.recent}
        if new:
            matched.numbers |= {number for number, key in new.items() if matches(key)}
            upto = max(upto, *new)
            matched.recent = frozenset(number for number in (*matched.recent, *new) if number >= upto - _NEAR)
        return matched.numbers
