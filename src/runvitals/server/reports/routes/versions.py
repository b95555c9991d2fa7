"""`/reports/{report}/versions` and `edits`: who wrote what when, and going back to it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import HTTPException, Path

from runvitals.server.access.permission import needs
from runvitals.server.http.listing import ThePage, page_in_order
from runvitals.server.http.router import Router
from runvitals.server.reports.own_edits import Edit, own_edits
from runvitals.server.reports.routes import report_models as models
from runvitals.server.reports.routes.reports import REPORT, TheReport, TheUserId, author_of, record
from runvitals.server.reports.routes.shown_reports import full_report
from runvitals.server.service_parameters import TheAccess, TheOutsideServices, TheRequester
from runvitals.store.errors import NotFound

RevisionOfPath = Annotated[int, Path(ge=1, le=2**31 - 1)]
router = Router()


@router.get(f"{REPORT}/versions", needs("report:update"), response_model=models.ReportVersionsPage)
def report_versions(report: TheReport, access: TheAccess, page: ThePage) -> Any:
    """The versions of a report, the newest first: of each author the last of ten minutes."""
    return page_in_order("versions", access.accounts.reports.versions(report.id), page)


@router.get(f"{REPORT}/edits", needs("report:update"), response_model=models.ReportEditsPage)
def report_edits(report: TheReport, access: TheAccess, user_id: TheUserId, page: ThePage) -> Any:
    """Your own edits of the working copy that you have not taken back, the newest first, to undo them.

    They are of the newest 100 versions that are kept.
    """
    edits = own_edits(access.accounts.reports.newest_documents(report.id), user_id)
    return page_in_order("edits", [_to_response(edit) for edit in edits], page)


@router.post(
    f"{REPORT}/versions/{{revision}}/restore", needs("report:update"), response_model=models.ReportSchema
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
    return full_report(
        access, requester, report, row, row.head_revision, saved.document, outside.image_links()
    )


def _to_response(edit: Edit) -> dict[str, Any]:
    return {
        "revision": edit.revision,
        "created_ms": edit.created_ms,
        "title": edit.title and edit.title._asdict(),
        "description": edit.description and edit.description._asdict(),
        "blocks": [{"id": block_id, **change._asdict()} for block_id, change in edit.blocks.items()],
        "order": edit.order and edit.order._asdict(),
    }
