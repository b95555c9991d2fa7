"""Decisions and principals, kept until rights change.

Every change of rights, in any process, raises a number in the metadata store: the generation. The cache
reads it at most every `check_s` seconds and starts anew when it has changed, so that a right that was taken
away is gone in all processes within that time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from enum import Enum
from typing import Any, Final, TypeVar, cast

from runvitals.store.errors import MetadataStoreUnavailable

CHECK_S: Final = 0.5
KNOWN_S: Final = 1.0
"""How old the last reading of the generation may be for `known`, which cannot read it again."""
AWAY_S: Final = 3.0
"""Without a reading of the generation for so long, the metadata store is away, though nothing has failed: it
does not answer."""
_LOCK_S: Final = 5.0
MAX_ENTRIES: Final = 20_000

T = TypeVar("T")


class Missing(Enum):
    """Stands for a value that is not in the cache: None is a value."""

    MISSING = "missing"


_MISSING: Final = Missing.MISSING


class DecisionCache:
    """A cache that a new generation empties. Thread-safe.

    Args:
        generation: reads the current generation.
        clock: seconds that only grow, such as `time.monotonic`.
        check_s: how old the last reading of the generation may be.
    """

    def __init__(
        self, generation: Callable[[], int], clock: Callable[[], float], check_s: float = CHECK_S
    ) -> None:
        self._read_generation = generation
        self._clock = clock
        self._check_s = check_s
        self._lock = threading.Lock()
        self._checked_s = -float("inf")
        self._failed = False
        self._generation: int | None = None
        self._entries: dict[Hashable, object] = {}

    @property
    def generation(self) -> int | None:
        """The generation at the last reading; None before the first."""
        return self._generation

    @property
    def away_s(self) -> float:
        """For how long the metadata store could not be reached, or has not answered; 0 if it does."""
        age_s = self._clock() - self._checked_s
        return max(age_s, 0.001) if self._failed or age_s > AWAY_S else 0.0

    def note_failure(self) -> None:
        """Note that the metadata store could not be reached; until the generation is read again."""
        self._failed = True

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the value under this key; computes it if it is not there, or from before the last change."""
        if self._clock() - self._checked_s >= self._check_s:
            self.check()
        entries = self._entries
        value = entries.get(key, _MISSING)
        if value is not _MISSING:
            return cast(T, value)
        try:
            computed: Any = compute()
        except MetadataStoreUnavailable:
            self._failed = True
            raise
        if len(entries) >= MAX_ENTRIES:
            entries.clear()
        # Under the generation from before the computation: a change meanwhile has replaced its entries.
        entries[key] = computed
        return cast(T, computed)

    def known(self, key: Hashable) -> Any:
        """Return the value under this key; `Missing.MISSING` if it would have to be computed.

        It never reads the database, so that an event loop can call it.
        """
        if self._clock() - self._checked_s >= KNOWN_S:
            return _MISSING
        return self._entries.get(key, _MISSING)

    def check(self) -> None:
        """Read the generation now. Call it after a change, so that the own process forgets at once.

        Raises:
            MetadataStoreUnavailable: it could not be read.
        """
        if not self._lock.acquire(timeout=_LOCK_S):
            raise MetadataStoreUnavailable("the metadata store does not answer")
        try:
            now_s = self._clock()
            try:
                generation = self._read_generation()
            except MetadataStoreUnavailable:
                self._failed = True
                raise
            if generation != self._generation:
                self._generation, self._entries = generation, {}
            self._checked_s, self._failed = now_s, False
        finally:
            self._lock.release()
