"""Whose runs the panels of a report show to whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from runvitals.model.filter import ReadableRuns
from runvitals.server.access.decisions.directory import Directory
from runvitals.server.access.principals import GuestLink, Principal
from runvitals.server.access.resources import ProjectItem
from runvitals.server.reports.document import Document, panels_of

_LAYOUT = frozenset(("title", "columns", "rows"))


def panel_runs(
    directory: Directory, principal: Principal, report: ProjectItem, *, published: bool
) -> ReadableRuns | None:
    """Return the runs that the panels of a report may show to somebody; None: all.

    Who may read a published report sees what its panels show of its own project; that is what it was shared
    for. Of other projects a reader sees what they may read themself, and a guest what the maker of the link
    may read now. The working copy shows an editor only what they may read.
    """
    own = frozenset((report.project.id,))
    if isinstance(principal, GuestLink):
        maker = None if principal.maker is None else directory.user(principal.maker)
        readable = ReadableRuns() if maker is None else directory.readable_runs(maker)
        return ReadableRuns(projects=own | (frozenset() if readable is None else readable.projects))
    readable = directory.readable_runs(principal)
    if readable is None or not published or report.project.id in readable.projects:
        return readable
    return replace(readable, projects=readable.projects | own)


def places_of_new_panels(before: Document | None, after: Document) -> set[tuple[str, str]]:
    """Return the projects, by entity and name, of panels that a change adds or lets show something else."""
    old_contents = {} if before is None else dict(_contents(before))
    return {
        (run_set["entity"], run_set["project"])
        for name, content in _contents(after)
        if old_contents.get(name) != content
        for run_set in content[1]
    }


def without_unreadable(document: Document, may_read: Callable[[str, str], bool]) -> Document:
    """Return a document without the names, filters and runs of run sets whose project may not be read."""

    def run_set_of(run_set: Mapping[str, Any]) -> dict[str, Any]:
        if may_read(run_set["entity"], run_set["project"]):
            return dict(run_set)
        nowhere: dict[str, Any] = {"entity": "-", "project": "-", "name": "", "filter": "", "sort": ""}
        return {**run_set, **nowhere, "group": [], "runs": None, "hidden": [], "colors": {}}

    blocks = [
        {**block, "run_sets": [run_set_of(run_set) for run_set in block["run_sets"]]}
        if block["kind"] == "panels"
        else block
        for block in document["blocks"]
    ]
    return {**document, "blocks": blocks}


def _contents(document: Document) -> Iterator[tuple[str, tuple[Any, list[dict[str, Any]]]]]:
    """Yield what each panel shows, whatever its place, size and title."""
    for block, panel in panels_of(document):
        chosen = [run_set for run_set in block["run_sets"] if run_set["id"] in panel["run_sets"]]
        fields = {name: value for name, value in panel.items() if name not in _LAYOUT}
        yield panel["id"], (fields, chosen)
