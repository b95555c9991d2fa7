"""What panels show besides lines: media, findings, differences, output, parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Final

from runvitals.base import deadline
from runvitals.model.run import Run
from runvitals.model.run_groups import field_named
from runvitals.readers.journals.console import KEPT_BYTES
from runvitals.server.charts.overlay.run_reading import RunReading
from runvitals.server.compare.comparison import FactRow, Section, compared_facts, statistics
from runvitals.server.compare.parameters import importances
from runvitals.server.compare.run_rows import newest_rows, parameter_names, system_statistics
from runvitals.server.findings.run_findings import FindingSource
from runvitals.server.library.run_library import Library, MediaSelection, NamedRun, RunView
from runvitals.server.reports.panel_runs import PanelRuns
from runvitals.server.reports.panels import ShownPanel

MAX_RUNS_WITH_MEDIA: Final = 50
MAX_RECORDS: Final = 200
"""Media of one panel."""
_RECORDS_OF_KEY: Final = 20
MAX_RUNS_WITH_FINDINGS: Final = 20
MAX_CONSOLES: Final = 4
_USUAL_LINES, _MOST_LINES = 100, 1000
_DIFFERENCES: Final[dict[str, tuple[Section, ...]]] = {
    "config_diff": ("config",),
    "code_diff": ("git", "packages"),
    "parallel": ("config",),
    "scatter": ("config",),
}
Encode = Callable[[], dict[str, Any]]


class PanelItems:
    """Reads what the kinds of panels show that have no lines.

    Args:
        findings: what is wrong with runs.

    Attributes:
        problems: parts that could not be read, each once.
    """

    def __init__(self, panel: ShownPanel, runs: PanelRuns, library: Library, findings: FindingSource) -> None:
        self._panel = panel
        self._runs = runs
        self._library = library
        self._findings = findings
        self.problems: dict[str, None] = {}

    async def read(self) -> Encode:
        """Read what the panel shows; returns what makes its answer of it, in a thread.

        Raises:
            ValueError: the panel is invalid.
            TooSlow: it takes too long.
        """
        kind = self._panel.kind
        if kind == "media":
            return await self._media()
        if kind == "findings":
            return await self._findings_of_runs()
        if kind == "console":
            return await self._console()
        if kind == "importance":
            return await self._importance()
        return await self._differences()

    def _reading(self, at_most: int) -> RunReading:
        runs = self._runs.named
        if len(runs) > at_most:
            self.problems[f"{len(runs) - at_most} more runs are not shown"] = None
        reading = RunReading(runs[:at_most])
        reading.problems = self.problems
        return reading

    async def _media(self) -> Encode:
        """Read the newest of what was logged under each name; with a zoom, all between these steps."""
        keys = [query["name"] for query in self._panel.queries if query.get("name") is not None]
        remaining = MAX_RECORDS

        def read(run: NamedRun, view: RunView) -> list[dict[str, Any]]:
            nonlocal remaining
            items: list[dict[str, Any]] = []
            for key in keys:
                selection = self._selection(view, key)
                if selection is None or remaining <= 0:
                    continue
                records = view.media(selection).records[:remaining]
                remaining -= len(records)
                items += [{"run": run.id, **asdict(record)} for record in records]
            return items

        items_of_runs = await self._reading(MAX_RUNS_WITH_MEDIA).each(read, quick=True)
        return lambda: {"items": [item for items in items_of_runs.values() for item in items]}

    def _selection(self, view: RunView, key: str) -> MediaSelection | None:
        if self._panel.zoom is not None:
            return MediaSelection(key, *self._panel.zoom, limit=_RECORDS_OF_KEY)
        steps = view.media_steps(key)
        if not steps:
            return MediaSelection(key, limit=1)
        return MediaSelection(key, steps[-1], steps[-1], limit=_RECORDS_OF_KEY)

    async def _findings_of_runs(self) -> Encode:
        now_ms = self._library.clock()

        def read(_: NamedRun, view: RunView) -> dict[str, Any]:
            return self._findings.findings(view, now_ms).to_json()

        findings = await self._reading(MAX_RUNS_WITH_FINDINGS).each(read)
        return lambda: {"findings": [{"run": run, **of_run} for run, of_run in findings.items()]}

    async def _console(self) -> Encode:
        count = self._panel.settings.get("lines")
        lines = min(count, _MOST_LINES) if isinstance(count, int) and count > 0 else _USUAL_LINES

        def read(_: NamedRun, view: RunView) -> dict[str, Any]:
            was_cut, pieces = view.console(KEPT_BYTES)
            newest_pieces, remaining_lines = [], lines
            for piece in reversed(pieces):
                if remaining_lines <= 0:
                    break
                rows = piece.text.splitlines(keepends=True)
                was_cut = was_cut or len(rows) > remaining_lines
                newest_pieces.append({**piece._asdict(), "text": "".join(rows[-remaining_lines:])})
                remaining_lines -= len(rows)
            return {"cut": was_cut or len(newest_pieces) < len(pieces), "pieces": newest_pieces[::-1]}

        consoles = await self._reading(MAX_CONSOLES).each(read, quick=True)
        return lambda: {"console": [{"run": run, **of_run} for run, of_run in consoles.items()]}

    async def _importance(self) -> Encode:
        target = next(iter(self._numbers()), None)
        run_set, shown_runs = next(iter(self._runs.shown), (None, None))
        if target is None or run_set is None or shown_runs is None:
            return dict
        names = await parameter_names(self._library, shown_runs.run_filter)
        rows = await newest_rows(self._library, shown_runs.run_filter, (target, *names))
        return lambda: {"importance": asdict(importances(rows, names, target))}

    async def _differences(self) -> Encode:
        """Read in which facts the runs differ.

        Of parallel coordinates and scatter plots, also the numbers that are named; otherwise their goals.
        """
        now_ms = self._library.clock()

        def read(_: NamedRun, view: RunView) -> Run:
            return view.run(now_ms)

        runs = list((await self._reading(len(self._runs.runs)).each(read, quick=True)).values())
        places_runs = self._panel.kind in ("parallel", "scatter")
        names = set(self._numbers()) if places_runs else set()
        system = await self._system(runs) if any(name.startswith("system.") for name in names) else {}

        def encode() -> dict[str, Any]:
            deadline.check()
            facts, left_out = compared_facts(runs)
            rows = statistics(runs, system) if places_runs else []
            numbers = [row for row in rows if (row.name in names if names else row.goal is not None)]
            return {
                "differences": {
                    "runs": [run.id for run in runs],
                    "facts": [asdict(fact) for fact in self._shown_facts(facts)],
                    "left_out": left_out,
                    "statistics": [asdict(row) for row in numbers],
                }
            }

        return encode

    def _shown_facts(self, facts: Sequence[FactRow]) -> list[FactRow]:
        sections = _DIFFERENCES[self._panel.kind]
        return [fact for fact in facts if fact.section in sections and fact.differs]

    async def _system(self, runs: Sequence[Run]) -> dict[str, dict[str, float | str]]:
        statistics: dict[str, dict[str, float | str]] = {}
        for _, shown_runs in self._runs.shown:
            statistics |= await system_statistics(self._library, runs, shown_runs.project_filter)
        return statistics

    def _numbers(self) -> list[str]:
        """Return the numbers of runs that the queries name: of what was logged, the one in the summary."""
        section = {"logged": "summary", "system": "system"}
        return [
            field_named(f"{section[query['source']]}.{query['name']}")
            for query in self._panel.queries
            if query.get("name") is not None
        ]
