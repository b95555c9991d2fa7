"""`/account/notifications`: what the bell of the page shows, and what of it was seen."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from pydantic import Field

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.principals import User
from runvitals.server.access.requester import Requester
from runvitals.server.accounts.routes.own_account import TheOwner
from runvitals.server.alerts.inbox import MAX_ITEMS, Inbox, Level
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.listing import PageRequest, ThePage, page_in_order
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheRequester

router = Router()


class InboxItemSchema(ResponseBody):
    """Something of which the user is notified."""

    id: str
    kind: str = Field(description="`run.crashed`, `team.join_request`, `team.invitation` and others.")
    level: Level
    title: str
    text: str
    place: str = Field(description="What it is about, such as `team/project`; may be empty.")
    path: str | None = Field(description="Where it leads on this server.")
    time_ms: int
    needs_decision: bool = Field(description="Somebody waits for the user's answer.")
    unread: bool


class InboxPage(ResponseBody):
    """What is new for a user, the newest first: at most 50 of the last 30 days."""

    notifications: list[InboxItemSchema]
    total: int
    next: str | None
    unread: int = Field(description="On all pages.")
    seen_ms: int = Field(description="Up to when the user has seen them.")


class SeenUpTo(RequestBody):
    """Everything up to a time was seen."""

    time_ms: int = Field(ge=0, le=2**53)


_FIRST: Final = PageRequest(MAX_ITEMS, None)


@router.get("/account/notifications", needs("account:read"), response_model=InboxPage)
def notifications(access: TheAccess, owner: TheOwner, requester: TheRequester, page: ThePage) -> Any:
    """Return what happened to your runs, who waits for your answer, and other notifications."""
    return _inbox_page(access, owner.id, requester, page)


@router.put("/account/notifications/seen", needs("account:update"), response_model=InboxPage)
def see(body: SeenUpTo, access: TheAccess, owner: TheOwner, requester: TheRequester) -> Any:
    """Note on the server that you have seen everything up to a time: all your browsers know it."""
    access.metadata_store.alerts.inbox.see(owner.id, min(body.time_ms, access.clock()))
    return _inbox_page(access, owner.id, requester, _FIRST)


def _inbox_page(
    access: AccessControl, user_id: int, requester: Requester, page: PageRequest
) -> dict[str, Any]:
    inbox = Inbox(access.metadata_store, access.directory)
    teams = requester.principal.teams if isinstance(requester.principal, User) else ()
    decides = [
        team
        for team in teams
        if access.may(requester, Action.MEMBER_UPDATE_ROLE, access.directory.entity(team))
    ]
    items = inbox.items(user_id, decides, access.clock())
    seen_ms = access.metadata_store.alerts.inbox.seen_ms(user_id)
    rows = [{**asdict(item), "unread": item.time_ms > seen_ms} for item in items]
    unread = sum(row["unread"] for row in rows)
    return {**page_in_order("notifications", rows, page), "unread": unread, "seen_ms": seen_ms}
