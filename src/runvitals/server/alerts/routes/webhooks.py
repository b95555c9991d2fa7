"""`/teams/{team}/webhooks`: where automations send what happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from runvitals.server.access.control import TheAccess
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import TheRequester
from runvitals.server.alerts.payload_template import MAX_BYTES, check_payload
from runvitals.server.alerts.storage.webhooks import MAX_NAME, UnknownSecret, WebhookRow
from runvitals.server.http.errors import DetailedError, InvalidFields
from runvitals.server.http.field_checks import checking
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.outbound.policy import Blocked
from runvitals.server.outside_services import TheOutsideServices
from runvitals.server.teams.routes.parameters import TheTeam
from runvitals.store.errors import NameTaken

WebhookId = Annotated[int, Path(ge=1, le=2**31 - 1)]
MAX_URL = 2048

router = Router()


class NewWebhook(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=MAX_NAME)
    url: str = Field(min_length=1, max_length=MAX_URL, description="Public, with https.")
    access_secret: str | None = Field(
        None, max_length=64, description="The secret that is sent as the access token."
    )
    signing_secret: str | None = Field(
        None, max_length=64, description="The secret that the signature is made with."
    )
    payload: str | None = Field(
        None, max_length=MAX_BYTES, description="A JSON object, with `${run_name}` and the like in its texts."
    )
    enabled: bool = True


class WebhookChanges(BaseModel):
    """What is left out does not change; null takes a secret or the payload away."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field("", min_length=1, max_length=MAX_NAME)
    url: str = Field("", min_length=1, max_length=MAX_URL)
    access_secret: str | None = Field(None, max_length=64)
    signing_secret: str | None = Field(None, max_length=64)
    payload: str | None = Field(None, max_length=MAX_BYTES)
    enabled: bool = True


@router.get("/teams/{team}/webhooks", dependencies=[needs("webhook:manage")])
def webhooks(team: TheTeam, access: TheAccess, page: ThePage) -> dict[str, Any]:
    """The team's webhooks, in the order in which they were created."""
    rows = access.accounts.webhooks.of_team(team.id)
    return page_of("webhooks", rows, lambda row: row.id, page, webhook_json)


@router.post("/teams/{team}/webhooks", status_code=201, dependencies=[needs("webhook:manage")])
def create_webhook(
    body: NewWebhook,
    team: TheTeam,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
) -> dict[str, Any]:
    """Create a webhook."""
    values = body.model_dump()
    _check(values, values["signing_secret"], outside)
    table = access.accounts.webhooks
    return _stored(lambda: table.create(team.id, values, requester.actor, access.clock()))


@router.patch("/teams/{team}/webhooks/{webhook}", dependencies=[needs("webhook:manage")])
def change_webhook(
    webhook: WebhookId,
    body: WebhookChanges,
    team: TheTeam,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
) -> dict[str, Any]:
    """Change a webhook."""
    table = access.accounts.webhooks
    changes, present = body.model_dump(exclude_unset=True), table.get(team.id, webhook)
    _check(changes, changes.get("signing_secret", present.signing_secret), outside)
    return _stored(lambda: table.update(team.id, webhook, changes, requester.actor, access.clock()))


@router.delete("/teams/{team}/webhooks/{webhook}", status_code=204, dependencies=[needs("webhook:manage")])
def delete_webhook(webhook: WebhookId, team: TheTeam, access: TheAccess, requester: TheRequester) -> None:
    """Delete a webhook. Its secrets stay."""
    access.accounts.webhooks.delete(team.id, webhook, requester.actor, access.clock())


def webhook_json(row: WebhookRow) -> dict[str, Any]:
    """A webhook in an answer."""
    return {
        "id": row.id,
        "name": row.name,
        "url": row.url,
        "access_secret": row.access_secret,
        "signing_secret": row.signing_secret,
        "payload": row.payload,
        "enabled": row.enabled,
        "created_ms": row.created_ms,
    }


def _check(values: dict[str, Any], signing_secret: str | None, outside: TheOutsideServices) -> None:
    """
    Raises:
        InvalidFields: no request would be sent to the URL, or the payload is invalid.
    """
    if "url" in values:
        values["url"] = values["url"].strip()
        try:
            outside.fetcher.check(values["url"])
        except Blocked as error:
            raise InvalidFields({"url": str(error)}) from None
    if values.get("payload") is not None:
        with checking("payload"):
            check_payload(values["payload"], [] if signing_secret is None else [signing_secret])


def _stored(store: Callable[[], WebhookRow]) -> dict[str, Any]:
    """What storing a webhook answers; what is wrong is said beside its field."""
    try:
        with checking("name"):
            return webhook_json(store())
    except UnknownSecret as error:
        raise InvalidFields({error.field: str(error)}) from None
    except NameTaken as error:
        raise DetailedError(409, str(error), {"fields": {"name": str(error)}}) from None
