"""`/reports`: the reports of all projects that the requester may read; stars, and following."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request

from runvitals.server.access.actions import Action
from runvitals.server.access.permission import needs
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.listing import ThePage, page_in_order
from runvitals.server.http.router import Router
from runvitals.server.reports.routes import report_models as models
from runvitals.server.reports.routes.reports import REPORT, TheReport, TheUserId
from runvitals.server.reports.routes.shown_reports import shown_list
from runvitals.server.reports.storage.readers import Of, ReportSelection
from runvitals.server.service_parameters import TheAccess, TheRequester

router = Router()


@router.get("/reports", needs("filtered report:read"), response_model=models.ReportsPage)
def reports(
    request: Request,
    access: TheAccess,
    requester: TheRequester,
    page: ThePage,
    of: Annotated[
        Of,
        Query(
            description="Your own, those that you follow or have starred, those shared with you by name, or "
            "those of the team or user `entity`."
        ),
    ] = "all",
    entity: Annotated[str | None, Query(max_length=64, description="A team or user.")] = None,
    text: Annotated[
        str, Query(max_length=200, description="Every word of it, up to the eighth, occurs in the report.")
    ] = "",
) -> Any:
    """The reports that you may read, the one that changed last first; at most 1,000."""
    if of == "team" and entity is None:
        raise InvalidFields({"entity": "of=team expects a team or user"})
    readable = access.readable_runs(request)
    projects = None if readable is None else readable.projects
    selection = ReportSelection(of, projects, entity, text)
    rows = access.accounts.report_readers.selected(selection, requester.user_id)
    return page_in_order("reports", shown_list(access, requester, rows, Action.REPORT_READ), page)


@router.put(f"{REPORT}/star", needs("report:read"), status_code=204)
def star_report(report: TheReport, access: TheAccess, user_id: TheUserId) -> None:
    """Star a report: it is in the list of those that you have starred."""
    access.accounts.report_readers.star(report.id, user_id, True, access.clock())


@router.delete(f"{REPORT}/star", needs("report:read"), status_code=204)
def unstar_report(report: TheReport, access: TheAccess, user_id: TheUserId) -> None:
    """Take your star of a report away."""
    access.accounts.report_readers.star(report.id, user_id, False, access.clock())


@router.put(f"{REPORT}/follow", needs("report:follow"), status_code=204)
def follow_report(report: TheReport, access: TheAccess, user_id: TheUserId) -> None:
    """Follow a report: you are notified when it is published anew and of comments."""
    access.accounts.report_readers.follow(report.id, user_id, True, access.clock())


@router.delete(f"{REPORT}/follow", needs("report:follow"), status_code=204)
def unfollow_report(report: TheReport, access: TheAccess, user_id: TheUserId) -> None:
    """Stop following a report."""
    access.accounts.report_readers.follow(report.id, user_id, False, access.clock())
