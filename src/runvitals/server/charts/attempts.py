"""Trainings that were resumed at an earlier step: what was logged of each step last, and what it replaced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from runvitals.base.buckets import Integers
from runvitals.base.steps import fall_places
from runvitals.server.library.run_library import LoggedColumn, LoggedColumns

_LEAST_LOGGED = 5
"""Values of an attempt, on average: a process that falls back more often logs in no order."""
_MOST_REPLACED = 20
"""Attempts whose replaced values are kept apart, the newest."""


class Resume(NamedTuple):
    """A training went on after a restart, perhaps at an earlier step.

    Args:
        after_t, after_step: of the last value before it.
        t, step: of the first value after it; times in ms UTC.
    """

    after_t: float
    after_step: float
    t: float
    step: float


@dataclass(frozen=True, slots=True)
class Attempts:
    """What one rank logged under one name.

    Args:
        newest: in ascending order of steps and times: of steps that several attempts logged, what the last
            one did. Where it went back, the steps beyond were undone.
        replaced: the rest, of each attempt.
        resumes: between the attempts.
    """

    newest: LoggedColumn
    replaced: list[LoggedColumn]
    resumes: list[Resume]

    def all(self) -> LoggedColumn:
        """Return everything, in no particular order."""
        return _joined([self.newest, *self.replaced])


@dataclass(frozen=True, slots=True)
class RankAttempts:
    """The attempts of a rank, by name."""

    host: str
    rank: int | None
    columns: dict[str, Attempts]


def attempts_of_ranks(processes: Iterable[LoggedColumns]) -> list[RankAttempts]:
    """Join the processes that did the work of one rank, one after the other."""
    ranks: dict[str, tuple[LoggedColumns, dict[str, list[LoggedColumn]]]] = {}
    for process in processes:
        label = process.host if process.rank is None else f"rank {process.rank}"
        _, parts = ranks.setdefault(label, (process, {}))
        for key, column in process.columns.items():
            if len(column[0]):
                parts.setdefault(key, []).append(column)
    return [
        RankAttempts(first.host, first.rank, {key: _attempts(columns) for key, columns in parts.items()})
        for first, parts in ranks.values()
    ]


def _attempts(processes: Sequence[LoggedColumn]) -> Attempts:
    pieces = [piece for column in _one_after_the_other(processes) for piece in _pieces(column)]
    newest: list[LoggedColumn] = []
    replaced: list[LoggedColumn] = []
    undone_from = np.inf
    for piece in reversed(pieces):
        kept = int(np.searchsorted(piece[0], undone_from, side="left"))
        newest.append(_part(piece, slice(0, kept)))
        if kept < len(piece[0]) and len(replaced) < _MOST_REPLACED:
            replaced.append(_part(piece, slice(kept, None)))
        undone_from = min(undone_from, float(piece[0][0]))
    resumes = [
        Resume(float(before[1].max()), float(before[0][before[1].argmax()]), float(at.min()), float(steps[0]))
        for before, (steps, at, _) in pairwise(pieces)
    ]
    return Attempts(_joined(newest[::-1]), replaced[::-1], resumes)


def _one_after_the_other(processes: Sequence[LoggedColumn]) -> list[LoggedColumn]:
    """Return the columns of processes in order of time; of those that logged at the same time, one."""
    columns: list[LoggedColumn] = []
    for column in sorted(processes, key=lambda column: float(column[1].min())):
        if columns and float(column[1].min()) < float(columns[-1][1].max()):
            both = _joined([columns.pop(), column])
            order = np.argsort(both[1], kind="stable")
            column = both[0][order], both[1][order], both[2][order]
        columns.append(column)
    return columns


def _pieces(column: LoggedColumn) -> list[LoggedColumn]:
    """Return what a process logged in each of its attempts, in ascending order of steps."""
    falls: Integers = fall_places(column[0])
    if len(falls) * _LEAST_LOGGED > len(column[0]):
        falls = falls[:0]
    ends = [0, *falls.tolist(), len(column[0])]
    pieces = []
    for first, last in pairwise(ends):
        order = first + np.argsort(column[0][first:last], kind="stable")
        pieces.append((column[0][order], column[1][order], column[2][order]))
    return pieces


def _part(column: LoggedColumn, rows: slice) -> LoggedColumn:
    steps, times, values = column
    return steps[rows], times[rows], values[rows]


def _joined(columns: Sequence[LoggedColumn]) -> LoggedColumn:
    if len(columns) == 1:
        return columns[0]
    steps, times, values = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    return steps, times, values


def resumes_of(ranks: Iterable[RankAttempts]) -> list[dict[str, Any]]:
    """Return the restarts of a run, as the fields of `models.Resume`.

    Each name and rank tells when one was only as exactly as it logs: those that may be the same are one.
    """
    resumes = [resume for rank in ranks for attempts in rank.columns.values() for resume in attempts.resumes]
    distinct: list[Resume] = []
    for resume in sorted(resumes, key=lambda resume: resume.t):
        if not distinct or resume.after_t >= distinct[-1].t:
            distinct.append(resume)
        else:
            last = distinct[-1]
            after = max(last, resume, key=lambda resume: resume.after_t)
            distinct[-1] = last._replace(
                after_t=after.after_t, after_step=after.after_step, step=min(last.step, resume.step)
            )
    return [resume._asdict() for resume in distinct]
