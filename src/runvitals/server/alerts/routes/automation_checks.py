"""Checks of what an automation does, before it is stored."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from runvitals.server.access.control import AccessControl
from runvitals.server.alerts.automations import (
    CallWebhook,
    InvalidAutomation,
    MailMembers,
    TellApprise,
    TellSlack,
    as_json,
    automation_of,
    check_about_registries,
)
from runvitals.server.alerts.payload_template import check_payload
from runvitals.server.http.errors import InvalidFields, checking
from runvitals.store.errors import NotFound


def checked_definition(
    definition: dict[str, Any], access: AccessControl, team_id: int, registry_id: int | None = None
) -> dict[str, Any]:
    """Check a definition, and return it with everything that was left out.

    Args:
        team_id: of the owner: a team, or the organisation.
        registry_id: the only registry of the organisation that it is to be about.

    Raises:
        InvalidFields: it is invalid, or names what the owner does not have.
    """
    is_of_team = not access.directory.entity(team_id).organisation
    try:
        automation = automation_of(definition)
        if not is_of_team:
            check_about_registries(automation, registry_id is not None)
    except InvalidAutomation as error:
        raise InvalidFields({error.field: str(error)}) from None
    destinations = access.metadata_store.alerts.destinations
    for number, action in enumerate(automation.actions):
        field = f"actions[{number}]"
        try:
            if isinstance(action, TellSlack):
                destinations.get("slack", team_id, action.destination)
            elif isinstance(action, TellApprise):
                destinations.get("apprise", team_id, action.destination)
            elif isinstance(action, CallWebhook):
                webhook = destinations.get("webhook", team_id, action.webhook)
                if action.payload is not None:
                    with checking(f"{field}.payload"):
                        signing_secret = webhook.settings["signing_secret"]
                        check_payload(action.payload, list(filter(None, [signing_secret])))
            elif isinstance(action, MailMembers):
                _check_members(access, f"{field}.members", action.members, team_id if is_of_team else None)
        except NotFound as error:
            raise InvalidFields({field: str(error)}) from None
    return as_json(automation)


def _check_members(access: AccessControl, field: str, names: Collection[str], team_id: int | None) -> None:
    """Check that users can get mail. `team_id` None: about the organisation, of which all active users are.

    Raises:
        InvalidFields: one cannot.
    """
    if team_id is not None:
        members = access.accounts.members.of_teams([team_id]).get(team_id, ())
        receivers = {member.name for member in members}
    else:
        receivers = set(access.accounts.users.active_among(names))
    if unknown := sorted(set(names) - receivers):
        which = "no member of the team" if team_id is not None else "no active user"
        raise InvalidFields({field: f"{', '.join(unknown)}: {which}"})
