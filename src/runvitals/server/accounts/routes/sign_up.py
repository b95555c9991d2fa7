"""`/auth/signup` and `/auth/verify`: new users and their e-mail addresses.

The person learns whether a name is taken, and nothing about addresses: the account is created either
way, and the mail says which it was. Without a confirmed address it can do nothing, and goes after two days.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import BackgroundTasks, HTTPException, Request
from fastapi.responses import Response
from pydantic import Field

from runvitals.model.account_names import address_key, domain_key
from runvitals.server.access.actions import PUBLIC
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs, with_accounts
from runvitals.server.access.requester import Requester
from runvitals.server.account_services import AccountServices
from runvitals.server.accounts.attempt_limits import network_of
from runvitals.server.accounts.routes.new_user import check_new_user
from runvitals.server.accounts.routes.session_cookies import renew_session
from runvitals.server.accounts.routes.sign_in import Password
from runvitals.server.accounts.storage.one_time_tokens import OneTimeToken
from runvitals.server.accounts.storage.users import UserRow
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import answering
from runvitals.server.http.router import Router
from runvitals.server.mail import messages
from runvitals.server.service_parameters import TheAccess, TheRequester, TheServices
from runvitals.server.teams.storage.invitations import InvitationRow
from runvitals.store.errors import NameTaken, NoLongerValid, NotAllowed, NotFound

Token = Annotated[str, Field(min_length=1, max_length=128)]

router = Router()


class SignUp(RequestBody):
    """A new user."""

    email: str = Field(max_length=254)
    name: str = Field(max_length=64)
    password: Password
    display_name: str = Field("", max_length=64)
    invitation: Token | None = None


class TokenBody(RequestBody):
    """The secret of a link."""

    token: Token


class SignedUp(ResponseBody):
    """The account was created, or its owner has got a mail."""

    done: Literal["signup"]


class VerifiedEmail(ResponseBody):
    """An address that was confirmed."""

    email: str


@router.post("/auth/signup", needs(PUBLIC), with_accounts(), status_code=202)
async def sign_up(
    body: SignUp,
    tasks: BackgroundTasks,
    requester: TheRequester,
    access: TheAccess,
    services: TheServices,
) -> SignedUp:
    """Create an account. A mail asks to confirm the address, unless the invitation came to it."""
    services.limit("name", network_of(requester.ip))
    user = await services.hashing(lambda: _create(body, requester, access, services))
    if user.state == "unverified":
        tasks.add_task(_mail, services, access, user)
    return SignedUp(done="signup")


def _create(body: SignUp, requester: Requester, access: AccessControl, services: AccountServices) -> UserRow:
    """Return the new user: active if the invitation has confirmed the address."""
    accounts, now_ms = services.accounts, access.clock()
    check_new_user(services, body.name, body.email, body.password, body.display_name)
    invitation = None
    if body.invitation is not None:
        secret = body.invitation
        invitation = services.of_link(requester.ip, lambda: accounts.invitations.by_secret(secret, now_ms))
    _check_open(body, invitation, services)
    services.limit("sign_up", network_of(requester.ip))
    hashed = services.passwords.hash(body.password)
    user = accounts.users.create(
        body.name,
        requester.actor,
        now_ms,
        display_name=body.display_name,
        address=body.email,
        access=services.settings()["default_access"],
        hashed_password=hashed,
        via="open" if invitation is None else "invitation",
    )
    if invitation is not None:
        actor = requester.as_user(user.id, user.name, "link")
        try:
            accounts.invitations.accept(invitation, user.id, actor, now_ms)
            if invitation.address is None and not services.mailer.configured:
                accounts.users.update(user.id, actor, now_ms, state="active")  # no mail could confirm it
        except (NoLongerValid, NotAllowed, NotFound):
            pass  # it ended meanwhile: the address is confirmed by mail
    access.rights_changed()
    return accounts.users.get(user.id)


def _check_open(body: SignUp, invitation: InvitationRow | None, services: AccountServices) -> None:
    """Check that an address may sign up.

    Raises:
        HTTPException: 403 if this address may not sign up.
    """
    settings = services.settings()
    if settings["signup"] == "closed":
        raise HTTPException(403, "sign-up is closed; ask an administrator for an account")
    if invitation is not None:
        key = address_key(body.email)
        if invitation.address is not None and address_key(invitation.address) != key:
            raise HTTPException(403, "this invitation is for another e-mail address")
        return
    if settings["signup"] == "invite":
        raise HTTPException(403, "sign-up needs an invitation")
    if not services.mailer.configured:
        raise HTTPException(403, "sign-up needs an invitation: this server sends no mail")
    domain = domain_key(body.email.rpartition("@")[2])
    if settings["signup"] == "domain" and domain not in settings["signup_domains"]:
        raise HTTPException(403, "sign-up is limited to the organisation's e-mail addresses")


def _mail(services: AccountServices, access: AccessControl, user: UserRow) -> None:
    """Ask to confirm the address, or tell its owner that they have an account."""
    now_ms = access.clock()
    for email in services.accounts.emails.of_user(user.id):
        owner = services.accounts.users.by_address(email.address_key)
        if owner is None:
            services.send_verification(user.name, email, now_ms)
        else:
            services.mailer.send(messages.already_registered(owner.name), email.address, now_ms)


@router.post("/auth/verify", needs(PUBLIC), with_accounts())
def verify(
    body: TokenBody,
    request: Request,
    response: Response,
    requester: TheRequester,
    access: TheAccess,
    services: TheServices,
) -> VerifiedEmail:
    """Confirm an e-mail address.

    It needs a session of the account that added it: with the link alone, the owner of an address could be
    made to confirm a stranger's account.
    """
    accounts, now_ms = access.accounts, access.clock()
    token = _token(body.token, requester, services, now_ms)
    if token.user_id is None or token.email_id is None:
        raise HTTPException(410, "this link is not for an e-mail address")
    owner = accounts.users.get(token.user_id)
    if requester.session is None:
        raise HTTPException(401, f"sign in as {owner.name} to confirm this address")
    if requester.user_id != owner.id:
        raise HTTPException(403, f"you are signed in as {requester.name}; sign in as {owner.name} to confirm")
    with answering(410, (NoLongerValid, NameTaken, NotFound)):
        accounts.one_time_tokens.use(body.token, "verify_email", now_ms)
        email = accounts.emails.verify(token.email_id, requester.actor, now_ms)
    access.rights_changed()
    renew_session(request, response, access, requester.session.id)
    return VerifiedEmail(email=email.address)


def _token(secret: str, requester: Requester, services: AccountServices, now_ms: int) -> OneTimeToken:
    return services.of_link(
        requester.ip, lambda: services.accounts.one_time_tokens.peek(secret, "verify_email", now_ms)
    )
