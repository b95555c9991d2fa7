"""`/auth/reset`: a new password by a link in a mail."""

from __future__ import annotations

from typing import Literal

from fastapi import BackgroundTasks
from pydantic import Field

from runvitals.model.account_names import address_key
from runvitals.server.access.actions import PUBLIC
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs, with_accounts
from runvitals.server.access.requester import Requester
from runvitals.server.account_services import AccountServices
from runvitals.server.accounts.attempt_limits import network_of
from runvitals.server.accounts.routes.new_user import check_new_password
from runvitals.server.accounts.routes.sign_in import Password
from runvitals.server.accounts.routes.sign_up import Token
from runvitals.server.accounts.storage.users import UserRow
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.router import Router
from runvitals.server.mail import messages
from runvitals.server.service_parameters import TheAccess, TheRequester, TheServices
from runvitals.store.errors import NoLongerValid

router = Router()


class ResetRequest(RequestBody):
    """Whose password is to be replaced."""

    email: str = Field(max_length=254)


class NewPassword(RequestBody):
    """A new password, with the secret of the link."""

    token: Token
    password: Password


class ResetRequested(ResponseBody):
    """A link is sent, if the address belongs to anyone."""

    done: Literal["reset"]


class ResetUser(ResponseBody):
    """Whose password was replaced."""

    name: str


@router.post("/auth/reset", needs(PUBLIC), with_accounts(), status_code=202)
def request_reset(
    body: ResetRequest,
    tasks: BackgroundTasks,
    requester: TheRequester,
    access: TheAccess,
    services: TheServices,
) -> ResetRequested:
    """Send a link for a new password.

    The response is the same whether the address belongs to anyone: whose it is, is looked up after it.
    """
    try:
        key = address_key(body.email)
    except ValueError as error:
        raise InvalidFields({"email": str(error)}) from None
    tasks.add_task(_send, services, access, requester, key)
    return ResetRequested(done="reset")


def _send(services: AccountServices, access: AccessControl, requester: Requester, key: str) -> None:
    if services.take("reset_network", network_of(requester.ip)) > 0:
        return
    if services.take("reset_address", key) > 0:
        return
    accounts, now_ms = access.accounts, access.clock()
    user = accounts.users.by_address(key)
    target = None if user is None else user.name
    accounts.audit.record(now_ms, requester.actor, "user.password_reset_request", target=target)
    if user is None or user.state != "active":
        return
    email = next(email for email in accounts.emails.of_user(user.id) if email.address_key == key)
    providers = sorted({login.provider for login in accounts.logins.of_user(user.id)})
    if providers and accounts.credentials.password(user.id) is None:
        message = messages.reset_by_provider(user.name, providers)
    else:
        token = accounts.one_time_tokens.create("reset_password", now_ms, user_id=user.id)
        message = messages.reset_password(user.name, token)
    services.mailer.send(message, email.address, now_ms)


@router.post("/auth/reset/confirm", needs(PUBLIC), with_accounts())
async def reset(
    body: NewPassword, requester: TheRequester, access: TheAccess, services: TheServices
) -> ResetUser:
    """Set a new password by a link. All sessions of the account end; keys stay."""
    user = await services.hashing(lambda: _reset(body, requester, access, services))
    return ResetUser(name=user.name)


def _reset(
    body: NewPassword, requester: Requester, access: AccessControl, services: AccountServices
) -> UserRow:
    accounts, now_ms = access.accounts, access.clock()
    tokens = accounts.one_time_tokens
    token = services.of_link(requester.ip, lambda: tokens.peek(body.token, "reset_password", now_ms))
    if token.user_id is None:
        raise NoLongerValid("this link was used, or has expired")
    user = accounts.users.get(token.user_id)
    check_new_password(services, user.id, user.name, body.password, "password")
    hashed = services.passwords.hash(body.password)
    tokens.use(body.token, "reset_password", now_ms)
    actor = requester.as_user(user.id, user.name, "link")
    accounts.credentials.set_password(user.id, hashed, actor, now_ms)
    access.rights_changed()
    services.notices().to_user(user.id, messages.password_changed(user.name))
    return user
