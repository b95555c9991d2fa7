"""A made-up run while it goes on: the newest values at each look, and the judgements that are due."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from runvitals.findings.finding import Findings
from runvitals.findings.judge import judge
from runvitals.findings.pace import Urgency
from runvitals.findings.run_watch import NewestValues, RunWatch, WatchedKeys
from runvitals.model.names import STEP
from tests.findings.scenarios.course import START_MS, Course

LOOK_S = 30


class LiveCourse:
    """The newest values of a course at any time."""

    def __init__(self, course: Course) -> None:
        self._hosts = []
        for host in course.samples():
            times = next(iter(host.series.values()))[0]
            matrix = np.column_stack([values for _, values in host.series.values()])
            self._hosts.append((host.name, WatchedKeys(tuple(host.series)), times, matrix))
        self._columns = course.columns()
        self._logged = WatchedKeys((*self._columns, STEP))
        self._steps_ms = START_MS + (course.steps_s * 1000).astype(np.int64)

    def newest(self, now_ms: int) -> list[NewestValues]:
        """Return the newest values up to a time."""
        lanes = []
        for name, keys, times, matrix in self._hosts:
            row = int(np.searchsorted(times, now_ms, side="right")) - 1
            if row >= 0:
                lanes.append(NewestValues(name, keys, np.full(matrix.shape[1], times[row]), matrix[row]))
        steps = int(np.searchsorted(self._steps_ms, now_ms, side="right"))
        if steps:
            rows = [
                np.flatnonzero((column.time_ms <= now_ms) & ~np.isnan(column.values))
                for column in self._columns.values()
            ]
            newest = [
                (int(column.time_ms[row[-1]]), float(column.values[row[-1]])) if len(row) else (0, np.nan)
                for column, row in zip(self._columns.values(), rows, strict=True)
            ]
            times_ms, values = zip(*newest, (int(self._steps_ms[steps - 1]), steps - 1.0), strict=True)
            lanes.append(NewestValues("train", self._logged, np.array(times_ms), np.array(values)))
        return lanes


def due_times(course: Course) -> Iterator[tuple[int, Urgency]]:
    """Return when a course is judged while it goes on, in ms UTC, and why."""
    live, watch = LiveCourse(course), RunWatch(START_MS)
    for now_ms in range(START_MS + LOOK_S * 1000, START_MS + int(course.minutes * 60_000), LOOK_S * 1000):
        watch.look(now_ms, live.newest(now_ms))
        urgency = watch.pace.due(now_ms)
        if urgency is not None:
            yield now_ms, urgency
            watch.pace.judged(now_ms, 0.0)


def judgements(course: Course) -> Iterator[tuple[int, Findings]]:
    """Return the judgements of a course while it goes on, with their times."""
    for now_ms, _ in due_times(course):
        yield now_ms, judge(course.run((now_ms - START_MS) / 1000))
