"""Limits on guessing: of passwords, links and keys.

A stranger must not be able to lock a user out. So failures slow down only where they come from: a browser
that has signed in to the account before counts apart from all others, and the right password after the delay
always works. Networks are counted too, IPv6 by /64, so that one machine cannot guess at many accounts.
"""

from __future__ import annotations

import ipaddress
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

MAX_SUBJECTS: Final = 100_000


@dataclass(frozen=True, slots=True)
class AttemptLimit:
    """How many failures are free within a window, and how long to wait after more.

    The delay doubles with each further failure, from `first_delay_s` to `longest_delay_s`.
    """

    free: int
    window_s: float
    first_delay_s: float
    longest_delay_s: float


SIGN_IN_ACCOUNT: Final = AttemptLimit(10, 900, 30, 900)
SIGN_IN_NETWORK: Final = AttemptLimit(30, 900, 30, 900)
ONE_TIME_LINKS: Final = AttemptLimit(30, 600, 60, 600)
WRONG_KEYS: Final = AttemptLimit(100, 60, 10, 60)
DEVICE_CODES: Final = AttemptLimit(5, 600, 600, 600)
SUDO: Final = AttemptLimit(5, 900, 900, 900)


@dataclass(slots=True)
class _Failures:
    count: int
    first_s: float
    last_s: float


class FailedAttempts:
    """Failures by subject (an account, a network), in memory. Thread-safe.

    Args:
        clock: seconds that only grow, such as `time.monotonic`.

    Example:
        >>> failures = FailedAttempts(AttemptLimit(1, 60, 30, 900), lambda: 0.0)
        >>> failures.failed("ada"); failures.wait_s("ada")
        0.0
        >>> failures.failed("ada"); failures.wait_s("ada")
        30.0
    """

    def __init__(self, limit: AttemptLimit, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._clock = clock
        self._lock = threading.Lock()
        self._subjects: OrderedDict[Hashable, _Failures] = OrderedDict()

    def wait_s(self, subject: Hashable) -> float:
        """How long this subject has to wait before its next attempt; 0 where it need not."""
        with self._lock:
            failures = self._current(subject)
            if failures is None:
                return 0.0
            over = failures.count - self._limit.free
            return max(0.0, failures.last_s + self._delay_s(over) - self._clock()) if over > 0 else 0.0

    def failed(self, subject: Hashable) -> None:
        """Count a failure."""
        now_s = self._clock()
        with self._lock:
            failures = self._current(subject)
            if failures is None:
                self._subjects[subject] = _Failures(1, now_s, now_s)
            else:
                failures.count += 1
                failures.last_s = now_s
            self._subjects.move_to_end(subject)
            if len(self._subjects) > MAX_SUBJECTS:  # the one that failed longest ago
                self._subjects.popitem(last=False)

    def succeeded(self, subject: Hashable) -> None:
        """Forget the failures of a subject."""
        with self._lock:
            self._subjects.pop(subject, None)

    def withdraw(self, subject: Hashable) -> None:
        """Take back one failure, which was counted before its outcome was known."""
        with self._lock:
            failures = self._subjects.get(subject)
            if failures is not None and failures.count > 1:
                failures.count -= 1
            else:
                self._subjects.pop(subject, None)

    def _current(self, subject: Hashable) -> _Failures | None:
        failures = self._subjects.get(subject)
        if failures is None:
            return None
        over = failures.count - self._limit.free
        quiet_s = self._limit.window_s + (self._delay_s(over) if over > 0 else 0.0)
        if self._clock() - failures.last_s >= quiet_s:
            del self._subjects[subject]
            return None
        return failures

    def _delay_s(self, over: int) -> float:
        doubled = self._limit.first_delay_s * 2.0 ** min(over - 1, 30)
        return min(doubled, self._limit.longest_delay_s)


class SignInLimits:
    """The limits on signing in: by account and by network, with known browsers apart."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._accounts = FailedAttempts(SIGN_IN_ACCOUNT, clock)
        self._networks = FailedAttempts(SIGN_IN_NETWORK, clock)

    def wait_s(self, account: str, address: str, known_browser: str | None = None) -> float:
        """How long to wait before the password is even checked.

        Args:
            account: what was typed, whether there is such an account or not.
            address: the client's IP address.
            known_browser: an id that the server gave this browser when it signed in to this account; None for
                others. A known browser has failures of its own, and none of its network's.
        """
        if known_browser is not None:
            return self._accounts.wait_s((account, known_browser))
        waits = self._accounts.wait_s((account, None)), self._networks.wait_s(network_of(address))
        return max(waits)

    def failed(self, account: str, address: str, known_browser: str | None = None) -> None:
        """Count a wrong password.

        Count it before checking the password, and `withdraw` it after: guesses sent at the same time would
        all be checked otherwise.
        """
        self._accounts.failed((account, known_browser))
        if known_browser is None:
            self._networks.failed(network_of(address))

    def withdraw(self, account: str, address: str, known_browser: str | None = None) -> None:
        """Take back a failure: the password was right, or was not checked."""
        self._accounts.withdraw((account, known_browser))
        if known_browser is None:
            self._networks.withdraw(network_of(address))

    def succeeded(self, account: str, known_browser: str | None = None) -> None:
        """Forget the failures of this account from here: a network's stay, which may be trying others."""
        self._accounts.succeeded((account, known_browser))


def network_of(address: str) -> str:
    """What counts as one client: an IPv4 address, the /64 of an IPv6 address, or the text itself.

    Example:
        >>> network_of("2001:db8:1:2:3::4"), network_of("192.0.2.1")
        ('2001:db8:1:2::/64', '192.0.2.1')
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))
    return str(parsed)
