"""The course of a training: its steps, and its phases."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from runvitals.findings.windows import Bools, Floats, TimeWindows

MAX_START_S = 20 * 60
"""A first step that comes later is a slow start (SageMaker Debugger: MaxInitializationTime)."""

_WAIT_FOR_DATA = re.compile(
    r"(^|[/_.])(data|dataloader|loader|input|fetch|batch_load)[/_.]?(time|wait|load|fetch|sec|s|ms)", re.I
)


@dataclass(frozen=True, slots=True, eq=False)
class LoggedColumn:
    """A value that the training logged: when (ms UTC), at which step (-1: none), and what."""

    time_ms: NDArray[np.int64]
    step: NDArray[np.int64]
    values: Floats


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment that a callback marked: a checkpoint, the begin or end of a validation."""

    time_ms: int
    text: str


@dataclass(frozen=True, eq=False)
class LoggedTraining:
    """The steps of a run.

    Args:
        steps_ms: when a new step was first logged by any rank, ascending, ms UTC. Empty without rows.
        logged: what it logged, by name.
        marks: what callbacks marked.
    """

    windows: TimeWindows
    steps_ms: NDArray[np.int64]
    logged: Mapping[str, LoggedColumn] = field(default_factory=dict)
    marks: Sequence[Mark] = ()

    @property
    def has_steps(self) -> bool:
        """Whether enough steps were logged to know how fast it goes."""
        return len(self.steps_ms) >= 5

    @property
    def median_gap_ms(self) -> float:
        """The usual time between two logged steps; NaN with fewer than two."""
        return float(np.median(np.diff(self.steps_ms))) if len(self.steps_ms) > 1 else float("nan")

    def steps_per_window(self) -> Floats:
        """How many steps were logged in each window."""
        counts = np.histogram(self.steps_ms, bins=self.windows.edges_ms)[0]
        return counts.astype(np.float64)

    def is_between_steps(self) -> Bools:
        """The windows from the first logged step to the last."""
        inside = np.zeros(self.windows.count, dtype=np.bool_)
        if len(self.steps_ms):
            inside[
                self.windows.index(int(self.steps_ms[0])) : self.windows.index(int(self.steps_ms[-1])) + 1
            ] = True
        return inside

    def is_marked(self, *words: str) -> Bools:
        """The windows in which something with one of these words in its text was marked."""
        marked = np.zeros(self.windows.count, dtype=np.bool_)
        for mark in self.marks:
            if any(word in mark.text.lower() for word in words):
                marked[self.windows.index(mark.time_ms)] = True
        return marked

    def validation(self) -> Bools:
        """The windows between the marks of a validation's begin and its end."""
        inside = np.zeros(self.windows.count, dtype=np.bool_)
        began: int | None = None
        for mark in self.marks:
            text = mark.text.lower()
            if "valid" not in text and "eval" not in text:
                continue
            if "begin" in text or "start" in text:
                began = mark.time_ms
            elif began is not None and "end" in text:
                inside[self.windows.index(began) : self.windows.index(mark.time_ms) + 1] = True
                began = None
        return inside


def training_of(
    windows: TimeWindows, logged: Mapping[str, LoggedColumn], marks: Sequence[Mark] = ()
) -> LoggedTraining:
    """Return the training whose rows these are."""
    best: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    for name, column in logged.items():
        if name.startswith("_") and name != "_step":
            continue
        order = np.argsort(column.time_ms, kind="stable")
        times, steps = column.time_ms[order], column.step[order]
        if (steps >= 0).any():
            highest = np.maximum.accumulate(np.where(steps >= 0, steps, -1))
            fresh = np.concatenate([[True], np.diff(highest) > 0]) & (steps >= 0)
            times = times[fresh]
        if len(times) > len(best):
            best = times
    return LoggedTraining(windows, best, logged, tuple(sorted(marks, key=lambda mark: mark.time_ms)))


def data_wait_share(training: LoggedTraining) -> Floats | None:
    """The share of each window that the training itself says it waited for data; None if it does not say.

    It follows from a logged time (`data_time`, `train/dataloader_wait`) and the time between steps.
    """
    for name, column in training.logged.items():
        if not _WAIT_FOR_DATA.search(name) or len(column.values) < 5:
            continue
        gaps = np.diff(column.time_ms) / 1000
        steps = np.maximum(np.diff(column.step), 1)
        waited = column.values[1:] * (0.001 if name.lower().endswith("ms") else 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.clip(waited * np.where(column.step[1:] >= 0, steps, 1) / gaps, 0, 1)
        places = np.clip(
            (column.time_ms[1:] - training.windows.start_ms) // training.windows.width_ms,
            0,
            training.windows.count - 1,
        )
        total = np.bincount(places, weights=np.nan_to_num(share), minlength=training.windows.count)
        count = np.bincount(places, minlength=training.windows.count)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return None
