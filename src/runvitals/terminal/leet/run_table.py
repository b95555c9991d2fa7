"""The list of runs: filter, cursor and selection."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from statistics import fmean

from rich.cells import cell_len

from runvitals.base.terminal_text import inert
from runvitals.model.filter import Filter
from runvitals.model.filter_text import parse
from runvitals.model.run import Run
from runvitals.model.system_statistics import is_statistic
from runvitals.readers.journals.run_filter import matching
from runvitals.terminal.leet import axes
from runvitals.terminal.leet.braille import Row
from runvitals.terminal.leet.fitting_text import cut
from runvitals.terminal.leet.overview import moment
from runvitals.terminal.leet.sources.run_source import RunCatalogue

MAX_SELECTED = 8
"""Runs whose metrics are drawn over each other: as many as there are colours."""
_MIN_NAME_LENGTH = 16
_MAX_CPU = 0.025
"""The share of a core that reading the list may take."""
_MAX_PAUSE_S = 30.0
_OF_DEVICES = re.compile(r"gpu\.\d+\.(gpu|memoryAllocated)")
_STATE_STYLES = {"running": "good", "failed": "bad", "crashed": "bad", "lost": "bad"}


class ListedRuns:
    """The runs of a catalogue, newest first.

    Args:
        catalogue: the collection of runs.
        cpu_clock: CPU time of the thread that reads, in s.

    Attributes:
        runs: those that match the filter.
        is_read: whether they were read at least once.
        count: their number, without the filter if it is applied here.
        pinned: the id of the pinned run, or None.
        selected: ids of the selected runs, by the number of their colour.

    Example:
        >>> table = ListedRuns(JournalCatalogue("/data"))
        >>> table.set_runs(*table.read(now_ms()))
        >>> table.set_filter("state:failed")
        >>> table.toggle()
    """

    def __init__(self, catalogue: RunCatalogue, cpu_clock: Callable[[], float] = time.thread_time) -> None:
        self._catalogue = catalogue
        self._cpu_clock = cpu_clock
        self._read_cpu_s = 0.0
        self._all: list[Run] = []
        self._filter = Filter()
        self.runs: list[Run] = []
        self.is_read = False
        self.count = 0
        self.text = ""
        self.cursor = 0
        self.selected: dict[str, int] = {}
        self.pinned: str | None = None

    def read(self, now_ms: int) -> tuple[list[Run], int]:
        """Read what changed, and return the runs and their number. It may run in a thread.

        Raises:
            OSError: the runs cannot be read.
        """
        before_s = self._cpu_clock()
        try:
            return self._catalogue.runs(now_ms, self.text)
        finally:
            self._read_cpu_s = self._cpu_clock() - before_s

    def pause_s(self, interval_s: float) -> float:
        """Return how long to wait before the next read: longer, if thousands of runs take much CPU time."""
        return max(interval_s, min(self._read_cpu_s / _MAX_CPU, _MAX_PAUSE_S))

    def set_runs(self, runs: list[Run], count: int) -> None:
        """Show these runs."""
        self.is_read = True
        self._all, self.count = runs, count
        self._match()

    def set_filter(self, text: str) -> None:
        """Show only runs that match a filter text, as on the page and in `runvitals runs`.

        Raises:
            ValueError: not a filter.
        """
        filter_ = Filter(terms=parse(text))
        if not self._catalogue.filters_itself and any(map(is_statistic, filter_.fields)):
            raise ValueError("this list knows no system statistics; `runvitals runs` filters by them")
        if not self._catalogue.filters_itself and filter_.needs_findings:
            raise ValueError("this list knows no findings; `runvitals runs` filters by them")
        self._filter, self.text = filter_, text
        self._match()

    @property
    def current(self) -> Run | None:
        """The run at the cursor."""
        return self.runs[self.cursor] if self.runs else None

    def move(self, rows: int) -> None:
        """Move the cursor, not beyond the ends."""
        self.cursor = min(max(self.cursor + rows, 0), max(len(self.runs) - 1, 0))

    def toggle(self) -> None:
        """Select the run at the cursor, or deselect it."""
        if self.current is not None:
            run_id = self.current.id
            if self.selected.pop(run_id, None) is None:
                self._select(run_id)
            elif run_id == self.pinned:
                self.pinned = None

    def toggle_pin(self) -> None:
        """Pin the run at the cursor and select it, or unpin it."""
        if self.current is not None:
            run_id = self.current.id
            self.pinned = None if run_id == self.pinned else run_id
            if self.pinned is not None and run_id not in self.selected:
                self._select(run_id)

    def select_all(self) -> None:
        """Select the runs that match, as many as there are colours."""
        for run in self.runs:
            if run.id not in self.selected:
                self._select(run.id)

    def choose(self, run_ids: Sequence[object], pinned: object) -> None:
        """Select runs that were selected before, and pin one of them."""
        for run_id in run_ids:
            if isinstance(run_id, str) and run_id not in self.selected:
                self._select(run_id)
        self.pinned = pinned if isinstance(pinned, str) and pinned in self.selected else None

    def clear_selection(self) -> None:
        """Select none, except the pinned run."""
        self.selected = {run_id: colour for run_id, colour in self.selected.items() if run_id == self.pinned}

    def rows(self, width: int, first: int, height: int) -> list[Row]:
        """Return the rows of the list from an index on."""
        return [
            self._row(run, index == self.cursor, width)
            for index, run in enumerate(self.runs[first : first + height], first)
        ]

    def _match(self) -> None:
        current = self.current
        self.runs = self._all if self._catalogue.filters_itself else matching(self._all, self._filter)
        listed = {run.id for run in self._all}
        if not self._catalogue.filters_itself:  # of a server, other runs may only be on another page
            self.selected = {run_id: colour for run_id, colour in self.selected.items() if run_id in listed}
        indexes = [index for index, run in enumerate(self.runs) if current and run.id == current.id]
        self.cursor = indexes[0] if indexes else 0

    def _select(self, run_id: str) -> None:
        free = [colour for colour in range(MAX_SELECTED) if colour not in self.selected.values()]
        if free:
            self.selected[run_id] = free[0]

    def _row(self, run: Run, is_current: bool, width: int) -> Row:
        colour = self.selected.get(run.id)
        mark = ("○ ", "dim") if colour is None else ("▶ " if run.id == self.pinned else "● ", f"line{colour}")
        state = f"{run.state:<9}"
        used = newest_use(run.last) if run.state == "running" else ""
        room = width - cell_len(mark[0]) - len(state)
        columns = [f"  {used:<16}", f"  {moment(run.started_ms)}", f"  {axes.elapsed(run.duration_ms):>8}"]
        while columns and room - sum(map(len, columns)) < _MIN_NAME_LENGTH:
            columns.pop(0)
        room -= sum(map(len, columns))
        name = cut(inert(run.name), room)
        return [
            mark,
            (state, _STATE_STYLES.get(run.state, "dim")),
            (name, "cursor" if is_current else ""),
            (" " * (room - cell_len(name)) + "".join(columns), "dim"),
        ]


def newest_use(last: Mapping[str, Mapping[str, float]]) -> str:
    """Return the mean use of a run's GPUs, or of its hosts' CPUs without GPUs, in the newest samples.

    Args:
        last: the newest sample of each host.

    Example:
        >>> newest_use({"node1": {"gpu.0.gpu": 90.0, "gpu.1.gpu": 70.0, "gpu.0.memoryAllocated": 45.0}})
        'GPU 80% mem 45%'
        >>> newest_use({"node1": {"cpu": 12.0}})
        'CPU 12%'
    """
    values: dict[str, list[float]] = {}
    for sample in last.values():
        for key, value in sample.items():
            device = _OF_DEVICES.fullmatch(key)
            if isfinite(value):
                values.setdefault(f"gpu.{device[1]}" if device else key, []).append(value)
    keys = (("GPU", "gpu.gpu"), ("mem", "gpu.memoryAllocated"))
    if "gpu.gpu" not in values:
        keys = (("CPU", "cpu"), ("mem", "memory_percent"))
    return " ".join(f"{name} {fmean(values[key]):.0f}%" for name, key in keys if key in values)
