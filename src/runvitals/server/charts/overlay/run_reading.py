"""Reads several runs, and the lines of their metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from runvitals.base import deadline
from runvitals.model.errors import UnknownRun
from runvitals.server.charts.overlay.axis import Axis, Extract
from runvitals.server.charts.overlay.lines import KeyLines
from runvitals.server.charts.overlay.logged import LoggedPoints, logged_lines, read_logged
from runvitals.server.charts.overlay.system import system_query
from runvitals.server.http.workers import DEADLINE_S
from runvitals.server.library.run_library import NamedRun, RunView, TooMuch

T = TypeVar("T")
MAX_POINTS = 2_000_000
"""Points in one response: 40 MB of JSON."""
MAX_VALUES = 20_000_000
"""Logged values that one response may read."""


class RunReading:
    """Reads runs, one after the other, so that other requests get their turn.

    Attributes:
        problems: parts that could not be read, each once.
    """

    def __init__(self, runs: Sequence[NamedRun]) -> None:
        self._began_s = time.monotonic()
        self.runs = runs
        self.problems: dict[str, None] = {}

    async def each(self, work: Callable[[NamedRun, RunView], T], quick: bool = False) -> dict[str, T]:
        """Return the result of `work` by run.

        Raises:
            TooSlow: all together took too long.
        """
        results = {}
        for run in self.runs:
            if time.monotonic() - self._began_s > DEADLINE_S:
                raise deadline.TooSlow
            try:
                results[run.id] = await run.opened.use(self._noting(work, run), quick)
            except UnknownRun:
                self.problems[f"run {run.id!r} was deleted a moment ago"] = None
        return results

    def _noting(self, work: Callable[[NamedRun, RunView], T], run: NamedRun) -> Callable[[RunView], T]:
        def noting(view: RunView) -> T:
            noted = view.note_problems()
            result = work(run, view)
            self.problems |= {f"{run.id}: {problem}": None for problem in noted}
            return result

        return noting

    async def logged(
        self, keys: Sequence[str], axis: Axis, part: Extract
    ) -> Callable[[], Iterable[KeyLines]]:
        """Read what was logged under these names; returns what makes the lines of it, in a thread.

        Raises:
            TooMuch: more than may be read for one response.
        """
        _check_size(self.runs, keys, part)
        total = 0

        def read(run: NamedRun, view: RunView) -> dict[str, list[LoggedPoints]]:
            nonlocal total
            points = read_logged(run, view, keys, axis)
            total += sum(len(values.y) for processes in points.values() for values in processes)
            if total > MAX_VALUES:
                raise TooMuch(
                    f"more than {MAX_VALUES:,} logged values would have to be read: request fewer runs "
                    "or keys"
                )
            return points

        values = await self.each(read)

        def lines() -> Iterator[KeyLines]:
            for key in dict.fromkeys(keys):
                by_run = {run: of_run[key] for run, of_run in values.items() if key in of_run}
                yield logged_lines(key, by_run, axis, part)

        return lines

    async def system(
        self, keys: Sequence[str], axis: Axis, part: Extract
    ) -> Callable[[], Iterable[KeyLines]]:
        """Read sampled metrics, as `logged`.

        Raises:
            ValueError: an invalid key; the requested width is too narrow; too much.
        """
        _check_size(self.runs, keys, part)
        query = system_query(self.runs, list(dict.fromkeys(keys)), axis, part)
        of_runs = await self.each(query.lines)

        def lines() -> Iterator[KeyLines]:
            for key in query.keys:
                yield KeyLines(
                    key, query.width, [of_run[key] for of_run in of_runs.values() if key in of_run]
                )

        return lines


def _check_size(runs: Sequence[NamedRun], keys: Sequence[str], part: Extract) -> None:
    size = len(runs) * len(keys) * part.points
    if size > MAX_POINTS:
        raise TooMuch(
            f"{len(runs)} runs × {len(keys)} keys × {part.points} points are {size:,}; a response has "
            f"at most {MAX_POINTS:,}: request fewer"
        )
