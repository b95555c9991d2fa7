"""How long a condition must last in a run until a finding opens, and until it closes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from runvitals.findings.observed_run import ObservedRun
from runvitals.findings.spans import Span, T, episodes, held_spans, mostly
from runvitals.findings.windows import Bools

OPEN_S = 300.0
"""Five minutes of evidence: most validations, checkpoints and beginnings of epochs are shorter."""
EARLY_S, ENDED_S = 120.0, 60.0
"""So much is enough while it is half of the training so far, and in a run that has ended and was short."""
CLOSE_S = 300.0
PAUSE_S = 900.0
"""Trouble that comes back after a shorter pause is the same."""


def persisting(
    run: ObservedRun,
    holds: Bools,
    known: Bools,
    *,
    open_s: float = OPEN_S,
    leak: float = 1.0,
) -> list[Span]:
    """Return the spans in which a condition lasted long enough, by minutes and not by shares of the run.

    Early in the run, half of the windows of which it is known are enough.
    """
    if not holds.any():
        return []
    number = run.windows.number
    at_once = mostly(holds, known, number(min(open_s, EARLY_S)))
    if run.ended_ms is not None and mostly(holds, known, number(min(open_s, ENDED_S)))[-1]:
        at_once[:] = True
    return held_spans(
        holds,
        known,
        open_windows=number(open_s),
        close_windows=number(CLOSE_S),
        leak=leak,
        at_once=at_once,
        to_end=run.ended_ms is None,
    )


def recurrences(
    run: ObservedRun, members: Iterable[tuple[T, Sequence[Span]]]
) -> list[tuple[list[Span], list[tuple[T, list[Span]]]]]:
    """Group what was found on several hosts or devices, and again and again: each group is one finding."""
    return episodes(members, min_gap_windows=run.windows.number(PAUSE_S))
