"""`/account/emails`: the user's e-mail addresses."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import HTTPException, Request
from fastapi.responses import Response
from pydantic import Field

from runvitals.model.account_names import address_key
from runvitals.server.access.permission import needs
from runvitals.server.account_store import AccountStore
from runvitals.server.accounts.routes.own_account import Owner, SignedInOwner, TheOwner
from runvitals.server.accounts.routes.session_cookies import renew_session
from runvitals.server.accounts.storage.emails import EmailRow
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import InvalidFields, answering, too_many
from runvitals.server.http.listing import ThePage, page_in_order
from runvitals.server.http.router import Router
from runvitals.server.mail import messages
from runvitals.server.service_parameters import TheAccess, TheServices
from runvitals.store.errors import NameTaken, NotFound

router = Router()


class NewEmail(RequestBody):
    """An address to add."""

    address: str = Field(max_length=254)


class EmailChanges(RequestBody):
    """A change of an address."""

    primary: bool


class EmailSchema(ResponseBody):
    """An address of a user."""

    id: int
    address: str
    verified_ms: int | None
    primary: bool
    failing: bool = Field(description="Mail to it was refused lately.")
    login_methods: list[str] = Field(description="What signs in by it: `password`, and ids of providers.")
    created_ms: int


EmailsPage = page_body("EmailsPage", "A page of addresses.", emails=list[EmailSchema])


class VerificationSent(ResponseBody):
    """A mail that confirms an address was sent."""

    done: Literal["verification"]


@router.get("/account/emails", needs("account:read"), response_model=EmailsPage)
def emails(access: TheAccess, owner: TheOwner, page: ThePage) -> Any:
    """The addresses of the account, the primary one first."""
    rows = [_to_schema(access.accounts, email) for email in access.accounts.emails.of_user(owner.id)]
    return page_in_order("emails", rows, page)


@router.post("/account/emails", needs("account:emails"), status_code=201)
def add_email(
    body: NewEmail,
    access: TheAccess,
    services: TheServices,
    owner: SignedInOwner,
) -> EmailSchema:
    """Add an address. A mail asks to confirm it; the response does not show whether another user has it."""
    now_ms = access.clock()
    try:
        added = access.accounts.emails.add(owner.id, body.address, owner.actor, now_ms)
    except NameTaken as error:
        raise HTTPException(409, str(error)) from None
    except ValueError as error:
        raise InvalidFields({"address": str(error)}) from None
    services.send_verification(owner.name, added, now_ms)
    return _to_schema(access.accounts, added)


@router.post("/account/emails/{email}/verification", needs("account:read"), status_code=202)
def send_again(
    email: int,
    access: TheAccess,
    services: TheServices,
    owner: SignedInOwner,
) -> VerificationSent:
    """Send the mail that confirms an address once more."""
    row = _own(access.accounts, owner, email)
    if row.verified_ms is not None:
        raise HTTPException(409, "this address is confirmed already")
    wait_s = services.send_verification(owner.name, row, access.clock())
    if wait_s > 0:
        raise too_many("too many mails were sent to this address; try again later", wait_s)
    return VerificationSent(done="verification")


@router.patch("/account/emails/{email}", needs("account:emails"))
def change_email(
    email: int,
    body: EmailChanges,
    request: Request,
    response: Response,
    access: TheAccess,
    services: TheServices,
    owner: SignedInOwner,
) -> EmailSchema:
    """Make an address the primary one. The session gets a new secret."""
    accounts, now_ms = access.accounts, access.clock()
    row = _own(accounts, owner, email)
    if not body.primary:
        raise InvalidFields({"primary": "expected true; make another address primary instead"})
    before = accounts.emails.primary(owner.id)
    with answering(409):
        accounts.emails.make_primary(email, owner.actor, now_ms)
    if before is not None and before.id != email:
        message = messages.primary_address_changed(owner.name, before.address, row.address)
        for address in (before.address, row.address):
            services.mailer.send(message, address, now_ms)
        renew_session(request, response, access, owner.session.id)
    return _to_schema(accounts, accounts.emails.get(email))


@router.delete("/account/emails/{email}", needs("account:emails"), status_code=204)
def delete_email(
    email: int,
    access: TheAccess,
    services: TheServices,
    owner: SignedInOwner,
) -> None:
    """Remove an address. The primary one cannot be removed."""
    accounts, now_ms = access.accounts, access.clock()
    row = _own(accounts, owner, email)
    with answering(409):
        accounts.emails.delete(email, owner.actor, now_ms)
    services.notices().to_user(owner.id, messages.address_deleted(owner.name, row.address))


def _own(accounts: AccountStore, owner: Owner, email_id: int) -> EmailRow:
    try:
        row = accounts.emails.get(email_id) if 0 <= email_id < 2**31 else None
    except NotFound:
        row = None
    if row is None or row.user_id != owner.id:
        raise HTTPException(404, f"there is no e-mail address {email_id}")
    return row


def _to_schema(accounts: AccountStore, email: EmailRow) -> EmailSchema:
    methods = []
    if email.verified_ms is not None:
        has_password = accounts.credentials.password(email.user_id) is not None
        logins = [row for row in accounts.logins.of_user(email.user_id) if row.address_seen is not None]
        providers = {
            row.provider for row in logins if address_key(row.address_seen or "") == email.address_key
        }
        methods = [*(["password"] if has_password else []), *sorted(providers)]
    return EmailSchema(
        id=email.id,
        address=email.address,
        verified_ms=email.verified_ms,
        primary=email.is_primary,
        failing=email.failing_since_ms is not None,
        login_methods=methods,
        created_ms=email.created_ms,
    )
