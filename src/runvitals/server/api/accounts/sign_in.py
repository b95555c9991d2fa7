"""`/auth`: how to sign in, signing in and out, and confirming the password."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, BackgroundTasks, HTTPException, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from runvitals.accounts import sign_in
from runvitals.accounts.sign_in import Attempt
from runvitals.server.access import login_page
from runvitals.server.access.control import AccessControl, TheAccess
from runvitals.server.access.permission import PUBLIC, needs
from runvitals.server.access.requester import Requester, TheRequester
from runvitals.server.api.accounts.account_json import account_json
from runvitals.server.api.accounts.own_account import Owner, SignedInOwner
from runvitals.server.api.accounts.services import AccountServices, TheServices
from runvitals.server.api.accounts.session_cookies import (
    browser_of,
    end_session,
    remember_browser,
    renew_session,
    report_new_browser,
    start_session,
)
from runvitals.server.api.accounts.verification import send_verification
from runvitals.server.errors import DetailedError, too_many
from runvitals.server.outside_services import TheOutsideServices
from runvitals.store.metadata.accounts.users import UserRow

MAX_PASSWORD: Final = 1024
Password = Annotated[str, Field(min_length=1, max_length=MAX_PASSWORD)]

router = APIRouter()


class Login(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str | None = Field(None, max_length=254)
    email: str | None = Field(None, max_length=254)
    password: Password
    code: str | None = Field(None, max_length=64, description="Of the second factor, or a recovery code.")
    next: str = Field("/", max_length=2000, description="Where the page goes then; a path of this server.")


class Confirmation(BaseModel):
    model_config = ConfigDict(extra="forbid")

    password: Password


@router.get("/auth/methods", dependencies=[needs(PUBLIC)])
def methods(services: TheServices, outside: TheOutsideServices) -> Any:
    """How to sign in here."""
    settings = services.settings()
    return {
        "password": settings["password_login"],
        "providers": [{"id": entry.id, "label": entry.label} for entry in outside.sign_on.providers()],
        "signup": settings["signup"],
        "support_contact": services.support_contact(),
        "mail": services.mailer.configured,
        "setup": not services.accounts.users.any_administrator(),
    }


@router.post("/auth/login", dependencies=[needs(PUBLIC)])
async def login(
    body: Login,
    request: Request,
    response: Response,
    tasks: BackgroundTasks,
    requester: TheRequester,
    access: TheAccess,
    services: TheServices,
) -> Any:
    """Sign in by name or e-mail address, and by a code where the account has a second factor."""
    typed = body.email or body.name
    if not typed:
        raise DetailedError(422, "a name or an e-mail address is missing", {"fields": {"name": "missing"}})
    attempt = Attempt(
        typed,
        body.password,
        body.code,
        requester.ip,
        browser_of(request, services.box),
        requester.actor,
    )

    def check_and_start() -> dict[str, Any]:
        user = services.sign_in.check(attempt)
        start_session(request, response, access, requester, user, "password")
        known = remember_browser(request, response, services.box, user.id)
        tasks.add_task(_send_mail, access, services, user, requester, known)
        return account_json(access, user.id)

    try:
        account = await services.hashing(check_and_start)
    except sign_in.SignInRefused as error:
        raise refusal(error) from None
    return {"account": account, "next": login_page.redirect_target(body.next)}


@router.post("/auth/logout", status_code=204, dependencies=[needs(PUBLIC)])
def logout(request: Request, requester: TheRequester, access: TheAccess) -> Response:
    """End this browser's session."""
    response = Response(status_code=204)
    if requester.session is not None:
        session, now_ms = requester.session, access.clock()
        access.accounts.sessions.end(
            session.user_id, requester.actor, now_ms, only=session.id, action="user.logout"
        )
        access.rights_changed()
    end_session(request, response)
    return response


@router.post("/auth/sudo", dependencies=[needs("account:read")])
async def confirm_password(
    body: Confirmation,
    request: Request,
    response: Response,
    access: TheAccess,
    services: TheServices,
    owner: SignedInOwner,
) -> Any:
    """Confirm the password, which some changes need. It counts for some minutes."""

    def check_and_renew() -> dict[str, Any]:
        confirm(owner, body.password, access, services)
        access.accounts.audit.record(access.clock(), owner.actor, "user.sudo")
        return {"until_ms": renew_session(request, response, access, owner.session.id)}

    return await services.hashing(check_and_renew)


def confirm(owner: Owner, password: str, access: AccessControl, services: AccountServices) -> None:
    """
    Raises:
        HTTPException: 401 if this is not the user's password, 429 after too many; the session then ends.
        TooManySignIns: more passwords are being checked than the server allows.
    """
    session = owner.session
    try:
        if services.sign_in.confirm(owner.id, session.id, password):
            return
    except sign_in.TooManyAttempts as error:
        access.accounts.sessions.end(owner.id, owner.actor, access.clock(), only=session.id)
        access.rights_changed()
        raise too_many("too many wrong passwords; this session has ended", error.wait_s) from None
    access.accounts.audit.record(access.clock(), owner.actor, "user.sudo", outcome="denied")
    raise HTTPException(401, "the password is wrong")


def refusal(error: sign_in.SignInRefused) -> HTTPException:
    """The response to a sign-in that was refused."""
    if isinstance(error, sign_in.TooManyAttempts):
        return too_many(str(error), error.wait_s)
    if isinstance(error, sign_in.NotAllowed):
        return HTTPException(403, str(error))
    if isinstance(error, sign_in.SecondFactorNeeded):
        return DetailedError(401, str(error), {"second_factor": True})
    return HTTPException(401, str(error))


def _send_mail(
    access: AccessControl, services: AccountServices, user: UserRow, requester: Requester, known: bool
) -> None:
    """Mail what the sign-in calls for, after the response."""
    accounts, now_ms = access.accounts, access.clock()
    if user.state == "unverified":
        primary = accounts.emails.primary(user.id)
        if primary is not None:
            send_verification(services, user.name, primary, now_ms)
    elif not known and user.last_seen_ms is not None:
        report_new_browser(access, services.notices(), user, requester)
