"""`/reports/{report}/editing`: who is editing a report at the moment."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.http.router import Router
from runvitals.server.reports.routes.reports import REPORT, TheReport, TheUserId
from runvitals.server.service_parameters import TheAccess, TheRequester

_EDITING = f"{REPORT}/editing"
router = Router()


class ReportEditorSchema(ResponseBody):
    """A user who is editing a report."""

    name: str
    display_name: str


class ReportEditing(ResponseBody):
    """Who else is editing a report, and how far it is."""

    revision: int = Field(description="Of the working copy.")
    editors: list[ReportEditorSchema] = Field(description="The first 20, by name, without you.")


@router.get(_EDITING, needs("report:update"), response_model=ReportEditing)
def report_editing(report: TheReport, access: TheAccess, requester: TheRequester) -> Any:
    """Who else is editing a report at the moment."""
    return _editing(access, report.id, requester.user_id)


@router.put(_EDITING, needs("report:update"), response_model=ReportEditing)
def edit_report(report: TheReport, access: TheAccess, user_id: TheUserId) -> Any:
    """Note that you are editing a report, for half a minute; answers who else is."""
    access.accounts.report_editors.note(report.id, user_id, access.clock())
    return _editing(access, report.id, user_id)


@router.delete(_EDITING, needs("report:update"), status_code=204)
def leave_report(report: TheReport, access: TheAccess, user_id: TheUserId) -> None:
    """Note that you edit a report no longer."""
    access.accounts.report_editors.remove(report.id, user_id)


def _editing(access: AccessControl, report_id: int, user_id: int | None) -> dict[str, Any]:
    accounts = access.accounts
    return {
        "revision": accounts.reports.get(report_id).head_revision,
        "editors": accounts.report_editors.others(report_id, user_id, access.clock()),
    }
