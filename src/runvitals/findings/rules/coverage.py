"""Samples that are missing."""

from __future__ import annotations

import numpy as np

from runvitals.findings.finding import Evidence
from runvitals.findings.observed_run import ObservedRun
from runvitals.findings.rule import Abstention, FindingRule, Judgement, Occurrence, duration_text
from runvitals.findings.spans import Span, find_spans

MIN_MISSING = 0.05


def judge_missing(run: ObservedRun) -> Judgement:
    """Find hosts of which samples are missing between their first and their last."""
    if not run.hosts:
        return Abstention("no samples")
    missing: list[tuple[str, list[Span], float, float]] = []
    for host in run.hosts:
        samples = host.columns.samples
        positions = np.flatnonzero(samples > 0)
        if len(positions) < 2:
            continue
        inside = np.zeros(len(samples), dtype=np.bool_)
        inside[positions[0] : positions[-1] + 1] = True
        empty = inside & (samples == 0)
        spans = find_spans(empty, min_windows=2, close_windows=1)
        seconds = sum(len(span) for span in spans) * run.windows.width_s
        total = float(inside.sum()) * run.windows.width_s
        if seconds >= max(MIN_MISSING * total, 3 * host.columns.interval_s, 60):
            missing.append((host.name, spans, seconds, total))
    if not missing:
        return []
    name, spans, seconds, total = max(missing, key=lambda each: each[2])
    return [
        Occurrence(
            "info",
            "certain",
            spans,
            f"{name} sent no samples for {duration_text(seconds)} ({100 * seconds / total:.0f} % of its "
            "time): nothing is known of it then.",
            [Evidence("samples", name, 100 * seconds / total, "% missing", 0.0)],
            hosts=[each[0] for each in missing],
        )
    ]


RULES = (
    FindingRule(
        "missing_samples",
        "Samples are missing",
        "A host was measured before and after, but not for a while in between.",
        "5 % or more of the time between a host's first and last sample, in gaps of two windows or more, "
        "has no samples. "
        "No rule takes a gap for idleness.",
        "runvitals doctor tells what keeps the monitor from sampling; a suspended machine or a stopped "
        "monitor look like this.",
        (),
        judge_missing,
        order=7,
    ),
)
