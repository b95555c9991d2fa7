"""The list of runs: filter, cursor and selection."""

from __future__ import annotations

from runvitals.leet import axes
from runvitals.leet.braille import Row
from runvitals.leet.overview import moment
from runvitals.model.filter import Filter
from runvitals.model.filter_text import parse
from runvitals.model.run import Run
from runvitals.model.system_statistics import is_statistic
from runvitals.query.run_filter import matching
from runvitals.query.runs import RunList
from runvitals.terminal import inert

MOST_SELECTED = 8
"""Runs whose metrics are drawn over each other: as many as there are colours."""
_STATE_STYLES = {"running": "good", "failed": "bad", "crashed": "bad", "lost": "bad"}


class ListedRuns:
    """The runs of a data folder, newest first.

    Attributes:
        runs: those that match the filter.
        selected: ids of the selected runs, by the number of their colour.

    Example:
        >>> table = ListedRuns("/data")
        >>> table.set_runs(table.read(now_ms()))
        >>> table.set_filter("state:failed")
        >>> table.toggle()
    """

    def __init__(self, directory: str) -> None:
        self._list = RunList(directory)
        self._all: list[Run] = []
        self._wanted = Filter()
        self.runs: list[Run] = []
        self.text = ""
        self.cursor = 0
        self.selected: dict[str, int] = {}

    def read(self, now_ms: int) -> list[Run]:
        """Read what changed, and return all runs. It may run in a thread.

        Raises:
            OSError: the data folder cannot be read.
        """
        return self._list.runs(now_ms)

    def set_runs(self, runs: list[Run]) -> None:
        """Show these runs."""
        self._all = runs
        self._match()

    def set_filter(self, text: str) -> None:
        """Show only runs that match a filter text, as on the page and in `runvitals runs`.

        Raises:
            ValueError: not a filter.
        """
        wanted = Filter(terms=parse(text))
        if any(map(is_statistic, wanted.fields)):
            raise ValueError("this list knows no system statistics; `runvitals runs` filters by them")
        self._wanted, self.text = wanted, text
        self._match()

    @property
    def count(self) -> int:
        """The number of runs without the filter."""
        return len(self._all)

    @property
    def current(self) -> Run | None:
        """The run at the cursor."""
        return self.runs[self.cursor] if self.runs else None

    def move(self, rows: int) -> None:
        """Move the cursor, not beyond the ends."""
        self.cursor = min(max(self.cursor + rows, 0), max(len(self.runs) - 1, 0))

    def toggle(self) -> None:
        """Select the run at the cursor, or no longer."""
        if self.current is not None:
            run_id = self.current.id
            if self.selected.pop(run_id, None) is None:
                self._select(run_id)

    def select_all(self) -> None:
        """Select the runs that match, as many as there are colours."""
        for run in self.runs:
            if run.id not in self.selected:
                self._select(run.id)

    def clear_selection(self) -> None:
        """Select none."""
        self.selected.clear()

    def rows(self, height: int) -> list[Row]:
        """The rows of the list around the cursor."""
        first = min(max(self.cursor - height // 2, 0), max(len(self.runs) - height, 0))
        return [
            self._row(run, place == self.cursor)
            for place, run in enumerate(self.runs[first : first + height], first)
        ]

    def _match(self) -> None:
        current = self.current
        self.runs = matching(self._all, self._wanted)
        known = {run.id for run in self._all}
        self.selected = {run_id: colour for run_id, colour in self.selected.items() if run_id in known}
        places = [place for place, run in enumerate(self.runs) if current and run.id == current.id]
        self.cursor = places[0] if places else 0

    def _select(self, run_id: str) -> None:
        free = [colour for colour in range(MOST_SELECTED) if colour not in self.selected.values()]
        if free:
            self.selected[run_id] = free[0]

    def _row(self, run: Run, is_current: bool) -> Row:
        colour = self.selected.get(run.id)
        mark = ("○ ", "dim") if colour is None else ("● ", f"line{colour}")
        rest = f"  {moment(run.started_ms)}  {axes.elapsed(run.duration_ms)}"
        name = (inert(run.name), "cursor" if is_current else "")
        return [mark, (f"{run.state:<9}", _STATE_STYLES.get(run.state, "dim")), name, (rest, "dim")]
