"""Starts and renews browser sessions: the cookies that the routes of sign-in set."""

from __future__ import annotations

from typing import Final

from fastapi import Request
from starlette.responses import Response

from runvitals.server.access.control import AccessControl
from runvitals.server.access.identification.credentials import clear_session_cookie, set_session_cookie
from runvitals.server.access.requester import Requester
from runvitals.server.accounts.known_browsers import KnownBrowser, known_browser, new_known_browser
from runvitals.server.accounts.storage.users import UserRow
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.mail import messages
from runvitals.server.mail.notices import Notices

_KNOWN_COOKIE: Final = "rv-known"
_KNOWN_S: Final = 365 * 86_400


def is_secure(request: Request) -> bool:
    """Return whether a request came by TLS."""
    return request.url.scheme == "https"


def start_session(
    request: Request,
    response: Response,
    access: AccessControl,
    requester: Requester,
    user: UserRow,
    method: str,
) -> None:
    """Give the browser a new session of a user, in place of the one it may have had."""
    now_ms = access.clock()
    accounts = access.accounts
    actor = requester.as_user(user.id, user.name, "session")
    if requester.session is not None:
        accounts.sessions.end(requester.session.user_id, actor, now_ms, only=requester.session.id)
        access.rights_changed()
    life = access.directory.session_life()
    secret = accounts.sessions.create(
        user.id, now_ms, life, method=method, ip=requester.ip, agent=requester.agent, by=actor
    )
    accounts.users.note_seen(user.id, now_ms)
    set_session_cookie(response, secret, is_secure(request), life.total_ms // 1000)


def renew_session(request: Request, response: Response, access: AccessControl, session_id: int) -> int:
    """Give a session a new secret; returns until when the password counts as confirmed, ms UTC."""
    now_ms, life = access.clock(), access.directory.session_life()
    secret = access.accounts.sessions.renew(session_id, now_ms, life)
    access.rights_changed()
    set_session_cookie(response, secret, is_secure(request), life.total_ms // 1000)
    return now_ms + life.sudo_ms


def end_session(request: Request, response: Response) -> None:
    """Make the browser forget its session."""
    clear_session_cookie(response, is_secure(request))


def browser_of(request: Request, box: SecretBox) -> KnownBrowser | None:
    """Return the browser of a request, if a user has signed in with it before."""
    return known_browser(box, request.cookies.get(_known_cookie(request)))


def remember_browser(request: Request, response: Response, box: SecretBox, user_id: int) -> bool:
    """Note in the browser that this user has signed in with it; whether it was known before."""
    browser = browser_of(request, box)
    if browser is not None and browser.user_id == user_id:
        return True
    response.set_cookie(
        _known_cookie(request),
        new_known_browser(box, user_id),
        max_age=_KNOWN_S,
        path="/",
        secure=is_secure(request),
        httponly=True,
        samesite="lax",
    )
    return False


def report_new_browser(access: AccessControl, notices: Notices, user: UserRow, requester: Requester) -> None:
    """Note in the audit log, and tell a user, that they signed in with a browser that was not known."""
    now_ms, actor = access.clock(), requester.as_user(user.id, user.name, "session")
    access.accounts.audit.record(now_ms, actor, "user.new_browser", target=user.name)
    notices.to_user(user.id, messages.new_browser(user.name, requester.ip, requester.agent, now_ms))


def _known_cookie(request: Request) -> str:
    return f"__Host-{_KNOWN_COOKIE}" if is_secure(request) else _KNOWN_COOKIE
