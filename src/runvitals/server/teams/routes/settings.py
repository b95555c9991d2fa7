"""`/teams/{team}/settings` and `/teams/{team}/privacy`: what a team's settings page shows and changes."""

from __future__ import annotations

from typing import Any

from fastapi import HTTPException
from pydantic import ConfigDict, Field

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import Requester
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.router import Router
from runvitals.server.mail import team_messages
from runvitals.server.organisation.settings import enforced_switches
from runvitals.server.service_parameters import TheAccess, TheNotices, TheRequester
from runvitals.server.teams.routes.parameters import TEAM_ACTIONS, TheTeam, entity_of
from runvitals.server.teams.storage.teams import TeamRow

_GENERAL = {
    "display_name": "display_name",
    "description": "description",
    "type": "kind",
    "company": "company",
    "default_visibility": "default_visibility",
    "join_domains": "join_domains",
    "join_by_domain": "join_by_domain",
}
PRIVACY = (
    "hidden",
    "members_invite",
    "public_projects",
    "public_links",
    "code_saving",
    "recommend_by_domain",
)


class PrivacyChanges(RequestBody):
    """Switches; what is left out does not change."""

    model_config = ConfigDict(strict=True)

    hidden: bool | None = None
    members_invite: bool | None = None
    public_projects: bool | None = None
    public_links: bool | None = None
    code_saving: bool | None = None
    recommend_by_domain: bool | None = None


class TeamSetting(ResponseBody):
    """A setting with whether and why it cannot be changed."""

    value: Any
    editable: bool
    enforced_by: str | None


class TeamSettingsSchema(ResponseBody):
    """The settings of a team by name, and what the requester may do with it."""

    settings: dict[str, TeamSetting]
    may: list[str]
    public_links: int = Field(description="That work now: they end if public links are switched off.")


router = Router()


@router.get("/teams/{team}/settings", needs("team:read_settings"))
def team_settings(team: TheTeam, access: TheAccess, requester: TheRequester) -> TeamSettingsSchema:
    """All settings of a team, each with whether the requester may change it and what locks it."""
    return _settings(access, requester, team)


@router.patch("/teams/{team}/privacy", needs("team:update_privacy"))
def change_privacy(
    team: TheTeam,
    changes: PrivacyChanges,
    access: TheAccess,
    requester: TheRequester,
    notices: TheNotices,
) -> TeamSettingsSchema:
    """Change privacy settings. Projects that are public already stay so; public links are revoked.

    The administrators of the team get a mail.
    """
    switches = changes.model_dump(exclude_none=True)
    for name in enforced_switches(access.accounts.settings.all()).keys() & switches.keys():
        raise HTTPException(409, f"{name} is set by the organisation for all teams")
    accounts, by, now_ms = access.accounts, requester.actor, access.clock()
    altered = [
        f"{name.replace('_', ' ')} {'on' if value else 'off'}"
        for name, value in switches.items()
        if getattr(team, name) != value
    ]

    def change() -> TeamRow:
        changed = accounts.teams.update(team.name, by, now_ms, **switches)
        if switches.get("public_links") is False:
            accounts.guest_links.revoke_of_entity(team.id, by, now_ms)
        return changed

    changed = accounts.in_one_transaction(change)
    access.rights_changed()
    if altered:
        message = team_messages.privacy_changed(team.name, requester.name, altered)
        notices.to_team_administrators(team.name, message)
    return _settings(access, requester, changed)


def _settings(access: AccessControl, requester: Requester, team: TeamRow) -> TeamSettingsSchema:
    entity = entity_of(access, team)
    general = access.may(requester, Action.TEAM_UPDATE, entity)
    privacy = access.may(requester, Action.TEAM_UPDATE_PRIVACY, entity)
    enforced = enforced_switches(access.accounts.settings.all())
    settings = {"name": _setting(team.name, False)}
    for name, field in _GENERAL.items():
        settings[name] = _setting(getattr(team, field), general)
    for name in PRIVACY:
        locked = "organisation" if name in enforced else None
        value = enforced.get(name, getattr(team, name))
        settings[name] = _setting(value, privacy and locked is None, locked)
    return TeamSettingsSchema(
        settings=settings,
        may=access.may_list(requester, entity, TEAM_ACTIONS),
        public_links=access.accounts.guest_links.count(access.clock(), team.id),
    )


def _setting(value: object, editable: bool, enforced_by: str | None = None) -> TeamSetting:
    return TeamSetting(value=value, editable=editable, enforced_by=enforced_by)
