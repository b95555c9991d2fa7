"""A source that hangs does not delay others, and is reported."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from runvitals.monitoring.collectors.base import Tick
from runvitals.monitoring.collectors.plumbing.background import BackgroundReader, Hung
from tests.patience import PATIENCE_S


class Fridge:
    """Returns its temperature, which is the number of the call, when `door` is open."""

    def __init__(self) -> None:
        self.calls = 0
        self.door = threading.Event()
        self.broken: Exception | None = None

    def ask(self, tick: Tick) -> None:
        self.calls += 1
        self.door.wait(PATIENCE_S)
        if self.broken is not None:
            raise self.broken
        tick.gauges["temp"] = float(self.calls)
        tick.counters["opened"] = 7.0
        tick.events.append({"name": "calls"})


@pytest.fixture
def fridge() -> Iterator[Fridge]:
    fridge = Fridge()
    yield fridge
    fridge.door.set()


def sampled(aside: BackgroundReader, mono_s: float) -> Tick:
    tick = Tick(mono_s)
    aside.sample(tick)
    return tick


def wait_for_answer(aside: BackgroundReader) -> None:
    """Wait until the thread has a result for the next tick."""
    assert _within(PATIENCE_S, lambda: not aside._done.locked())


def test_a_result_in_time_goes_into_its_tick(fridge: Fridge) -> None:
    fridge.door.set()
    aside = BackgroundReader(fridge.ask, patience_s=PATIENCE_S)
    tick = sampled(aside, 100.0)
    assert (tick.gauges, tick.counters, tick.events) == ({"temp": 1.0}, {"opened": 7.0}, [{"name": "calls"}])
    assert sampled(aside, 101.0).gauges == {"temp": 2.0}
    aside.close()


def test_a_late_result_goes_into_the_next_tick_once(fridge: Fridge) -> None:
    aside = BackgroundReader(fridge.ask)
    assert sampled(aside, 100.0).gauges == {}
    fridge.door.set()
    wait_for_answer(aside)
    fridge.door.clear()
    assert sampled(aside, 101.0).gauges == {"temp": 1.0}
    assert sampled(aside, 102.0).gauges == {}
    aside.close()


def test_a_tick_waits_no_longer_than_its_patience(fridge: Fridge) -> None:
    aside = BackgroundReader(fridge.ask, patience_s=0.02)
    assert sampled(aside, 100.0).gauges == {}
    assert _within(PATIENCE_S, lambda: fridge.calls == 1)
    assert sampled(aside, 101.0).gauges == {}  # the thread is busy: neither called nor waited for
    assert aside.pending
    assert fridge.calls == 1
    aside.close()


def test_it_is_called_at_its_interval(fridge: Fridge) -> None:
    fridge.door.set()
    aside = BackgroundReader(fridge.ask, every_s=5.0, patience_s=PATIENCE_S)
    assert [bool(sampled(aside, 100.0 + second).gauges) for second in range(7)] == [
        *(True, False, False, False, False, True, False)
    ]
    aside.close()


def test_its_exception_is_raised_until_it_works_again(fridge: Fridge) -> None:
    fridge.door.set()
    fridge.broken = OSError("warm")
    aside = BackgroundReader(fridge.ask, every_s=5.0, patience_s=PATIENCE_S)
    for mono_s in (100.0, 101.0, 105.0):  # not called at 101
        with pytest.raises(OSError, match="warm"):
            aside.sample(Tick(mono_s))
    fridge.broken = None
    assert sampled(aside, 110.0).gauges == {"temp": 3.0}
    aside.close()


def test_a_hanging_source_is_reported_and_its_stale_result_is_dropped(
    fridge: Fridge,
) -> None:
    aside = BackgroundReader(fridge.ask, hung_after_s=30.0)
    assert sampled(aside, 100.0).gauges == {}
    assert sampled(aside, 130.0).gauges == {}
    for mono_s in (131.0, 150.0):
        with pytest.raises(Hung, match=r"no answer for \d\d s"):
            aside.sample(Tick(mono_s))
    fridge.door.set()
    wait_for_answer(aside)
    assert sampled(aside, 200.0).gauges == {}  # the result is 100 seconds old
    wait_for_answer(aside)
    assert sampled(aside, 201.0).gauges == {"temp": 2.0}
    aside.close()


def test_one_thread_makes_all_calls_and_ends_on_close() -> None:
    threads: set[int] = set()
    aside = BackgroundReader(lambda tick: threads.add(threading.get_ident()), patience_s=PATIENCE_S)
    for second in range(5):
        sampled(aside, float(second))
    assert len(threads) == 1
    aside.close()
    assert _within(PATIENCE_S, lambda: not threads & set(_running_threads()))


def test_close_does_not_wait_for_a_hanging_source(fridge: Fridge) -> None:
    aside = BackgroundReader(fridge.ask)
    sampled(aside, 100.0)
    aside.close()
    assert aside.pending  # still hanging


def test_no_thread_without_a_call() -> None:
    before = set(_running_threads())
    BackgroundReader(lambda tick: None).close()
    assert set(_running_threads()) <= before


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_a_forked_child_starts_its_own_thread(fridge: Fridge) -> None:
    fridge.door.set()
    aside = BackgroundReader(fridge.ask, patience_s=PATIENCE_S)
    sampled(aside, 100.0)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write_end, str(sampled(aside, 101.0).gauges).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    assert os.read(read_end, 100) == b"{'temp': 2.0}"
    os.close(read_end)
    os.waitpid(child, 0)
    aside.close()


def _running_threads() -> list[int]:
    return list(sys._current_frames())


def _within(seconds: float, true: Callable[[], bool]) -> bool:
    until_s = time.monotonic() + seconds
    while not true():
        if time.monotonic() > until_s:
            return False
        time.sleep(0.002)
    return True
