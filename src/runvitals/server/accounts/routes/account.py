"""`/account`: who is signed in, and the deletion of the account."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from runvitals.model.durations import DAY_MS
from runvitals.server.access.actions import AUTHENTICATED, PUBLIC
from runvitals.server.access.control import unauthenticated
from runvitals.server.access.permission import needs
from runvitals.server.access.principals import Operator, ServiceAccount
from runvitals.server.access.requester import TheRequester
from runvitals.server.accounts.routes.account_json import account_json
from runvitals.server.accounts.routes.own_account import SignedInOwner, TheOwner
from runvitals.server.accounts.routes.session_cookies import end_session
from runvitals.server.http.bodies import RequestBody
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.router import Router
from runvitals.server.mail import messages
from runvitals.server.service_parameters import TheAccess, TheServices

router = Router()


class Deletion(RequestBody):
    confirm: str = Field(max_length=64, description="The user name, typed again.")
    wait_days: int = Field(0, ge=0, le=30, description="The account works until then, and can be kept.")


@router.get("/account", dependencies=[needs(AUTHENTICATED)])
def who_am_i(requester: TheRequester, access: TheAccess) -> Any:
    """Whom this session, key or token stands for."""
    principal = requester.principal
    if requester.user_id is not None:
        account = account_json(access, requester.user_id)
        if requester.session is not None:
            return {
                **account,
                "sudo_until_ms": requester.session.sudo_until_ms,
                "must_change_password": requester.session.must_change_password,
            }
        return {**account, "key": requester.key_public_id}
    if isinstance(principal, ServiceAccount):
        return {"kind": "service_account", "name": requester.name, "key": requester.key_public_id}
    if isinstance(principal, Operator):
        return {"kind": "operator", "name": ""}
    raise unauthenticated()


@router.get("/auth/session", dependencies=[needs(PUBLIC)])
def session(requester: TheRequester, access: TheAccess) -> Any:
    """Who is signed in: `account` as in `GET /account`, null for a visitor."""
    if requester.user_id is None:
        return {"account": None}
    return {"account": who_am_i(requester, access)}


@router.delete("/account", dependencies=[needs("account:delete")])
def delete_account(
    body: Deletion,
    request: Request,
    access: TheAccess,
    services: TheServices,
    owner: SignedInOwner,
) -> Response:
    """Delete the account, now or after some days: 204, or 202 with the time. Runs in teams stay."""
    if body.confirm.lower() != owner.name:
        raise InvalidFields({"confirm": f"expected {owner.name}"})
    accounts, now_ms = access.accounts, access.clock()
    primary = accounts.emails.primary(owner.id)
    if body.wait_days:
        accounts.users.request_deletion(owner.id, owner.actor, now_ms, body.wait_days * DAY_MS)
        until_ms = now_ms + body.wait_days * DAY_MS
        services.notices().to_user(owner.id, messages.deletion_requested(owner.name, until_ms))
        return JSONResponse({"delete_after_ms": until_ms}, 202)
    accounts.users.delete(owner.id, owner.actor, now_ms)
    access.rights_changed()
    if primary is not None and primary.verified_ms is not None:
        services.mailer.send(messages.account_deleted(owner.name), primary.address, now_ms)
    response = Response(status_code=204)
    end_session(request, response)
    return response


@router.get("/account/deletion", dependencies=[needs("account:read")])
def deletion(access: TheAccess, owner: TheOwner) -> Any:
    """What a deletion of the account would remove, and what stays."""
    contents = access.accounts.contents_of(owner.id)
    return {
        "delete_after_ms": access.accounts.users.get(owner.id).delete_after_ms,
        "goes": {
            "projects": contents.projects,
            "runs": contents.runs,
            "api_keys": contents.keys,
            "teams": contents.teams,
        },
        "stays": {"runs": contents.team_runs},
    }


@router.delete("/account/deletion", status_code=204, dependencies=[needs("account:update")])
def keep_account(access: TheAccess, owner: SignedInOwner) -> None:
    """Keep an account whose deletion was requested."""
    access.accounts.users.cancel_deletion(owner.id, owner.actor, access.clock())
