"""The team of the path, and what a response about it contains."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple, cast

from fastapi import Depends, Path
from pydantic import Field

from runvitals.model.account_names import ORGANISATION
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Entity
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.server.teams.storage.teams import TeamRow
from runvitals.store.errors import NotFound

TeamName = Annotated[str, Path(description="The team's name.", max_length=64)]
MemberName = Annotated[str, Path(description="The user's name.", max_length=64)]

_KINDS = ("team", "member", "service_account", "automation", "webhook", "slack", "secret", "usage", "storage")
TEAM_ACTIONS = frozenset(
    {action for action in Action if action.kind in _KINDS} - {Action.TEAM_CREATE}
    | {Action.PROJECT_CREATE, Action.PROJECT_READ_VISIBILITY}
)
"""The actions on a team that a response about it lists in `may`."""


def the_team(team: TeamName, access: TheAccess, requester: TheRequester) -> TeamRow:
    """Return the team of the path, or raise 404; `needs` has checked what the requester may do."""
    try:
        return access.accounts.teams.by_name(team)
    except NotFound:
        access.hide(requester, f"team {team!r}")


TheTeam = Annotated[TeamRow, Depends(the_team)]


class AutomationOwner(NamedTuple):
    """Who has automations and receivers of their messages: a team, or the organisation.

    `id`: as an entity.
    """

    id: int
    name: str


def the_automation_owner(team: TeamName, access: TheAccess, requester: TheRequester) -> AutomationOwner:
    """Return the team of the path or the organisation, or raise 404; `needs` has checked the rights."""
    if team.lower() == ORGANISATION:
        organisation = access.directory.entity_named(ORGANISATION)
        number = (
            access.accounts.ensure_organisation(access.clock()) if organisation is None else organisation.id
        )
        return AutomationOwner(number, ORGANISATION)
    row = the_team(team, access, requester)
    return AutomationOwner(row.id, row.name)


TheAutomationOwner = Annotated[AutomationOwner, Depends(the_automation_owner)]


def entity_of(access: AccessControl, team: TeamRow) -> Entity:
    """Return the team as decisions need it."""
    return access.directory.entity(team.id)


class TeamSchema(ResponseBody):
    """A team, and what the requester may do with it."""

    kind: Literal["team"]
    name: str
    display_name: str
    picture: str | None = Field(description="The digest of the picture.")
    description: str
    type: Literal["work", "academic"]
    company: str
    created_ms: int
    deleted_ms: int | None = Field(description="Since when it is in the trash.")
    may: list[str]


def team_schema(access: AccessControl, requester: Requester, team: TeamRow) -> TeamSchema:
    """Return a team with what the requester may do with it."""
    return TeamSchema(
        kind="team",
        name=team.name,
        display_name=team.display_name,
        picture=access.accounts.pictures.digests([team.id]).get(team.id),
        description=team.description,
        type=cast(Literal["work", "academic"], team.kind),
        company=team.company,
        created_ms=team.created_ms,
        deleted_ms=team.deleted_ms,
        may=access.may_list(requester, entity_of(access, team), TEAM_ACTIONS),
    )
