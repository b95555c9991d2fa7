"""The metric by which each run of a list is judged, and its course."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from runvitals.model.run import Run
from runvitals.server.charts.headline_names import Direction, choose_goal
from runvitals.server.runs.run_lists import RunsPage

MAX_RUNS: Final = 20
"""So many runs of a page have a line."""
MAX_NAMES: Final = 8
"""So many metrics of a page have lines: the most frequent."""


Lines = dict[tuple[str | None, str], dict[str, list[float]]]
"""Of runs, by team and id, then by metric."""


@dataclass(frozen=True, slots=True)
class GoalMetricOfRun:
    """The metric by which a run is judged, with its last value."""

    name: str
    goal: Direction | None
    last: float


def goal_of(run: Run) -> GoalMetricOfRun | None:
    """Return the metric by which a run is judged, if its summary has a number of it."""
    numbers = {
        name: float(value)
        for name, value in run.summary.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    goal = choose_goal(numbers, run.defined_metrics)
    return None if goal is None else GoalMetricOfRun(*goal, numbers[goal[0]])


def names_of(runs: Sequence[Run]) -> tuple[str, ...]:
    """Return the metrics whose lines a page of runs shows."""
    goals = [goal.name for run in runs[:MAX_RUNS] if (goal := goal_of(run)) is not None]
    return tuple(name for name, _ in Counter(goals).most_common(MAX_NAMES))


def lines_of(page: RunsPage) -> Lines:
    """Return the lines of the runs of a page."""
    pairs = zip(page.runs, page.sparklines, strict=True)
    return {(run.entity, run.id): lines for run, lines in pairs}
