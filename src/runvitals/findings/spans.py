"""Spans of windows in which something holds, with hysteresis, and gaps that are not evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from runvitals.findings.windows import Bools, Floats, TimeWindows


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


def recurring_spans(
    holds: Bools, known: Bools, *, min_spans: int = 3, max_span_windows: int = 60
) -> list[Span]:
    """Return spans of one window or more that come again at about equal distances; none otherwise.

    Three or more, of which the distances vary by less than 35 % around their median.
    """
    spans = find_spans(holds, known, min_windows=1, close_windows=1)
    spans = [span for span in spans if len(span) <= max_span_windows]
    if len(spans) < min_spans:
        return []
    distances = np.diff([(span.first + span.last) / 2 for span in spans])
    middle = float(np.median(distances))
    regular = np.abs(distances - middle) <= max(0.35 * middle, 1.0)
    return spans if regular.mean() >= 0.6 else []


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


def below(value: Floats, most: float) -> Bools:
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
