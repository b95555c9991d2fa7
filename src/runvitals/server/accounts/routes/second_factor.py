"""`/account/second-factor`: codes of an authenticator app, and recovery codes."""

from __future__ import annotations

import base64

from fastapi import HTTPException
from pydantic import Field

from runvitals.server.access.permission import needs
from runvitals.server.accounts.routes.own_account import SignedInOwner, TheOwner
from runvitals.server.accounts.second_factors import totp_purpose
from runvitals.server.accounts.totp import new_recovery_codes, new_totp_secret, recovery_digest, totp_address
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import InvalidFields, answering
from runvitals.server.http.router import Router
from runvitals.server.mail import messages
from runvitals.server.service_parameters import TheAccess, TheNotices, TheServices

router = Router()


class Code(RequestBody):
    """A code of an authenticator app."""

    code: str = Field(min_length=6, max_length=12)


class PasskeysAsked(RequestBody):
    """Whether a passkey is asked for after the password."""

    enabled: bool


class SecondFactorState(ResponseBody):
    """The second factors of an account."""

    enabled: bool = Field(description="A code of an authenticator app is asked for.")
    passkeys: bool = Field(description="A passkey is asked for after the password.")
    recovery_codes_left: int


class SecondFactorSetup(ResponseBody):
    """The secret for an authenticator app, while the second factor is being set up."""

    secret: str
    uri: str


class RecoveryCodes(ResponseBody):
    """New recovery codes, which are shown once."""

    recovery_codes: list[str]


@router.get("/account/second-factor", needs("account:read"))
def second_factor(access: TheAccess, owner: TheOwner) -> SecondFactorState:
    """Which second factors are asked for after the password, and how many recovery codes are left."""
    credentials = access.accounts.credentials
    factor = credentials.second_factor(owner.id)
    return SecondFactorState(
        enabled=factor is not None and factor.confirmed_ms is not None,
        passkeys=access.accounts.passkeys.asked_after_password(owner.id),
        recovery_codes_left=credentials.recovery_codes_left(owner.id),
    )


@router.post("/account/second-factor", needs("account:security"))
def begin(
    access: TheAccess,
    services: TheServices,
    owner: SignedInOwner,
) -> SecondFactorSetup:
    """Make a new secret for an authenticator app. It is in use once a code of it was confirmed."""
    credentials = access.accounts.credentials
    factor = credentials.second_factor(owner.id)
    if factor is not None and factor.confirmed_ms is not None:
        raise HTTPException(409, "there is a second factor already; remove it first")
    secret = new_totp_secret()
    sealed = services.box.seal(secret, totp_purpose(owner.id))
    credentials.begin_second_factor(owner.id, sealed, access.clock())
    issuer = str(services.settings().get("name") or "runvitals")
    text = base64.b32encode(secret).decode("ascii").rstrip("=")
    return SecondFactorSetup(secret=text, uri=totp_address(secret, owner.name, issuer))


@router.post("/account/second-factor/confirm", needs("account:security"))
def confirm(
    body: Code,
    access: TheAccess,
    services: TheServices,
    owner: SignedInOwner,
) -> RecoveryCodes:
    """Turn the second factor on, by a code that the app shows. The recovery codes are shown once."""
    credentials = access.accounts.credentials
    factor = credentials.second_factor(owner.id)
    if factor is None or factor.confirmed_ms is not None:
        raise HTTPException(409, "no second factor is being set up")
    step = services.sign_in.second_factors.step_of(owner.id, body.code)
    if step is None:
        raise InvalidFields({"code": "this code is wrong; expected the one that the app shows now"})
    codes = new_recovery_codes()
    digests = [recovery_digest(code) for code in codes]
    credentials.confirm_second_factor(owner.id, step, digests, owner.actor, access.clock())
    services.notices().to_user(owner.id, messages.second_factor_added(owner.name))
    return RecoveryCodes(recovery_codes=codes)


@router.delete("/account/second-factor", needs("account:security"), status_code=204)
def remove(access: TheAccess, owner: SignedInOwner, notices: TheNotices) -> None:
    """Turn the app off. The recovery codes go with it, unless a passkey is asked for after the password."""
    access.accounts.credentials.remove_second_factor(owner.id, owner.actor, access.clock())
    notices.to_user(owner.id, messages.second_factor_removed(owner.name))


@router.post("/account/second-factor/recovery-codes", needs("account:security"))
def replace_recovery_codes(access: TheAccess, services: TheServices, owner: SignedInOwner) -> RecoveryCodes:
    """New recovery codes. The old ones stop working."""
    if not services.sign_in.second_factors.are_asked(owner.id):
        raise HTTPException(409, "there is no second factor")
    codes = new_recovery_codes()
    digests = [recovery_digest(code) for code in codes]
    access.accounts.credentials.replace_recovery_codes(owner.id, digests, owner.actor, access.clock())
    return RecoveryCodes(recovery_codes=codes)


@router.put("/account/second-factor/passkeys", needs("account:security"))
def ask_for_passkeys(
    body: PasskeysAsked, access: TheAccess, owner: SignedInOwner, notices: TheNotices
) -> RecoveryCodes:
    """Ask for a passkey after the password, or no more.

    The first second factor of an account comes with recovery codes, which are shown once.
    """
    codes_left = access.accounts.credentials.recovery_codes_left(owner.id)
    codes = new_recovery_codes() if body.enabled and not codes_left else []
    digests = [recovery_digest(code) for code in codes]
    with answering(409):
        access.accounts.passkeys.ask_after_password(
            owner.id, body.enabled, digests, owner.actor, access.clock()
        )
    message = messages.second_factor_added if body.enabled else messages.second_factor_removed
    notices.to_user(owner.id, message(owner.name))
    return RecoveryCodes(recovery_codes=codes)
