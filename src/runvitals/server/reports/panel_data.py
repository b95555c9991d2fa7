"""What a panel of a report shows to a reader: the one answer that its page draws it from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from runvitals.model.filter import ReadableRuns
from runvitals.server.charts.overlay.kept_means import KeptMeans
from runvitals.server.findings.run_findings import FindingSource
from runvitals.server.library.run_library import Library
from runvitals.server.reports.kept_panels import KeptPanels
from runvitals.server.reports.panel_items import PanelItems
from runvitals.server.reports.panel_lines import PanelLines
from runvitals.server.reports.panel_runs import UNREADABLE, PanelRuns
from runvitals.server.reports.panels import WHOLE, PanelExtract, ShownPanel
from runvitals.server.reports.run_sets import ProjectFinder

_EMPTY: Final[dict[str, Any]] = {
    "x": None,
    "names": {"logged": [], "system": []},
    "lines": {},
    "devices": {},
    "items": None,
    "findings": None,
    "differences": None,
    "importance": None,
    "console": None,
}


@dataclass(frozen=True, slots=True)
class PanelAnswer:
    """What a panel shows.

    Attributes:
        encode: makes the JSON of it, in a thread.
        projects: the ids of the projects that its values are from.
    """

    encode: Callable[[], dict[str, Any]]
    projects: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PanelReader:
    """Reads panels with the rights of somebody.

    Attributes:
        readable: the runs that they may read; None: all.
        find_project: finds the project of a run set.
        panels: of the same page, which will be requested too.
    """

    library: Library
    findings: FindingSource
    kept_means: KeptMeans
    kept: KeptPanels
    readable: ReadableRuns | None
    find_project: ProjectFinder
    panels: Sequence[ShownPanel] = ()

    def with_panels(self, panels: Iterable[ShownPanel]) -> PanelReader:
        """Return the same for a panel that a page shows among these."""
        return replace(self, panels=tuple(panels))

    async def read(self, panel: ShownPanel, requested: PanelExtract = WHOLE) -> PanelAnswer:
        """Return what a panel shows now. What is wrong with the panel is its `problem`.

        Raises:
            TooSlow: it takes too long.
        """
        runs, about = PanelRuns(), as_answer(panel, self.library.clock())
        if panel.kind == "text":
            return PanelAnswer(lambda: about)
        try:
            for run_set in panel.run_sets:
                runs.add(
                    run_set,
                    await self.kept.run_sets.shown_runs(
                        self.library, run_set, self.readable, self.find_project
                    ),
                )
            about |= {"runs": runs.as_json(), "missing": runs.missing, "problem": runs.problem}
            if not runs.runs and not runs.groups:
                return PanelAnswer(lambda: about, tuple(runs.projects))
            source: PanelItems | PanelLines
            if panel.has_items:
                source = PanelItems(panel, runs, self.library, self.findings)
                encode = await source.read()
            else:
                source = PanelLines(panel, runs, self.kept_means, self.kept.lines, self.panels)
                encode = await source.read(requested)
        except ValueError as error:
            return PanelAnswer(_saying(about, str(error)), tuple(runs.projects))
        return PanelAnswer(_joining(about, encode, source), tuple(runs.projects))


def as_answer(panel: ShownPanel, now_ms: int, problem: str | None = None) -> dict[str, Any]:
    """Return the answer of a panel that shows nothing yet."""
    return {
        "panel": panel.id,
        "kind": panel.kind,
        "as_of_ms": now_ms,
        "frozen": False,
        "runs": [],
        "missing": 0,
        "problem": problem,
        "problems": [],
        **_EMPTY,
    }


def unreadable(panel: ShownPanel, now_ms: int) -> dict[str, Any]:
    """Return the answer of a panel that a reader may see nothing of."""
    return as_answer(panel, now_ms, UNREADABLE)


def _saying(about: dict[str, Any], problem: str) -> Callable[[], dict[str, Any]]:
    return lambda: {**about, "problem": problem}


def _joining(
    about: dict[str, Any], encode: Callable[[], dict[str, Any]], source: PanelItems | PanelLines
) -> Callable[[], dict[str, Any]]:
    """Return what makes the whole answer. What is wrong with its lines shows when they are made."""

    def answer() -> dict[str, Any]:
        try:
            fields = encode()
        except ValueError as error:
            return {**about, "problem": str(error)}
        return {**about, **fields, "problems": list(source.problems)}

    return answer
