"""`/account`: who is signed in, and the deletion of the account."""

from __future__ import annotations

from typing import Literal

from fastapi import Request
from fastapi.responses import Response
from pydantic import ConfigDict, Field

from runvitals.model.durations import DAY_MS
from runvitals.server.access.actions import AUTHENTICATED, PUBLIC
from runvitals.server.access.control import unauthenticated
from runvitals.server.access.permission import needs
from runvitals.server.access.principals import Operator, ServiceAccount
from runvitals.server.accounts.routes.account_schema import AccountSchema, account_of
from runvitals.server.accounts.routes.own_account import SignedInOwner, TheOwner
from runvitals.server.accounts.routes.session_cookies import end_session
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.router import Router
from runvitals.server.mail import messages
from runvitals.server.service_parameters import TheAccess, TheRequester, TheServices

router = Router()


class Deletion(RequestBody):
    """The confirmation that an account is to be deleted, and when."""

    confirm: str = Field(max_length=64, description="The user name, typed again.")
    wait_days: int = Field(0, ge=0, le=30, description="The account works until then, and can be kept.")


class IdentifiedUser(AccountSchema):
    """An account, with what is known of the session or of the key that the request came with."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    sudo_until_ms: int | None = Field(
        default=None, description="Until when the password counts as confirmed."
    )
    key: str | None = Field(default=None, description="The shown part of the key.")


class IdentifiedServiceAccount(ResponseBody):
    """A service account. `key`: the shown part of its key."""

    kind: Literal["service_account"]
    name: str
    key: str | None


class IdentifiedOperator(ResponseBody):
    """Who uses a server that has no accounts."""

    kind: Literal["operator"]
    name: str


Identified = IdentifiedUser | IdentifiedServiceAccount | IdentifiedOperator


class SessionAccount(ResponseBody):
    """Who is signed in: null for a visitor. `visitors_read`: whether visitors may read anything."""

    account: Identified | None
    visitors_read: bool


class DeletionTime(ResponseBody):
    """When an account will be deleted."""

    delete_after_ms: int


class DeletedThings(ResponseBody):
    """How much of each kind a deletion removes, and the teams that the user leaves."""

    projects: int
    runs: int
    api_keys: int
    teams: list[str]


class KeptThings(ResponseBody):
    """How many a deletion leaves. `runs`: those in teams."""

    runs: int


class DeletionEffects(ResponseBody):
    """The things that a deletion of an account removes, and those that stay."""

    delete_after_ms: int | None
    goes: DeletedThings
    stays: KeptThings


@router.get("/account", needs(AUTHENTICATED), response_model_exclude_unset=True)
def who_am_i(requester: TheRequester, access: TheAccess) -> Identified:
    """Whom this session, key or token stands for."""
    principal = requester.principal
    if requester.user_id is not None:
        account = account_of(access, requester.user_id).model_dump()
        if requester.session is not None:
            account["sudo_until_ms"] = requester.session.sudo_until_ms
            account["must_change_password"] = requester.session.must_change_password
        else:
            account["key"] = requester.key_public_id
        return IdentifiedUser(**account)
    if isinstance(principal, ServiceAccount):
        return IdentifiedServiceAccount(
            kind="service_account", name=requester.name, key=requester.key_public_id
        )
    if isinstance(principal, Operator):
        return IdentifiedOperator(kind="operator", name="")
    raise unauthenticated()


@router.get("/auth/session", needs(PUBLIC), response_model_exclude_unset=True)
def session(requester: TheRequester, access: TheAccess) -> SessionAccount:
    """Who is signed in: `account` as in `GET /account`, null for a visitor."""
    account = None if requester.user_id is None else who_am_i(requester, access)
    return SessionAccount(account=account, visitors_read=access.directory.policies().anonymous_read)


@router.delete("/account", needs("account:delete"))
def delete_account(
    body: Deletion,
    request: Request,
    access: TheAccess,
    services: TheServices,
    owner: SignedInOwner,
    response: Response,
) -> DeletionTime | None:
    """Delete the account, now or after some days: 204, or 202 with the time. Runs in teams stay."""
    if body.confirm.lower() != owner.name:
        raise InvalidFields({"confirm": f"expected {owner.name}"})
    accounts, now_ms = access.accounts, access.clock()
    primary = accounts.emails.primary(owner.id)
    if body.wait_days:
        accounts.users.request_deletion(owner.id, owner.actor, now_ms, body.wait_days * DAY_MS)
        until_ms = now_ms + body.wait_days * DAY_MS
        services.notices().to_user(owner.id, messages.deletion_requested(owner.name, until_ms))
        response.status_code = 202
        return DeletionTime(delete_after_ms=until_ms)
    accounts.users.delete(owner.id, owner.actor, now_ms)
    access.rights_changed()
    if primary is not None and primary.verified_ms is not None:
        services.mailer.send(messages.account_deleted(owner.name), primary.address, now_ms)
    response.status_code = 204
    end_session(request, response)
    return None


@router.get("/account/deletion", needs("account:read"))
def deletion(access: TheAccess, owner: TheOwner) -> DeletionEffects:
    """Count what a deletion of the account would remove, and what stays."""
    contents = access.accounts.contents_of(owner.id)
    return DeletionEffects(
        delete_after_ms=access.accounts.users.get(owner.id).delete_after_ms,
        goes=DeletedThings(
            projects=contents.projects, runs=contents.runs, api_keys=contents.keys, teams=contents.teams
        ),
        stays=KeptThings(runs=contents.team_runs),
    )


@router.delete("/account/deletion", needs("account:update"), status_code=204)
def keep_account(access: TheAccess, owner: SignedInOwner) -> None:
    """Keep an account whose deletion was requested."""
    access.accounts.users.cancel_deletion(owner.id, owner.actor, access.clock())
