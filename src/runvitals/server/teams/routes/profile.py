"""`/teams/{team}/profile`: the page of a team. Each reader gets only what they may read."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import Requester
from runvitals.server.accounts.routes.profile import ShownLink
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.router import Router
from runvitals.server.outside_services import OutsideServices
from runvitals.server.projects.routes.readable import project_json, readable_projects
from runvitals.server.reports.routes.pins import PinnedReports, pinned_reports, set_pinned_reports
from runvitals.server.reports.routes.report_models import ListedReport
from runvitals.server.service_parameters import TheAccess, TheOutsideServices, TheRequester
from runvitals.server.teams.routes.joining import WayToJoin, join_of
from runvitals.server.teams.routes.parameters import TeamSchema, TheTeam, entity_of, team_schema
from runvitals.server.teams.storage.teams import TeamRow
from runvitals.server.user_content.markdown import MAX_CHARACTERS, html_of

_MAX_LINKS = 10
_SCHEMES = ("https://", "http://", "mailto:")


class TeamLink(RequestBody):
    """A link on the page of a team."""

    label: str = Field("", max_length=64)
    url: str = Field(max_length=2000)


class TeamProfileChanges(RequestBody):
    """Fields that are left out do not change."""

    intro: str | None = Field(None, max_length=MAX_CHARACTERS, description="Markdown.")
    links: list[TeamLink] | None = Field(None, max_length=_MAX_LINKS)
    pinned_projects: list[Annotated[str, Field(max_length=256)]] | None = Field(None, max_length=20)
    pinned_reports: PinnedReports = None


class ShownMember(ResponseBody):
    """A member on the page of a team."""

    name: str
    display_name: str
    role: str = Field(description="The name of the custom role, where they have one.")
    picture: str | None


class TeamPage(TeamSchema):
    """A team's page, with the projects that the requester may read."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    intro: str = Field(description="Markdown.")
    intro_html: str
    links: list[ShownLink]
    pinned_projects: list[str]
    pinned_reports: list[ListedReport]
    projects: list[dict[str, Any]]
    join: WayToJoin | None = Field(description="How the requester may join it; null for members.")
    members: list[ShownMember] | None = Field(default=None, description="For those who may read them.")


router = Router()


@router.get("/teams/{team}/profile", needs("team:profile"), response_model_exclude_unset=True)
def team_profile(
    team: TheTeam, access: TheAccess, requester: TheRequester, outside: TheOutsideServices
) -> TeamPage:
    """Return a team's page, with the projects that the requester may read."""
    return team_page(access, requester, team, outside)


@router.patch("/teams/{team}/profile", needs("team:update"), response_model_exclude_unset=True)
def change_profile(
    team: TheTeam,
    changes: TeamProfileChanges,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
) -> TeamPage:
    """Change intro, links or pins. What is left out does not change."""
    _check_links(changes.links or [])
    fields = changes.model_dump(exclude_none=True, exclude={"pinned_reports"})
    if changes.pinned_reports is not None:
        set_pinned_reports(access, requester, team.id, changes.pinned_reports, is_team=True)
    access.accounts.teams.set_profile(team.name, requester.actor, access.clock(), fields)
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
) -> TeamPage:
    """Return what a team shows about itself, with the projects that the requester may read."""
    profile = access.accounts.teams.profile(team.id)
    projects = {project.name: project for project in readable_projects(access, requester, team.id)}
    page = TeamPage(
        **team_schema(access, requester, team).model_dump(),
        intro=profile.get("intro", ""),
        intro_html=html_of(profile.get("intro", ""), outside.image_links()),
        links=profile.get("links", []),
        pinned_projects=[name for name in profile.get("pinned_projects", []) if name in projects],
        pinned_reports=[
            ListedReport.model_validate(report) for report in pinned_reports(access, requester, team.id)
        ],
        projects=[project_json(team.name, project) for project in projects.values()],
        join=join_of(access, requester, team),
    )
    if access.may(requester, Action.TEAM_READ, entity_of(access, team)):
        members = access.accounts.members.of_team(team.name)
        pictures = access.accounts.pictures.digests_of_users(row.user_id for row in members)
        page.members = [
            ShownMember(
                name=row.name,
                display_name=row.display_name,
                role=row.custom_role or row.role,
                picture=pictures.get(row.user_id),
            )
            for row in members
        ]
    return page
