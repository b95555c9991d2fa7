"""One tick after another: asks every collector, keeps baselines and backoff, measures itself."""

from __future__ import annotations

import time

from runvitals.backoff import Backoff
from runvitals.collectors.base import MIB, PAGE, PseudoFile, Tick, open_if_there
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
        >>> baselines = Baselines()
        >>> [baselines.since_start("disk.in", total) for total in (100.0, 130.0, 5.0, 15.0)]
        [0.0, 30.0, nan, 40.0]
    """

    __slots__ = ("_base", "_last", "fresh")

    def __init__(self, base: Mapping[str, float] | None = None) -> None:
        self._base: dict[str, float] = dict(base or {})
        self._last: dict[str, float] = {}
        # Baselines the journal does not hold yet: the caller writes them down and empties this. Inherited
        # ones are among them at first, so that each monitor's file is enough for the next.
        self.fresh: dict[str, float] = dict(self._base)

    def since_start(self, key: str, total: float) -> float:
        base = self._base.get(key)
        if base is None:
            base = self._base[key] = self.fresh[key] = total
        last = self._last.get(key, base)
        self._last[key] = total
        if total < last:
            self._base[key] = total - (last - base)
            return NAN
        return total - base


class Source:
    """A collector with its record: how often it failed, when it is asked again, what it has told."""

    __slots__ = (
        "absent", "backoff", "collector", "facts", "failures", "failures_key", "ms_key", "name", "retry_at_s",
    )  # fmt: skip

    def __init__(self, collector: Collector, interval_s: float) -> None:
        self.collector = collector
        self.name = collector.name
        self.ms_key = f"monitor.{collector.name}.ms"
        self.failures_key = f"monitor.{collector.name}.failures"
        self.failures = 0
        self.backoff = Backoff(interval_s, LONGEST_BACKOFF_S)
        self.retry_at_s = self.backoff.until_s
        self.facts: object = None
        self.absent: object = getattr(collector, "absent", None)


class Sampler:
    """Samples all sources at one moment.

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
        self._gpu_ids = None if gpu_ids is None else frozenset(str(i) for i in gpu_ids)
        self._statm: PseudoFile | None = open_if_there("/proc/self/statm")
        self._cpu_ns = time.process_time_ns()
        self._mono_s = 0.0
        self._report_at_s = 0.0

    def sample(self, mono_s: float) -> dict[str, float]:
        """Every reading of this moment: canonical key → value, counters since the run's first sample."""
        tick = Tick(mono_s)
        values = tick.gauges
        if mono_s >= self._report_at_s:
            self._report_at_s = mono_s + SELF_REPORT_S
            self._ask_and_time(tick)
        else:
            for source in self.sources:
                if source.retry_at_s <= mono_s:
                    self._ask(source, tick)
        since_start = self.baselines.since_start
        for key, total in tick.counters.items():
            # What is no number is refused, and said so, where the sample is written.
            values[key] = since_start(key, total) if isinstance(total, (float, int)) else total
        self.events += tick.events
        if self._gpu_ids is not None:
            self._drop_other_gpus(values)
        self._measure_itself(mono_s, values)
        return values

    def news(self) -> dict[str, dict[str, object]]:
        """What collectors know since they were last asked for it: `machine`, facts about their devices, and
        `sources`, the states of those that have found parts of them missing, or there.

        A collector tells of a change by another object in the place of `facts` or `absent`.
        """
        told: dict[str, dict[str, object]] = {}
        for source in self.sources:
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

    def _ask(self, source: Source, tick: Tick) -> None:
        try:
            source.collector.sample(tick)
        except Exception as error:  # noqa: BLE001 - one broken source, a third party's perhaps, must not end the others
            source.failures += 1
            source.backoff.failed(tick.mono_s)
            source.retry_at_s = source.backoff.until_s
            if source.backoff.failures == 1:
                self.report(source.name, error)
        else:
            if source.backoff.failures:
                source.backoff.worked()
                source.retry_at_s = source.backoff.until_s
                source.absent = None  # what parts it misses is told again, after "it works"
                self.report(source.name, None)

    def _ask_and_time(self, tick: Tick) -> None:
        """Ask every source and write what each one took, how often it has failed, and how big we are."""
        values = tick.gauges
        for source in self.sources:
            if source.retry_at_s <= tick.mono_s:
                began_ns = time.perf_counter_ns()
                self._ask(source, tick)
                values[source.ms_key] = (time.perf_counter_ns() - began_ns) / 1e6
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

    def _measure_itself(self, mono_s: float, values: dict[str, float]) -> None:
        """CPU time from the end of the last sample's bookkeeping to here: the sample and everything around
        it.
        """
        cpu_ns = time.process_time_ns()
        if self._mono_s:
            values["monitor.sampleMs"] = (cpu_ns - self._cpu_ns) / 1e6
            values["monitor.cpuPercent"] = (cpu_ns - self._cpu_ns) / 1e7 / max(mono_s - self._mono_s, 1e-3)
        self._cpu_ns = cpu_ns
        self._mono_s = mono_s


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

    __slots__ = ("_t0_s", "interval_s", "next_s")

    def __init__(self, t0_s: float, interval_s: float) -> None:
        self._t0_s = t0_s
        self.interval_s = interval_s
        self.next_s = t0_s

    def advance(self, now_s: float) -> int:
        """Move past `now_s`; how many ticks were missed before the one taken now."""
        taken = round((self.next_s - self._t0_s) / self.interval_s)
        following = int((now_s - self._t0_s) / self.interval_s + 1e-6) + 1
        following = max(following, taken + 1)
        self.next_s = self._t0_s + following * self.interval_s
        return following - taken - 1
