"""`/organisation/audit/webhook`: where the audit log is sent."""

from __future__ import annotations

import secrets
from typing import Annotated, Literal

from fastapi import HTTPException
from pydantic import ConfigDict, Field

from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.accounts.routes.key_rules import check_session
from runvitals.server.audit.audit_webhook import PURPOSE, NotDelivered
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import InvalidFields, answering
from runvitals.server.http.router import Router
from runvitals.server.outbound.policy import Blocked
from runvitals.server.service_parameters import TheAccess, TheOutsideServices, TheRequester

router = Router()


class Receiver(RequestBody):
    """Where the audit log is to be sent."""

    url: Annotated[str, Field(min_length=1, max_length=2000, description="https://…")]


class AuditWebhookSchema(ResponseBody):
    """Where the audit log is sent; without a URL, nowhere."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    url: str | None
    created_ms: int | None = None
    delivered_ms: int | None = None
    waiting: int | None = Field(default=None, description="How many events wait.")
    problem: str | None = Field(default=None, description="Why they could not be sent.")
    secret: str | None = Field(default=None, description="What signs the requests; shown once.")


class WebhookTested(ResponseBody):
    """The receiver took the request."""

    done: Literal["sent"]


@router.get("/organisation/audit/webhook", needs("org:settings"), response_model_exclude_unset=True)
def audit_webhook(access: TheAccess) -> AuditWebhookSchema:
    """Where the audit log is sent, and whether that works."""
    return _state(access)


@router.put("/organisation/audit/webhook", needs("org:settings"), response_model_exclude_unset=True)
def put_audit_webhook(
    body: Receiver, access: TheAccess, requester: TheRequester, outside: TheOutsideServices
) -> AuditWebhookSchema:
    """Send each event of the audit log to a URL, from now on, or to another one than before.

    `secret` of the response signs the requests. It is shown once; another request makes a new one.
    """
    check_session(requester)
    try:
        outside.fetcher.check(body.url)
    except Blocked as error:
        raise InvalidFields({"url": str(error)}) from None
    secret = secrets.token_urlsafe(32)
    sealed = outside.box.seal(secret.encode(), PURPOSE)
    access.accounts.audit_webhook.put(body.url, sealed, requester.actor, access.clock())
    state = _state(access)
    state.secret = secret
    return state


@router.post("/organisation/audit/webhook/test", needs("org:settings"))
async def test_audit_webhook(access: TheAccess, outside: TheOutsideServices) -> WebhookTested:
    """Send a request without events now. The error is what the receiver answered."""

    def send() -> None:
        webhook = access.accounts.audit_webhook.get()
        if webhook is None:
            raise HTTPException(409, "the audit log is sent nowhere")
        secret = outside.box.open(webhook.sealed, PURPOSE).decode()
        outside.audit_webhook.send(webhook.url, secret, [])

    with answering(502, NotDelivered):
        await outside.workers.run(send)
    return WebhookTested(done="sent")


@router.delete("/organisation/audit/webhook", needs("org:settings"), status_code=204)
def remove_audit_webhook(access: TheAccess, requester: TheRequester) -> None:
    """Send the audit log nowhere. Events that wait are not sent."""
    access.accounts.audit_webhook.remove(requester.actor, access.clock())


def _state(access: AccessControl) -> AuditWebhookSchema:
    webhook = access.accounts.audit_webhook.get()
    if webhook is None:
        return AuditWebhookSchema(url=None)
    return AuditWebhookSchema(
        url=webhook.url,
        created_ms=webhook.created_ms,
        delivered_ms=webhook.delivered_ms,
        waiting=access.accounts.audit.count_since(webhook.sent_id),
        problem=webhook.problem,
    )
