"""`/teams/{team}/notifications`: who was notified by what, and whether it arrived."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import Depends, Path, Request
from pydantic import Field

from runvitals.server.access.permission import needs
from runvitals.server.alerts.delivery.channel import DeliveryFailed, title_of
from runvitals.server.alerts.delivery.channels import Channels
from runvitals.server.events.outbox import ChannelResponse, OutboxTable, StoredNotification
from runvitals.server.http.bodies import ResponseBody, page_body
from runvitals.server.http.errors import answering
from runvitals.server.http.immediate import immediate
from runvitals.server.http.listing import PageRequest, ThePage
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess
from runvitals.server.services import shared_services_of
from runvitals.server.teams.routes.parameters import TheAutomationOwner

NotificationId = Annotated[int, Path(ge=1, le=2**31 - 1)]

router = Router()


class NotificationSchema(ResponseBody):
    """A message of an automation to one receiver."""

    id: int
    automation: int | None
    event: str
    channel: str = Field(description="By what it is sent.")
    receiver: str = Field(description="Whom it is for.")
    title: str
    state: Literal["pending", "finished", "failed", "dropped"]
    tries: int
    status: int | None
    answer: str | None
    error: str | None
    created_ms: int
    next_ms: int | None = Field(description="When it is tried again; None: it is not.")
    ended_ms: int | None


NotificationsPage = page_body(
    "NotificationsPage",
    "The notifications of a team, or of one of its automations.",
    notifications=list[NotificationSchema],
)


class ReceiverResponse(ResponseBody):
    """A receiver's response to a test."""

    status: int | None
    answer: str | None
    error: str | None = Field(description="Why there was no response, or why it failed.")
    took_ms: int


@immediate
def channels_of(request: Request) -> Channels:
    """Return those of the application."""
    return shared_services_of(request).channels


TheChannels = Annotated[Channels, Depends(channels_of)]


@router.get("/teams/{team}/notifications", needs("automation:manage"), response_model=NotificationsPage)
def notifications(team: TheAutomationOwner, access: TheAccess, page: ThePage) -> dict[str, Any]:
    """List the notifications that the team's automations sent in the last month, the newest first."""
    return history_of(access.metadata_store.alerts.outbox, team.id, page)


@router.post(
    "/teams/{team}/notifications/{notification}/send-again",
    needs("automation:manage"),
    response_model=NotificationSchema,
)
def send_again(notification: NotificationId, team: TheAutomationOwner, access: TheAccess) -> dict[str, Any]:
    """Send a notification once more, to the same receiver."""
    with answering(409):
        row = access.metadata_store.alerts.outbox.send_again(team.id, notification, access.clock())
    return _show(row)


def response_of(send: Callable[[], ChannelResponse]) -> ReceiverResponse:
    """Send a test, and return what its receiver answered."""
    began_s = time.monotonic()
    error: str | None = None
    try:
        response = send()
    except DeliveryFailed as failure:
        response, error = failure.response or ChannelResponse(), str(failure)
    took_ms = round((time.monotonic() - began_s) * 1000)
    return ReceiverResponse(status=response.status, answer=response.text, error=error, took_ms=took_ms)


def history_of(
    outbox: OutboxTable, team_id: int, page: PageRequest, automation_id: int | None = None
) -> dict[str, Any]:
    """Return a page of the notifications of a team or of one of its automations."""
    rows = outbox.of_team(team_id, page.limit + 1, page.after_id or None, automation_id)
    part = rows[: page.limit]
    return {
        "notifications": [_show(row) for row in part],
        "total": outbox.count_of_team(team_id, automation_id),
        "next": str(part[-1].id) if len(rows) > len(part) else None,
    }


def _show(row: StoredNotification) -> dict[str, Any]:
    channel, _, receiver = row.target.partition(":")
    return {
        "id": row.id,
        "automation": row.automation_id,
        "event": row.kind,
        "channel": channel,
        "receiver": receiver,
        "title": title_of(row.text)[0],
        "state": "finished" if row.state == "sent" else row.state,
        "tries": row.tries,
        "status": row.status,
        "answer": row.answer,
        "error": row.error,
        "created_ms": row.created_ms,
        "next_ms": row.next_ms if row.state == "pending" else None,
        "ended_ms": row.ended_ms,
    }
