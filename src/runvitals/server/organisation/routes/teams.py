"""`/organisation/teams`: all teams, those without an administrator and those in the trash."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field

from runvitals.server.access.permission import needs
from runvitals.server.access.resources import Visibility
from runvitals.server.http.bodies import ResponseBody, page_body
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess

router = Router()


class OrgTeamSchema(ResponseBody):
    """A team as administrators of the organisation see it."""

    name: str
    display_name: str
    type: Literal["work", "academic"]
    company: str
    default_visibility: Visibility = Field(description="Of new projects.")
    members: int
    created_ms: int
    deleted_ms: int | None
    without_administrator: bool


OrgTeamsPage = page_body("OrgTeamsPage", "A page of teams.", teams=list[OrgTeamSchema])


@router.get("/organisation/teams", needs("org:member_read"), response_model=OrgTeamsPage)
def teams(
    access: TheAccess,
    page: ThePage,
    without_administrator: Annotated[bool, Query(description="Only teams that nobody administers.")] = False,
    deleted: Annotated[bool, Query(description="Only teams in the trash.")] = False,
    text: Annotated[str, Query(description="Part of name or display name.", max_length=100)] = "",
) -> dict[str, Any]:
    """All teams by name."""
    part = text.casefold()
    orphaned = set(access.accounts.teams.without_administrator())
    rows = [
        row
        for row in access.accounts.teams.all()
        if (not without_administrator or row.name in orphaned)
        and (not deleted or row.deleted_ms is not None)
        and (part in row.name or part in row.display_name.casefold())
    ]
    return page_of(
        "teams",
        rows,
        lambda row: row.name,
        page,
        lambda row: {
            "name": row.name,
            "display_name": row.display_name,
            "type": row.kind,
            "company": row.company,
            "default_visibility": row.default_visibility,
            "members": row.members,
            "created_ms": row.created_ms,
            "deleted_ms": row.deleted_ms,
            "without_administrator": row.name in orphaned,
        },
    )
