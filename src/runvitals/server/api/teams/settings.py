"""`/teams/{team}/settings` and `/teams/{team}/privacy`: what a team's settings page shows and changes."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, ConfigDict

from runvitals.accounts.actions import Action
from runvitals.accounts.organisation_settings import enforced_switches
from runvitals.server.access.control import AccessControl, TheAccess
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import Requester, TheRequester
from runvitals.server.api.teams.parameters import TEAM_ACTIONS, TheTeam, entity_of
from runvitals.store.metadata.accounts.teams import TeamRow

_GENERAL = {
    "display_name": "display_name",
    "description": "description",
    "type": "kind",
    "company": "company",
    "default_visibility": "default_visibility",
}
PRIVACY = ("hidden", "members_invite", "public_projects", "public_links", "code_saving")


class PrivacyChanges(BaseModel):
    """Switches; what is left out does not change."""

    model_config = ConfigDict(extra="forbid", strict=True)

    hidden: bool | None = None
    members_invite: bool | None = None
    public_projects: bool | None = None
    public_links: bool | None = None
    code_saving: bool | None = None


router = APIRouter()


@router.get("/teams/{team}/settings", dependencies=[needs("team:read_settings")])
def team_settings(team: TheTeam, access: TheAccess, requester: TheRequester) -> dict[str, Any]:
    """All settings of a team, each with whether the requester may change it and what locks it."""
    return _settings(access, requester, team)


@router.patch("/teams/{team}/privacy", dependencies=[needs("team:update_privacy")])
def change_privacy(
    team: TheTeam, changes: PrivacyChanges, access: TheAccess, requester: TheRequester
) -> dict[str, Any]:
    """Change privacy settings. Projects that are public already stay so; public links are revoked."""
    wanted = changes.model_dump(exclude_none=True)
    for name in enforced_switches(access.accounts.settings.all()).keys() & wanted.keys():
        raise HTTPException(409, f"{name} is set by the organisation for all teams")
    now_ms = access.clock()
    changed = access.accounts.teams.update(team.name, requester.actor, now_ms, **wanted)
    if wanted.get("public_links") is False:
        access.accounts.guest_links.revoke_of_entity(team.id, requester.actor, now_ms)
    access.rights_changed()
    return _settings(access, requester, changed)


def _settings(access: AccessControl, requester: Requester, team: TeamRow) -> dict[str, Any]:
    entity = entity_of(access, team)
    general = access.may(requester, Action.TEAM_UPDATE, entity)
    privacy = access.may(requester, Action.TEAM_UPDATE_PRIVACY, entity)
    enforced = enforced_switches(access.accounts.settings.all())
    shown: dict[str, Any] = {"name": _setting(team.name, False)}
    for name, field in _GENERAL.items():
        shown[name] = _setting(getattr(team, field), general)
    for name in PRIVACY:
        locked = "organisation" if name in enforced else None
        value = enforced.get(name, getattr(team, name))
        shown[name] = _setting(value, privacy and locked is None, locked)
    return {"settings": shown, "may": access.may_list(requester, entity, TEAM_ACTIONS)}


def _setting(value: object, editable: bool, enforced_by: str | None = None) -> dict[str, object]:
    return {"value": value, "editable": editable, "enforced_by": enforced_by}
