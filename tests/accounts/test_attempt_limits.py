from __future__ import annotations

import pytest

from runvitals.accounts import attempt_limits
from runvitals.accounts.attempt_limits import (
    SIGN_IN_ACCOUNT,
    SIGN_IN_NETWORK,
    AttemptLimit,
    FailedAttempts,
    SignInLimits,
    network_of,
)


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_delay_doubles_up_to_its_longest(clock: Clock) -> None:
    failures = FailedAttempts(AttemptLimit(2, 900, 30, 100), clock)
    waits = []
    for _ in range(6):
        failures.failed("ada")
        waits.append(failures.wait_s("ada"))
    assert waits == [0, 0, 30, 60, 100, 100]
    clock.now_s += 40
    assert failures.wait_s("ada") == 60
    assert failures.wait_s("bob") == 0


def test_failures_are_forgotten_after_a_quiet_window_or_a_success(clock: Clock) -> None:
    failures = FailedAttempts(AttemptLimit(1, 900, 30, 100), clock)
    for _ in range(2):
        failures.failed("ada")
    clock.now_s += 929
    failures.failed("ada")  # within the window: the third in a row
    assert failures.wait_s("ada") == 60
    clock.now_s += 960
    failures.failed("ada")
    assert failures.wait_s("ada") == 0
    failures.failed("ada")
    failures.succeeded("ada")
    assert failures.wait_s("ada") == 0


def test_a_stranger_cannot_lock_a_user_out(clock: Clock) -> None:
    limits = SignInLimits(clock)
    for number in range(1000):
        limits.failed("ada", f"2001:db8:{number:x}::1")
    assert limits.wait_s("ada", "198.51.100.7") == SIGN_IN_ACCOUNT.longest_delay_s
    # The user's own browser is not concerned, and anyone gets an attempt after the longest delay.
    assert limits.wait_s("ada", "198.51.100.7", known_browser="b1") == 0
    clock.now_s += SIGN_IN_ACCOUNT.longest_delay_s
    assert limits.wait_s("ada", "198.51.100.7") == 0


def test_a_known_browser_may_not_guess_forever_either(clock: Clock) -> None:
    limits = SignInLimits(clock)
    for _ in range(SIGN_IN_ACCOUNT.free + 1):
        limits.failed("ada", "192.0.2.1", known_browser="b1")
    assert limits.wait_s("ada", "192.0.2.1", known_browser="b1") == SIGN_IN_ACCOUNT.first_delay_s
    assert limits.wait_s("ada", "192.0.2.1") == 0
    limits.succeeded("ada", known_browser="b1")
    assert limits.wait_s("ada", "192.0.2.1", known_browser="b1") == 0


def test_one_network_cannot_guess_at_many_accounts(clock: Clock) -> None:
    limits = SignInLimits(clock)
    for number in range(SIGN_IN_NETWORK.free + 1):
        limits.failed(f"user{number}", f"2001:db8:1:2:{number:x}::1")
    limits.succeeded("user0")
    assert limits.wait_s("another", "2001:db8:1:2::9") > 0
    assert limits.wait_s("another", "2001:db8:1:3::9") == 0


def test_ten_thousand_guesses_get_few_attempts(clock: Clock) -> None:
    limits, attempts = SignInLimits(clock), 0
    for _ in range(10_000):
        if limits.wait_s("ada", "192.0.2.1") == 0:
            attempts += 1
            limits.failed("ada", "192.0.2.1")
        clock.now_s += 0.1
    assert attempts <= SIGN_IN_ACCOUNT.free + 6


def test_memory_is_bounded(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt_limits, "MAX_SUBJECTS", 100)
    failures = FailedAttempts(AttemptLimit(0, 900, 30, 100), clock)
    for number in range(1000):
        failures.failed(number)
    assert failures.wait_s(999) == 30
    assert failures.wait_s(0) == 0
    assert len(failures._subjects) == 100


def test_networks() -> None:
    assert network_of("::ffff:192.0.2.1") == network_of("192.0.2.1") == "192.0.2.1"
    assert network_of("2001:db8::1") == network_of("2001:db8::2") == "2001:db8::/64"
    assert network_of("unix") == "unix"
