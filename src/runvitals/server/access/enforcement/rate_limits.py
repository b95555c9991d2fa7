"""Limits on what a client may do per hour or minute, whether it succeeds or not: sign up, ask for mail."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

from cachetools import LRUCache

MAX_SUBJECTS: Final = 100_000
_ROUNDING_S: Final = 1e-6


@dataclass(frozen=True, slots=True)
class RateLimit:
    """How often something may happen within a time."""

    count: int
    within_s: float


SIGN_UPS: Final = RateLimit(10, 3600)
NAME_CHECKS: Final = RateLimit(10, 60)
RESETS_OF_ADDRESS: Final = RateLimit(3, 3600)
RESETS_OF_NETWORK: Final = RateLimit(10, 3600)
VERIFICATION_MAILS: Final = (RateLimit(1, 60), RateLimit(3, 3600), RateLimit(10, 86_400))
DEVICE_LOGINS: Final = RateLimit(10, 600)
PROVIDER_STARTS: Final = RateLimit(60, 600)
TEAM_REQUESTS: Final = RateLimit(1, 86_400)
EXPORTS: Final = RateLimit(5, 3600)
TRIAL_MESSAGES: Final = RateLimit(10, 3600)


class RateLimiter:
    """Counts by subject (an address, a network), in memory. Thread-safe.

    A subject starts with `count` places; a used place is free again `within_s / count` later: a token bucket.

    Args:
        limits: all of them must have a place.
        clock: seconds that only grow, such as `time.monotonic`.

    Example:
        >>> limiter = RateLimiter((RateLimit(2, 60),), lambda: 0.0)
        >>> [limiter.take("ada"), limiter.take("ada"), limiter.take("ada")]
        [0.0, 0.0, 30.0]
    """

    def __init__(self, limits: tuple[RateLimit, ...], clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        # For each limit, the time at which all of its places are free again.
        self._free_at_s: LRUCache[Hashable, list[float]] = LRUCache(MAX_SUBJECTS)

    def take(self, subject: Hashable) -> float:
        """Take a place; returns how long to wait if there is none, 0 if it was taken."""
        now_s = self._clock()
        with self._lock:
            free_at_s = self._free_at_s.get(subject) or [now_s] * len(self._limits)
            free_at_s = [max(free_s, now_s) for free_s in free_at_s]
            waits = [
                free_s + limit.within_s / limit.count - now_s - limit.within_s
                for free_s, limit in zip(free_at_s, self._limits, strict=True)
            ]
            if max(waits) > _ROUNDING_S:
                return max(waits)
            self._free_at_s[subject] = [
                free_s + limit.within_s / limit.count
                for free_s, limit in zip(free_at_s, self._limits, strict=True)
            ]
            return 0.0
