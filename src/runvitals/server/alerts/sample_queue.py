"""The samples that ingest has stored and rules have not yet seen."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from typing import Final

from runvitals.store.samples.interface import SampleBatch

MAX_VALUES: Final = 4_000_000
"""About 32 MB. Beyond it the oldest samples are left out: rules come after storing."""


class SampleQueue:
    """A queue between ingest and the rules. `add` never waits for the rules.

    Attributes:
        is_used: whether this server evaluates rules. Samples are kept while there are none too: a rule that
            is saved now is read in a second.
        has_rules: whether there were rules when they were last read.
        dropped: how many batches were left out since the start.
    """

    def __init__(self, max_values: int = MAX_VALUES) -> None:
        self._max_values = max_values
        self._batches: deque[SampleBatch] = deque()
        self._values = 0
        self._lock = threading.Lock()
        self.is_used = self.has_rules = False
        self.dropped = 0

    def add(self, batches: Iterable[SampleBatch]) -> None:
        """Add batches that were stored now. Does nothing where no rules are evaluated."""
        if not self.is_used:
            return
        with self._lock:
            for batch in batches:
                self._batches.append(batch)
                self._values += batch.values.size
            while self._values > self._max_values and len(self._batches) > 1:
                self._values -= self._batches.popleft().values.size
                self.dropped += 1

    def take(self) -> list[SampleBatch]:
        """Return what was added since the last call, in order."""
        with self._lock:
            batches, self._batches, self._values = list(self._batches), deque(), 0
        return batches
