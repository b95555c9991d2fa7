"""`/account/sessions`: the browsers in which a user is signed in."""

from __future__ import annotations

from typing import Any

from fastapi import HTTPException
from pydantic import Field

from runvitals.server.access.permission import needs
from runvitals.server.accounts.attempt_limits import network_of
from runvitals.server.accounts.routes.own_account import SignedInOwner, TheOwner
from runvitals.server.http.bodies import ResponseBody, page_body
from runvitals.server.http.listing import ThePage, page_in_order
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess

router = Router()


class SessionSchema(ResponseBody):
    """A browser in which a user is signed in."""

    id: int
    current: bool = Field(description="It is the session of this request.")
    ip: str = Field(description="The network of the client, without the last part of its address.")
    agent: str
    method: str
    created_ms: int
    seen_ms: int
    expires_ms: int


SessionsPage = page_body("SessionsPage", "A page of sessions.", sessions=list[SessionSchema])


class EndedSessions(ResponseBody):
    """How many sessions were ended."""

    ended: int


@router.get("/account/sessions", needs("account:read"), response_model=SessionsPage)
def sessions(access: TheAccess, owner: TheOwner, page: ThePage) -> Any:
    """The sessions of the account, the newest first."""
    current = owner.requester.session
    rows = [
        {
            "id": row.id,
            "current": current is not None and row.id == current.id,
            "ip": network_of(row.ip),
            "agent": row.agent,
            "method": row.method,
            "created_ms": row.created_ms,
            "seen_ms": row.seen_ms,
            "expires_ms": min(row.idle_until_ms, row.expires_ms),
        }
        for row in access.accounts.sessions.of_user(owner.id, access.clock())
    ]
    return page_in_order("sessions", rows, page)


@router.delete("/account/sessions", needs("account:update"))
def end_other_sessions(access: TheAccess, owner: SignedInOwner) -> EndedSessions:
    """Sign out everywhere else."""
    sessions, now_ms = access.accounts.sessions, access.clock()
    ended = sessions.end(owner.id, owner.actor, now_ms, keep=owner.session.id)
    access.rights_changed()
    return EndedSessions(ended=ended)


@router.delete("/account/sessions/{session}", needs("account:update"), status_code=204)
def end_session(session: int, access: TheAccess, owner: SignedInOwner) -> None:
    """End one session."""
    sessions, now_ms = access.accounts.sessions, access.clock()
    if not 0 <= session < 2**31 or not sessions.end(owner.id, owner.actor, now_ms, only=session):
        raise HTTPException(404, f"there is no session {session}")
    access.rights_changed()
