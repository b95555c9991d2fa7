"""The runs of all run sets of a panel, and the groups that stand for some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from runvitals.model.run_groups import GroupValue
from runvitals.server.library.run_library import NamedRun
from runvitals.server.reports.run_sets import PanelRunSet, ShownRuns

UNREADABLE: Final = "This panel's runs were deleted or you may not read them."
NOTHING: Final = "No runs match."
MAX_RUNS: Final = 300
"""Of all run sets of a panel together, besides those in groups."""
_NOTHING: Final = "–"


@dataclass(frozen=True, slots=True)
class PanelGroup:
    """Runs with the same values, which a panel shows as one.

    Attributes:
        id: unlike that of any run.
    """

    id: str
    label: str
    run_set: PanelRunSet
    runs: tuple[NamedRun, ...]


@dataclass(slots=True)
class PanelRuns:
    """What a panel shows of its run sets.

    Attributes:
        runs: each once, with the run set that it is from, besides those in groups.
        shown: the run sets that may be read, by their places.
        missing: how many chosen runs there are no more.
        is_unreadable: a run set may not be read.
    """

    runs: list[tuple[PanelRunSet, NamedRun, ShownRuns]] = field(default_factory=list)
    groups: list[PanelGroup] = field(default_factory=list)
    shown: list[tuple[PanelRunSet, ShownRuns]] = field(default_factory=list)
    missing: int = 0
    is_unreadable: bool = False

    def add(self, run_set: PanelRunSet, shown_runs: ShownRuns) -> None:
        """Add the runs of a run set."""
        if shown_runs.project is None:
            self.is_unreadable = True
            return
        self.shown.append((run_set, shown_runs))
        self.missing += shown_runs.missing
        if run_set.group:
            self.groups += _groups(run_set, shown_runs)
            return
        run_ids = {run.id for _, run, _ in self.runs}
        new = [(run_set, run, shown_runs) for run in shown_runs.runs if run.id not in run_ids]
        self.runs += new[: MAX_RUNS - len(self.runs)]

    @property
    def named(self) -> list[NamedRun]:
        """The runs that are shown one by one."""
        return [run for _, run, _ in self.runs]

    @property
    def problem(self) -> str | None:
        """The text that a panel shows instead of values, or besides them."""
        if self.is_unreadable or (self.missing and not self.runs and not self.groups):
            return UNREADABLE
        return None if self.runs or self.groups else NOTHING

    @property
    def projects(self) -> list[int]:
        """The ids of the projects that values are from."""
        return sorted(
            {shown_runs.project.id for _, shown_runs in self.shown if shown_runs.project is not None}
        )

    def as_json(self) -> list[dict[str, Any]]:
        """Return runs and groups for an answer."""
        runs = [_run(run_set, run, shown_runs) for run_set, run, shown_runs in self.runs]
        return runs + [_group(group) for group in self.groups]


def _run(run_set: PanelRunSet, run: NamedRun, shown_runs: ShownRuns) -> dict[str, Any]:
    assert shown_runs.project is not None
    return {
        "id": run.id,
        "name": run.name,
        "state": run.state,
        "started_ms": run.started_ms,
        "end_ms": run.end_ms,
        "entity": shown_runs.project.entity,
        "project": shown_runs.project.project,
        "run_set": run_set.id,
        "group": None,
        "members": None,
        "color": run_set.colors.get(run.id),
    }


def _group(group: PanelGroup) -> dict[str, Any]:
    return {
        "id": group.id,
        "name": group.label,
        "state": "running" if any(run.state == "running" for run in group.runs) else "finished",
        "started_ms": min(run.started_ms for run in group.runs),
        "end_ms": max(run.end_ms for run in group.runs),
        "entity": None,
        "project": None,
        "run_set": group.run_set.id,
        "group": group.label,
        "members": len(group.runs),
        "color": group.run_set.colors.get(group.label),
    }


def _groups(run_set: PanelRunSet, shown_runs: ShownRuns) -> list[PanelGroup]:
    by_id = {run.id: run for run in shown_runs.runs}
    groups = []
    for members in shown_runs.groups:
        label = group_label(run_set.group, members.values)
        runs = tuple(by_id[run] for run in members.runs if run in by_id)
        if runs:
            groups.append(PanelGroup(f"group:{run_set.id}:{label}", label, run_set, runs))
    return groups


def group_label(names: Sequence[str], values: Sequence[GroupValue]) -> str:
    """Return what the runs of a group have in common.

    Example:
        >>> group_label(["config.lr", "tag"], [0.1, None])
        'lr: 0.1, tag: –'
    """
    return ", ".join(f"{_short(name)}: {_text(value)}" for name, value in zip(names, values, strict=True))


def _short(name: str) -> str:
    return name.removeprefix("config.").removeprefix("summary.")


def _text(value: GroupValue) -> str:
    if value is None:
        return _NOTHING
    return value if isinstance(value, str) else f"{value:.6g}"
