"""`/teams/{team}/projects`: the projects of a team, and who sees each."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Query

from runvitals.model.registry_names import is_registry
from runvitals.server.access.actions import Action
from runvitals.server.access.permission import needs
from runvitals.server.http.bodies import page_body
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.projects.routes.readable import project_json, readable_projects
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.server.teams.routes.parameters import TheTeam, entity_of

router = Router()


TeamProjectsPage = page_body(
    "TeamProjectsPage", "A page of the projects of a team.", projects=list[dict[str, Any]]
)


@router.get("/teams/{team}/projects", needs("team:profile"), response_model=TeamProjectsPage)
def team_projects(
    team: TheTeam,
    access: TheAccess,
    requester: TheRequester,
    page: ThePage,
    fields: Annotated[
        Literal["visibility"] | None,
        Query(description="`visibility`: name and visibility of all projects, for administrators."),
    ] = None,
) -> dict[str, Any]:
    """The projects that the requester may read, by name; or who sees which, of all projects of the team."""
    if fields is None:
        rows = sorted(readable_projects(access, requester, team.id), key=lambda row: row.name)
        return page_of("projects", rows, lambda row: row.name, page, lambda row: project_json(team.name, row))
    read_visibility, entity = Action.PROJECT_READ_VISIBILITY, entity_of(access, team)
    access.require(requester, read_visibility, entity, f"team {team.name!r}", changes=False)
    listed = access.accounts.project_members.of_entity(team.id)
    rows = sorted((row for row in listed if not is_registry(row.name)), key=lambda row: row.name)
    return page_of(
        "projects",
        rows,
        lambda row: row.name,
        page,
        lambda row: {"name": row.name, "visibility": row.visibility, "owner": row.owner},
    )
