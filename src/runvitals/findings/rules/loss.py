"""The loss: not a number, or far above what it was."""

from __future__ import annotations

import re

import numpy as np

from runvitals.findings.finding import Evidence
from runvitals.findings.observed_run import ObservedRun
from runvitals.findings.rule import Abstention, FindingRule, Judgement, Occurrence
from runvitals.findings.spans import Span
from runvitals.findings.training import LoggedColumn
from runvitals.findings.windows import Integers

_LOSS = re.compile(r"(^|[/_.\s-])(loss|nll|perplexity|ppl|objective)($|[/_.\s-])", re.I)
_OTHER = re.compile(r"scale|scaler|weight|aux|lr|ratio", re.I)
BASELINE_ROWS = 200
SIGMAS = 6.0
"""Above the mean of what was before (marin's alert for a loss spike)."""


def _losses(run: ObservedRun) -> dict[str, LoggedColumn]:
    return {
        name: column
        for name, column in run.training.logged.items()
        if _LOSS.search(name) and not _OTHER.search(name) and len(column.values)
    }


def judge_not_finite(run: ObservedRun) -> Judgement:
    """Find a loss that is NaN or infinite and stays so."""
    losses = _losses(run)
    if not losses:
        return Abstention("no loss was logged", ("a logged value named loss",))
    for name, column in losses.items():
        order = np.argsort(column.time_ms, kind="stable")
        bad = ~np.isfinite(column.values[order])
        if not bad.any():
            continue
        first = int(np.argmax(bad))
        rest = bad[first:]
        # A validation loss of one empty batch, or one overflow that the loss scale handles, comes back.
        if rest.mean() < 0.5 or (len(rest) < 2 and first > 0 and not run.ended_ms):
            continue
        from_ms = int(column.time_ms[order][first])
        begin = run.windows.index(from_ms)
        span = Span(begin, max(run.windows.count - 1, begin))
        step = int(column.step[order][first])
        at = f" at step {step:,}" if step >= 0 else ""
        lost_s = ((run.ended_ms or run.now_ms) - from_ms) / 1000
        return [
            Occurrence(
                "critical",
                "certain",
                [span],
                f"{name} is not a finite number since{at or ' it was logged'}: what follows is lost.".replace(
                    "since at", "since"
                ),
                [Evidence(name, "", float(rest.mean() * 100), "% of rows", 0.0)],
                run.devices,
                cost_s=lost_s * len(run.devices),
                from_ms=from_ms,
            )
        ]
    return []


def judge_diverged(run: ObservedRun) -> Judgement:
    """Find a loss that rises far above what it was and does not come back."""
    losses = {name: column for name, column in _losses(run).items() if len(column.values) >= 30}
    if not losses:
        return Abstention("too few values of a loss were logged", ("a logged value named loss",))
    for name, column in losses.items():
        order = np.argsort(column.time_ms, kind="stable")
        values = column.values[order]
        finite = np.isfinite(values)
        if finite.sum() < 30:
            continue
        values, times, steps = values[finite], column.time_ms[order][finite], column.step[order][finite]
        count = len(values)
        block = max(count // 20, 5)
        middles = np.array([np.median(values[i : i + block]) for i in range(0, count - block + 1, block)])
        best = int(np.argmin(middles))
        after = middles[best + 1 :]
        if len(after) < 2:
            continue
        begin = max(best * block - BASELINE_ROWS, 0)
        base = values[begin : (best + 1) * block]
        spread = 1.4826 * float(np.median(np.abs(base - np.median(base))))
        start = float(np.median(values[:block]))
        level = middles[best] + max(
            SIGMAS * spread, 0.5 * abs(middles[best]), 0.25 * abs(start - middles[best])
        )
        high = after > level
        # It stays high to the end.
        first = next((i for i in range(len(high)) if high[i:].all()), None)
        if first is None or len(high) - first < 2:
            continue
        return _divergence(
            run, name, (best + 1 + first) * block, times, steps, float(after[-1]), float(middles[best])
        )
    return []


def _divergence(
    run: ObservedRun, name: str, row: int, times: Integers, steps: Integers, now: float, best: float
) -> list[Occurrence]:
    """Return that a loss has diverged from a row on."""
    from_ms = int(times[row])
    window = run.windows.index(from_ms)
    lost_s = ((run.ended_ms or run.now_ms) - from_ms) / 1000
    step = int(steps[row])
    at = f" since step {step:,}" if step >= 0 else ""
    return [
        Occurrence(
            "critical",
            "likely",
            [Span(window, max(run.windows.count - 1, window))],
            f"{name} has diverged{at}: it is {now:.3g}, and was {best:.3g}.",
            [Evidence(name, "", now, "", best)],
            run.devices,
            cost_s=lost_s * len(run.devices),
            from_ms=from_ms,
        )
    ]


RULES = (
    FindingRule(
        "loss_not_finite",
        "The loss is not a number",
        "The loss is NaN or infinite and stays so: every step that follows changes nothing, or destroys "
        "the model.",
        "Most values of a logged loss are not finite from a row on.",
        "Go back to the last checkpoint from before; lower the learning rate, clip gradients, check the "
        "data and the precision.",
        ("a logged value named loss",),
        judge_not_finite,
        order=0,
    ),
    FindingRule(
        "loss_diverged",
        "The loss has diverged",
        "The loss rose far above what it had reached and did not come back.",
        "The median of a block of rows, and of all that follow, is above the best block by 6 standard "
        "deviations, by half of its value, "
        "and by a quarter of what the training had gained (marin: mean and 6 σ).",
        "Go back to a checkpoint from before; lower the learning rate, lengthen the warm-up, skip the "
        "batches at which it began.",
        ("a logged value named loss",),
        judge_diverged,
        order=0,
    ),
)
