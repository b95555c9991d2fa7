"""`/teams/{team}/profile`: the page of a team. Each reader gets only what they may read."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import Requester, TheRequester
from runvitals.server.http.bodies import RequestBody
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.router import Router
from runvitals.server.outside_services import OutsideServices
from runvitals.server.projects.routes.readable import project_json, readable_projects
from runvitals.server.service_parameters import TheAccess, TheOutsideServices
from runvitals.server.teams.routes.joining import join_of
from runvitals.server.teams.routes.parameters import TheTeam, entity_of, team_json
from runvitals.server.teams.storage.teams import TeamRow
from runvitals.server.user_content.markdown import MAX_CHARACTERS, html_of

_MAX_LINKS = 10
_SCHEMES = ("https://", "http://", "mailto:")


class TeamLink(RequestBody):
    label: str = Field("", max_length=64)
    url: str = Field(max_length=2000)


class TeamProfileChanges(RequestBody):
    intro: str | None = Field(None, max_length=MAX_CHARACTERS, description="Markdown.")
    links: list[TeamLink] | None = Field(None, max_length=_MAX_LINKS)
    pinned_projects: list[Annotated[str, Field(max_length=256)]] | None = Field(None, max_length=20)


router = Router()


@router.get("/teams/{team}/profile", dependencies=[needs("team:profile")])
def team_profile(
    team: TheTeam, access: TheAccess, requester: TheRequester, outside: TheOutsideServices
) -> dict[str, Any]:
    """What a team shows about itself, with the projects that the requester may read."""
    return team_page(access, requester, team, outside)


@router.patch("/teams/{team}/profile", dependencies=[needs("team:update")])
def change_profile(
    team: TheTeam,
    changes: TeamProfileChanges,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
) -> dict[str, Any]:
    """Change intro, links or pins. What is left out does not change."""
    _check_links(changes.links or [])
    wanted = changes.model_dump(exclude_none=True)
    access.accounts.teams.set_profile(team.name, requester.actor, access.clock(), wanted)
    return team_page(access, requester, team, outside)


def _check_links(links: list[TeamLink]) -> None:
    wrong = {
        f"links[{number}].url": "expected a link that begins with https://, http:// or mailto:"
        for number, link in enumerate(links)
        if not link.url.lower().startswith(_SCHEMES)
    }
    if wrong:
        raise InvalidFields(wrong)


def team_page(
    access: AccessControl, requester: Requester, team: TeamRow, outside: OutsideServices
) -> dict[str, Any]:
    """What a team shows about itself, with the projects that the requester may read."""
    stored = access.accounts.teams.profile(team.id)
    projects = {project.name: project for project in readable_projects(access, requester, team.id)}
    shown: dict[str, Any] = {
        **team_json(access, requester, team),
        "intro": stored.get("intro", ""),
        "intro_html": html_of(stored.get("intro", ""), outside.image_links()),
        "links": stored.get("links", []),
        "pinned_projects": [name for name in stored.get("pinned_projects", []) if name in projects],
        "projects": [project_json(team.name, project) for project in projects.values()],
        "join": join_of(access, requester, team),
    }
    if access.may(requester, Action.TEAM_READ, entity_of(access, team)):
        members = access.accounts.members.of_team(team.name)
        pictures = access.accounts.pictures.digests_of_users(row.user_id for row in members)
        shown["members"] = [
            {
                "name": row.name,
                "display_name": row.display_name,
                "role": row.custom_role or row.role,
                "picture": pictures.get(row.user_id),
            }
            for row in members
        ]
    return shown
