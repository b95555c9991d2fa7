"""The loss: not a number, or far above what it was."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from runvitals.findings.finding import Confidence, Evidence, Severity
from runvitals.findings.observed_run import ObservedRun
from runvitals.findings.rule import Abstention, FindingRule, Judgement, Occurrence
from runvitals.findings.spans import Span
from runvitals.findings.training import LoggedColumn, is_loss
from runvitals.findings.windows import Floats, Integers

_NO_MEASURE = re.compile(
    r"(^|[/_.\s-])(policy|value|vf|pg|actor|critic|entropy|advantages?|td|q|qf\d*|ppo|grpo|a2c|sac|dqn|kl"
    r"|rollout|episode|ep|rewards?|ent|surrogate"
    r"|d|g|gen|generator|disc|discriminator|adv|adversarial|fake|real|gan)($|[/_.\s-])",
    re.I,
)
"""Losses of agents and of adversaries follow what they meet: that they rise says nothing."""
_OF_AGENTS = re.compile(
    r"(^|[/_.\s-])(policy|value|vf|actor|critic|pg|surrogate|td|qf\d*)[_.\s-]?(loss|objective)|rollout/", re.I
)
BLOCK, FEW_BLOCK = 10, 3
"""Rows of which the median counts; three where rows are more than a minute apart."""
BASELINE_BLOCKS = 20
SIGMAS = 6.0
"""Above the mean of what was before (marin's alert for a loss spike)."""
STAYS_MS, SHARE_OF_ROWS, MIN_BLOCKS = 30 * 60_000, 0.2, 5
"""A loss stays high for half an hour or a fifth of its rows, or far above where it began for five minutes."""
FAR, FAR_MS = 3.0, 5 * 60_000
NEVER_FELL = 3.0
"""A loss that never fell, as while a fine-tuning warms up, must be three times what it was at the begin."""
RECOVERING, COMES_BACK = 0.03, 0.25
"""Of the rise: it falls by so much between the halves since its peak; or is this far below it."""
NEW_LEVEL = 0.6
"""Of what the training had gained: a loss that rises by less, at once, and stays there has other data."""
_STAGE = re.compile(r"\b(curriculum|stage|phase|data ?set|task|context|unfreez)", re.I)
ROWS, FIRST_ROWS, FIRST_MS = 5, 10, 5 * 60_000
"""Values in a row that are not finite; so many and so long if none was before."""


def _losses(run: ObservedRun) -> dict[str, LoggedColumn]:
    return {
        name: column for name, column in run.training.logged.items() if is_loss(name) and len(column.values)
    }


def judge_not_finite(run: ObservedRun) -> Judgement:
    """Find losses that are NaN or infinite, and stay so."""
    losses = _losses(run)
    if not losses:
        return Abstention("no loss was logged", ("a logged value named loss",))
    if losses.keys() <= run.training.measured:
        return Abstention(
            "the loss was exported as a metric, of which a NaN is a gap", ("a logged value named loss",)
        )
    some_finite = any(np.isfinite(column.values).any() for column in losses.values())
    occurrences: list[Occurrence] = []
    for name, column in losses.items():
        order = np.argsort(column.time_ms, kind="stable")
        times, steps, values = column.time_ms[order], column.step[order], column.values[order]
        for first, last in _lasting_faults(run, values, times, some_finite):
            occurrences.append(_not_finite(run, name, times, steps, values, first, last))
        if occurrences:
            return occurrences
    return []


def _lasting_faults(
    run: ObservedRun, values: Floats, times: Integers, some_finite: bool
) -> list[tuple[int, int]]:
    """Return the first and last row of each stretch of rows that are not finite.

    One row is a step that the loss scale of mixed precision skips. Infinite values before the first finite
    one are a record that waits for its first value; NaN there is a value that is not computed yet, unless no
    loss of the run is finite.
    """
    bad = ~np.isfinite(values)
    if not bad.any():
        return []
    edges = np.flatnonzero(np.diff(np.concatenate([[False], bad, [False]]).astype(np.int8)))
    faults = []
    for first, end in edges.reshape(-1, 2):
        count = int(end - first)
        to_the_end = end == len(values)
        if first == 0:
            lasts = int(times[end - 1] - times[0]) >= FIRST_MS or run.ended_ms is not None
            if not to_the_end or some_finite or count < FIRST_ROWS or not lasts or not np.isnan(values).any():
                continue
        elif count < ROWS and not (to_the_end and _ended_by_it(run, count, times)):
            continue
        faults.append((int(first), int(end) - 1))
    return faults


def _ended_by_it(run: ObservedRun, count: int, times: Integers) -> bool:
    """Whether the last rows, which are not finite, ended the run; it may have gone on without rows, too."""
    if run.ended_ms is None:
        return count >= 3
    return count >= 2 or run.state in ("failed", "crashed") or len(times) < 10


def _not_finite(
    run: ObservedRun, name: str, times: Integers, steps: Integers, values: Floats, first: int, last: int
) -> Occurrence:
    """Report a loss that is not finite from one row to another."""
    goes_on = last == len(values) - 1
    from_ms = int(times[first])
    to_ms = (run.ended_ms or run.now_ms) if goes_on else int(times[last])
    begin = run.windows.index(from_ms)
    span = Span(begin, max(run.windows.index(to_ms), begin))
    since = f"since step {steps[first]:,}" if steps[first] >= 0 else "since it was logged"
    text = f"{name} is NaN or infinite {since}: the training after it is lost."
    if not goes_on:
        text = f"{name} was NaN or infinite for {last - first + 1} rows {since}, and is a number again."
    severity: Severity = "critical" if goes_on else "warning"
    confidence: Confidence = "certain" if goes_on else "likely"
    share = float((~np.isfinite(values[first:])).mean() * 100)
    return Occurrence(
        severity,
        confidence,
        [span],
        text,
        [Evidence(name, "", share, "% of rows", 0.0)],
        run.devices,
        cost_s=max(to_ms - from_ms, 0) / 1000 * len(run.devices) if goes_on else 0.0,
        from_ms=from_ms,
        to_ms=to_ms,
    )


@dataclass(frozen=True, eq=False)
class _Course:
    """One loss from one start to the next, in blocks of rows.

    Args:
        level: the median of each block, smoothed by those before.
        best: the lowest level so far.
        high: above it, this is far above it.
        begins: the first row of each block.
        times_ms: of the last row of each block.
    """

    level: Floats
    best: Floats
    start: float
    high: Floats
    begins: Integers
    times_ms: Integers


def judge_diverged(run: ObservedRun) -> Judgement:
    """Find a loss that rises far above what it was and does not come back."""
    losses = {name: column for name, column in _losses(run).items() if len(column.values) >= 30}
    if not losses:
        return Abstention("too few values of a loss were logged", ("a logged value named loss",))
    measures = {name: column for name, column in losses.items() if not _NO_MEASURE.search(name)}
    if not measures or any(_OF_AGENTS.search(name) for name in run.training.logged):
        return Abstention(
            "losses of agents and of adversaries rise without a fault", ("a loss of supervised training",)
        )
    for name, column in measures.items():
        occurrences: list[Occurrence] = []
        order = np.argsort(column.time_ms, kind="stable")
        times, steps, values = column.time_ms[order], column.step[order], column.values[order]
        finite = np.isfinite(values)
        times, steps, values = times[finite], steps[finite], values[finite]
        for first, end in _attempts(steps, _stages(run, times)):
            course = _course_of(values[first:end], times[first:end])
            if course is None:
                continue
            for begin, last in _divergences(course):
                if _is_new_level(course, begin, last):
                    continue
                is_last = end == len(values) and last == len(course.level) - 1
                row = first + int(course.begins[begin])
                to_ms = None if is_last else int(course.times_ms[last])
                now, best = float(course.level[last]), float(course.best[begin])
                occurrences.append(_divergence(run, name, int(times[row]), int(steps[row]), to_ms, now, best))
        if occurrences:
            return occurrences
    return []


def _stages(run: ObservedRun, times_ms: Integers) -> list[int]:
    """Return the rows at which a new stage was marked: other data, whose loss may be higher."""
    marked = [mark.time_ms for mark in run.training.marks if _STAGE.search(mark.text)]
    return [int(row) for row in np.searchsorted(times_ms, sorted(marked))]


def _is_new_level(course: _Course, first: int, last: int) -> bool:
    """Whether a loss rose at once to a level at which it stays, not half as high as where it began.

    Harder data do that (a curriculum, a longer context); what diverges goes on, or ends where it began.
    """
    part = course.level[first : last + 1]
    best = float(course.best[first])
    rise = float(np.median(part)) - best
    half = len(part) // 2
    if half < MIN_BLOCKS or rise > NEW_LEVEL * (course.start - best):
        return False
    drift = abs(float(np.median(part[half:])) - float(np.median(part[:half])))
    return bool(part[1] - best > 0.8 * rise and part.max() - best < 1.3 * rise and drift < 0.1 * rise)


def _attempts(steps: Integers, stages: list[int]) -> list[tuple[int, int]]:
    """Return the rows between starts from the begin: trials, folds, stages; a resumption goes back a little.

    Args:
        stages: rows at which one begins.
    """
    highest = np.maximum.accumulate(steps) if len(steps) else steps
    falls = np.flatnonzero((steps[1:] >= 0) & (steps[1:] < 0.1 * highest[:-1]) & (steps[1:] < steps[:-1])) + 1
    bounds = sorted({0, *(int(each) for each in falls[-50:]), *stages[-50:], len(steps)})
    return [(first, end) for first, end in pairwise(bounds) if end - first >= 30]


def _course_of(values: Floats, times_ms: Integers) -> _Course | None:
    gap_ms = float(np.median(np.diff(times_ms)))
    size = FEW_BLOCK if gap_ms > 60_000 else BLOCK
    count = len(values) // size
    if count < MIN_BLOCKS + 2:
        return None
    blocks = values[: count * size].reshape(count, size)
    middles = np.median(blocks, axis=1)
    deviations = np.median(np.abs(blocks - middles[:, None]), axis=1)
    level = middles.copy()
    level[2:] = np.median(np.stack([middles[:-2], middles[1:-1], middles[2:]]), axis=0)
    total = np.concatenate([np.zeros(BASELINE_BLOCKS), np.cumsum(deviations)])
    shorter = np.minimum(np.arange(1, count + 1), BASELINE_BLOCKS)
    spread = 1.4826 * (total[BASELINE_BLOCKS:] - total[:count]) / shorter
    best = np.minimum.accumulate(level)
    at_best = np.maximum.accumulate(np.where(level <= best, np.arange(count), 0))
    start = float(np.median(level[:3]))
    gained = start - best
    noise = SIGMAS * spread[at_best]
    high = best + np.maximum(np.maximum(noise, 0.5 * np.abs(best)), 0.25 * np.abs(gained))
    fell = gained > np.maximum(0.1 * abs(start), noise / 2)
    high = np.where(fell, high, np.maximum(high, start + (NEVER_FELL - 1) * abs(start)))
    begins = np.arange(count, dtype=np.int64) * size
    return _Course(level, best, start, high, begins, times_ms[begins + size - 1])


def _divergences(course: _Course) -> list[tuple[int, int]]:
    """Return the first and last block of each stretch in which a loss was high and did not recover."""
    is_high = course.level > course.high
    if not is_high.any():
        return []
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_high, [False]]).astype(np.int8)))
    blocks: list[tuple[int, int]] = []
    for first, end in edges.reshape(-1, 2):
        opened = next((block for block in _moments(course, first, end) if _stays(course, first, block)), None)
        if opened is not None:
            if blocks and blocks[-1][1] >= first - MIN_BLOCKS:
                blocks[-1] = (blocks[-1][0], int(end) - 1)
            else:
                blocks.append((int(first), int(end) - 1))
    return blocks


def _moments(course: _Course, first: int, end: int) -> Integers:
    """The blocks at which a stretch is looked at: each at its begin, then fewer and fewer."""
    count = end - first
    steps = np.unique(
        np.concatenate([np.arange(min(count, 60)), np.geomspace(1, count, 60).astype(np.int64) - 1])
    )
    return np.asarray(first + steps[steps < count], dtype=np.int64)


def _stays(course: _Course, first: int, block: int) -> bool:
    """Whether a loss has been high since a block for long enough, and is not on its way back."""
    part = course.level[first : block + 1]
    if len(part) < MIN_BLOCKS:
        return False
    best = float(course.best[first])
    for_ms = int(course.times_ms[block] - course.times_ms[first])
    far = FAR * max(abs(course.start - best), abs(best))
    if for_ms >= FAR_MS and bool((part[-MIN_BLOCKS:] - best > far).all()):
        return True
    if for_ms < STAYS_MS and len(part) < SHARE_OF_ROWS * (block + 1):
        return False
    return not _recovers(part, best)


def _recovers(part: Floats, best: float) -> bool:
    peak = int(np.argmax(part))
    rise = float(part[peak]) - best
    if part[peak] - part[-1] >= COMES_BACK * rise:
        return True
    since = part[peak:]
    if len(since) < 2 * MIN_BLOCKS:
        return False
    half = len(since) // 2
    before, after = since[:half], since[-half:]
    error = float(np.hypot(before.std(), after.std())) / np.sqrt(half)
    fall = float(before.mean() - after.mean())
    return bool(fall > max(2 * error, RECOVERING * rise))


def _divergence(
    run: ObservedRun, name: str, from_ms: int, step: int, to_ms: int | None, now: float, best: float
) -> Occurrence:
    """Report that a loss has diverged, until it came back if it did."""
    window = run.windows.index(from_ms)
    end_ms = to_ms or run.ended_ms or run.now_ms
    at = f" since step {step:,}" if step >= 0 else ""
    verb, tail = ("has diverged", "") if to_ms is None else ("had diverged", "; it came back")
    return Occurrence(
        "critical" if to_ms is None else "warning",
        "likely",
        [Span(window, max(run.windows.index(end_ms), window))],
        f"{name} {verb}{at}: it is {now:.3g}, and was {best:.3g}{tail}.",
        [Evidence(name, "", now, "", best)],
        run.devices,
        cost_s=max(end_ms - from_ms, 0) / 1000 * len(run.devices),
        from_ms=from_ms,
        to_ms=end_ms,
    )


RULES = (
    FindingRule(
        "loss_not_finite",
        "The loss is not a number",
        "The loss is NaN or infinite and stays so: every step that follows changes nothing, or destroys "
        "the model.",
        "Five values of a loss in a row are not finite (fewer at the end of a run, ten if no loss ever was "
        "finite). One value is a step that the loss scale of mixed precision skips; a record (best, min) is "
        "infinite until its first value.",
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
        "The median of ten rows is above the lowest so far by 6 standard deviations (marin: mean and 6 σ), "
        "by half of its value, and by a quarter of what the training had gained, for half an hour or a "
        "fifth of the rows, and does not fall again as after a warm restart or with new data. A loss that "
        "never fell must triple. Losses of agents and adversaries, and trials that begin anew, are not "
        "compared. A loss that rises at once by less than 60 % of the gain and stays level has other data, "
        "as in a curriculum; one that rises further should be marked: after a mark with the word "
        "curriculum, stage, phase, dataset, task or context, it is compared with nothing before.",
        "Go back to a checkpoint from before; lower the learning rate, lengthen the warm-up, skip the "
        "batches at which it began.",
        ("a logged value named loss",),
        judge_diverged,
        order=0,
    ),
)
