"""How long something that failed is left alone before it is tried again."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# What another side may ask for (`Retry-After`), at most.
LONGEST_ASKED_S = 3600.0
# A little early is due: a clock that ticks once a second, not quite evenly, would make 3 s of every 2.
_EARLY_S = 0.005


class Backoff:
    """Waits `first_s` after a failure, twice as long after each further one in a row, at most `longest_s`.

    It is bounded for ever: a machine whose far side is away for a year counts its failures, and waits no
    longer for them.

    Args:
        first_s: after the first failure in a row.
        longest_s: after any.
        jitter: returns a random number from 0 to 1, as `random.random` does; each wait is up to a half longer
            then, so that a thousand senders do not come back at once. For whoever asks over a network.
        at_once: so many failures in a row cost no wait.

    Attributes:
        failures: in a row.
        until_s: when it is due again, on the caller's clock.

    Example:
        >>> backoff = Backoff(first_s=1.0, longest_s=60.0)
        >>> [backoff.failed(now_s=100.0) for _ in range(8)]
        [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
        >>> backoff.due(159.0), backoff.due(160.0)
        (False, True)
        >>> backoff.worked()
        >>> backoff.failed(now_s=160.0)
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
        """Whether it is time to try."""
        return now_s >= self.until_s

    def failed(self, now_s: float, asked_s: float | None = None) -> float:
        """Count a failure; how long to wait now.

        Args:
            now_s: the time, on any clock that only goes forward.
            asked_s: how long the far side wants to be left alone: at least `first_s`, at most an hour. What
                is no such time (NaN, less than 0) does not count.
        """
        self.failures += 1
        wait_s = self._next_wait_s()
        if asked_s is not None and asked_s >= 0.0:  # false for NaN
            wait_s = min(max(asked_s, self._first_s), LONGEST_ASKED_S)
        if self._jitter is not None:
            wait_s *= 1.0 + 0.5 * self._jitter()
        self.until_s = now_s + wait_s - min(wait_s * _EARLY_S, _EARLY_S)
        return wait_s

    def _next_wait_s(self) -> float:
        if self.failures > self._at_once:
            self._wait_s = min(self._wait_s * 2.0 or self._first_s, self._longest_s)
        return self._wait_s

    def hurry(self) -> None:
        """Make it due at once. The failures still count."""
        self.until_s = float("-inf")

    def worked(self) -> None:
        """Forget the failures."""
        self.failures = 0
        self._wait_s = 0.0
        self.until_s = float("-inf")
