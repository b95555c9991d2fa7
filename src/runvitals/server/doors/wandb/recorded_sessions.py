"""Merges the rows of recorded sessions into a run.

`wandb sync` sends the sessions of a run in any order, and again.

A session that goes on from a checkpoint logs steps again, and the later session counts: a row is replaced by
any later row whose step is not greater.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from runvitals.base.buckets import Floats, Integers
from runvitals.server.doors.wandb.logged_rows import HistoryLine
from runvitals.server.library.stored.writer_rows import WriterRows


class MergedRows(NamedTuple):
    """The rows of a request after merging.

    Args:
        new: the rows to store, with times that no stored row has.
        replaced: stored rows that they replace.
        left_out: how many rows were replaced by stored ones of a later session.
    """

    new: list[HistoryLine]
    replaced: list[WriterRows]
    left_out: int


def merge_rows(
    rows: Sequence[HistoryLine], stored: Sequence[WriterRows], media: Collection[tuple[int, float | None]]
) -> MergedRows:
    """Merge the rows of a session with those that are stored.

    Rows that are stored already are left as they are.

    Args:
        media: time and step of the stored media: a row that has only media is known by them.
    """
    stored_moments = _stored_moments(rows, stored).union(media)
    unknown = [row for row in rows if (row.sent_ms, row.step) not in stored_moments]
    later_step = _LeastStepAfter(stored)
    new = [row for row in unknown if later_step.after(row.sent_ms) > row.step]
    _give_times(new, stored)
    least_step = _LeastStepAfter([_as_stored(new)])
    replaced = [part.where(least_step.after_each(part.times) <= part.steps) for part in stored]
    return MergedRows(new, [part for part in replaced if len(part.t)], len(unknown) - len(new))


def _stored_moments(
    rows: Sequence[HistoryLine], stored: Sequence[WriterRows]
) -> set[tuple[int, float | None]]:
    """Return time and step of the rows that are stored at the times of some rows."""
    times = [row.sent_ms for row in rows]
    stored_moments: set[tuple[int, float | None]] = set()
    for part in stored:
        near = part.where((part.times >= min(times, default=0)) & (part.times <= max(times, default=0)))
        stored_moments.update(zip(near.times.astype(np.int64).tolist(), near.steps.tolist(), strict=True))
    return stored_moments


class _LeastStepAfter:
    """The least step of the rows after a time; infinity if there are none."""

    def __init__(self, parts: Sequence[WriterRows]) -> None:
        times = np.concatenate([part.times for part in parts]) if parts else np.empty(0)
        steps = np.concatenate([part.steps for part in parts]) if parts else np.empty(0)
        order = np.argsort(times, kind="stable")
        self._times: Floats = times[order]
        self._least: Floats = np.append(np.minimum.accumulate(steps[order][::-1])[::-1], np.inf)

    def after(self, time_ms: float) -> float:
        return float(self._least[np.searchsorted(self._times, time_ms, side="right")])

    def after_each(self, times: Floats) -> Floats:
        least: Floats = self._least[np.searchsorted(self._times, times, side="right")]
        return least


def _give_times(rows: Sequence[HistoryLine], stored: Sequence[WriterRows]) -> None:
    """Give rows ascending times by which no stored row is stored."""
    taken_times: set[int] = set()
    for part in stored:
        taken_times.update(part.t.tolist())
    previous = 0
    for row in rows:
        time_ms = max(row.sent_ms, previous + 1)
        while time_ms in taken_times:
            time_ms += 1
        row.time_ms = previous = time_ms


def _as_stored(rows: Sequence[HistoryLine]) -> WriterRows:
    t: Integers = np.array([row.time_ms for row in rows], np.int64)
    steps = np.array([row.step for row in rows], np.float64)
    return WriterRows("", (), t, steps, np.array([row.sent_ms for row in rows], np.float64))
