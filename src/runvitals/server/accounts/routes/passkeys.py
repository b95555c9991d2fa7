"""`/account/passkeys`: what the user signs in with instead of a password, or after it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import HTTPException, Path, Request
from pydantic import Field

from runvitals.server.access.permission import needs
from runvitals.server.accounts.passkeys import PasskeyRefused
from runvitals.server.accounts.routes.own_account import SignedInOwner, TheOwner
from runvitals.server.accounts.routes.sign_in import PASSKEY, PasskeyOptions, required_party
from runvitals.server.accounts.storage.passkeys import MAX_NAME
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import InvalidFields, answering
from runvitals.server.http.listing import ThePage, page_in_order
from runvitals.server.http.router import Router
from runvitals.server.mail import messages
from runvitals.server.service_parameters import TheAccess, TheServices
from runvitals.store.errors import LimitReached, NameTaken

router = Router()

PasskeyId = Annotated[int, Path(ge=1, le=2**31 - 1)]
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME, description="Of the device, for its owner.")]


class NewPasskey(RequestBody):
    """A passkey that a browser has made."""

    name: Name
    passkey: dict[str, Any] = Field(description=PASSKEY)


class PasskeyChanges(RequestBody):
    """A new name for a passkey."""

    name: Name


class PasskeySchema(ResponseBody):
    """A passkey of a user."""

    id: int
    name: str
    backed_up: bool = Field(description="It is synced to other devices of the user.")
    created_ms: int
    last_used_ms: int | None


PasskeysPage = page_body("PasskeysPage", "A page of passkeys.", passkeys=list[PasskeySchema])


@router.get("/account/passkeys", needs("account:read"), response_model=PasskeysPage)
def passkeys(access: TheAccess, owner: TheOwner, page: ThePage) -> Any:
    """The passkeys of the account, the oldest first."""
    return page_in_order("passkeys", access.accounts.passkeys.of_user(owner.id), page)


@router.post("/account/passkeys/options", needs("account:security"))
def registration_options(
    request: Request, access: TheAccess, services: TheServices, owner: SignedInOwner
) -> PasskeyOptions:
    """Return the `PublicKeyCredentialCreationOptionsJSON` with which a browser makes a passkey."""
    party = required_party(request, services)
    display_name = access.accounts.users.get(owner.id).display_name
    return PasskeyOptions(
        options=services.sign_in.passkeys.registration(
            party, owner.id, owner.name, display_name, owner.session.id
        )
    )


@router.post("/account/passkeys", needs("account:security"), status_code=201)
def add_passkey(
    body: NewPasskey, request: Request, services: TheServices, owner: SignedInOwner
) -> PasskeySchema:
    """Add the passkey that the browser has made."""
    party = required_party(request, services)
    try:
        row = services.sign_in.passkeys.register(
            party, owner.id, owner.session.id, body.passkey, body.name, owner.actor
        )
    except PasskeyRefused as error:
        raise InvalidFields({"passkey": str(error)}) from None
    except (NameTaken, LimitReached) as error:
        raise HTTPException(409, str(error)) from None
    except ValueError as error:
        raise InvalidFields({"name": str(error)}) from None
    services.notices().to_user(owner.id, messages.login_linked(owner.name, f"the passkey {row.name}"))
    return PasskeySchema.model_validate(row)


@router.patch("/account/passkeys/{passkey}", needs("account:security"))
def rename_passkey(
    passkey: PasskeyId, body: PasskeyChanges, access: TheAccess, owner: SignedInOwner
) -> PasskeySchema:
    """Rename a passkey."""
    try:
        row = access.accounts.passkeys.rename(owner.id, passkey, body.name, owner.actor, access.clock())
    except ValueError as error:
        raise InvalidFields({"name": str(error)}) from None
    return PasskeySchema.model_validate(row)


@router.delete("/account/passkeys/{passkey}", needs("account:security"), status_code=204)
def remove_passkey(
    passkey: PasskeyId, access: TheAccess, services: TheServices, owner: SignedInOwner
) -> None:
    """Remove a passkey, unless it is the last way to sign in."""
    with answering(409):
        row = access.accounts.passkeys.remove(owner.id, passkey, owner.actor, access.clock())
    services.notices().to_user(owner.id, messages.login_unlinked(owner.name, f"the passkey {row.name}"))
