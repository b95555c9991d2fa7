"""Guest links: `…/links` of a project or run. A link lets anyone who has it read that, without an account."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import HTTPException, Path
from pydantic import Field

from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import Requester
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import checking
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.projects.storage.guest_links import GuestLinkRow
from runvitals.server.runs.routes.parameters import RunNumber
from runvitals.server.runs.routes.project_parameters import PATH, TheProject
from runvitals.server.service_parameters import TheAccess, TheRequester

RUN_PATH = "/runs/{run}"
LinkId = Annotated[int, Path(ge=1, le=2**31 - 1)]


class NewLink(RequestBody):
    """A guest link to be made."""

    expires_ms: int | None = Field(None, ge=0, le=2**53, description="ms UTC; null: until it is revoked.")


class GuestLinkSchema(ResponseBody):
    """A link without its secret."""

    id: int
    created_ms: int
    expires_ms: int | None = Field(description="None: until it is revoked.")


class ShownGuestLink(GuestLinkSchema):
    """A link with its secret, which is shown once."""

    url: str


GuestLinksPage = page_body("GuestLinksPage", "A page of guest links.", links=list[GuestLinkSchema])


router = Router()


@router.get(f"{PATH}/links", needs("project:share"), response_model=GuestLinksPage)
def project_links(project: TheProject, access: TheAccess, page: ThePage) -> dict[str, Any]:
    """The valid links to a project."""
    rows = access.accounts.guest_links.all(access.clock(), project_id=project.id)
    return page_of("links", rows, lambda row: row.id, page)


@router.post(f"{PATH}/links", needs("project:share"), status_code=201)
def create_project_link(
    project: TheProject, new: NewLink, access: TheAccess, requester: TheRequester
) -> ShownGuestLink:
    """Make a link that lets anyone read a project. It is shown once."""
    with checking("expires_ms"):
        secret, row = access.accounts.guest_links.create(
            requester.actor, access.clock(), project_id=project.id, expires_ms=new.expires_ms
        )
    return shown_link(secret, row)


@router.delete(f"{PATH}/links/{{link}}", needs("project:share"), status_code=204)
def revoke_project_link(
    project: TheProject, link: LinkId, access: TheAccess, requester: TheRequester
) -> None:
    """Revoke a link."""
    rows = access.accounts.guest_links.all(access.clock(), project_id=project.id)
    revoke_listed(access, requester, rows, link)


@router.get(f"{RUN_PATH}/links", needs("project:share"), response_model=GuestLinksPage)
def run_links(
    run: str, number: RunNumber, access: TheAccess, requester: TheRequester, page: ThePage
) -> dict[str, Any]:
    """The valid links to a run."""
    rows = access.accounts.guest_links.all(access.clock(), run_id=_require_run(run, number))
    return page_of("links", rows, lambda row: row.id, page)


@router.post(f"{RUN_PATH}/links", needs("project:share"), status_code=201)
def create_run_link(
    run: str, number: RunNumber, new: NewLink, access: TheAccess, requester: TheRequester
) -> ShownGuestLink:
    """Make a link that lets anyone read a run. It is shown once."""
    run_id = _require_run(run, number)
    with checking("expires_ms"):
        secret, row = access.accounts.guest_links.create(
            requester.actor, access.clock(), run_id=run_id, expires_ms=new.expires_ms
        )
    return shown_link(secret, row)


@router.delete(f"{RUN_PATH}/links/{{link}}", needs("project:share"), status_code=204)
def revoke_run_link(
    run: str, number: RunNumber, link: LinkId, access: TheAccess, requester: TheRequester
) -> None:
    """Revoke a link."""
    run_id = _require_run(run, number)
    revoke_listed(access, requester, access.accounts.guest_links.all(access.clock(), run_id=run_id), link)


def _require_run(uid: str, number: int | None) -> int:
    """The id of the run of the path; `needs` has looked it up."""
    if number is None:
        raise HTTPException(404, f"there is no run {uid!r}")
    return number


def revoke_listed(
    access: AccessControl, requester: Requester, rows: list[GuestLinkRow], link_id: int
) -> None:
    """Revoke one of some links, or raise 404."""
    if link_id not in {row.id for row in rows}:
        raise HTTPException(404, f"there is no link {link_id}")
    access.accounts.guest_links.revoke(link_id, requester.actor, access.clock())
    access.rights_changed()


def shown_link(secret: str, row: GuestLinkRow) -> ShownGuestLink:
    """Return a new link with its secret."""
    return ShownGuestLink(
        id=row.id, created_ms=row.created_ms, expires_ms=row.expires_ms, url=f"/-/shared#{secret}"
    )
