"""A source that may hang delays nobody, and says so when it does."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from runvitals.collectors.base import Tick
from runvitals.collectors.plumbing.background import BackgroundReader, Hung

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONG_S = 10.0  # longer than any test waits for what must come


class Fridge:
    """Answers its temperature: the number of the question, when `door` is open."""

    def __init__(self) -> None:
        self.asked = 0
        self.door = threading.Event()
        self.broken: Exception | None = None

    def ask(self, tick: Tick) -> None:
        self.asked += 1
        self.door.wait(LONG_S)
        if self.broken is not None:
            raise self.broken
        tick.gauges["temp"] = float(self.asked)
        tick.counters["opened"] = 7.0
        tick.events.append({"name": "asked"})


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
    """Until the thread has put an answer where the next tick finds it."""
    assert _within(LONG_S, lambda: not aside._done.locked())


def test_an_answer_in_time_goes_into_its_own_tick(fridge: Fridge) -> None:
    fridge.door.set()
    aside = BackgroundReader(fridge.ask, patience_s=LONG_S)
    tick = sampled(aside, 100.0)
    assert (tick.gauges, tick.counters, tick.events) == ({"temp": 1.0}, {"opened": 7.0}, [{"name": "asked"}])
    assert sampled(aside, 101.0).gauges == {"temp": 2.0}
    aside.close()


def test_a_late_answer_goes_into_the_next_tick_once(fridge: Fridge) -> None:
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
    assert sampled(aside, 101.0).gauges == {}  # the thread is busy: not asked, not waited for
    assert aside.pending
    assert fridge.asked == 1
    aside.close()


def test_it_is_asked_as_often_as_wanted(fridge: Fridge) -> None:
    fridge.door.set()
    aside = BackgroundReader(fridge.ask, every_s=5.0, patience_s=LONG_S)
    assert [bool(sampled(aside, 100.0 + second).gauges) for second in range(7)] == [
        *(True, False, False, False, False, True, False)
    ]
    aside.close()


def test_what_it_raises_is_raised_until_it_works_again(fridge: Fridge) -> None:
    fridge.door.set()
    fridge.broken = OSError("warm")
    aside = BackgroundReader(fridge.ask, every_s=5.0, patience_s=LONG_S)
    for mono_s in (100.0, 101.0, 105.0):  # at 101 nobody asked
        with pytest.raises(OSError, match="warm"):
            aside.sample(Tick(mono_s))
    fridge.broken = None
    assert sampled(aside, 110.0).gauges == {"temp": 3.0}
    aside.close()


def test_a_hanging_source_is_reported_until_it_answers_and_its_old_answer_is_no_reading(
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
    assert sampled(aside, 200.0).gauges == {}  # of 100 seconds ago
    wait_for_answer(aside)
    assert sampled(aside, 201.0).gauges == {"temp": 2.0}
    aside.close()


def test_one_thread_asks_all_and_ends_when_told_so() -> None:
    threads: set[int] = set()
    aside = BackgroundReader(lambda tick: threads.add(threading.get_ident()), patience_s=LONG_S)
    for second in range(5):
        sampled(aside, float(second))
    assert len(threads) == 1
    aside.close()
    assert _within(LONG_S, lambda: not threads & set(_running_threads()))


def test_closing_does_not_wait_for_one_that_hangs(fridge: Fridge) -> None:
    aside = BackgroundReader(fridge.ask)
    sampled(aside, 100.0)
    aside.close()
    assert aside.pending  # it still hangs


def test_one_never_asked_needs_no_thread() -> None:
    before = set(_running_threads())
    BackgroundReader(lambda tick: None).close()
    assert set(_running_threads()) <= before


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_a_forked_child_has_a_thread_of_its_own(fridge: Fridge) -> None:
    fridge.door.set()
    aside = BackgroundReader(fridge.ask, patience_s=LONG_S)
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
