"""Writes a monitor's records: samples, facts and events of collectors, and the monitor's own events."""

from __future__ import annotations

import struct

from runvitals.journal import frames
from runvitals.journal.clock import JUMP_MS
from runvitals.monitoring.monitor.plausibility import is_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from runvitals.journal.writer import JournalWriter
    from runvitals.monitoring.monitor.sampler import Sampler

# How often the system clock is compared with the run's clock.
CHECK_CLOCK_S = 10.0


class MonitorRecorder:
    """Writes what the sampler reads, and what the monitor reports.

    Args:
        journal: the monitor's own.
        sampler: reads the collectors.
    """

    __slots__ = ("_check_clock_at_s", "_invalid_keys", "_journal", "_sampler", "_system_ahead_ms")

    def __init__(self, journal: JournalWriter, sampler: Sampler) -> None:
        self._journal = journal
        self._sampler = sampler
        self._invalid_keys: set[str] = set()
        self._check_clock_at_s = 0.0
        self._system_ahead_ms = 0  # of the run's clock, as last reported

    def note(self, type: int, **value: object) -> None:
        """Write a JSON record with the current time."""
        self._journal.json(type, {"t": self._journal.clock.now_ms(), **value})

    def warn(self, name: str, text: str) -> None:
        """Write an event of level `warning`."""
        self.note(frames.EVENT, name=name, level="warning", text=text)

    def sample(self, now_s: float) -> None:
        """Take a sample and write it, with what the collectors report besides."""
        sampler = self._sampler
        values = sampler.sample(now_s)
        time_ms = self._journal.clock.now_ms()
        try:
            self._journal.sample(time_ms, values)
        except (struct.error, OverflowError):
            self._journal.sample(time_ms, self._only_numbers(values))
        new_baselines = sampler.baselines.fresh
        if new_baselines:
            # If this monitor dies, the next one continues the counters from the same baselines.
            self.note(frames.INFO, baselines=new_baselines)
            sampler.baselines.fresh = {}
        if sampler.news_sources or sampler.events:
            self._write_news()
        if now_s >= self._check_clock_at_s:
            self._check_clock_at_s = now_s + CHECK_CLOCK_S
            self.check_clock()

    def _write_news(self) -> None:
        """Write what collectors report besides values: facts about devices, missing parts, events."""
        news = self._sampler.news()
        if news:
            self._note_from_collector(frames.INFO, news)
        if self._sampler.events:
            events, self._sampler.events = self._sampler.events, []
            for event in events:
                self._note_from_collector(frames.EVENT, event)

    def _note_from_collector(self, type: int, value: Mapping[str, object]) -> None:
        """Write a record from a collector.

        Those of third parties may return values that JSON cannot represent.
        """
        try:
            self._journal.json(type, {**value, "t": self._journal.clock.now_ms()})
        except (TypeError, ValueError) as error:
            self.warn("bad_reading", f"a collector returned an invalid value: {error}: {value!r:.200}")

    def _only_numbers(self, values: dict[str, float]) -> dict[str, float]:
        """Remove values that are not numbers from a sample.

        Collectors of third parties may return any type.
        """
        numbers = {key: float(value) for key, value in values.items() if is_number(value)}
        for key in values.keys() - numbers.keys() - self._invalid_keys:
            self._invalid_keys.add(key)
            self.warn("bad_reading", f"{key} = {values[key]!r:.80} is not a number and was skipped")
        return numbers

    def check_clock(self) -> None:
        """Report a change of the system clock. The run's clock does not follow it."""
        ahead_ms = self._journal.clock.ahead_ms()
        by_ms = ahead_ms - self._system_ahead_ms
        if abs(by_ms) < JUMP_MS:
            return
        self._system_ahead_ms = ahead_ms
        direction = "forward" if by_ms > 0 else "back"
        text = (
            f"the system clock was set {direction} by {abs(by_ms) / 1000:.0f} s; "
            "the times of this run do not follow it"
        )
        self.note(frames.EVENT, name="clock_set", level="warning", text=text, by_ms=by_ms, ahead_ms=ahead_ms)
