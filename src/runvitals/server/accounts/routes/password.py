"""`PUT /account/password`: change the password."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import Response
from pydantic import Field

from runvitals.server.access.actions import OWN_PASSWORD, Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.resources import Account
from runvitals.server.account_services import AccountServices
from runvitals.server.accounts.passwords import normalise
from runvitals.server.accounts.routes.new_user import check_new_password
from runvitals.server.accounts.routes.own_account import Owner, SignedInOwner
from runvitals.server.accounts.routes.session_cookies import renew_session
from runvitals.server.accounts.routes.sign_in import MAX_PASSWORD, Password
from runvitals.server.accounts.routes.sudo import confirm
from runvitals.server.http.bodies import RequestBody
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.router import Router
from runvitals.server.mail import messages
from runvitals.server.service_parameters import TheAccess, TheServices

router = Router()


class PasswordChange(RequestBody):
    """The present password and a new one."""

    old: str | None = Field(None, max_length=MAX_PASSWORD, description="Not needed if none is set.")
    new: Password


@router.put("/account/password", needs(OWN_PASSWORD), status_code=204)
async def change_password(
    body: PasswordChange,
    request: Request,
    access: TheAccess,
    services: TheServices,
    owner: SignedInOwner,
) -> Response:
    """Change the password. All other sessions end; keys stay."""
    response = Response(status_code=204)

    def change() -> None:
        _change(body, owner, access, services)
        renew_session(request, response, access, owner.session.id)

    await services.hashing(change)
    return response


def _change(body: PasswordChange, owner: Owner, access: AccessControl, services: AccountServices) -> None:
    accounts, now_ms = access.accounts, access.clock()
    if accounts.credentials.password(owner.id) is None:
        # No password to ask for: the user signs in with a provider, and must have done so lately.
        access.require(owner.requester, Action.ACCOUNT_SECURITY, Account(owner.id), "such account")
    elif body.old is None:
        raise InvalidFields({"old": "the present password is missing"})
    else:
        confirm(owner, body.old, access, services)
        if normalise(body.new) == normalise(body.old):
            raise InvalidFields({"new": "this is the present password; choose another one"})
    check_new_password(services, owner.id, owner.name, body.new, "new")
    hashed = services.passwords.hash(body.new)
    accounts.credentials.set_password(owner.id, hashed, owner.actor, now_ms, keep_session=owner.session.id)
    access.rights_changed()
    services.notices().to_user(owner.id, messages.password_changed(owner.name))
