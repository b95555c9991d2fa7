"""Spans of windows in which something holds, with hysteresis, and gaps that are not evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from runvitals.findings.windows import Bools, Floats, TimeWindows

T = TypeVar("T")
_MOST_RECURRING_WINDOWS = 60


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive windows: `first` to `last`, both included."""

    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first + 1

    @property
    def slice(self) -> slice:
        """To index a column."""
        return slice(self.first, self.last + 1)


def find_spans(
    holds: Bools,
    known: Bools | None = None,
    *,
    min_windows: int = 2,
    close_windows: int = 2,
    max_gap_windows: int = 6,
) -> list[Span]:
    """Return the spans in which a condition holds.

    Args:
        holds: per window, whether it holds.
        known: the windows of which it is known. By default all.
        min_windows: shorter spans are left out.
        close_windows: so many windows in a row without the condition end a span; fewer are part of it.
        max_gap_windows: so many windows in a row of which nothing is known end it too.

    Example:
        >>> find_spans(np.array([0, 1, 1, 0, 1, 0, 0, 1], dtype=bool))
        [Span(first=1, last=4)]
    """
    known = np.ones(len(holds), dtype=np.bool_) if known is None else known
    true = holds & known
    spans: list[Span] = []
    starts = np.flatnonzero(true)
    if not len(starts):
        return spans
    false_total = np.concatenate([[0], np.cumsum(known & ~holds)])
    unknown_total = np.concatenate([[0], np.cumsum(~known)])
    breaks = (false_total[starts[1:]] - false_total[starts[:-1] + 1] >= close_windows) | (
        unknown_total[starts[1:]] - unknown_total[starts[:-1] + 1] > max_gap_windows
    )
    bounds = np.flatnonzero(breaks)
    firsts = np.concatenate([[0], bounds + 1])
    lasts = np.concatenate([bounds, [len(starts) - 1]])
    true_total = np.concatenate([[0], np.cumsum(true)])
    for begin, end in zip(starts[firsts], starts[lasts], strict=True):
        if true_total[end + 1] - true_total[begin] >= min_windows:
            spans.append(Span(int(begin), int(end)))
    return spans


def recurring_spans(holds: Bools, known: Bools) -> list[Span]:
    """Return spans of one window or more that come again at about equal distances; none otherwise.

    Three or more, of which the distances vary by less than 35 % around their median.
    """
    spans = find_spans(holds, known, min_windows=1, close_windows=1)
    spans = [span for span in spans if len(span) <= _MOST_RECURRING_WINDOWS]
    if len(spans) < 3:
        return []
    distances = np.diff([(span.first + span.last) / 2 for span in spans])
    middle = float(np.median(distances))
    regular = np.abs(distances - middle) <= max(0.35 * middle, 1.0)
    return spans if regular.mean() >= 0.6 else []


def held_spans(
    holds: Bools,
    known: Bools,
    *,
    open_windows: int,
    close_windows: int,
    leak: float = 1.0,
    at_once: Bools | None = None,
    to_end: bool = False,
) -> list[Span]:
    """Return the spans in which a condition held for long enough to be reported, with hysteresis.

    Evidence grows by one with each window in which it holds and shrinks by `leak` with each in which it does
    not. A span opens with enough evidence, from the first window of it, and closes when none is left or after
    so many windows in a row without the condition. Windows of which nothing is known change nothing. What
    comes later never takes back a span that has opened, nor its start.

    Args:
        open_windows: so much evidence opens a span.
        close_windows: so many windows of clear health close it.
        leak: 1 wants it in more than half of the windows, 0.5 in more than a third.
        at_once: windows in which any evidence is enough.
        to_end: whether a span that has not closed goes on to the last window.
    """
    spans: list[Span] = []
    least = open_windows if at_once is None else 1
    for group in find_spans(
        holds, known, min_windows=least, close_windows=close_windows, max_gap_windows=len(holds)
    ):
        spans += _opened(
            holds, known, group, open_windows, max(open_windows, close_windows * leak), leak, at_once
        )
    if to_end and spans and _still_holds(holds, known, spans[-1], close_windows):
        spans[-1] = Span(spans[-1].first, len(holds) - 1)
    return spans


def _opened(
    holds: Bools,
    known: Bools,
    group: Span,
    need: float,
    most: float,
    leak: float,
    at_once: Bools | None,
) -> list[Span]:
    spans: list[Span] = []
    evidence, first, last, is_open = 0.0, group.first, group.first, False
    for window in range(group.first, group.last + 1):
        if not known[window]:
            continue
        if holds[window]:
            if evidence <= 0:
                first = window
            evidence, last = min(evidence + 1, most), window
            is_open = is_open or evidence >= need or (at_once is not None and bool(at_once[window]))
        elif evidence > 0:
            evidence -= leak
            if evidence <= 0:
                if is_open:
                    spans.append(Span(first, last))
                is_open = False
    if is_open:
        spans.append(Span(first, last))
    return spans


def _still_holds(holds: Bools, known: Bools, span: Span, close_windows: int) -> bool:
    after = slice(span.last + 1, None)
    return int((known & ~holds)[after].sum()) < close_windows and not holds[after].any()


def mostly(holds: Bools, inside: Bools, least: int) -> Bools:
    """Return the windows up to which a condition held in half of those inside or more, and in `least`."""
    count = np.cumsum(holds & inside)
    return np.asarray((count >= least) & (2 * count >= np.cumsum(inside)))


def episodes(
    members: Iterable[tuple[T, Sequence[Span]]], *, min_gap_windows: int
) -> list[tuple[list[Span], list[tuple[T, list[Span]]]]]:
    """Group the spans of several members that belong together: at the same time, or again and again.

    A span joins those before it if the pause is not much longer than what was covered so far, or than the
    pauses before. What comes later never changes a group's start.

    Returns:
        For each group its time, as spans that do not overlap, and its members with theirs.
    """
    ordered = sorted(
        ((span, number, member) for number, (member, spans) in enumerate(members) for span in spans),
        key=lambda each: (each[0].first, each[0].last, each[1]),
    )
    groups: list[tuple[list[Span], dict[int, tuple[T, list[Span]]]]] = []
    longest_pause = 0
    for span, number, member in ordered:
        pause = span.first - groups[-1][0][-1].last - 1 if groups else 0
        if groups and pause <= max(min_gap_windows, 4 * sum(map(len, groups[-1][0])), 1.5 * longest_pause):
            time = groups[-1][0]
            longest_pause = max(longest_pause, pause)
            if pause <= 0:
                time[-1] = Span(time[-1].first, max(time[-1].last, span.last))
            else:
                time.append(span)
        else:
            groups.append(([span], {}))
            longest_pause = 0
        groups[-1][1].setdefault(number, (member, []))[1].append(span)
    return [(time, list(by_number.values())) for time, by_number in groups]


def mask_of(spans: Sequence[Span], count: int) -> Bools:
    """Return the windows that any of the spans contains."""
    mask = np.zeros(count, dtype=np.bool_)
    for span in spans:
        mask[span.slice] = True
    return mask


def within(value: Floats, least: float, most: float) -> Bools:
    """Return where a column is between two bounds, both included; False where it has no value."""
    with np.errstate(invalid="ignore"):
        return (value >= least) & (value <= most)


def above(value: Floats, least: float) -> Bools:
    """Return where a column is at least so much; False where it has no value."""
    with np.errstate(invalid="ignore"):
        return np.asarray(value >= least)


def below(value: Floats, most: float | Floats) -> Bools:
    """Return where a column is less; False where it has no value."""
    with np.errstate(invalid="ignore"):
        return np.asarray(value < most)


def known(*values: Floats) -> Bools:
    """Return where all columns have a value."""
    mask = ~np.isnan(values[0])
    for value in values[1:]:
        mask &= ~np.isnan(value)
    return mask


def median(value: Floats, where: Bools | slice | None = None) -> float:
    """Return the median of a column, of some windows; NaN without a value."""
    part = value if where is None else value[where]
    part = part[~np.isnan(part)]
    return float(np.median(part)) if len(part) else float("nan")


def from_to_ms(windows: TimeWindows, spans: Sequence[Span]) -> tuple[int, int]:
    """Return when the first span begins and the last ends, ms UTC."""
    return (
        windows.start_ms + spans[0].first * windows.width_ms,
        windows.start_ms + (spans[-1].last + 1) * windows.width_ms,
    )
