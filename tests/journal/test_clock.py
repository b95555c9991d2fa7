from __future__ import annotations

import time

import pytest

from runvitals.journal.clock import JUMP_MS, RunClock, boot_id, since_boot_ns, writer_clock

YEAR_MS = 365 * 86_400_000


class Machine:
    """A machine with a clock that can be set."""

    def __init__(self) -> None:
        self.wall_ms = 1_760_000_000_000
        self.up_ms = 90_000_000

    def clock(self, anchor_ms: int | None = None) -> RunClock:
        return RunClock(anchor_ms, lambda: self.wall_ms * 1_000_000, lambda: self.up_ms * 1_000_000)

    def advance(self, ms: int) -> None:
        self.wall_ms += ms
        self.up_ms += ms


def test_it_starts_at_the_system_time_and_advances_steadily() -> None:
    machine = Machine()
    clock = machine.clock()
    assert clock.now_ms() == machine.wall_ms
    machine.advance(1500)
    assert (clock.now_ms(), clock.ahead_ms()) == (machine.wall_ms, 0)


@pytest.mark.parametrize("by_ms", [11 * YEAR_MS, -55 * YEAR_MS, 3_600_000, -3_600_000])
def test_it_does_not_follow_a_change_of_the_system_clock(by_ms: int) -> None:
    machine = Machine()
    clock = machine.clock()
    before_ms = machine.wall_ms
    machine.wall_ms += by_ms
    machine.advance(1000)
    assert (clock.now_ms(), clock.ahead_ms()) == (before_ms + 1000, by_ms)


def test_a_clock_with_the_same_anchor_shows_the_same_time() -> None:
    machine = Machine()
    first = machine.clock()
    machine.wall_ms += YEAR_MS
    machine.advance(1000)
    assert machine.clock(first.anchor_ms).now_ms() == first.now_ms()


def test_less_than_two_seconds_is_not_reported() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.wall_ms += JUMP_MS - 1
    assert clock.ahead_ms() == 0
    machine.wall_ms += 1
    assert clock.ahead_ms() == JUMP_MS


def test_the_clock_of_this_machine() -> None:
    before_ms = time.time_ns() // 1_000_000
    shown_ms = RunClock().now_ms()
    assert before_ms - 1 <= shown_ms <= time.time_ns() // 1_000_000 + 1
    assert since_boot_ns() > 0


def test_a_writers_clock_from_its_start_record() -> None:
    machine = Machine()
    clock = machine.clock()
    start = {"t": clock.now_ms(), "since_boot_ms": clock.since_boot_ms(), "boot_id": "b"}
    read_clock = writer_clock(start, "b")
    assert read_clock is not None
    assert read_clock.anchor_ms == clock.anchor_ms


@pytest.mark.parametrize(
    "wrong",
    [
        {"boot_id": "another"},
        {"boot_id": None},
        {"since_boot_ms": None},
        {"since_boot_ms": -1},
        {"since_boot_ms": 1 << 62},
        {"since_boot_ms": "1"},
        {"t": 1e300},
        {"t": 1 << 62},
        {"t": None},
    ],
)
def test_start_records_without_a_clock_of_this_boot(wrong: dict[str, object]) -> None:
    start = {"t": 1_760_000_000_000, "since_boot_ms": 5000, "boot_id": "b", **wrong}
    assert writer_clock(start, "b") is None


def test_without_a_boot_id_there_is_no_clock() -> None:
    assert writer_clock({"t": 1_760_000_000_000, "since_boot_ms": 5000, "boot_id": ""}, "") is None
    assert boot_id() == boot_id()
