"""The reports that the pages of teams and users show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import Field

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.requester import Requester
from runvitals.server.http.errors import InvalidFields
from runvitals.server.reports.routes.report_models import ReportNumber
from runvitals.server.reports.routes.shown_reports import shown_list
from runvitals.server.reports.storage.pins import MAX_PINS
from runvitals.store.errors import NotFound

PinnedReports = Annotated[
    list[ReportNumber] | None,
    Field(max_length=MAX_PINS, description="Ids of reports in the order in which the page shows them."),
]
_FIELD: Final = "pinned_reports"


def pinned_reports(access: AccessControl, requester: Requester, entity_id: int) -> list[dict[str, Any]]:
    """Return the pinned reports of a team or user that the requester may read, as lists have them."""
    rows = access.accounts.report_pins.of_entity(entity_id)
    return shown_list(access, requester, rows, Action.REPORT_READ)


def set_pinned_reports(
    access: AccessControl, requester: Requester, entity_id: int, report_ids: Sequence[int], is_team: bool
) -> None:
    """Replace the pins of a team or user.

    Args:
        is_team: only reports of the team's own projects may be pinned.

    Raises:
        InvalidFields: the requester may not read one of the reports, or it is not the team's.
    """
    for report_id in report_ids:
        try:
            row = access.accounts.reports.get(report_id)
        except NotFound:
            raise _unknown(report_id) from None
        item = access.report_resource(requester.principal, row)
        is_elsewhere = is_team and row.entity_id != entity_id
        if is_elsewhere or row.is_draft or not access.may(requester, Action.REPORT_READ, item):
            raise _unknown(report_id)
    access.accounts.report_pins.put(entity_id, report_ids)


def _unknown(report_id: int) -> InvalidFields:
    return InvalidFields({_FIELD: f"there is no published report {report_id} that can be shown here"})
