"""The course of a training: its steps, and its phases."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from runvitals.base.steps import fall_places
from runvitals.findings.windows import Bools, Floats, TimeWindows

MAX_START_S = 20 * 60
"""A first step that comes later is a slow start (SageMaker Debugger: MaxInitializationTime)."""

MIN_STEPS = 5
"""Fewer do not tell how fast a training goes."""
MAX_MARKED_S = 60 * 60
"""A validation of which only the begin is marked is longer only if one before was."""

_LOSS = re.compile(r"(^|[/_.\s-])(loss|nll|perplexity|ppl|objective)($|[/_.\s{-])", re.I)
_NO_LOSS = re.compile(r"scale|scaler|weight|aux|lr|ratio", re.I)
_RECORD = re.compile(r"(^|[/_.\s-])(best|min|max|lowest|highest|minimum|maximum)($|[/_.\s{-])", re.I)
"""What is infinite until something better was seen."""
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
    """A moment that a callback marked: a checkpoint, the begin or end of a validation; or that a driver did.

    Args:
        host: of the driver.
    """

    time_ms: int
    text: str
    host: str = ""


@dataclass(frozen=True, eq=False)
class LoggedTraining:
    """The steps of a run.

    Args:
        steps_ms: when a new step was first logged by any rank, ascending, ms UTC. Empty without rows.
        logged: what it logged, by name.
        marks: what callbacks marked.
        measured: the names of losses that were exported at fixed times; of them a NaN is a gap.
    """

    windows: TimeWindows
    steps_ms: NDArray[np.int64]
    logged: Mapping[str, LoggedColumn] = field(default_factory=dict)
    marks: Sequence[Mark] = ()
    measured: frozenset[str] = frozenset()

    @property
    def has_steps(self) -> bool:
        """Whether enough steps were logged to know how fast it goes."""
        return len(self.steps_ms) >= MIN_STEPS

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
        """The windows between the marks of a validation's begin and its end, or of one that goes on."""
        inside = np.zeros(self.windows.count, dtype=np.bool_)
        for began_ms, ended_ms in self._validations:
            inside[self.windows.index(began_ms) : self.windows.index(ended_ms) + 1] = True
        return inside

    def validated_ms(self, from_ms: int, to_ms: int) -> int:
        """How much of a time is marked as validation."""
        return sum(
            max(0, min(ended_ms, to_ms) - max(began_ms, from_ms)) for began_ms, ended_ms in self._validations
        )

    @cached_property
    def _validations(self) -> list[tuple[int, int]]:
        """When validations began and ended; an open one goes on until the next step, or for an hour."""
        spans: list[tuple[int, int]] = []
        began_ms: int | None = None
        for mark in self.marks:
            text = mark.text.lower()
            if "valid" not in text and "eval" not in text:
                continue
            if "begin" in text or "start" in text:
                began_ms = mark.time_ms
            elif began_ms is not None and "end" in text:
                spans.append((began_ms, mark.time_ms))
                began_ms = None
        if began_ms is not None:
            longest_ms = max((ended - began for began, ended in spans), default=0)
            until_ms = began_ms + max(MAX_MARKED_S * 1000, 3 * longest_ms)
            later = self.steps_ms[self.steps_ms > began_ms]
            spans.append((began_ms, min(until_ms, int(later[0])) if len(later) else until_ms))
        return spans


def is_loss(name: str) -> bool:
    """Return whether a value is a loss by its name; the best so far, or its scale, is none."""
    return bool(_LOSS.search(name)) and not _NO_LOSS.search(name) and not _RECORD.search(name)


def training_of(
    windows: TimeWindows,
    logged: Mapping[str, LoggedColumn],
    marks: Sequence[Mark] = (),
    measured: Mapping[str, LoggedColumn] | None = None,
) -> LoggedTraining:
    """Return the training whose rows these are.

    Its steps are those of the value that tells most of them: a loss of the training, else anything that the
    training logs, else validation or what a thread beside it logs. Rows without a step count only if no value
    has steps.

    Args:
        measured: losses that were exported at fixed times, whether or not the training goes on: no steps.
    """
    order = tuple(sorted(marks, key=lambda mark: mark.time_ms))
    values = {**(measured or {}), **logged}
    names = frozenset(measured or ()) - logged.keys()
    best: dict[int, NDArray[np.int64]] = {}
    for name, column in logged.items():
        times = _step_times(column)
        kind = distance_from_steps(name) if (column.step >= 0).any() else _WITHOUT_STEPS
        if len(times) > len(best.get(kind, ())):
            best[kind] = times
    for kind in sorted(best):
        if len(best[kind]) >= MIN_STEPS:
            return LoggedTraining(windows, best[kind], values, order, names)
    longest = max(best.values(), key=len, default=np.empty(0, dtype=np.int64))
    return LoggedTraining(windows, longest, values, order, names)


_OF_LOSS, _OTHER, _BESIDE, _WITHOUT_STEPS = range(4)
_TRAINING_LOSS = re.compile(r"loss|nll|perplexity|objective", re.I)
_BESIDE_TRAINING = re.compile(
    r"(^|[/_.\s-])(val|valid|validation|eval|evaluation|test|dev|system|sys|host|heartbeat|monitor|gpu|cpu)"
    r"($|[/_.\s\d-])|^_(?!step$)",
    re.I,
)


def distance_from_steps(name: str) -> int:
    """Return how far the rows of a value are from the steps: 0 for a loss, 2 for what is beside it."""
    if _BESIDE_TRAINING.search(name):
        return _BESIDE
    return _OF_LOSS if _TRAINING_LOSS.search(name) else _OTHER


def _step_times(column: LoggedColumn) -> NDArray[np.int64]:
    """Return when a step higher than all before was logged, ascending; the times of all rows without steps.

    A step that falls far back is that of a training that was resumed: higher ones after it count again.
    """
    order = np.argsort(column.time_ms, kind="stable")
    times, steps = column.time_ms[order], column.step[order]
    numbered = steps >= 0
    if not numbered.any():
        return times
    times, steps = times[numbered], steps[numbered]
    trainings = np.zeros(len(steps), np.int64)
    trainings[fall_places(steps.astype(np.float64))] = 1
    trainings = np.cumsum(trainings)
    # Ranks of the steps, so that those of a later training are above all of an earlier one.
    ranks = np.unique(steps, return_inverse=True)[1]
    highest = np.maximum.accumulate(ranks + trainings * (len(ranks) + 1))
    return np.asarray(times[np.concatenate([[True], np.diff(highest) > 0])])


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
        windows = np.clip(
            (column.time_ms[1:] - training.windows.start_ms) // training.windows.width_ms,
            0,
            training.windows.count - 1,
        )
        total = np.bincount(windows, weights=np.nan_to_num(share), minlength=training.windows.count)
        count = np.bincount(windows, minlength=training.windows.count)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return None
