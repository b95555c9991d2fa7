"""`…/shares` and `…/links` of a report: who may see it besides those who may read the project."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import HTTPException, Path
from pydantic import Field

from runvitals.server.access.permission import needs
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import checking
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.projects.routes.links import (
    GuestLinksPage,
    LinkId,
    NewLink,
    ShownGuestLink,
    revoke_listed,
    shown_link,
)
from runvitals.server.reports.routes.reports import REPORT, TheReport, record
from runvitals.server.reports.storage.rows import ShareRole
from runvitals.server.service_parameters import TheAccess, TheRequester

ShareName = Annotated[str, Path(description="The name of the user.", max_length=64)]
router = Router()


class ReportShareSchema(ResponseBody):
    """A person with whom a report is shared."""

    name: str
    role: ShareRole = Field(description="`edit`: may change and publish it too.")
    created_ms: int


ReportSharesPage = page_body("ReportSharesPage", "A page of people, by name.", shares=list[ReportShareSchema])


class ShareRoleBody(RequestBody):
    """What a person may do with a report."""

    role: ShareRole


class NewReportLink(NewLink):
    """A link to a report to be made: anyone who has it may read the report."""

    role: Literal["view"] = "view"
    public: Literal[True] = Field(True, description="To share a report with a person, use `shares`.")


@router.get(f"{REPORT}/shares", needs("report:share"), response_model=ReportSharesPage)
def report_shares(report: TheReport, access: TheAccess, page: ThePage) -> dict[str, Any]:
    """The people with whom a report is shared."""
    rows = access.accounts.report_shares.of_report(report.id)
    return page_of("shares", rows, lambda row: row.name, page)


@router.put(f"{REPORT}/shares/{{name}}", needs("report:share"), status_code=204)
def share_report(
    report: TheReport, name: ShareName, share: ShareRoleBody, access: TheAccess, requester: TheRequester
) -> None:
    """Share a report with a user, also one who is not in the team, or change what they may do.

    They see what its panels show of its own project. Panels of other projects show what they may read.
    """
    user = access.accounts.users.by_name(name)
    if user.state != "active":
        raise HTTPException(404, f"there is no user {name!r}")
    access.accounts.report_shares.put(report.id, user.id, share.role, requester.user_id, access.clock())
    access.rights_changed()
    row = access.accounts.reports.get(report.id)
    record(access, requester, row, "report.share", user=user.name, role=share.role)


@router.delete(f"{REPORT}/shares/{{name}}", needs("report:share"), status_code=204)
def unshare_report(report: TheReport, name: ShareName, access: TheAccess, requester: TheRequester) -> None:
    """Share a report with a user no longer."""
    user = access.accounts.users.by_name(name)
    if access.accounts.report_shares.remove(report.id, user.id):
        access.rights_changed()
        row = access.accounts.reports.get(report.id)
        record(access, requester, row, "report.share", user=user.name, role=None)


@router.get(f"{REPORT}/links", needs("report:share_public"), response_model=GuestLinksPage)
def report_links(report: TheReport, access: TheAccess, page: ThePage) -> dict[str, Any]:
    """The valid links to a report."""
    rows = access.accounts.guest_links.all(access.clock(), report_id=report.id)
    return page_of("links", rows, lambda row: row.id, page)


@router.post(f"{REPORT}/links", needs("report:share_public"), status_code=201)
def create_report_link(
    report: TheReport, new: NewReportLink, access: TheAccess, requester: TheRequester
) -> ShownGuestLink:
    """Make a link that lets anyone read a published report and what its panels show. It is shown once."""
    if report.draft:
        raise HTTPException(409, "nobody else can read a draft: publish the report first")
    with checking("expires_ms"):
        secret, row = access.accounts.guest_links.create(
            requester.actor, access.clock(), report_id=report.id, expires_ms=new.expires_ms
        )
    return shown_link(secret, row)


@router.delete(f"{REPORT}/links/{{link}}", needs("report:share_public"), status_code=204)
def revoke_report_link(report: TheReport, link: LinkId, access: TheAccess, requester: TheRequester) -> None:
    """Revoke a link."""
    rows = access.accounts.guest_links.all(access.clock(), report_id=report.id)
    revoke_listed(access, requester, rows, link)
