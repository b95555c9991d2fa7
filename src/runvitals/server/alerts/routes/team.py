"""`/teams/{team}/alerts`: what a team is notified of the runs of its projects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import Requester
from runvitals.server.alerts.routes.choices import ChosenEvents, EventChoices, Level, with_changes
from runvitals.server.alerts.routes.rules import RuleTarget, target_errors, targets_of
from runvitals.server.alerts.rules import MAX_TELL, SEVERITIES, is_target
from runvitals.server.alerts.settings import team_alerts
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.server.teams.routes.parameters import TheTeam, entity_of
from runvitals.server.teams.storage.teams import TeamRow

router = Router()


class TeamChange(RequestBody):
    """Changes; a field that is left out stays as it is."""

    events: EventChoices | None = None
    slack_destination: int | None = Field(
        None, description="Id of the team's Slack destination that gets the alerts; null: none."
    )

    routes: dict[Level, list[str]] | None = Field(
        None,
        description="By severity, whom rules notify that name nobody: `author`, `members`, or a channel such "
        "as `slack:3`.",
    )


class AlertDestination(ResponseBody):
    """A Slack destination of the team, as it is called."""

    id: int
    channel: str = Field(validation_alias="name")


class RuleRoutes(ResponseBody):
    """By severity, whom rules notify that name nobody."""

    info: list[str]
    warning: list[str]
    error: list[str]


class TeamAlertsSchema(ResponseBody):
    """The events that a team is notified of, and where."""

    events: ChosenEvents
    slack_destination: int | None
    slack_destinations: list[AlertDestination]
    routes: RuleRoutes
    targets: list[RuleTarget] = Field(description="Whom rules can notify.")
    editable: bool


@router.get("/teams/{team}/alerts", needs("team:read"), response_model=TeamAlertsSchema)
def alerts(team: TheTeam, access: TheAccess, requester: TheRequester) -> dict[str, Any]:
    """Return the events that the team is notified of, and where."""
    return _show(access, requester, team)


@router.put("/teams/{team}/alerts", needs("team:update"), response_model=TeamAlertsSchema)
def change_alerts(
    team: TheTeam, body: TeamChange, access: TheAccess, requester: TheRequester
) -> dict[str, Any]:
    """Change what the team is notified.

    Mails go to all members who may read the run and have not muted the team.
    """
    settings = access.metadata_store.alerts.settings
    before = team_alerts(settings.of_team(team.id))
    destination = before.slack_destination
    if "slack_destination" in body.model_fields_set:
        destination = body.slack_destination
        ids = {row.id for row in access.metadata_store.alerts.destinations.of_team("slack", team.id)}
        if destination is not None and destination not in ids:
            raise InvalidFields({"slack_destination": "the team has no such Slack destination"})
    routes = before.routes if body.routes is None else _routes(access, team, body.routes)
    data = {
        "events": with_changes(before.events, body.events),
        "slack_destination": destination,
        "routes": routes,
    }
    settings.put_team(team.id, data, requester.actor, access.clock())
    return _show(access, requester, team)


def _routes(access: AccessControl, team: TeamRow, routes: Mapping[Level, list[str]]) -> dict[str, list[str]]:
    wrong: dict[str, str] = {}
    for severity, targets in routes.items():
        field = f"routes.{severity}"
        if len(targets) > MAX_TELL or not all(map(is_target, targets)):
            wrong[field] = f"expected at most {MAX_TELL} of author, members, slack:ID, webhook:ID, apprise:ID"
        else:
            wrong |= target_errors(access.metadata_store, team.id, targets, field)
    if wrong:
        raise InvalidFields(wrong)
    return {severity: list(dict.fromkeys(targets)) for severity, targets in routes.items()}


def _show(access: AccessControl, requester: Requester, team: TeamRow) -> dict[str, Any]:
    chosen = team_alerts(access.metadata_store.alerts.settings.of_team(team.id))
    destinations = access.metadata_store.alerts.destinations.of_team("slack", team.id)
    ids = {row.id for row in destinations}
    editable = access.may(requester, Action.TEAM_UPDATE, entity_of(access, team))
    return {
        "events": chosen.events,
        "slack_destination": chosen.slack_destination if chosen.slack_destination in ids else None,
        "slack_destinations": destinations,
        "routes": {severity: list(chosen.routes.get(severity, ())) for severity in SEVERITIES},
        "targets": targets_of(access.metadata_store, team.id),
        "editable": editable,
    }
