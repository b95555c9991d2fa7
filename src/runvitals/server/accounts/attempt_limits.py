"""Limits on guessing: of passwords, links and keys.

A stranger must not be able to lock a user out. So failures slow down only where they come from: a browser
that has signed in to the account before counts apart from all others, and the right password after the delay
always works. Networks are counted too, IPv6 by /64, so that one machine cannot guess at many accounts.

Failures at accounts are counted in the database, by all processes of a server together: more processes give
nobody more guesses. All others are counted in memory.
"""

from __future__ import annotations

import hmac
import ipaddress
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from cachetools import LRUCache

if TYPE_CHECKING:
    from runvitals.server.accounts.storage.login_failures import LoginFailures, LoginFailureTable

MAX_SUBJECTS: Final = 100_000


@dataclass(frozen=True, slots=True)
class AttemptLimit:
    """The number of free failures within a window, and the wait after more.

    The delay doubles with each further failure, from `first_delay_s` to `longest_delay_s`.
    """

    free: int
    window_s: float
    first_delay_s: float
    longest_delay_s: float

    def wait_s(self, failures: int, since_s: float) -> float:
        """Return how long to wait after so many failures, the last one `since_s` ago; 0: not at all."""
        return max(0.0, self._delay_s(failures) - since_s)

    def forgets(self, failures: int, since_s: float) -> bool:
        """Return whether failures no longer count, the last one `since_s` ago."""
        return since_s >= self.window_s + self._delay_s(failures)

    def _delay_s(self, failures: int) -> float:
        over = failures - self.free
        if over <= 0:
            return 0.0
        return min(self.first_delay_s * 2.0 ** min(over - 1, 30), self.longest_delay_s)


SIGN_IN_ACCOUNT: Final = AttemptLimit(10, 900, 30, 900)
SIGN_IN_NETWORK: Final = AttemptLimit(30, 900, 30, 900)
ONE_TIME_LINKS: Final = AttemptLimit(30, 600, 60, 600)
WRONG_KEYS: Final = AttemptLimit(100, 60, 10, 60)
DEVICE_CODES: Final = AttemptLimit(5, 600, 600, 600)
SUDO: Final = AttemptLimit(5, 900, 900, 900)


@dataclass(slots=True)
class _Failures:
    count: int
    last_s: float


class FailedAttempts:
    """Failures by subject (a network, a key), in memory. Thread-safe.

    Args:
        clock: seconds that only grow, such as `time.monotonic`.

    Example:
        >>> failures = FailedAttempts(AttemptLimit(1, 60, 30, 900), lambda: 0.0)
        >>> failures.note_failure("ada"); failures.wait_s("ada")
        0.0
        >>> failures.note_failure("ada"); failures.wait_s("ada")
        30.0
    """

    def __init__(self, limit: AttemptLimit, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._clock = clock
        self._lock = threading.Lock()
        self._subjects: LRUCache[Hashable, _Failures] = LRUCache(MAX_SUBJECTS)

    def begin(self, subject: Hashable) -> float:
        """Count an attempt as failed before its outcome is known, so that attempts at the same time count.

        Returns:
            How long this subject has to wait instead, if it has to; 0 where the attempt was counted.
        """
        with self._lock:
            wait_s = self._wait_s(subject)
            if wait_s == 0:
                self._count(subject)
            return wait_s

    def wait_s(self, subject: Hashable) -> float:
        """Return how long this subject has to wait before its next attempt; 0 where it need not."""
        with self._lock:
            return self._wait_s(subject)

    def note_failure(self, subject: Hashable) -> None:
        """Count a failure."""
        with self._lock:
            self._count(subject)

    def note_success(self, subject: Hashable) -> None:
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

    def _wait_s(self, subject: Hashable) -> float:
        failures = self._current(subject)
        if failures is None:
            return 0.0
        return self._limit.wait_s(failures.count, self._clock() - failures.last_s)

    def _count(self, subject: Hashable) -> None:
        now_s = self._clock()
        failures = self._current(subject)
        if failures is None:
            self._subjects[subject] = _Failures(1, now_s)
        else:
            failures.count += 1
            failures.last_s = now_s

    def _current(self, subject: Hashable) -> _Failures | None:
        failures = self._subjects.get(subject)
        if failures is not None and self._limit.forgets(failures.count, self._clock() - failures.last_s):
            del self._subjects[subject]
            return None
        return failures


class SharedFailedAttempts:
    """Failures by subject, counted by all processes of a server together. Thread-safe.

    Args:
        kind: apart from failures of other kinds.
        key: subjects are stored as digests by this key: a user may type a password in the wrong field.
        now_ms: the time in ms UTC, which all processes share.
    """

    def __init__(
        self,
        limit: AttemptLimit,
        kind: str,
        table: LoginFailureTable,
        key: bytes,
        now_ms: Callable[[], int],
    ) -> None:
        self._limit = limit
        self._kind = kind
        self._table = table
        self._key = key
        self._now_ms = now_ms

    def begin(self, subject: str) -> float:
        """As `FailedAttempts.begin`."""
        now_ms = self._now_ms()

        def counted(before: LoginFailures) -> LoginFailures:
            if self._wait_s(before, now_ms) > 0:
                return before
            return replace(before, count=self._current(before, now_ms) + 1, last_ms=now_ms)

        before, after = self._table.change(self._digest(subject), counted)
        return self._wait_s(before, now_ms) if after == before else 0.0

    def wait_s(self, subject: str) -> float:
        """Return how long this subject has to wait before its next attempt; 0 where it need not."""
        return self._wait_s(self._table.get(self._digest(subject)), self._now_ms())

    def withdraw(self, subject: str) -> None:
        """Take back one failure, which was counted before its outcome was known."""
        self._table.change(self._digest(subject), lambda before: replace(before, count=before.count - 1))

    def note_success(self, subject: str) -> None:
        """Forget the failures of a subject."""
        self._table.change(self._digest(subject), lambda before: replace(before, count=0))

    def _wait_s(self, failures: LoginFailures, now_ms: int) -> float:
        since_s = max(0.0, (now_ms - failures.last_ms) / 1000)
        return self._limit.wait_s(self._current(failures, now_ms), since_s)

    def _current(self, failures: LoginFailures, now_ms: int) -> int:
        since_s = (now_ms - failures.last_ms) / 1000
        # Nobody waits for the time of a clock that was set back since, longer than the limit says.
        forgotten = since_s < -self._limit.window_s or self._limit.forgets(failures.count, since_s)
        return 0 if forgotten else failures.count

    def _digest(self, subject: str) -> bytes:
        text = f"{self._kind}:{subject}".encode("utf-8", "surrogatepass")
        return hmac.digest(self._key, text, "sha256")


class SignInLimits:
    """The limits on signing in: by account and by network, with known browsers apart.

    Args:
        accounts: failures by account, which all processes of a server share.
        clock: seconds that only grow, for networks.
    """

    def __init__(self, accounts: SharedFailedAttempts, clock: Callable[[], float]) -> None:
        self._accounts = accounts
        self._networks = FailedAttempts(SIGN_IN_NETWORK, clock)

    def begin(self, account: str, address: str, known_browser: str | None = None) -> float:
        """Count an attempt as failed before the password is checked.

        Guesses sent at the same time would all be checked otherwise.

        Args:
            account: what was typed, whether there is such an account or not.
            address: the client's IP address.
            known_browser: an id that the server gave this browser when it signed in to this account; None for
                others. A known browser has failures of its own, and none of its network's.

        Returns:
            How long to wait before the password is even checked; 0 where the attempt was counted.
        """
        subject = _subject(account, known_browser)
        if known_browser is not None:
            return self._accounts.begin(subject)
        network = network_of(address)
        wait_s = self._networks.begin(network)
        if wait_s == 0:
            wait_s = self._accounts.begin(subject)
            if wait_s > 0:
                self._networks.withdraw(network)
        return wait_s

    def withdraw(self, account: str, address: str, known_browser: str | None = None) -> None:
        """Take back a failure: the password was right, or was not checked."""
        self._accounts.withdraw(_subject(account, known_browser))
        if known_browser is None:
            self._networks.withdraw(network_of(address))

    def note_success(self, account: str, address: str, known_browser: str | None = None) -> None:
        """Forget the failures of this account from here: a network's stay, which may be trying others."""
        self._accounts.note_success(_subject(account, known_browser))
        if known_browser is None:
            self._networks.withdraw(network_of(address))


def _subject(account: str, known_browser: str | None) -> str:
    return f"{known_browser or ''}\n{account}"


def network_of(address: str) -> str:
    """Return what counts as one client: an IPv4 address, the /64 of an IPv6 address, or the text itself.

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
