"""Readings of this machine without a run: what `runvitals sample`, `top` and `doctor` begin with."""

from __future__ import annotations

import itertools
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from runvitals.collectors import sources
from runvitals.collectors.base import Scope, Tick
from runvitals.collectors.selection import Selection

if TYPE_CHECKING:
    from runvitals.collectors.base import Collector
    from runvitals.collectors.sources import Sources

# Between the two readings that rates and percentages need; shorter than this, a CPU's 10 ms ticks are too
# coarse.
_BETWEEN_S = 0.5
# How long drivers and tools that are slow to start have for their first answer.
_PATIENCE_S = 10.0
# A value that its source has not told again for so long, or for three readings, is no longer shown.
_STALE_S = 10.0


@dataclass(slots=True)
class Reading:
    """One reading of everything.

    Attributes:
        time_ms: when, UTC.
        metrics: key → value; of counters the total so far, as the source counts.
        states: what each source has to say: `{"state": "on" | "absent" | "failing", "reason": …}`.
        machine: what sources tell of their devices.
        counts: source → how many values it gave.
        took_ms: source → how long its last answer took.
    """

    time_ms: int = 0
    metrics: dict[str, float] = field(default_factory=dict)
    states: dict[str, dict[str, str]] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    took_ms: dict[str, float] = field(default_factory=dict)


def probe(values: Mapping[str, Any], interval_s: float) -> tuple[Sources, Selection]:
    """The sources of this machine, by the settings, with this very process as the one that is watched.

    Args:
        values: resolved settings.
        interval_s: how often they are going to be asked.
    """
    scope = Scope(
        values["host_root"], [os.getpid()], values["process_tree"], values["disk_paths"], interval_s, values
    )
    scope.whole_machine = True
    selection = Selection(values["collectors"])
    site_folders = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    return sources.probe_all(scope, selection, site_folders), selection


def read_once(values: Mapping[str, Any]) -> Reading:
    """One reading of everything: 0.3 s, at most 10 s where a driver or a tool is slow to start.

    Example:
        >>> read_once(resolve({}, os.environ, os.getcwd())).metrics["memory_percent"]
        41.5
    """
    found, selection = probe(values, _BETWEEN_S)
    reading = Reading()
    failures: dict[str, dict[str, str]] = {}
    until_s = time.monotonic() + _PATIENCE_S
    readings = 0
    while readings < 2 or (_is_pending(found.collectors) and time.monotonic() < until_s):
        time.sleep(_BETWEEN_S / 2)
        failures = _sample(found.collectors, reading)
        readings += 1
    reading.time_ms = time.time_ns() // 1_000_000
    reading.states = {**found.states(selection), **failures}
    for collector in found.collectors:
        reading.machine.update(getattr(collector, "facts", None) or {})
        sources.close(collector, _shrug)
    return reading


def watch(values: Mapping[str, Any], interval_s: float) -> Iterator[Reading]:
    """One reading after another, each with what was told lately: tools answer less often than they are shown.

    Args:
        values: resolved settings.
        interval_s: seconds from one to the next. The first one comes after half a second.
    """
    found, selection = probe(values, interval_s)
    seen_s: dict[str, float] = {}
    metrics: dict[str, float] = {}
    next_s = time.monotonic()
    try:
        for number in itertools.count():
            time.sleep(max(0.0, next_s - time.monotonic()))
            now_s = time.monotonic()
            reading = Reading()
            failures = _sample(found.collectors, reading)
            metrics.update(reading.metrics)
            seen_s.update(dict.fromkeys(reading.metrics, now_s))
            if not number:  # without a second one there are no rates and percentages
                next_s = now_s + min(_BETWEEN_S, interval_s)
                continue
            next_s = max(next_s + interval_s, now_s)
            oldest_s = now_s - max(_STALE_S, 3.0 * interval_s)
            metrics = {key: value for key, value in metrics.items() if seen_s[key] >= oldest_s}
            reading.metrics = dict(metrics)
            reading.time_ms = time.time_ns() // 1_000_000
            reading.states = {**found.states(selection), **failures}
            for collector in found.collectors:
                reading.machine.update(getattr(collector, "facts", None) or {})
            yield reading
    finally:
        for collector in found.collectors:
            sources.close(collector, _shrug)


def _sample(collectors: Iterable[Collector], reading: Reading) -> dict[str, dict[str, str]]:
    """One reading of all; the states of those that failed."""
    failures = {}
    for collector in collectors:
        tick = Tick(time.monotonic())
        try:
            collector.sample(tick)
        except Exception as error:  # noqa: BLE001 - one broken source must not hide the others; it is shown with its reason
            reason = f"{type(error).__name__}: {error}"
            failures[collector.name] = {"state": "failing", "reason": reason}
        read = {key: value for key, value in (tick.gauges | tick.counters).items() if _is_number(value)}
        reading.took_ms[collector.name] = (time.monotonic() - tick.mono_s) * 1e3
        reading.counts[collector.name] = max(len(read), reading.counts.get(collector.name, 0))
        reading.metrics.update(read)
    return failures


def _is_pending(collectors: Iterable[Collector]) -> bool:
    return any(getattr(collector, "pending", False) for collector in collectors)


def _is_number(value: object) -> bool:
    """Sources of other packages may have put in anything."""
    return isinstance(value, (int, float)) and math.isfinite(value)


def _shrug(name: str, error: Exception | None) -> None:
    """The reading is taken: what a source could not give back ends with this process."""
