"""Memory of the run's processes and of devices that grows without end."""

from __future__ import annotations

from dataclasses import replace

from runvitals.findings.devices import Device
from runvitals.findings.finding import Severity
from runvitals.findings.observed_run import ObservedHost, ObservedRun
from runvitals.findings.persistence import recurrences
from runvitals.findings.rule import (
    Abstention,
    FindingRule,
    Judgement,
    Occurrence,
    duration_text,
    evidence,
    names_of,
)
from runvitals.findings.rules.memory_use import amount_text, limit_mib
from runvitals.findings.rules.out_of_memory import OUT_OF_MEMORY_NEAR, SWAPPING
from runvitals.findings.spans import Span, median
from runvitals.findings.trends import Growth, GrowthLimits, end_text, first_of_training, growths_of

KEYS = ("proc.memory.rssMB", "cgroup.memory.workingSetMB")
OF_HOST = "memory_percent"
"""Where nothing tells what the run's processes use."""
MIN_HOST_GROWTH = 3.0
"""Percent."""
MIN_GROWTH_MIB, MIN_GROWTH_SHARE, MIN_DEVICE_GROWTH = 256.0, 0.03, 5.0
"""MiB; of the limit; percent of a device's memory."""
LEVEL, IMMINENT = 0.6, 0.75
"""Of the memory: growth of an hour that has not come so far may still be a cache that fills; from here on
twenty minutes of growth are enough, if the rest is used up within the hour."""
MAX_HOSTS = 256


def judge_growth(run: ObservedRun) -> Judgement:
    """Find memory that grows without end: of the run's processes, and of devices."""
    hosts = [host for host in run.hosts if any(host.columns.has(key) for key in (*KEYS, OF_HOST))]
    devices = [device for device in run.devices if device.has("memory") and not device.shares_host_memory]
    if not hosts and not devices:
        return Abstention("the memory of the run's processes is unknown", KEYS)
    first = first_of_training(run)
    growing: list[tuple[tuple[ObservedHost, str, Growth], list[Span]]] = []
    for host in hosts[:MAX_HOSTS]:
        key = next(key for key in (*KEYS, OF_HOST) if host.columns.has(key))
        growing += [((host, key, each), [each.span]) for each in _growths(run, host, key, first)]
    occurrences = [
        _host_growth(run, time, [each for each, _ in members]) for time, members in recurrences(run, growing)
    ]
    on_devices: list[tuple[tuple[Device, Growth], list[Span]]] = []
    limits = GrowthLimits(MIN_DEVICE_GROWTH, 100.0, 100 * LEVEL)
    for device in devices:
        growths = growths_of(
            device.mean("memory"), run.windows, limits, first=first, has_ended=run.ended_ms is not None
        )
        on_devices += [((device, each), [each.span]) for each in growths]
    for time, members in recurrences(run, on_devices):
        occurrences.append(_device_growth(run, time, [each for each, _ in members]))
    return occurrences


def _growths(run: ObservedRun, host: ObservedHost, key: str, first: int) -> list[Growth]:
    """The stretches in which the memory of a host's processes grew; the rest is what all of it leaves."""
    column, total = host.columns.mean(key), limit_mib(host)
    has_ended = run.ended_ms is not None
    if key == OF_HOST:
        limits = GrowthLimits(MIN_HOST_GROWTH, 100.0, 100 * LEVEL, 100 * IMMINENT)
        return growths_of(column, run.windows, limits, first=first, has_ended=has_ended)
    start = median(column, slice(first, first + 5))
    least = max(MIN_GROWTH_MIB, MIN_GROWTH_SHARE * (total or 0.0), 0.1 * start if start > 0 else 0.0)
    limits = GrowthLimits(least, total, LEVEL * (total or 0.0), IMMINENT * total if total else None)
    growths = growths_of(column, run.windows, limits, first=first, has_ended=has_ended)
    if total is None:
        return growths
    used = host.columns.mean("memory_percent") / 100 * total
    result = []
    for growth in growths:
        others = median(used - column, slice(max(growth.span.last - 5, 0), growth.span.last + 1))
        taken_s = max(others, 0.0) / max(growth.per_s, 1e-9) if others > 0 else 0.0
        result.append(replace(growth, left_s=max((growth.left_s or 0.0) - taken_s, 0.0)))
    return result


def _host_growth(
    run: ObservedRun, time: list[Span], growing: list[tuple[ObservedHost, str, Growth]]
) -> Occurrence:
    """Report that the memory of hosts grows, and when that of the first is used up."""
    host, key, growth = min(growing, key=lambda each: (not each[2].is_open, each[2].left_s or 1e12))
    rate, whose = amount_text(growth.per_s * 3600), f"the run's processes on {host.name}"
    if key == OF_HOST:
        rate, whose = f"{growth.per_s * 3600:.1f} % of it", f"{host.name}, with all its processes,"
    return Occurrence(
        _severity(growth),
        "possible" if key == OF_HOST else "likely",
        time,
        f"The memory of {whose} {_verb(growth)} by {rate} an hour{_end(run, growth, 'memory')}.",
        evidence(
            host.columns,
            key,
            [Span(max(growth.span.last - 5, 0), growth.span.last)],
            median(host.columns.mean(key), slice(growth.span.first, growth.span.first + 5)),
        ),
        hosts=[each.name for each, *_ in growing],
    )


def _severity(growth: Growth) -> Severity:
    """Return how bad growth is: what stopped by itself, before the memory was used up, did no harm."""
    if not growth.is_open:
        return "info"
    return "critical" if growth.left_s is not None and growth.left_s < 3600 else "warning"


def _verb(growth: Growth) -> str:
    return "grows" if growth.is_open else "grew"


def _end(run: ObservedRun, growth: Growth, what: str) -> str:
    """Write when the rest is used up, or for how long it grew."""
    if not growth.is_open:
        return f" for {duration_text(len(growth.span) * run.windows.width_s)}, and stopped"
    if growth.left_s is None:
        return ""
    if run.ended_ms is None:
        return f"; the {what} is used up {end_text(run, growth.left_s)}"
    if growth.left_s > 60:
        return f"; the {what} would have been used up {duration_text(growth.left_s)} later"
    return "; then none was left"


def _device_growth(run: ObservedRun, time: list[Span], growing: list[tuple[Device, Growth]]) -> Occurrence:
    """Report that the memory of devices grows in a line; an allocator keeps what it once had."""
    device, growth = min(growing, key=lambda each: (not each[1].is_open, each[1].left_s or 1e12))
    return Occurrence(
        "warning" if growth.is_open else "info",
        "likely",
        time,
        f"The memory of {names_of([each for each, _ in growing], run)} {_verb(growth)} steadily, by "
        f"{growth.per_s * 3600:.1f} % of it an hour{_end(run, growth, 'memory')}.",
        evidence(
            device.host,
            device.key("memory"),
            [Span(max(growth.span.last - 5, 0), growth.span.last)],
            median(device.mean("memory"), slice(growth.span.first, growth.span.first + 5)),
        ),
        [each for each, _ in growing],
    )


RULES = (
    FindingRule(
        "memory_growth",
        "Memory grows without end",
        "The memory of the run's processes grows steadily: something is kept that is not needed any more.",
        "Stretches of one to 24 hours are looked at, after the first ten minutes of work. In one of them "
        "memory rises by 3 % of the limit and 256 MiB or more, in each quarter about as much, not slower "
        "than before, and by twice what was given back at once: a saw is judged over several of its teeth. "
        "It is reported once 60 % of the memory are used or it has grown for 160 minutes (a data set that "
        "fills a cache does so in its first epoch), if the end is within 48 hours and eight times the "
        "stretch; from 75 % on, a stretch of twenty minutes is enough if the end is within the hour. "
        "Where the memory of the run's processes is unknown, that of the whole host is judged, and others "
        "may use it.",
        "Look for tensors kept with their graph (loss without .item()), lists that grow in the training "
        "loop, Python objects copied by "
        "data-loader workers (use arrays), caches without a bound.",
        ("proc.memory.rssMB", "cgroup.memory.workingSetMB"),
        judge_growth,
        order=3,
    ),
    SWAPPING,
    OUT_OF_MEMORY_NEAR,
)
