"""`/reports/{report}/versions`: who wrote what when, and going back to it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import HTTPException, Path

from runvitals.server.access.permission import needs
from runvitals.server.access.requester import TheRequester
from runvitals.server.http.listing import ThePage, page_in_order
from runvitals.server.http.router import Router
from runvitals.server.reports.routes import report_models as models
from runvitals.server.reports.routes.reports import REPORT, TheReport, author_of, record
from runvitals.server.reports.routes.shown_reports import whole
from runvitals.server.service_parameters import TheAccess, TheOutsideServices
from runvitals.store.errors import NotFound

RevisionOfPath = Annotated[int, Path(ge=1, le=2**31 - 1)]
router = Router()


@router.get(
    f"{REPORT}/versions", response_model=models.ReportVersionsPage, dependencies=[needs("report:update")]
)
def report_versions(report: TheReport, access: TheAccess, page: ThePage) -> Any:
    """The versions of a report, the newest first: of each author the last of ten minutes."""
    return page_in_order("versions", access.accounts.reports.versions(report.id), page)


@router.post(
    f"{REPORT}/versions/{{revision}}/restore",
    response_model=models.ReportSchema,
    dependencies=[needs("report:update")],
)
def restore_version(
    report: TheReport,
    revision: RevisionOfPath,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
) -> Any:
    """Make an older version the working copy. What was there stays in the list of versions."""
    try:
        saved = access.accounts.reports.restore_version(
            report.id, revision, author_of(requester), access.clock()
        )
    except NotFound:
        raise HTTPException(404, f"revision {revision} of report {report.id} is not kept") from None
    row = saved.row
    record(access, requester, row, "report.update", revision=row.head_revision, restored=revision)
    return whole(access, requester, report, row, row.head_revision, saved.document, outside.image_links())
