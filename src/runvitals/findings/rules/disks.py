"""Disks that fill up."""

from __future__ import annotations

import re

from runvitals.findings.finding import Severity
from runvitals.findings.observed_run import ObservedHost, ObservedRun
from runvitals.findings.persistence import recurrences
from runvitals.findings.rule import Abstention, FindingRule, Judgement, Occurrence, duration_text, evidence
from runvitals.findings.spans import Span, above, find_spans, known, median
from runvitals.findings.trends import Growth, GrowthLimits, end_text, growths_of
from runvitals.findings.windows import Floats

FULL = 99.0
WORTH_TELLING, IMMINENT = 50.0, 90.0
"""Percent: an emptier file system is not told; from here on twenty minutes of growth are enough."""
NEARLY_FULL = 95.0
"""Percent: growth that stopped before is information."""
LIMITS = GrowthLimits(1.0, 100.0, WORTH_TELLING, IMMINENT, 24 * 3600.0)
_USAGE = re.compile(r"disk\.(/.*|[A-Za-z]:.*)\.usagePercent$")


def judge_full(run: ObservedRun) -> Judgement:
    """Find file systems that are full, or will be soon."""
    full: dict[str, list[tuple[ObservedHost, list[Span]]]] = {}
    filling: dict[str, list[tuple[tuple[ObservedHost, Growth], list[Span]]]] = {}
    has_signal = False
    for host in run.hosts:
        for key in host.columns.columns:
            if _USAGE.match(key) is None:
                continue
            has_signal = True
            used = host.columns.mean(key)
            spans = _full(run, used)
            growths = [each for each in growths_of(used, run.windows, LIMITS) if each.level > WORTH_TELLING]
            if spans:
                full.setdefault(key, []).append((host, [*(each.span for each in growths), *spans]))
                continue
            for growth in growths:
                filling.setdefault(key, []).append(((host, growth), [growth.span]))
    if not has_signal:
        return Abstention("how full the file systems are is unknown", ("disk.{path}.usagePercent",))
    occurrences = [
        _is_full(key, time, members)
        for key, spans_of in full.items()
        for time, members in recurrences(run, spans_of)
    ]
    occurrences += [
        _fills(run, key, time, [each for each, _ in members])
        for key, growths in filling.items()
        for time, members in recurrences(run, growths)
    ]
    return occurrences


def _full(run: ObservedRun, used: Floats) -> list[Span]:
    """Return where a file system is full that was not when the run began; an image always is."""
    present = used[known(used)]
    if len(present) < 2 or present[0] > FULL - 0.5:
        return []
    return find_spans(above(used, FULL), known(used), min_windows=2, close_windows=run.windows.number(300))


def _is_full(key: str, time: list[Span], full: list[tuple[ObservedHost, list[Span]]]) -> Occurrence:
    """Report that a file system is full."""
    host, spans = full[0]
    used = host.columns.mean(key)
    return Occurrence(
        "critical",
        "certain",
        time,
        f"The file system {_path(key)} of {host.name} is full ({median(used[spans[-1].slice]):.0f} %).",
        evidence(host.columns, key, spans[-1:], float(used[known(used)][0])),
        hosts=[each.name for each, _ in full],
    )


def _fills(
    run: ObservedRun, key: str, time: list[Span], growing: list[tuple[ObservedHost, Growth]]
) -> Occurrence:
    """Report that a file system will be full, or filled up for some time."""
    host, growth = min(growing, key=lambda each: (not each[1].is_open, each[1].left_s or 0.0))
    left_s = growth.left_s or 0.0
    filled = f"The file system {_path(key)} of {host.name} is {growth.level:.0f} % full"
    if not growth.is_open:
        for_s = len(growth.span) * run.windows.width_s
        text = f"{filled}: it filled up by {growth.per_s * 3600:.1f} % an hour for {duration_text(for_s)}."
    elif run.ended_ms is None:
        text = f"{filled}, and at this rate full {end_text(run, left_s)}."
    else:
        text = f"{filled}, and at this rate full {duration_text(left_s)} after the end."
    where = [Span(max(growth.span.last - 3, 0), growth.span.last)]
    return Occurrence(
        _severity(growth, left_s),
        "likely",
        time,
        text,
        evidence(host.columns, key, where, float(host.columns.mean(key)[growth.span.first])),
        hosts=[each.name for each, _ in growing],
    )


def _severity(growth: Growth, left_s: float) -> Severity:
    """Return how bad growth is: where space was freed in time, nothing was lost."""
    if not growth.is_open:
        return "warning" if growth.level >= NEARLY_FULL else "info"
    return "critical" if left_s < 3600 else "warning"


def _path(key: str) -> str:
    return key.removeprefix("disk.").removesuffix(".usagePercent")


RULES = (
    FindingRule(
        "disk_full_soon",
        "A file system fills up",
        "A file system that the run uses is full, or will be: checkpoints and logs can then not be written.",
        "It is 99 % full and was not when the run began; or its usage, above 50 %, rises in a stretch of an "
        "hour or more by 1 % and in each quarter about as much, and reaches 100 % within a day and eight "
        "times the stretch (from 90 % on: a stretch of twenty minutes, within an hour). What was given back "
        "at once, as old checkpoints are, must be half of the rise or less.",
        "Delete old checkpoints, keep fewer of them, or write to another file system.",
        ("disk.{path}.usagePercent",),
        judge_full,
        order=0,
    ),
)
