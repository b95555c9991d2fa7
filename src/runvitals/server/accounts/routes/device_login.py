"""`/auth/device`: `runvitals login URL` gets a key by a code that a user confirms in the browser."""

from __future__ import annotations

from typing import Final, Literal

from fastapi import HTTPException
from fastapi.responses import Response
from pydantic import Field

from runvitals.model.account_names import display_name
from runvitals.server.access.actions import PUBLIC
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs, with_accounts
from runvitals.server.account_services import AccountServices
from runvitals.server.accounts.attempt_limits import network_of
from runvitals.server.accounts.routes.api_keys import NewKey, create_key_of
from runvitals.server.accounts.routes.key_rules import ShownKey
from runvitals.server.accounts.routes.own_account import Owner, SignedInOwner
from runvitals.server.accounts.storage.device_logins import DeviceLogin
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import answering, checking, too_many
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheRequester, TheServices
from runvitals.store.errors import NoLongerValid

PATH: Final = "/-/device"
INTERVAL_S: Final = 2

router = Router()


class DeviceName(RequestBody):
    """The device that wants a key."""

    name: str = Field(min_length=1, max_length=64, description="Of the machine; the key gets it.")


class DeviceSecret(RequestBody):
    """The secret with which a device asks for its key."""

    device_code: str = Field(min_length=1, max_length=128)


class UserCode(RequestBody):
    """The code that a device shows."""

    code: str = Field(min_length=1, max_length=20)


class Answer(UserCode):
    """The user's decision about a device."""

    allow: bool
    scope: Literal["ingest", "read", "write"] = "write"


class DeviceCodes(ResponseBody):
    """The codes of a login that begins."""

    device_code: str = Field(description="The secret with which the device asks for its key.")
    user_code: str = Field(description="What the user confirms in the browser.")
    path: str = Field(description="Of the page where the user does so.")
    expires_ms: int
    interval_s: int = Field(description="How long to wait between two requests for the key.")


class DeviceWaits(ResponseBody):
    """The user has not decided yet."""

    state: Literal["waiting"]


class FetchedKey(ShownKey):
    """The device's key, and whose it is."""

    user: str


class WaitingDevice(ResponseBody):
    """A device that shows a code."""

    name: str
    ip: str
    created_ms: int
    expires_ms: int


@router.post("/auth/device", needs(PUBLIC), status_code=201)
def begin(body: DeviceName, requester: TheRequester, access: TheAccess, services: TheServices) -> DeviceCodes:
    """Make a code that the user confirms in the browser, and a secret by which the device gets its key."""
    services.limit("device", network_of(requester.ip))
    if not access.accounts.users.any_administrator():
        raise HTTPException(404, "this server has no accounts")
    with checking("name"):  # the user decides by it
        name = display_name(body.name)
    try:
        secret, login = access.accounts.device_logins.begin(name, requester.ip, access.clock())
    except ValueError as error:
        raise too_many(str(error), 60) from None
    return DeviceCodes(
        device_code=secret,
        user_code=login.code,
        path=PATH,
        expires_ms=login.expires_ms,
        interval_s=INTERVAL_S,
    )


@router.post("/auth/device/token", needs(PUBLIC), with_accounts())
def fetch_key(
    body: DeviceSecret,
    requester: TheRequester,
    access: TheAccess,
    services: TheServices,
    response: Response,
) -> FetchedKey | DeviceWaits:
    """The device's key, once: 201; 202 while the user has not answered, 410 once they cannot any more."""
    logins, now_ms = access.accounts.device_logins, access.clock()
    with answering(410, (NoLongerValid, LookupError)):
        login = services.of_link(requester.ip, lambda: logins.of_device(body.device_code, now_ms))
        if login.user_id is None:
            response.status_code = 202
            return DeviceWaits(state="waiting")
        user = access.accounts.users.get(login.user_id)
        logins.finish(login.id)
    if user.state != "active":
        raise HTTPException(410, "the account is not active")
    by = requester.as_user(user.id, user.name, "session")
    new = NewKey.model_validate({"name": login.name, "scope": login.scope})
    key = create_key_of(user.id, new, access, services, by)
    response.status_code = 201
    response.headers["cache-control"] = "no-store"
    return FetchedKey(**key.model_dump(), user=user.name)


@router.post("/auth/device/lookup", needs("account:keys"))
def look_up(
    body: UserCode,
    access: TheAccess,
    services: TheServices,
    owner: SignedInOwner,
) -> WaitingDevice:
    """Which device shows this code."""
    return WaitingDevice.model_validate(_waiting(body.code, owner, access, services))


@router.post("/auth/device/confirm", needs("account:keys"), status_code=204)
def answer(
    body: Answer,
    access: TheAccess,
    services: TheServices,
    owner: SignedInOwner,
) -> None:
    """Let the device with this code have a key of the account, or deny it."""
    login = _waiting(body.code, owner, access, services)
    access.accounts.device_logins.answer(
        login.code, owner.id, body.scope, body.allow, owner.actor, access.clock()
    )


def _waiting(code: str, owner: Owner, access: AccessControl, services: AccountServices) -> DeviceLogin:
    """Return the login that waits for this code.

    Raises:
        HTTPException: 410 for a wrong code, 429 after too many of them in this session.
    """
    wait_s = services.device_codes.wait_s(owner.session.id)
    if wait_s > 0:
        raise too_many("too many wrong codes; try again later", wait_s)
    try:
        return access.accounts.device_logins.by_code(code, access.clock())
    except NoLongerValid as error:
        services.device_codes.note_failure(owner.session.id)
        raise HTTPException(410, str(error)) from None
