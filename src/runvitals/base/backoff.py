"""Exponential backoff."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Upper bound for a delay that the peer requests (`Retry-After`).
MAX_REQUESTED_S = 3600.0
# Retry slightly early: callers that check about once a second would otherwise turn a 2 s delay into 3 s.
_EARLY_S = 0.005


class Backoff:
    """Waits `first_s` after a failure, doubling after each consecutive one, up to `longest_s`.

    Args:
        first_s: delay after the first failure.
        longest_s: maximum delay.
        jitter: returns a random number from 0 to 1, like `random.random`. It lengthens each delay by up to a
            half, so that a thousand senders do not retry at once. Use it for retries over a network.
        at_once: number of consecutive failures that cause no delay.

    Attributes:
        failures: number of consecutive failures.
        until_s: time of the next attempt, on the caller's clock.

    Example:
        >>> backoff = Backoff(first_s=1.0, longest_s=60.0)
        >>> [backoff.note_failure(now_s=100.0) for _ in range(8)]
        [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
        >>> backoff.due(159.0), backoff.due(160.0)
        (False, True)
        >>> backoff.note_success()
        >>> backoff.note_failure(now_s=160.0)
        1.0
    """

    __slots__ = ("_at_once", "_first_s", "_jitter", "_longest_s", "_wait_s", "failures", "until_s")

    def __init__(
        self,
        first_s: float = 1.0,
        longest_s: float = 60.0,
        jitter: Callable[[], float] | None = None,
        at_once: int = 0,
    ) -> None:
        self._first_s = min(first_s, longest_s)
        self._longest_s = longest_s
        self._jitter = jitter
        self._at_once = at_once
        self._wait_s = 0.0
        self.failures = 0
        self.until_s = float("-inf")

    def due(self, now_s: float) -> bool:
        """Return whether the delay is over."""
        return now_s >= self.until_s

    def note_failure(self, now_s: float, requested_s: float | None = None) -> float:
        """Count a failure and return the delay.

        Args:
            now_s: the time on any monotonic clock.
            requested_s: delay requested by the peer. It replaces the computed one, but is limited to
                `first_s` … one hour. Negative values and NaN are ignored.
        """
        self.failures += 1
        wait_s = self._next_wait_s()
        if requested_s is not None and requested_s >= 0.0:  # false for NaN
            wait_s = min(max(requested_s, self._first_s), MAX_REQUESTED_S)
        if self._jitter is not None:
            wait_s *= 1.0 + 0.5 * self._jitter()
        self.until_s = now_s + wait_s - min(wait_s * _EARLY_S, _EARLY_S)
        return wait_s

    def _next_wait_s(self) -> float:
        if self.failures > self._at_once:
            self._wait_s = min(self._wait_s * 2.0 or self._first_s, self._longest_s)
        return self._wait_s

    def hurry(self) -> None:
        """End the delay. The failures still count."""
        self.until_s = float("-inf")

    def note_success(self) -> None:
        """Reset after a success."""
        self.failures = 0
        self._wait_s = 0.0
        self.until_s = float("-inf")
