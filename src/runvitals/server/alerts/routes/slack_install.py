"""`…/slack/install` of `/account` and `/teams/{team}`: channels by the operator's app of Slack.

Slack sends the browser back to `/account/slack/callback`.
"""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import quote

from fastapi import HTTPException, Query
from fastapi.responses import RedirectResponse, Response

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import Requester
from runvitals.server.accounts.routes.own_account import TheOwner
from runvitals.server.alerts.routes.destinations import sealed_slack_url
from runvitals.server.alerts.slack_app import SlackAppFailed, SlackChannelUrl, SlackInstall
from runvitals.server.alerts.storage.destinations import MAX_NAME
from runvitals.server.database.secret_box import slack_purpose, user_slack_purpose
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.router import Router
from runvitals.server.outside_services import OutsideServices
from runvitals.server.service_parameters import TheAccess, TheOutsideServices, TheRequester
from runvitals.server.teams.routes.parameters import TheAutomationOwner
from runvitals.store.errors import LimitReached, NameTaken

_OWN: Final = "/-/settings/notifications"

router = Router()


class SlackInstallUrl(ResponseBody):
    """Where the browser goes to choose a channel."""

    url: str


@router.post("/account/slack/install", needs("account:update"), response_model=SlackInstallUrl)
def install_own_slack(
    requester: TheRequester, owner: TheOwner, outside: TheOutsideServices
) -> SlackInstallUrl:
    """Where your browser chooses your own channel at Slack."""
    return _begin_install(outside, requester, owner.id, None)


@router.post(
    "/teams/{team}/slack-destinations/install", needs("slack:manage"), response_model=SlackInstallUrl
)
def install_team_slack(
    team: TheAutomationOwner, requester: TheRequester, owner: TheOwner, outside: TheOutsideServices
) -> SlackInstallUrl:
    """Where your browser chooses a channel of the team at Slack."""
    return _begin_install(outside, requester, owner.id, team.id)


@router.get(
    "/account/slack/callback", needs("account:update"), status_code=302, response_class=RedirectResponse
)
def finish_slack(
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
    state: Annotated[str, Query(max_length=2000)] = "",
    code: Annotated[str, Query(max_length=1000)] = "",
    error: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Where Slack sends the browser back to. `state` is of use in the browser that began only."""
    session_id = None if requester.session is None else requester.session.id
    page = _OWN
    try:
        install = outside.slack_app.returned_install(state, requester.user_id, session_id)
        if install.team_id is not None:
            entity = access.directory.entity(install.team_id)
            name = access.accounts.entity_names([install.team_id])[install.team_id]
            settings_path = "-/organisation" if entity.organisation else f"{quote(name)}/-/settings"
            page = f"/{settings_path}/integrations"
            access.require(requester, Action.SLACK_MANAGE, entity, f"team {name!r}")
        if error or not code:
            raise SlackAppFailed("it was cancelled at Slack")
        name = _keep_channel(access, requester, outside, install, outside.slack_app.channel(code))
    except (SlackAppFailed, LimitReached) as problem:
        return RedirectResponse(f"{page}?slack_error={quote(str(problem))}", 302)
    except InvalidFields:
        return RedirectResponse(f"{page}?slack_error={quote('Slack gave no webhook of a channel')}", 302)
    return RedirectResponse(f"{page}?slack={quote(name)}", 302)


def _begin_install(
    outside: OutsideServices, requester: Requester, user_id: int, team_id: int | None
) -> SlackInstallUrl:
    if requester.session is None:
        raise HTTPException(403, "only a browser that is signed in can go to Slack and come back")
    try:
        url = outside.slack_app.start(SlackInstall(user_id, requester.session.id, team_id))
    except SlackAppFailed as problem:
        raise HTTPException(409, str(problem)) from None
    return SlackInstallUrl(url=url)


def _keep_channel(
    access: AccessControl,
    requester: Requester,
    outside: OutsideServices,
    install: SlackInstall,
    channel: SlackChannelUrl,
) -> str:
    """Keep a channel, in place of the one of the same name; returns its name.

    Raises:
        InvalidFields: Slack gave no URL of an incoming webhook.
        LimitReached: the team has too many channels.
    """
    now_ms = access.clock()
    if install.team_id is None:
        url = sealed_slack_url(channel.url, user_slack_purpose(install.user_id), outside)
        access.metadata_store.alerts.destinations.put_of_user(install.user_id, url, now_ms)
        return channel.channel
    url = sealed_slack_url(channel.url, slack_purpose(install.team_id), outside)
    printable = "".join(c if c.isprintable() else " " for c in channel.channel)
    name = " ".join(printable.split())[: MAX_NAME["slack"]] or "Slack"
    table, by = access.metadata_store.alerts.destinations, requester.actor
    try:
        table.create("slack", install.team_id, name, url._asdict(), by, now_ms)
    except NameTaken:
        [same] = [row for row in table.of_team("slack", install.team_id) if row.name == name]
        table.update("slack", install.team_id, same.id, url._asdict(), by, now_ms)
    return name
