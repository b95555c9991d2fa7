"""Limits on signing in, counted by several processes of a server together, on both databases."""

from __future__ import annotations

import threading

import pytest

from runvitals.server.accounts.attempt_limits import (
    SIGN_IN_ACCOUNT,
    SIGN_IN_NETWORK,
    AttemptLimit,
    SharedFailedAttempts,
    SignInLimits,
)
from runvitals.server.metadata_store import MetadataStore
from tests.patience import PATIENCE_S
from tests.server.database.conftest import address, empty, kind, metadata_store, postgresql

__all__ = ["address", "empty", "kind", "metadata_store", "postgresql"]

T0 = 1_800_000_000_000
KEY = bytes(32)


class Processes:
    """Processes of one server: each has limits in its own memory, and those of the database."""

    def __init__(self, metadata_store: MetadataStore) -> None:
        self.now_s = 1000.0
        self.table = metadata_store.accounts.login_failures

    def start(self) -> SignInLimits:
        return SignInLimits(self.failures(SIGN_IN_ACCOUNT), lambda: self.now_s)

    def failures(self, limit: AttemptLimit, kind: str = "sign in") -> SharedFailedAttempts:
        return SharedFailedAttempts(limit, kind, self.table, KEY, lambda: T0 + round(self.now_s * 1000))


@pytest.fixture
def processes(metadata_store: MetadataStore) -> Processes:
    return Processes(metadata_store)


def test_more_processes_give_nobody_more_guesses(processes: Processes) -> None:
    started = [processes.start() for _ in range(4)]
    waits = [started[number % 4].begin("ada", f"192.0.2.{number}") for number in range(20)]
    assert waits[: SIGN_IN_ACCOUNT.free + 1] == [0] * (SIGN_IN_ACCOUNT.free + 1)
    assert set(waits[SIGN_IN_ACCOUNT.free + 1 :]) == {SIGN_IN_ACCOUNT.first_delay_s}
    assert processes.start().begin("bob", "192.0.2.1") == 0


def test_the_delay_doubles_up_to_its_longest(processes: Processes) -> None:
    failures = processes.failures(AttemptLimit(2, 900, 30, 100))
    waits = []
    for _ in range(6):
        assert failures.begin("ada") == 0
        waits.append(failures.wait_s("ada"))
        processes.now_s += waits[-1]
    assert waits == [0, 0, 30, 60, 100, 100]


def test_failures_are_forgotten_after_a_quiet_window_or_a_success(processes: Processes) -> None:
    failures = processes.failures(AttemptLimit(1, 900, 30, 100))
    for _ in range(2):
        assert failures.begin("ada") == 0
    processes.now_s += 929
    assert failures.begin("ada") == 0  # within the window: the third in a row
    assert failures.wait_s("ada") == 60
    processes.now_s += 960
    assert failures.begin("ada") == 0
    assert failures.wait_s("ada") == 0
    assert failures.begin("ada") == 0
    assert failures.wait_s("ada") == 30
    failures.note_success("ada")
    assert failures.wait_s("ada") == 0
    assert processes.table.purge(2**60) == 0


def test_a_clock_that_is_set_back_makes_nobody_wait_longer(processes: Processes) -> None:
    failures = processes.failures(AttemptLimit(0, 900, 30, 100))
    failures.begin("ada")
    processes.now_s -= 500
    assert failures.wait_s("ada") == 30
    processes.now_s -= 365 * 86_400  # it had been years ahead
    assert failures.wait_s("ada") == 0


def test_kinds_of_failures_are_counted_apart(processes: Processes) -> None:
    failures = processes.failures(AttemptLimit(0, 900, 30, 100))
    failures.begin("7")
    assert processes.failures(AttemptLimit(0, 900, 30, 100), "confirm").begin("7") == 0
    assert failures.begin("7") == 30


def test_attempts_at_the_same_time_all_count(processes: Processes) -> None:
    failures = processes.failures(AttemptLimit(2, 900, 30, 100))
    waits: list[float] = []
    barrier = threading.Barrier(8)

    def begin() -> None:
        barrier.wait(PATIENCE_S)
        waits.append(failures.begin("ada"))

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(waits) == [0] * 3 + [30] * 5


def test_what_was_typed_is_not_stored(processes: Processes, metadata_store: MetadataStore) -> None:
    typed = "my password in the wrong field"
    processes.start().begin(typed, "192.0.2.1")
    digest = processes.failures(SIGN_IN_ACCOUNT)._digest(f"\n{typed}")
    assert metadata_store.accounts.login_failures.get(digest).count == 1
    assert typed.encode() not in digest


def test_failures_of_long_ago_are_removed(processes: Processes) -> None:
    processes.start().begin("ada", "192.0.2.1")
    now_ms = T0 + round(processes.now_s * 1000)
    assert processes.table.purge(now_ms) == 0
    assert processes.table.purge(now_ms + 1) == 1


def test_a_stranger_cannot_lock_a_user_out(processes: Processes) -> None:
    limits = processes.start()
    for number in range(100):
        limits.begin("ada", f"2001:db8:{number:x}::1")
        processes.now_s += 60
    assert limits.begin("ada", "198.51.100.7") > 0
    # The user's own browser is not concerned, and anyone gets an attempt after the longest delay.
    assert limits.begin("ada", "198.51.100.7", known_browser="b1") == 0
    processes.now_s += SIGN_IN_ACCOUNT.longest_delay_s
    assert limits.begin("ada", "198.51.100.7") == 0


def test_a_known_browser_may_not_guess_forever_either(processes: Processes) -> None:
    limits = processes.start()
    for _ in range(SIGN_IN_ACCOUNT.free + 1):
        assert limits.begin("ada", "192.0.2.1", known_browser="b1") == 0
    assert limits.begin("ada", "192.0.2.1", known_browser="b1") == SIGN_IN_ACCOUNT.first_delay_s
    assert limits.begin("ada", "192.0.2.1") == 0
    limits.note_success("ada", "192.0.2.1", known_browser="b1")
    assert limits.begin("ada", "192.0.2.1", known_browser="b1") == 0


def test_one_network_cannot_guess_at_many_accounts(processes: Processes) -> None:
    limits = processes.start()
    for number in range(SIGN_IN_NETWORK.free + 1):
        assert limits.begin(f"user{number}", f"2001:db8:1:2:{number:x}::1") == 0
    assert limits.begin("another", "2001:db8:1:2::9") > 0
    assert limits.begin("another", "2001:db8:1:3::9") == 0


def test_an_attempt_that_has_to_wait_for_the_account_does_not_count_for_the_network(
    processes: Processes,
) -> None:
    limits = processes.start()
    for _ in range(SIGN_IN_NETWORK.free + 5):
        limits.begin("ada", "192.0.2.1")
    assert limits.begin("bob", "192.0.2.1") == 0


def test_a_success_leaves_the_failures_of_its_network(processes: Processes) -> None:
    limits = processes.start()
    for number in range(SIGN_IN_NETWORK.free):
        limits.begin(f"user{number}", "192.0.2.1")
    assert limits.begin("ada", "192.0.2.1") == 0
    limits.note_success("ada", "192.0.2.1")
    assert limits.begin("bob", "192.0.2.1") == 0
    assert limits.begin("bob", "192.0.2.1") > 0


def test_a_thousand_guesses_get_few_attempts(processes: Processes) -> None:
    limits, attempts = processes.start(), 0
    for _ in range(1000):
        attempts += limits.begin("ada", "192.0.2.1") == 0
        processes.now_s += 1
    assert attempts <= SIGN_IN_ACCOUNT.free + 6
