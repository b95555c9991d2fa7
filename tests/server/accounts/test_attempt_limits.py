from __future__ import annotations

import pytest

from runvitals.server.accounts import attempt_limits
from runvitals.server.accounts.attempt_limits import AttemptLimit, FailedAttempts, network_of


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
        failures.note_failure("ada")
        waits.append(failures.wait_s("ada"))
    assert waits == [0, 0, 30, 60, 100, 100]
    clock.now_s += 40
    assert failures.wait_s("ada") == 60
    assert failures.wait_s("bob") == 0


def test_failures_are_forgotten_after_a_quiet_window_or_a_success(clock: Clock) -> None:
    failures = FailedAttempts(AttemptLimit(1, 900, 30, 100), clock)
    for _ in range(2):
        failures.note_failure("ada")
    clock.now_s += 929
    failures.note_failure("ada")  # within the window: the third in a row
    assert failures.wait_s("ada") == 60
    clock.now_s += 960
    failures.note_failure("ada")
    assert failures.wait_s("ada") == 0
    failures.note_failure("ada")
    failures.note_success("ada")
    assert failures.wait_s("ada") == 0


def test_an_attempt_counts_before_its_outcome_is_known(clock: Clock) -> None:
    failures = FailedAttempts(AttemptLimit(2, 900, 30, 100), clock)
    assert [failures.begin("ada") for _ in range(4)] == [0, 0, 0, 30]
    failures.withdraw("ada")
    assert failures.begin("ada") == 0


def test_memory_is_bounded(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt_limits, "MAX_SUBJECTS", 100)
    failures = FailedAttempts(AttemptLimit(0, 900, 30, 100), clock)
    for number in range(1000):
        failures.note_failure(number)
    assert failures.wait_s(999) == 30
    assert failures.wait_s(0) == 0
    assert len(failures._subjects) == 100


def test_networks() -> None:
    assert network_of("::ffff:192.0.2.1") == network_of("192.0.2.1") == "192.0.2.1"
    assert network_of("2001:db8::1") == network_of("2001:db8::2") == "2001:db8::/64"
    assert network_of("unix") == "unix"
