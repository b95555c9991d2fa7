"""The sampler: calls the collectors at every tick, with baselines for counters and backoff for failures."""

from __future__ import annotations

import time

from runvitals.base.backoff import Backoff
from runvitals.monitoring.collectors.base import EARLY, MIB, PAGE, PseudoFile, Tick, open_if_there
from runvitals.monitoring.collectors.sources import close, state
from runvitals.monitoring.monitor.baselines import Baselines
from runvitals.monitoring.monitor.plausibility import Plausibility, with_reasons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from runvitals.monitoring.collectors.base import Collector
    from runvitals.monitoring.monitor.plausibility import Fault

MAX_BACKOFF_S = 300.0
# More impossible readings of one source are counted, but not listed.
MAX_REASONS = 20
# How often the duration and the failures of each source are written. Every tick would double a small sample.
SELF_REPORT_S = 10.0


class SampledSource:
    """A collector with its failures, the time of its next sample and its last reported facts.

    Attributes:
        gauges_end, counters_end: how many values the tick had after its last sample.
        dropped: how many of its values were left out because they are impossible.
        impossible: key -> why it was left out.
    """

    __slots__ = (
        "absent", "backoff", "collector", "counters_end", "dropped", "dropped_key", "facts", "failures",
        "failures_key", "gauges_end", "impossible", "ms_key", "name", "next_s", "sample", "told",
    )  # fmt: skip

    def __init__(self, collector: Collector, interval_s: float) -> None:
        self.collector = collector
        self.name = collector.name
        self.sample = collector.sample
        self.ms_key = f"monitor.{collector.name}.ms"
        self.failures_key = f"monitor.{collector.name}.failures"
        self.dropped_key = f"monitor.{collector.name}.impossible"
        self.failures = self.dropped = self.gauges_end = self.counters_end = 0
        self.impossible: dict[str, str] = {}
        self.told = 0  # how many of them `news` has told
        self.backoff = Backoff(interval_s, MAX_BACKOFF_S)
        self.next_s = 0.0
        self.facts: object = None
        self.absent: object = getattr(collector, "absent", None)

    @property
    def every_s(self) -> float:
        """Minimum interval between its samples; 0: it is sampled at every tick."""
        every_s: float = getattr(self.collector, "every_s", 0.0)
        return every_s

    @property
    def has_news(self) -> bool:
        """Whether the collector reports facts or missing parts, or had impossible readings."""
        return bool(self.impossible) or hasattr(self.collector, "facts") or hasattr(self.collector, "absent")

    def drop(self, key: str, reason: str) -> None:
        """Count a value that was left out."""
        self.dropped += 1
        if len(self.impossible) < MAX_REASONS:
            self.impossible.setdefault(key, reason)

    def state(self) -> dict[str, str]:
        """Return its state, with the reasons for missing parts and impossible readings."""
        return with_reasons(state(self.collector), self.impossible)


class Sampler:
    """Samples all sources that are due.

    Most sources are sampled at every tick. Those with an `every_s`, and those that fail, are skipped until
    they are due: caches are cold at every tick, so the code and data that a sample does not touch save time.

    Args:
        collectors: those that found their source on this machine.
        interval_s: the sampling interval. A failing source is retried after 1, 2, 4 … intervals, at most 5
            minutes.
        report: called with (source name, error) when a source fails, and with (source name, None) when it
            works again.
        gpu_ids: keep only the keys `gpu.{i}.…` of these GPUs; None: all.
        baselines: raw totals at the run's first sample, from a previous monitor of this run that died.

    Attributes:
        events: events reported by collectors; the caller writes them and empties this.
        missed_ticks: counted by the caller.
        news_sources: the sources of the last sample that can have news; see `news`.
    """

    def __init__(
        self,
        collectors: Iterable[Collector],
        interval_s: float,
        report: Callable[[str, Exception | None], None],
        gpu_ids: Iterable[int] | None = None,
        baselines: Mapping[str, float] | None = None,
    ) -> None:
        self._tick = Tick(0.0)
        self.sources = [SampledSource(collector, interval_s) for collector in collectors]
        self.interval_s = interval_s
        self.report = report
        self.baselines = Baselines(baselines)
        self._plausibility = Plausibility(self.baselines)
        self.events: list[dict[str, object]] = []
        self.missed_ticks = 0
        self._always: list[SampledSource] = []  # sampled at every tick
        self._always_with_news: list[SampledSource] = []
        self._others_due_s = float("-inf")  # when the first of the other sources is due
        self.news_sources = self.sources
        self._gpu_ids = None if gpu_ids is None else frozenset(str(i) for i in gpu_ids)
        self._statm: PseudoFile | None = open_if_there("/proc/self/statm")
        self._cpu_ns = time.process_time_ns()
        self._mono_s = 0.0
        self._report_at_s = 0.0

    def sample(self, mono_s: float) -> dict[str, float]:
        """Sample the sources that are due. Returns key → value; counters start at the run's first sample."""
        tick = self._tick
        tick.mono_s = mono_s
        values = tick.gauges = {}
        tick.counters = {}
        if mono_s < self._others_due_s:
            sources, self.news_sources = self._always, self._always_with_news
        else:
            sources = self._due(mono_s)
        timed = mono_s >= self._report_at_s
        for source in sources:
            began_ns = time.perf_counter_ns() if timed else 0
            try:
                source.sample(tick)
            except Exception as error:  # noqa: BLE001 - a failing source must not affect the others
                self._note_failure(source, mono_s, error)
            else:
                if source.backoff.failures:
                    self._note_recovery(source)
            if timed:
                values[source.ms_key] = (time.perf_counter_ns() - began_ns) / 1e6
            source.gauges_end = len(values)
            source.counters_end = len(tick.counters)
        faults = self._plausibility.check(tick)
        if faults:
            self._drop(faults, sources)
        if timed:
            self._report_at_s = mono_s + SELF_REPORT_S
            self._report_itself(values)
        self.baselines.add(tick.counters, values)
        if self.baselines.fallen:
            self._report_fallen()
        if tick.events:
            self.events += tick.events
            tick.events = []
        if self._gpu_ids is not None:
            self._drop_other_gpus(values)
        self._measure(values, mono_s)
        return values

    def _measure(self, values: dict[str, float], mono_s: float) -> None:
        """Add the CPU time since the last call: of a sample and everything around it."""
        cpu_ns = time.process_time_ns()
        if self._mono_s:
            used_ms = (cpu_ns - self._cpu_ns) / 1e6
            elapsed_s = mono_s - self._mono_s
            values["monitor.sampleMs"] = used_ms
            values["monitor.cpuPercent"] = used_ms / 10.0 / (elapsed_s if elapsed_s > 1e-3 else 1e-3)
        self._cpu_ns = cpu_ns
        self._mono_s = mono_s

    def _due(self, mono_s: float) -> list[SampledSource]:
        """Return the sources that are due, in order. Determines when the others are due."""
        due = [source for source in self.sources if source.next_s <= mono_s]
        for source in due:
            source.next_s = mono_s + source.every_s * EARLY
        others = [source for source in self.sources if source.next_s > mono_s]
        self._others_due_s = min([source.next_s for source in others], default=float("inf"))
        self._always = [source for source in self.sources if source.next_s <= mono_s]
        self._always_with_news = [source for source in self._always if source.has_news]
        self.news_sources = [source for source in due if source.has_news]
        return due

    def _drop(self, faults: Iterable[Fault], sources: Iterable[SampledSource]) -> None:
        """Count values that were left out for the sources that wrote them."""
        for fault in faults:
            for source in sources:
                if fault.position < (source.counters_end if fault.is_counter else source.gauges_end):
                    source.drop(fault.key, fault.reason)
                    if source not in self.news_sources:
                        self.news_sources = [*self.news_sources, source]
                    break

    def _report_fallen(self) -> None:
        """Report counters that fell for the first time."""
        fallen = self.baselines.fallen
        self.baselines.fallen = {}
        (key, (before, after)), *others = fallen.items()
        more = f" (and {len(others)} more)" if others else ""
        text = f"the total of {key}{more} fell from {before:g} to {after:g}; the counter goes on from there"
        keys = list(fallen)[:MAX_REASONS]
        self.events.append({"name": "counter_reset", "level": "info", "text": text, "keys": keys})

    def _note_failure(self, source: SampledSource, mono_s: float, error: Exception) -> None:
        source.failures += 1
        source.backoff.note_failure(mono_s)
        source.next_s = source.backoff.until_s
        self._others_due_s = float("-inf")
        if source.backoff.failures == 1:
            self.report(source.name, error)

    def _note_recovery(self, source: SampledSource) -> None:
        source.backoff.note_success()
        source.absent, source.told = None, -1  # report its missing parts again, after the recovery
        self.report(source.name, None)

    def news(self) -> dict[str, dict[str, object]]:
        """Facts and states of the collectors of the last sample that have changed since the last call.

        `machine` has facts about their devices, `sources` the states of those whose missing parts have
        changed. A collector reports a change by assigning a new object to `facts` or `absent`.
        """
        news: dict[str, dict[str, object]] = {}
        for source in self.news_sources:
            facts = getattr(source.collector, "facts", None)
            if facts is not source.facts:
                source.facts = facts
                news.setdefault("machine", {}).update(facts or {})
            absent = getattr(source.collector, "absent", None)
            if absent is not source.absent or len(source.impossible) != source.told:
                source.absent = absent
                source.told = len(source.impossible)
                news.setdefault("sources", {})[source.name] = source.state()
        return news

    def close(self) -> None:
        """Close the collectors, which may have threads and child processes."""
        for source in self.sources:
            close(source.collector, self.report)

    def _report_itself(self, values: dict[str, float]) -> None:
        """Add the failures of each source and the monitor's memory to the values."""
        for source in self.sources:
            values[source.failures_key] = float(source.failures)
            if source.dropped:
                values[source.dropped_key] = float(source.dropped)
        values["monitor.missedTicks"] = float(self.missed_ticks)
        if self._statm is not None:
            values["monitor.rssMB"] = int(self._statm.read().split()[1]) * PAGE / MIB

    def _drop_other_gpus(self, values: dict[str, float]) -> None:
        gpu_ids = self._gpu_ids or frozenset()
        for key in [key for key in values if key.startswith("gpu.")]:
            parts = key.split(".", 3)
            index = parts[2] if parts[1] == "process" else parts[1]
            if index not in gpu_ids:
                del values[key]


class Schedule:
    """Ticks on an absolute grid, t0 + k · interval.

    After a delay, one tick is taken; the others are skipped and counted.

    Example:
        >>> schedule = Schedule(100.0, 1.0)
        >>> schedule.advance(100.0), schedule.next_s
        (0, 101.0)
        >>> schedule.advance(103.2), schedule.next_s
        (2, 104.0)
    """

    __slots__ = ("_count", "_t0_s", "interval_s", "next_s")

    def __init__(self, t0_s: float, interval_s: float) -> None:
        self._t0_s = t0_s
        self._count = 0  # number of the next tick
        self.interval_s = interval_s
        self.next_s = t0_s

    def advance(self, now_s: float) -> int:
        """Advance to the first tick after `now_s`.

        Returns how many ticks before the current one were missed.
        """
        self._count += 1
        self.next_s = self._t0_s + self._count * self.interval_s
        if now_s < self.next_s:
            return 0
        following = int((now_s - self._t0_s) / self.interval_s + 1e-6) + 1
        missed = max(following - self._count, 0)
        self._count += missed
        self.next_s = self._t0_s + self._count * self.interval_s
        return missed
