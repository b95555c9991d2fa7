"""`/account/alerts/test` and `/teams/{team}/alerts/test`: one message now, to see whether it arrives."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Literal

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.account_services import AccountServices
from runvitals.server.accounts.routes.own_account import TheOwner
from runvitals.server.alerts.delivery.channel import DeliveryFailed
from runvitals.server.alerts.settings import team_alerts
from runvitals.server.events.outbox import ChannelResponse, Notification, StoredNotification
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.router import Router
from runvitals.server.outside_services import OutsideServices
from runvitals.server.service_parameters import TheAccess, TheOutsideServices, TheServices
from runvitals.server.services import shared_services_of
from runvitals.server.teams.routes.parameters import TheTeam

router = Router()


class TrialMessage(RequestBody):
    """By which channel."""

    channel: Literal["email", "slack"] = "email"


class TrialResult(ResponseBody):
    """The result of sending a message, with the response of the channel's server."""

    sent: bool
    status: int | None = None
    answer: str | None = None
    error: str | None = None


@router.post("/account/alerts/test", needs("account:update"), response_model=TrialResult)
async def test_own_alerts(
    body: TrialMessage,
    request: Request,
    access: TheAccess,
    services: TheServices,
    outside: TheOutsideServices,
    owner: TheOwner,
) -> TrialResult:
    """Send yourself a message. For a mail, `sent` says that it was passed to the queue of mail."""
    services.limit("trial_message", str(owner.id))
    channels = shared_services_of(request).channels
    if body.channel == "slack":
        notification = _notification(access, f"user-slack:{owner.id}", "to your channel")
        return await _send(outside, lambda: channels.slack.deliver_to_user(notification))
    return await _send_mail(access, services, owner.id)


@router.post("/teams/{team}/alerts/test", needs("team:update"), response_model=TrialResult)
async def test_team_alerts(
    body: TrialMessage,
    team: TheTeam,
    request: Request,
    access: TheAccess,
    services: TheServices,
    outside: TheOutsideServices,
    owner: TheOwner,
) -> TrialResult:
    """Post a message to the team's Slack destination, or mail one to yourself alone."""
    services.limit("trial_message", str(owner.id))
    if body.channel == "email":
        return await _send_mail(access, services, owner.id)
    settings = access.metadata_store.alerts.settings
    destination = team_alerts(await run_in_threadpool(settings.of_team, team.id)).slack_destination
    if destination is None:
        raise InvalidFields({"channel": "the team has chosen no Slack destination for its alerts"})
    channels = shared_services_of(request).channels
    notification = _notification(access, f"slack:{destination}", f"of team {team.name}", team.id)
    return await _send(outside, lambda: channels.slack.deliver_to_team(notification))


async def _send_mail(access: AccessControl, services: AccountServices, user_id: int) -> TrialResult:
    if not services.mailer.configured:
        return TrialResult(sent=False, error="this server sends no mail")
    now_ms = access.clock()
    new = Notification(
        f"test:{secrets.token_hex(8)}", "test", f"user:{user_id}", "test", _text("by mail"), {}, now_ms
    )
    outbox = access.metadata_store.alerts.outbox
    await run_in_threadpool(access.metadata_store.write, lambda connection: outbox.add(connection, new))
    return TrialResult(sent=True)


async def _send(outside: OutsideServices, deliver: Callable[[], ChannelResponse]) -> TrialResult:
    try:
        response, error = await outside.workers.run(deliver), None
    except DeliveryFailed as failure:
        response, error = failure.response or ChannelResponse(), str(failure)
    return TrialResult(sent=error is None, status=response.status, answer=response.text, error=error)


def _text(where: str) -> str:
    return f"Test of alerts {where}\n\nThis is how alerts reach you. Nothing has happened."


def _notification(
    access: AccessControl, target: str, where: str, team_id: int | None = None
) -> StoredNotification:
    now_ms = access.clock()
    return StoredNotification(
        0, "test", "test", target, "test", _text(where), {"level": "info"}, team_id, None, now_ms, now_ms,
        now_ms, 0, "pending", None, None, None, None,
    )  # fmt: skip
