"""`/organisation/audit/webhook`: where the audit log is sent."""

from __future__ import annotations

import secrets
from typing import Annotated, Any

from fastapi import HTTPException
from pydantic import Field

from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import TheRequester
from runvitals.server.accounts.routes.key_rules import check_session
from runvitals.server.audit.audit_webhook import PURPOSE, NotDelivered
from runvitals.server.http.bodies import RequestBody
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.router import Router
from runvitals.server.outbound.policy import Blocked
from runvitals.server.service_parameters import TheAccess, TheOutsideServices

router = Router()


class Receiver(RequestBody):
    url: Annotated[str, Field(min_length=1, max_length=2000, description="https://…")]


@router.get("/organisation/audit/webhook", dependencies=[needs("org:settings")])
def audit_webhook(access: TheAccess) -> dict[str, Any]:
    """Where the audit log is sent, and whether that works."""
    return _as_json(access)


@router.put("/organisation/audit/webhook", dependencies=[needs("org:settings")])
def put_audit_webhook(
    body: Receiver, access: TheAccess, requester: TheRequester, outside: TheOutsideServices
) -> dict[str, Any]:
    """Send each event of the audit log to a URL, from now on, or to another one than before.

    `secret` of the answer signs the requests. It is shown once; another request makes a new one.
    """
    check_session(requester)
    try:
        outside.fetcher.check(body.url)
    except Blocked as error:
        raise InvalidFields({"url": str(error)}) from None
    secret = secrets.token_urlsafe(32)
    sealed = outside.box.seal(secret.encode(), PURPOSE)
    access.accounts.audit_webhook.put(body.url, sealed, requester.actor, access.clock())
    return {**_as_json(access), "secret": secret}


@router.post("/organisation/audit/webhook/test", dependencies=[needs("org:settings")])
async def test_audit_webhook(access: TheAccess, outside: TheOutsideServices) -> dict[str, str]:
    """Send a request without events now. The error is what the receiver answered."""

    def send() -> None:
        webhook = access.accounts.audit_webhook.get()
        if webhook is None:
            raise HTTPException(409, "the audit log is sent nowhere")
        secret = outside.box.open(webhook.sealed, PURPOSE).decode()
        outside.audit_webhook.send(webhook.url, secret, [])

    try:
        await outside.workers.run(send)
    except NotDelivered as error:
        raise HTTPException(502, str(error)) from None
    return {"done": "sent"}


@router.delete("/organisation/audit/webhook", status_code=204, dependencies=[needs("org:settings")])
def remove_audit_webhook(access: TheAccess, requester: TheRequester) -> None:
    """Send the audit log nowhere. Events that wait are not sent."""
    access.accounts.audit_webhook.remove(requester.actor, access.clock())


def _as_json(access: AccessControl) -> dict[str, Any]:
    webhook = access.accounts.audit_webhook.get()
    if webhook is None:
        return {"url": None}
    waiting = access.accounts.audit.count_since(webhook.sent_id)
    return {
        "url": webhook.url,
        "created_ms": webhook.created_ms,
        "delivered_ms": webhook.delivered_ms,
        "waiting": waiting,
        "problem": webhook.problem,
    }
