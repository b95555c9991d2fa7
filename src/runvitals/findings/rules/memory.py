"""Memory of hosts and containers: it grows, it is swapped, it runs out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from runvitals.findings.host_load import pressure
from runvitals.findings.observed_run import ObservedHost, ObservedRun
from runvitals.findings.rule import (
    Abstention,
    FindingRule,
    Judgement,
    Occurrence,
    duration_text,
    evidence,
    names_of,
    seconds_of,
)
from runvitals.findings.spans import Span, above, find_spans, known, median
from runvitals.findings.windows import Floats

FIT_POINTS = 120
NEAR, VERY_NEAR = 92.0, 97.0
"""Percent of the limit (TraceML: OOM close)."""
MIN_GROWTH_MIB, MIN_GROWTH_SHARE = 256.0, 0.03
HORIZON_S = 48 * 3600
ENOUGH_S = 45 * 60
"""Of growth are watched before an end that is far away is forecast."""
STRAIGHT = 0.75


@dataclass(frozen=True, slots=True)
class Trend:
    """A robust line through a column: the median of slopes, and how well it fits.

    Args:
        slope: per window.
        fit: 1 − median deviation ÷ half of the growth; 1 is a line.
        rises: how many of its quarters are above the one before, 0 to 3.
        first_slope, last_slope: of the first and last third, per window.
    """

    slope: float
    growth: float
    fit: float
    rises: int
    first_slope: float
    last_slope: float

    def is_straight(self, least: float) -> bool:
        """Whether the last third rises about as much as the first: what fills a cache gets flatter."""
        return self.last_slope >= least * max(self.slope, self.first_slope)


def trend_of(column: Floats, first: int) -> Trend | None:
    """Return the trend of a column from a window on (Theil–Sen); None with fewer than 8 values.

    https://en.wikipedia.org/wiki/Theil–Sen_estimator
    """
    places = np.flatnonzero(known(column))
    places = places[places >= first]
    if len(places) < 8:
        return None
    groups = np.array_split(places, min(FIT_POINTS, len(places)))
    x = np.array([group.mean() for group in groups])
    y = np.array([np.median(column[group]) for group in groups])
    slope = _theil_sen(x, y)
    offset = float(np.median(y - slope * x))
    deviation = float(np.median(np.abs(y - slope * x - offset)))
    growth = slope * (x[-1] - x[0])
    quarters = [float(np.median(part)) for part in np.array_split(y, 4)]
    third = len(x) // 3
    first_slope = _theil_sen(x[:third], y[:third]) if third >= 3 else slope
    last_slope = _theil_sen(x[-third:], y[-third:]) if third >= 3 else slope
    fit = 1 - deviation / (abs(growth) / 2) if growth else 0.0
    rises = sum(later > before for before, later in pairwise(quarters))
    return Trend(slope, growth, fit, rises, first_slope, last_slope)


def _theil_sen(x: Floats, y: Floats) -> float:
    rows, columns = np.triu_indices(len(x), 1)
    return float(np.median((y[columns] - y[rows]) / (x[columns] - x[rows])))


def _warm(run: ObservedRun) -> int:
    """Return the first window after a fifth of the run, half an hour at most, and after the first step."""
    warm = min(run.windows.count // 5, run.windows.number(1800))
    first = run.first_work or 0
    return min(max(warm, first + run.windows.number(60)), run.windows.count - 1)


def limit_mib(host: ObservedHost) -> float | None:
    """Return the MiB that the run may use: the container's limit, else all; None if unknown."""
    limit = host.columns.mean("cgroup.memory.limitMB")
    if known(limit).any():
        return float(np.nanmedian(limit))
    rss, percent = host.columns.mean("proc.memory.rssMB"), host.columns.mean("proc.memory.percent")
    with np.errstate(divide="ignore", invalid="ignore"):
        total = np.where(percent > 0.5, 100 * rss / percent, np.nan)
    if known(total).any():
        return float(np.nanmedian(total))
    memory = host.machine.get("memory")
    value = memory.get("total_bytes") if isinstance(memory, dict) else None
    return value / 2**20 if isinstance(value, int | float) and value > 0 else None


def judge_growth(run: ObservedRun) -> Judgement:
    """Find memory of the run's processes that grows without end."""
    keys = ("proc.memory.rssMB", "cgroup.memory.workingSetMB")
    hosts = [(host, key) for host in run.hosts for key in keys if host.columns.has(key)][:64]
    if not hosts:
        return Abstention("the memory of the run's processes is unknown", keys)
    if run.duration_ms < 5 * 60_000:
        return Abstention("the run is too short to tell growth from its start")
    grown = []
    judged: set[str] = set()
    for host, key in hosts:
        if host.name in judged:
            continue
        judged.add(host.name)
        first = _warm(run)
        column = host.columns.mean(key)
        trend = trend_of(column, first)
        if trend is None:
            continue
        total = limit_mib(host)
        start = median(column, slice(first, first + 5))
        least = max(MIN_GROWTH_MIB, MIN_GROWTH_SHARE * (total or 0), 0.1 * start)
        if trend.growth < least or trend.rises < 3 or trend.fit < 0.75 or not trend.is_straight(STRAIGHT):
            continue
        left_s = None
        if total is not None:
            now = median(column, slice(max(run.windows.count - 5, 0), None))
            used = now
            percent = host.columns.mean("memory_percent")
            if known(percent).any():
                used = max(now, median(percent, slice(max(run.windows.count - 5, 0), None)) / 100 * total)
            left_s = max(total - used, 0) / max(trend.last_slope, 1e-9) * run.windows.width_s
            observed_s = (run.windows.count - first) * run.windows.width_s
            if left_s > max(HORIZON_S, 3 * run.duration_ms / 1000):
                continue
            if observed_s < ENOUGH_S and left_s > 3 * observed_s:
                continue  # a start that is still filling caches looks like this
        grown.append((host, key, trend, first, left_s))
    if not grown:
        return _device_growth(run)
    host, key, trend, first, left_s = min(grown, key=lambda each: each[4] if each[4] is not None else 1e12)
    return _growth(run, host, key, trend, first, left_s, [each[0].name for each in grown])


def _growth(
    run: ObservedRun,
    host: ObservedHost,
    key: str,
    trend: Trend,
    first: int,
    left_s: float | None,
    hosts: list[str],
) -> list[Occurrence]:
    """Return that the memory of a host grows."""
    per_hour = trend.slope * 3600 / run.windows.width_s
    span = Span(first, run.windows.count - 1)
    end = ""
    if left_s is not None and run.ended_ms is None:
        end = f"; the memory is used up in {duration_text(left_s)}"
    elif left_s is not None:
        end = (
            f"; the memory would have been used up {duration_text(left_s)} later"
            if left_s > 60
            else "; then none was left"
        )
    return [
        Occurrence(
            "critical" if left_s is not None and left_s < 3600 else "warning",
            "likely",
            [span],
            f"The memory of the run's processes on {host.name} grows by {_amount(per_hour)} an hour{end}.",
            evidence(
                host.columns,
                key,
                [Span(max(run.windows.count - 5, 0), run.windows.count - 1)],
                median(host.columns.mean(key), slice(first, first + 5)),
            ),
            hosts=hosts,
        )
    ]


def _device_growth(run: ObservedRun) -> list[Occurrence]:
    """Find memory of devices that grows in a line; an allocator keeps what it once had."""
    first = _warm(run)
    for device in run.devices:
        used = device.mean("memory")
        trend = trend_of(used, first)
        if (
            trend is None
            or trend.growth < 5
            or trend.rises < 3
            or trend.fit < 0.85
            or not trend.is_straight(STRAIGHT)
        ):
            continue
        now = median(used, slice(max(run.windows.count - 5, 0), None))
        left_s = (100 - now) / trend.last_slope * run.windows.width_s
        if left_s > max(HORIZON_S, 3 * run.duration_ms / 1000):
            continue
        span = Span(first, run.windows.count - 1)
        return [
            Occurrence(
                "warning",
                "likely",
                [span],
                f"The memory of {names_of([device], run)} grows steadily, by "
                f"{trend.slope * 3600 / run.windows.width_s:.1f} % of it an hour; it is used up in "
                f"{duration_text(left_s)}.",
                evidence(
                    device.host,
                    device.key("memory"),
                    [Span(max(run.windows.count - 5, 0), run.windows.count - 1)],
                    median(used, slice(first, first + 5)),
                ),
                [device],
            )
        ]
    return []


def _amount(mib: float) -> str:
    return f"{mib / 1024:.1f} GiB" if mib >= 1024 else f"{mib:.0f} MiB"


def judge_swapping(run: ObservedRun) -> Judgement:
    """Find hosts that move memory of the run to a disk and wait for it."""
    hosts = [
        host for host in run.hosts if host.columns.has("swap.used") or host.columns.has("swap.used_percent")
    ]
    if not hosts:
        return Abstention("the use of swap is unknown", ("swap.used", "swap.used_percent"))
    for host in hosts:
        columns = host.columns
        used = columns.mean("swap.used") if columns.has("swap.used") else columns.mean("swap.used_percent")
        least = 256 * 2**20 if columns.has("swap.used") else 2.0
        key = "swap.used" if columns.has("swap.used") else "swap.used_percent"
        waits, pressure_key = pressure(host, "memory")
        base = used[known(used)][:1]
        grown = used - (base[0] if len(base) else 0.0)
        swapping = above(grown, least)
        if pressure_key is not None:
            swapping &= above(waits, 5)
        else:
            change = np.abs(np.diff(used, prepend=used[:1]))
            swapping &= above(change, least / 20) & above(columns.mean("memory_percent"), 85)
        spans = find_spans(swapping, known(used), min_windows=run.windows.number(60), close_windows=4)
        if not spans:
            continue
        return _swapping(run, host, key, spans, base, grown)
    return []


def _swapping(
    run: ObservedRun, host: ObservedHost, key: str, spans: list[Span], base: Floats, grown: Floats
) -> list[Occurrence]:
    """Return that a host swaps."""
    columns = host.columns
    waits, pressure_key = pressure(host, "memory")
    seconds = seconds_of(spans, run.windows)
    amount = np.nanmax(grown) / 2**20 if key == "swap.used" else None
    text = (
        f"{host.name} swaps"
        + (f" {_amount(float(amount))} of memory to disk" if amount is not None else "")
        + ": the run waits for it."
    )
    return [
        Occurrence(
            "critical",
            "likely",
            spans,
            text,
            evidence(columns, key, spans, float(base[0]) if len(base) else None)
            + (evidence(columns, pressure_key, spans, 0.0, value=waits, unit="%") if pressure_key else []),
            hosts=[host.name],
            devices=host.devices,
            cost_s=0.5 * seconds * len(host.devices),
        )
    ]


def judge_near(run: ObservedRun) -> Judgement:
    """Find memory that is almost used up, or that ran out."""
    hosts = [
        host
        for host in run.hosts
        if host.columns.has("memory_percent") or host.columns.has("proc.memory.oomKills")
    ]
    if not hosts and run.out_of_memory is None:
        return Abstention("how much memory is used is unknown", ("memory_percent",))
    killed = _killed(hosts)
    if killed:
        return killed
    for host in hosts:
        used = host.columns.mean("memory_percent")
        spans = find_spans(above(used, NEAR), known(used), min_windows=2, close_windows=4)
        if not spans:
            continue
        highest = float(np.nanmax(used))
        critical = highest >= VERY_NEAR
        span = spans[-1]
        return [
            Occurrence(
                "critical" if critical else "warning",
                "certain",
                spans,
                f"{highest:.0f} % of the memory of {host.name} is used: little is left before the kernel "
                "kills a process.",
                evidence(host.columns, "memory_percent", [span], NEAR),
                hosts=[host.name],
            )
        ]
    if run.out_of_memory and run.windows.count > 1:
        return [
            Occurrence(
                "critical",
                "certain",
                [Span(run.windows.count - 2, run.windows.count - 1)],
                "The kernel ended the training because memory ran out.",
                hosts=[host.name for host in run.hosts],
            )
        ]
    return []


def _killed(hosts: list[ObservedHost]) -> list[Occurrence]:
    """Return that the kernel killed a process because memory ran out; nothing if it did not."""
    for host in hosts:
        kills = host.columns.growth("proc.memory.oomKills")
        if above(kills, 0.5).any():
            window = int(np.argmax(above(kills, 0.5)))
            span = Span(max(window - 1, 0), window)
            return [
                Occurrence(
                    "critical",
                    "certain",
                    [span],
                    f"The kernel killed a process on {host.name}: memory ran out.",
                    evidence(host.columns, "proc.memory.oomKills", [span], 0.0, value=kills)
                    + evidence(host.columns, "memory_percent", [span]),
                    hosts=[host.name],
                )
            ]
    return []


RULES = (
    FindingRule(
        "memory_growth",
        "Memory grows without end",
        "The memory of the run's processes grows steadily: something is kept that is not needed any more.",
        "After the start, a robust line (Theil–Sen) through resident memory rises by 3 % of the limit and "
        "256 MiB or more, in each "
        "quarter of the time, without getting flatter, and would reach the limit within 48 hours or three "
        "times the run.",
        "Look for tensors kept with their graph (loss without .item()), lists that grow in the training "
        "loop, Python objects copied by "
        "data-loader workers (use arrays), caches without a bound.",
        ("proc.memory.rssMB", "cgroup.memory.workingSetMB"),
        judge_growth,
        order=3,
    ),
    FindingRule(
        "swapping",
        "Memory is swapped to a disk",
        "The host moves memory to a disk and reads it back: everything waits for it.",
        "256 MiB or more were swapped since the run began while tasks wait for memory (PSI of 5 %), or "
        "while memory is 85 % full and swap changes.",
        "Use less memory (fewer workers, smaller prefetch), ask for more, or switch swap off so that the "
        "job fails early.",
        ("swap.used", "swap.used_percent"),
        judge_swapping,
        order=3,
    ),
    FindingRule(
        "out_of_memory_near",
        "Memory is almost used up",
        "The memory that the run may use is almost full, or was: the kernel ends the largest process next.",
        "92 % of the container's limit or of the host's memory are used, 97 % are critical (TraceML); or "
        "the kernel has killed a process. "
        "Memory of devices is not looked at: allocators keep what they once had.",
        "Ask for more memory, use fewer workers or a smaller prefetch, load data lazily.",
        ("memory_percent", "proc.memory.oomKills"),
        judge_near,
        order=0,
    ),
)
