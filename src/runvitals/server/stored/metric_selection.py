"""Which metrics some patterns mean, of all that any run has."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from runvitals.query.key_filter import KeyFilter
from runvitals.store.metadata import MetadataStore

_MOST_CHOICES = 64
_NEAR = 200


@dataclass(slots=True)
class _MatchedMetrics:
    """The metrics that are chosen. `recent`: those looked at last, chosen or not; `lock`: while one looks."""

    numbers: frozenset[int] = frozenset()
    recent: frozenset[int] = frozenset((0,))
    lock: threading.Lock = field(default_factory=threading.Lock)


class MetricSelection:
    """Keeps what was found: lists of runs ask for the same few patterns again and again, and one run may have
    brought a hundred thousand names.
    """

    def __init__(self, catalogue: MetadataStore) -> None:
        self._catalogue = catalogue
        self._choices: dict[tuple[str, ...], _MatchedMetrics] = {}

    def numbers(self, wanted: Callable[[str], bool]) -> frozenset[int] | None:
        """The numbers of the metrics wanted; None: all are."""
        if not isinstance(wanted, KeyFilter):
            return self._found(_MatchedMetrics(), wanted)
        if not wanted.patterns:
            return None
        choice = self._choices.pop(wanted.patterns, None) or _MatchedMetrics()
        self._choices[wanted.patterns] = choice  # last used, last forgotten
        while len(self._choices) > _MOST_CHOICES:
            self._choices.pop(next(iter(self._choices)), None)
        with choice.lock:
            return self._found(choice, wanted)

    def _found(self, choice: _MatchedMetrics, wanted: Callable[[str], bool]) -> frozenset[int]:
        upto = max(choice.recent)
        # PostgreSQL may show a number after a higher one, a moment later.
        found = self._catalogue.metrics.given_after(max(0, upto - _NEAR))
        new = {number: key for number, key in found.items() if number not in choice.recent}
        if new:
            choice.numbers |= {number for number, key in new.items() if wanted(key)}
            upto = max(upto, *new)
            choice.recent = frozenset(one for one in (*choice.recent, *new) if one >= upto - _NEAR)
        return choice.numbers
