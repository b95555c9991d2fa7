"""One tick after another: asks every collector, keeps baselines and backoff, measures itself."""

from __future__ import annotations

import time

from runvitals.backoff import Backoff
from runvitals.collectors.base import EARLY, MIB, PAGE, PseudoFile, Tick, open_if_there
from runvitals.collectors.sources import close, state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from runvitals.collectors.base import Collector

NAN = float("nan")
LONGEST_BACKOFF_S = 300.0
# How often the cost and the failures of each single source are written; every tick would double a small
# sample.
SELF_REPORT_S = 10.0


class Baselines:
    """Turns sources' running totals into counters that start at 0 with the run.

    A total that falls (a driver was reloaded, an interface re-created) has been reset: its value at that tick
    is NaN, a gap, and it goes on from where it was.

    Example:
        >>> baselines, values = Baselines(), {}
        >>> baselines.add({"disk.in": 100.0}, values)
        >>> baselines.add({"disk.in": 130.0}, values)
        >>> values
        {'disk.in': 30.0}
    """

    __slots__ = ("_known", "fresh")

    def __init__(self, base: Mapping[str, float] | None = None) -> None:
        # Key -> [what is subtracted, the last total]. What was counted while no monitor looked counts too.
        self._known: dict[str, list[float]] = {key: [total, total] for key, total in (base or {}).items()}
        # Baselines the journal does not hold yet: the caller writes them down and empties this. Inherited
        # ones are among them at first, so that each monitor's file is enough for the next.
        self.fresh: dict[str, float] = dict(base or {})

    def add(self, totals: Mapping[str, float], values: dict[str, float]) -> None:
        """Put each total, counted since the run's start, among the values."""
        known = self._known
        for key, total in totals.items():
            if not isinstance(total, (float, int)):
                values[key] = total  # refused, and reported, where the sample is written
                continue
            entry = known.get(key)
            if entry is None:
                entry = known[key] = [total, total]
                self.fresh[key] = total
            base, last = entry
            entry[1] = total
            if total < last:
                entry[0] = total - (last - base)
                values[key] = NAN
            else:
                values[key] = total - base


class Source:
    """A collector with its record: how often it failed, when it is asked again, what it has told."""

    __slots__ = (
        "absent", "backoff", "collector", "facts", "failures", "failures_key", "ms_key", "name", "next_s",
        "sample",
    )  # fmt: skip

    def __init__(self, collector: Collector, interval_s: float) -> None:
        self.collector = collector
        self.name = collector.name
        self.sample = collector.sample
        self.ms_key = f"monitor.{collector.name}.ms"
        self.failures_key = f"monitor.{collector.name}.failures"
        self.failures = 0
        self.backoff = Backoff(interval_s, LONGEST_BACKOFF_S)
        self.next_s = 0.0
        self.facts: object = None
        self.absent: object = getattr(collector, "absent", None)

    @property
    def every_s(self) -> float:
        """How often it is asked; 0 for at every sample."""
        every_s: float = getattr(self.collector, "every_s", 0.0)
        return every_s

    @property
    def tells(self) -> bool:
        """Whether it can have news."""
        return hasattr(self.collector, "facts") or hasattr(self.collector, "absent")


class Sampler:
    """Samples all sources at one moment.

    Most sources are asked at every sample. Those that name an `every_s`, and those that fail, wait for their
    turn: the processor is cold at every sample, so code and data that it need not touch are what saves time.

    Args:
        collectors: what was found on this machine.
        interval_s: the sampling interval; a failing source is left alone for 1, 2, 4 … intervals, at most 5
            minutes, and then asked again.
        report: called with (source name, error or None): None when a source that failed works again.
        gpu_ids: of keys `gpu.{i}.…` keep only those indices; None keeps all.
        baselines: raw totals at the run's first sample, from a monitor of this run that died; else none.
    """

    def __init__(
        self,
        collectors: Iterable[Collector],
        interval_s: float,
        report: Callable[[str, Exception | None], None],
        gpu_ids: Iterable[int] | None = None,
        baselines: Mapping[str, float] | None = None,
    ) -> None:
        self.sources = [Source(collector, interval_s) for collector in collectors]
        self.interval_s = interval_s
        self.report = report
        self.baselines = Baselines(baselines)
        # What happened, as the sources tell; the caller writes it down and empties this.
        self.events: list[dict[str, object]] = []
        self.missed_ticks = 0
        self._always: list[Source] = []  # asked at every sample
        self._turn_s = float("-inf")  # when the first of the others is due
        # Those that can have news, of the sources asked at every sample and of those asked at the last one.
        self._always_tell: list[Source] = []
        self.tell = self.sources
        self._gpu_ids = None if gpu_ids is None else frozenset(str(i) for i in gpu_ids)
        self._statm: PseudoFile | None = open_if_there("/proc/self/statm")
        self._cpu_ns = time.process_time_ns()
        self._mono_s = 0.0
        self._report_at_s = 0.0

    def sample(self, mono_s: float) -> dict[str, float]:
        """Every reading of this moment: canonical key → value, counters since the run's first sample."""
        tick = Tick(mono_s)
        values = tick.gauges
        if mono_s < self._turn_s:
            sources, self.tell = self._always, self._always_tell
        else:
            sources = self._due(mono_s)
        timed = mono_s >= self._report_at_s
        for source in sources:
            began_ns = time.perf_counter_ns() if timed else 0
            try:
                source.sample(tick)
            except Exception as error:  # noqa: BLE001 - one broken source, a third party's perhaps, must not end the others
                self._failed(source, mono_s, error)
            else:
                if source.backoff.failures:
                    self._recovered(source)
            if timed:
                values[source.ms_key] = (time.perf_counter_ns() - began_ns) / 1e6
        if timed:
            self._report_at_s = mono_s + SELF_REPORT_S
            self._report_itself(values)
        self.baselines.add(tick.counters, values)
        if tick.events:
            self.events += tick.events
        if self._gpu_ids is not None:
            self._drop_other_gpus(values)
        # CPU time since the last sample was at this point: the sample and everything around it.
        cpu_ns = time.process_time_ns()
        if self._mono_s:
            values["monitor.sampleMs"] = (cpu_ns - self._cpu_ns) / 1e6
            values["monitor.cpuPercent"] = (cpu_ns - self._cpu_ns) / 1e7 / max(mono_s - self._mono_s, 1e-3)
        self._cpu_ns = cpu_ns
        self._mono_s = mono_s
        return values

    def _due(self, mono_s: float) -> list[Source]:
        """The sources whose turn it is, in order. Decides when those not asked at every sample are next."""
        due = [source for source in self.sources if source.next_s <= mono_s]
        for source in due:
            source.next_s = mono_s + source.every_s * EARLY
        others = [source for source in self.sources if source.next_s > mono_s]
        self._turn_s = min([source.next_s for source in others], default=float("inf"))
        self._always = [source for source in self.sources if source.next_s <= mono_s]
        self._always_tell = [source for source in self._always if source.tells]
        self.tell = [source for source in due if source.tells]
        return due

    def _failed(self, source: Source, mono_s: float, error: Exception) -> None:
        source.failures += 1
        source.backoff.failed(mono_s)
        source.next_s = source.backoff.until_s
        self._turn_s = float("-inf")
        if source.backoff.failures == 1:
            self.report(source.name, error)

    def _recovered(self, source: Source) -> None:
        source.backoff.worked()
        source.absent = None  # what parts it misses is told again, after "it works"
        self.report(source.name, None)

    def news(self) -> dict[str, dict[str, object]]:
        """What the collectors of the last sample have learnt since the last call.

        `machine` holds facts about their devices, `sources` the states of those that have found parts of
        them missing, or there. A change is reported by another object in place of `facts` or `absent`.
        """
        told: dict[str, dict[str, object]] = {}
        for source in self.tell:
            facts = getattr(source.collector, "facts", None)
            if facts is not source.facts:
                source.facts = facts
                told.setdefault("machine", {}).update(facts or {})
            absent = getattr(source.collector, "absent", None)
            if absent is not source.absent:
                source.absent = absent
                told.setdefault("sources", {})[source.name] = state(source.collector)
        return told

    def close(self) -> None:
        """Let the collectors give back what they hold: threads, child processes."""
        for source in self.sources:
            close(source.collector, self.report)

    def _report_itself(self, values: dict[str, float]) -> None:
        """How often each source has failed, and how big we are."""
        for source in self.sources:
            values[source.failures_key] = float(source.failures)
        values["monitor.missedTicks"] = float(self.missed_ticks)
        if self._statm is not None:
            values["monitor.rssMB"] = int(self._statm.read().split()[1]) * PAGE / MIB

    def _drop_other_gpus(self, values: dict[str, float]) -> None:
        kept = self._gpu_ids or frozenset()
        for key in [key for key in values if key.startswith("gpu.")]:
            parts = key.split(".", 3)
            index = parts[2] if parts[1] == "process" else parts[1]
            if index not in kept:
                del values[key]


class Schedule:
    """Ticks on an absolute clock: t0 + k · interval. A late tick is taken once; the ones it covers are
    skipped, and counted.

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
        self._count = 0  # of the next tick
        self.interval_s = interval_s
        self.next_s = t0_s

    def advance(self, now_s: float) -> int:
        """Move past `now_s`; how many ticks were missed before the one taken now."""
        self._count += 1
        self.next_s = self._t0_s + self._count * self.interval_s
        if now_s < self.next_s:
            return 0
        following = int((now_s - self._t0_s) / self.interval_s + 1e-6) + 1
        missed = max(following - self._count, 0)
        self._count += missed
        self.next_s = self._t0_s + self._count * self.interval_s
        return missed
