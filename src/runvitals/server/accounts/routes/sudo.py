"""`/auth/sudo`: confirming who one is, which some changes need. It counts for some minutes."""

from __future__ import annotations

from typing import Any

from fastapi import HTTPException, Request
from fastapi.responses import Response
from pydantic import Field, model_validator

from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.account_services import AccountServices
from runvitals.server.accounts.passkeys import PasskeyRefused
from runvitals.server.accounts.routes.own_account import Owner, SignedInOwner
from runvitals.server.accounts.routes.session_cookies import renew_session
from runvitals.server.accounts.routes.sign_in import MAX_PASSWORD, NamedProvider, Passkey, required_party
from runvitals.server.accounts.sign_in import CONFIRMING, TooManyAttempts
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import too_many
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheOutsideServices, TheServices

router = Router()


class Confirmation(RequestBody):
    """A password or passkey that proves who makes the request."""

    password: str | None = Field(None, min_length=1, max_length=MAX_PASSWORD)
    passkey: Passkey = None

    @model_validator(mode="after")
    def _check_one(self) -> Confirmation:
        if (self.password is None) == (self.passkey is None):
            raise ValueError("expected password or passkey, one of them")
        return self


class ConfirmationWays(ResponseBody):
    """How a user can confirm who they are."""

    password: bool
    passkey: dict[str, Any] | None = Field(description="What a browser needs to ask for one.")
    providers: list[NamedProvider]


class ConfirmedUntil(ResponseBody):
    """Until when the confirmation counts."""

    until_ms: int


@router.get("/auth/sudo", needs("account:read"))
def ways_to_confirm(
    request: Request,
    access: TheAccess,
    services: TheServices,
    outside: TheOutsideServices,
    owner: SignedInOwner,
) -> ConfirmationWays:
    """How the user can confirm who they are: by password, by passkey, or by signing in at a provider."""
    accounts, party = access.accounts, services.relying_party(request)
    options = None
    if party is not None and accounts.passkeys.of_user(owner.id):
        options = services.sign_in.passkeys.asking(party, owner.id, CONFIRMING, verified=True)
    linked = {login.provider for login in accounts.logins.of_user(owner.id)}
    providers = outside.sign_on.providers() if linked else []
    return ConfirmationWays(
        password=accounts.credentials.password(owner.id) is not None,
        passkey=options,
        providers=[NamedProvider.model_validate(provider) for provider in providers if provider.id in linked],
    )


@router.post("/auth/sudo", needs("account:read"))
async def confirm_identity(
    body: Confirmation,
    request: Request,
    response: Response,
    access: TheAccess,
    services: TheServices,
    owner: SignedInOwner,
) -> ConfirmedUntil:
    """Confirm who one is, by password or passkey."""

    def check_and_renew() -> ConfirmedUntil:
        if body.passkey is not None:
            _confirm_by_passkey(owner, body.passkey, request, access, services)
        else:
            confirm(owner, body.password or "", access, services)
        access.accounts.audit.record(access.clock(), owner.actor, "user.sudo")
        return ConfirmedUntil(until_ms=renew_session(request, response, access, owner.session.id))

    return await services.hashing(check_and_renew)


def confirm(owner: Owner, password: str, access: AccessControl, services: AccountServices) -> None:
    """Check the user's password.

    Raises:
        HTTPException: 401 if this is not the user's password, 429 after too many; the session then ends.
        TooManySignIns: more passwords are being checked than the server allows.
    """
    session = owner.session
    try:
        if services.sign_in.confirm(owner.id, session.id, password):
            return
    except TooManyAttempts as error:
        access.accounts.sessions.end(owner.id, owner.actor, access.clock(), only=session.id)
        access.rights_changed()
        raise too_many("too many wrong passwords; this session has ended", error.wait_s) from None
    access.accounts.audit.record(access.clock(), owner.actor, "user.sudo", outcome="denied")
    raise HTTPException(401, "the password is wrong")


def _confirm_by_passkey(
    owner: Owner, passkey: dict[str, Any], request: Request, access: AccessControl, services: AccountServices
) -> None:
    party = required_party(request, services)
    try:
        services.sign_in.passkeys.confirm(party, owner.id, CONFIRMING, passkey, verified=True)
    except PasskeyRefused as error:
        access.accounts.audit.record(access.clock(), owner.actor, "user.sudo", outcome="denied")
        raise HTTPException(401, str(error)) from None
