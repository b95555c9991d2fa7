"""Reads this machine's metrics without a run, for `runvitals sample`, `top` and `doctor`."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from runvitals.monitoring.collectors import sources
from runvitals.monitoring.collectors.base import Scope, Tick
from runvitals.monitoring.collectors.selection import Selection
from runvitals.monitoring.monitor.baselines import Baselines
from runvitals.monitoring.monitor.plausibility import Plausibility, with_reasons
from runvitals.sdk.attachment import site_folders

if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Collector
    from runvitals.monitoring.collectors.sources import Sources

# Seconds between the two readings that rates and percentages need. With less, the CPU's 10 ms ticks are too
# coarse.
_BETWEEN_S = 0.5
# How long slow drivers and tools have for their first response.
_PATIENCE_S = 10.0
# Values not updated for this long, or for three readings, are no longer shown.
_STALE_S = 10.0


@dataclass(slots=True)
class MachineReading:
    """The values of all sources at one time.

    Attributes:
        time_ms: ms UTC.
        metrics: key → value; for counters the source's running total.
        states: source → `{"state": "on" | "absent" | "failing", "reason": …}`.
        machine: facts that sources report about their devices.
        counts: source → number of values.
        took_ms: source → duration of its last read.
    """

    time_ms: int = 0
    metrics: dict[str, float] = field(default_factory=dict)
    states: dict[str, dict[str, str]] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    took_ms: dict[str, float] = field(default_factory=dict)


def probe(values: Mapping[str, Any], interval_s: float) -> tuple[Sources, Selection]:
    """Probe the sources of this machine that the settings select, monitoring this process.

    Args:
        values: resolved settings.
        interval_s: seconds between two reads of the sources.
    """
    scope = Scope(
        values["host_root"], [os.getpid()], values["process_tree"], values["disk_paths"], interval_s, values
    )
    scope.whole_machine = True
    selection = Selection(values["collectors"])
    return sources.probe_all(scope, selection, site_folders()), selection


def read_once(values: Mapping[str, Any]) -> MachineReading:
    """Read all sources once. Takes 0.3 s, or up to 10 s if a driver or tool is slow to start.

    Example:
        >>> read_once(resolve({}, os.environ, os.getcwd())).metrics["memory_percent"]
        41.5
    """
    probed, selection = probe(values, _BETWEEN_S)
    reading = MachineReading()
    states: dict[str, dict[str, str]] = {}
    plausibility = Plausibility(Baselines())
    until_s = time.monotonic() + _PATIENCE_S
    readings = 0
    while readings < 2 or (_is_pending(probed.collectors) and time.monotonic() < until_s):
        time.sleep(_BETWEEN_S / 2)
        # What a source left out stays absent if it has nothing new the next time.
        left_out = {name: state for name, state in states.items() if state["state"] == "on"}
        states = {**left_out, **_sample(probed.collectors, reading, plausibility)}
        readings += 1
    reading.time_ms = time.time_ns() // 1_000_000
    reading.states = {**probed.states(selection), **states}
    for collector in probed.collectors:
        reading.machine.update(getattr(collector, "facts", None) or {})
        sources.close(collector, _ignore)
    return reading


def watch(values: Mapping[str, Any], interval_s: float) -> Iterator[MachineReading]:
    """Read all sources repeatedly. Values of sources that update less often are carried over.

    Args:
        values: resolved settings.
        interval_s: seconds between readings. The first one comes after half a second.
    """
    probed, selection = probe(values, interval_s)
    seen_s: dict[str, float] = {}
    metrics: dict[str, float] = {}
    plausibility = Plausibility(Baselines())
    next_s = time.monotonic()
    try:
        for number in itertools.count():
            time.sleep(max(0.0, next_s - time.monotonic()))
            now_s = time.monotonic()
            reading = MachineReading()
            states = _sample(probed.collectors, reading, plausibility)
            metrics.update(reading.metrics)
            seen_s.update(dict.fromkeys(reading.metrics, now_s))
            if not number:  # rates and percentages need a second reading
                next_s = now_s + min(_BETWEEN_S, interval_s)
                continue
            next_s = max(next_s + interval_s, now_s)
            oldest_s = now_s - max(_STALE_S, 3.0 * interval_s)
            metrics = {key: value for key, value in metrics.items() if seen_s[key] >= oldest_s}
            reading.metrics = dict(metrics)
            reading.time_ms = time.time_ns() // 1_000_000
            reading.states = {**probed.states(selection), **states}
            for collector in probed.collectors:
                reading.machine.update(getattr(collector, "facts", None) or {})
            yield reading
    finally:
        for collector in probed.collectors:
            sources.close(collector, _ignore)


def _sample(
    collectors: Iterable[Collector], reading: MachineReading, plausibility: Plausibility
) -> dict[str, dict[str, str]]:
    """Read all collectors into `reading`.

    Returns:
        The states of those that failed, or of which impossible values were left out.
    """
    states = {}
    for collector in collectors:
        tick = Tick(time.monotonic())
        try:
            collector.sample(tick)
        except Exception as error:  # noqa: BLE001 - one failing source must not hide the others; its reason is shown
            reason = f"{type(error).__name__}: {error}"
            states[collector.name] = {"state": "failing", "reason": reason}
        faults = plausibility.check(tick)
        if faults:
            reasons = {fault.key: fault.reason for fault in faults}
            states.setdefault(collector.name, with_reasons(sources.state(collector), reasons))
        read = {key: value for key, value in (tick.gauges | tick.counters).items() if _is_number(value)}
        reading.took_ms[collector.name] = (time.monotonic() - tick.mono_s) * 1e3
        reading.counts[collector.name] = max(len(read), reading.counts.get(collector.name, 0))
        reading.metrics.update(read)
    return states


def _is_pending(collectors: Iterable[Collector]) -> bool:
    return any(getattr(collector, "pending", False) for collector in collectors)


def _is_number(value: object) -> bool:
    """Return whether a value is a finite number: collectors from other packages may return anything."""
    return isinstance(value, (int, float)) and math.isfinite(value)


def _ignore(name: str, error: Exception | None) -> None:
    """Ignore a source that failed to release resources, which end with this process."""
