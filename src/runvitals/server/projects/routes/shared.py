"""`/shared`: what a guest link leads to, for whoever has it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header, HTTPException
from pydantic import Field

from runvitals.model.errors import UnknownProject
from runvitals.server.access.actions import PUBLIC, Action
from runvitals.server.access.identification.credentials import LINK_HEADER
from runvitals.server.access.permission import needs, with_accounts
from runvitals.server.access.principals import GuestLink
from runvitals.server.access.resources import ProjectItem
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.http.router import Router
from runvitals.server.reports.report_ids import slug_of
from runvitals.server.reports.storage.rows import ReportRow
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.store.errors import NotFound

router = Router()


class SharedReport(ResponseBody):
    """A report that a guest link leads to."""

    id: int
    slug: str


class SharedPlace(ResponseBody):
    """The project, run or report that a guest link leads to."""

    entity: str
    project: str
    run: str | None = Field(description="None: all of the project, or a report.")
    report: SharedReport | None = Field(description="None: not a report.")
    expires_ms: int | None = Field(description="None: until the link is revoked.")


@router.get("/shared", needs(PUBLIC), with_accounts(), response_model=SharedPlace)
def shared(
    access: TheAccess,
    requester: TheRequester,
    x_runvitals_link: Annotated[str | None, Header(description="The secret of the link.")] = None,
) -> dict[str, Any]:
    """Where a guest link leads, and until when it works. `run` and `report` null: to all of the project."""
    link = requester.principal
    row = access.accounts.guest_links.check(x_runvitals_link or "", access.clock())
    if not isinstance(link, GuestLink) or row is None:
        raise HTTPException(401, f"send the secret of a guest link as {LINK_HEADER}")
    gone = HTTPException(410, "what this link leads to was deleted, or links were switched off")
    shared_run = None if row.run_id is None else access.metadata_store.runs.place(row.run_id)
    try:
        shared_report = None if row.report_id is None else access.accounts.reports.get(row.report_id)
        project_id = row.project_id
        if shared_run is not None:
            project_id = shared_run.project_id
        elif shared_report is not None:
            project_id = shared_report.project_id
        if project_id is None:
            raise gone
        project = access.directory.project(project_id)
        detail = access.accounts.owned_projects.get(project_id)
        if shared_report is not None:
            item = access.report_resource(link, shared_report)
            allowed = access.may(requester, Action.REPORT_READ, item)
        elif shared_run is not None:
            item = ProjectItem(
                "run", shared_run.run_id, project, shared_run.author_id, deleted=shared_run.deleted
            )
            allowed = access.may(requester, Action.RUN_READ, item)
        else:
            allowed = access.may(requester, Action.PROJECT_READ, project)
    except (UnknownProject, NotFound):
        raise gone from None
    if not allowed:
        raise gone
    return {
        "entity": detail.entity,
        "project": detail.name,
        "run": None if shared_run is None else shared_run.uid,
        "report": None if shared_report is None else _report(shared_report),
        "expires_ms": row.expires_ms,
    }


def _report(row: ReportRow) -> dict[str, Any]:
    return {"id": row.id, "slug": slug_of(row.title)}
