"""With whose rights panels of reports are read, and which projects a requester sees in a report."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from runvitals.model.errors import UnknownProject
from runvitals.server.access.control import AccessControl
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import ProjectItem
from runvitals.server.reports.document import Document
from runvitals.server.reports.panel_data import PanelReader
from runvitals.server.reports.panel_rights import panel_runs, places_of_new_panels, without_unreadable
from runvitals.server.reports.run_sets import PanelProject
from runvitals.server.services import SharedServices
from runvitals.store.errors import NotFound


def reader_of(
    services: SharedServices, requester: Requester, report: ProjectItem, published: bool
) -> PanelReader:
    """Return what reads panels of a report with the rights of the requester."""
    readable = panel_runs(services.access.directory, requester.principal, report, published=published)
    return PanelReader(
        services.library,
        services.findings,
        services.kept_means,
        services.kept_panels(),
        readable,
        project_finder(services.access),
    )


def project_finder(access: AccessControl) -> Callable[[str, str], PanelProject | None]:
    """Return what finds a project by its name, also by a former one."""

    def find(entity: str, name: str) -> PanelProject | None:
        owner = access.directory.entity_named(entity)
        if owner is None:
            return None
        try:
            project = access.directory.project_named(owner.id, name)
            if project is None:
                number = access.accounts.project_redirects.target(owner.id, name, access.clock())
            else:
                number = project.id
            if number is None:
                return None
            row = access.accounts.owned_projects.get(number)
        except (NotFound, UnknownProject):  # removed a moment ago
            return None
        return PanelProject(number, row.entity, row.name)

    return find


def shown_to_readers(
    access: AccessControl, requester: Requester, report: ProjectItem, document: Document
) -> Document:
    """Return a document as somebody may see it who may not change it: without what they may not read."""
    readable = panel_runs(access.directory, requester.principal, report, published=True)
    if readable is None:
        return document
    find = project_finder(access)

    @cache
    def may_read(entity: str, name: str) -> bool:
        project = find(entity, name)
        return project is not None and project.id in readable.projects

    return without_unreadable(document, may_read)


def unreadable_place(
    access: AccessControl, requester: Requester, before: Document | None, after: Document
) -> str | None:
    """Return a project, of those that a change lets panels show, that somebody may not read; None: none."""
    readable = access.directory.readable_runs(requester.principal)
    find = project_finder(access)
    for entity, name in sorted(places_of_new_panels(before, after)):
        project = find(entity, name)
        if readable is not None and (project is None or project.id not in readable.projects):
            return f"{entity}/{name}"
    return None
