"""Disks that fill up."""

from __future__ import annotations

import re

import numpy as np

from runvitals.findings.observed_run import ObservedHost, ObservedRun
from runvitals.findings.rule import Abstention, FindingRule, Judgement, Occurrence, duration_text, evidence
from runvitals.findings.rules.memory import trend_of
from runvitals.findings.spans import Span, known, median

FULL, ALMOST_FULL = 99.0, 97.0
HORIZON_S = 24 * 3600
_USAGE = re.compile(r"disk\.(/.*|[A-Za-z]:.*)\.usagePercent$")


def judge_full(run: ObservedRun) -> Judgement:
    """Find file systems that are full, or will be soon."""
    has_signal = False
    for host in run.hosts:
        for key in host.columns.columns:
            match = _USAGE.match(key)
            if match is None:
                continue
            has_signal = True
            used = host.columns.mean(key)
            places = np.flatnonzero(known(used))
            if len(places) < 2:
                continue
            last = median(used, slice(max(int(places[-1]) - 2, 0), None))
            first = float(used[places[0]])
            trend = trend_of(used, int(places[0]))
            growing = trend is not None and trend.rises >= 2 and trend.growth > 0.5
            left_s = None
            if trend is not None and growing and trend.last_slope > 0:
                left_s = (100 - last) / trend.last_slope * run.windows.width_s
            is_full = last >= FULL and last > first + 0.5
            soon = left_s is not None and last > 50 and left_s < min(HORIZON_S, 4 * run.duration_ms / 1000)
            if not is_full and not (soon and last - first >= 1.0):
                continue
            return _filling(run, host, key, last, first, is_full, left_s)
    return (
        []
        if has_signal
        else Abstention("how full the file systems are is unknown", ("disk.{path}.usagePercent",))
    )


def _filling(
    run: ObservedRun,
    host: ObservedHost,
    key: str,
    last: float,
    first: float,
    is_full: bool,
    left_s: float | None,
) -> list[Occurrence]:
    """Return that a file system is full, or will be."""
    used = host.columns.mean(key)
    path = key.removeprefix("disk.").removesuffix(".usagePercent")
    if is_full:
        text = f"The file system {path} of {host.name} is full ({last:.0f} %)."
        begin = int(np.argmax(np.nan_to_num(used) >= ALMOST_FULL))
    else:
        assert left_s is not None
        when = (
            f"in {duration_text(left_s)}"
            if run.ended_ms is None
            else f"{duration_text(left_s)} after the end"
        )
        filled = f"{last:.0f} % full"
        text = f"The file system {path} of {host.name} is {filled}, and at this rate full {when}."
        begin = int(np.argmax(known(used)))
    span = Span(min(begin, run.windows.count - 2), run.windows.count - 1)
    return [
        Occurrence(
            "critical" if is_full or (left_s or 1e9) < 3600 else "warning",
            "certain" if is_full else "likely",
            [span],
            text,
            evidence(host.columns, key, [Span(max(run.windows.count - 4, 0), run.windows.count - 1)], first),
            hosts=[host.name],
        )
    ]


RULES = (
    FindingRule(
        "disk_full_soon",
        "A file system fills up",
        "A file system that the run uses is full, or will be: checkpoints and logs can then not be written.",
        "It is 99 % full and was not at the begin, or a robust line through its usage reaches 100 % within "
        "a day.",
        "Delete old checkpoints, keep fewer of them, or write to another file system.",
        ("disk.{path}.usagePercent",),
        judge_full,
        order=0,
    ),
)
