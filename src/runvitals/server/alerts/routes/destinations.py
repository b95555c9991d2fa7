"""`/teams/{team}/webhooks`, `…/slack-destinations` and `…/apprise-destinations`: where a team's messages go.

Who has the URL of a channel of Slack or of Apprise can post there, so it is never shown again.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Collection
from typing import Annotated, Any, Final

from fastapi import Path
from pydantic import Field

from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.alerts.delivery.apprise import is_installed
from runvitals.server.alerts.delivery.channel import DeliveryFailed
from runvitals.server.alerts.payload_template import MAX_BYTES, check_payload
from runvitals.server.alerts.routes.notifications import ReceiverResponse, TheChannels, response_of
from runvitals.server.alerts.storage.destinations import (
    MAX_NAME,
    DestinationTable,
    SealedUrl,
    StoredDestination,
    UnknownSecret,
)
from runvitals.server.database.secret_box import apprise_purpose, slack_purpose
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import DetailedError, InvalidFields, checking
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.organisation.settings import with_defaults
from runvitals.server.outbound.policy import Blocked
from runvitals.server.outside_services import OutsideServices
from runvitals.server.service_parameters import TheAccess, TheOutsideServices, TheRequester
from runvitals.server.teams.routes.parameters import TheAutomationOwner
from runvitals.store.errors import NameTaken

DestinationId = Annotated[int, Path(ge=1, le=2**31 - 1)]
MAX_SLACK_URL: Final = 500
_MAX_APPRISE_URL: Final = 2000
_MAX_URL: Final = 2048
_WEBHOOKS: Final = "/teams/{team}/webhooks"
_SLACK: Final = "/teams/{team}/slack-destinations"
_APPRISE: Final = "/teams/{team}/apprise-destinations"
_SLACK_URL: Final = re.compile(
    r"https://(hooks\.slack\.com|hooks\.slack-gov\.com)/(?:services|workflows|triggers)/[A-Za-z0-9_/-]{12,}",
    re.ASCII,
)
_OTHER_URL: Final = re.compile(r"https://([A-Za-z0-9.-]+)(?::[0-9]{1,5})?/[A-Za-z0-9._~/-]{12,}", re.ASCII)

router = Router()


class WebhookSchema(ResponseBody):
    """A webhook of a team."""

    id: int
    name: str
    url: str
    access_secret: str | None = Field(description="The name of the secret.")
    signing_secret: str | None = Field(description="The name of the secret.")
    payload: str | None
    enabled: bool
    created_ms: int


WebhooksPage = page_body("WebhooksPage", "The webhooks of a team.", webhooks=list[WebhookSchema])


class OwnSlackChannel(ResponseBody):
    """A channel of Slack."""

    shown: str = Field(description="What of its URL may be read.")
    created_ms: int
    disabled_ms: int | None = Field(description="Since when Slack does not accept it; None: it does.")


class SlackDestinationSchema(ResponseBody):
    """A channel of Slack of a team."""

    id: int
    channel: str = Field(validation_alias="name", description="What the team calls it.")
    shown: str = Field(description="What of its URL may be read.")
    created_ms: int
    disabled_ms: int | None = Field(description="Since when Slack does not accept it; None: it does.")


class SlackDestinationsPage(ResponseBody):
    """The Slack destinations of a team."""

    slack_destinations: list[SlackDestinationSchema]
    total: int
    next: str | None
    app: bool = Field(description="The operator registered an app of Slack, by which a browser can add one.")


class AppriseDestinationSchema(ResponseBody):
    """A service that a team reaches by Apprise."""

    id: int
    name: str
    shown: str = Field(description="The service of its URL.")
    created_ms: int


class AppriseDestinationsPage(ResponseBody):
    """The services that a team reaches by Apprise."""

    apprise_destinations: list[AppriseDestinationSchema]
    total: int
    next: str | None
    installed: bool = Field(description="The server has Apprise.")


class NewWebhook(RequestBody):
    """A webhook to create."""

    name: str = Field(min_length=1, max_length=MAX_NAME["webhook"])
    url: str = Field(min_length=1, max_length=_MAX_URL, description="Public, with https.")
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


class WebhookChanges(RequestBody):
    """Changes; a field that is left out stays as it is, and null removes a secret or the payload."""

    name: str = Field("", min_length=1, max_length=MAX_NAME["webhook"])
    url: str = Field("", min_length=1, max_length=_MAX_URL)
    access_secret: str | None = Field(None, max_length=64)
    signing_secret: str | None = Field(None, max_length=64)
    payload: str | None = Field(None, max_length=MAX_BYTES)
    enabled: bool = True


class WebhookTest(RequestBody):
    """A test request to a webhook."""

    payload: str | None = Field(
        None, max_length=MAX_BYTES, description="Sent instead of the webhook's own payload."
    )


class NewSlackDestination(RequestBody):
    """A Slack channel to add."""

    channel: str = Field(
        min_length=1, max_length=MAX_NAME["slack"], description="What the team calls it, such as `#training`."
    )
    webhook_url: str = Field(
        min_length=1, max_length=MAX_SLACK_URL, description="`https://hooks.slack.com/services/…`"
    )


class SlackDestinationChanges(RequestBody):
    """Changes; a field that is left out stays as it is."""

    channel: str | None = Field(None, min_length=1, max_length=MAX_NAME["slack"])
    webhook_url: str | None = Field(None, min_length=1, max_length=MAX_SLACK_URL)


class NewAppriseDestination(RequestBody):
    """A service of Apprise to add."""

    name: str = Field(min_length=1, max_length=MAX_NAME["apprise"], description="What the team calls it.")
    url: str = Field(
        min_length=1,
        max_length=_MAX_APPRISE_URL,
        description="Of Apprise, such as `ntfys://ntfy.sh/our-runs`.",
    )


@router.get(_WEBHOOKS, needs("webhook:manage"), response_model=WebhooksPage)
def webhooks(team: TheAutomationOwner, access: TheAccess, page: ThePage) -> dict[str, Any]:
    """The team's webhooks, in the order in which they were created."""
    rows = _table(access).of_team("webhook", team.id)
    return page_of("webhooks", rows, lambda row: row.id, page, _show_webhook)


@router.get(_SLACK, needs("slack:manage"), response_model=SlackDestinationsPage)
def slack_destinations(
    team: TheAutomationOwner, access: TheAccess, page: ThePage, outside: TheOutsideServices
) -> dict[str, Any]:
    """The team's Slack destinations, in the order in which they were created."""
    rows = _table(access).of_team("slack", team.id)
    listed = page_of("slack_destinations", rows, lambda row: row.id, page)
    return {**listed, "app": outside.slack_app.configured}


@router.get(_APPRISE, needs("webhook:manage"), response_model=AppriseDestinationsPage)
def apprise_destinations(team: TheAutomationOwner, access: TheAccess, page: ThePage) -> dict[str, Any]:
    """The team's destinations, in the order in which they were created."""
    rows = _table(access).of_team("apprise", team.id)
    listed = page_of("apprise_destinations", rows, lambda row: row.id, page)
    return {**listed, "installed": is_installed()}


@router.post(_WEBHOOKS, needs("webhook:manage"), response_model=WebhookSchema, status_code=201)
def create_webhook(
    body: NewWebhook,
    team: TheAutomationOwner,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
) -> dict[str, Any]:
    """Create a webhook."""
    values = body.model_dump(exclude={"name"})
    _check_webhook(values, values["signing_secret"], outside)
    table, by, now_ms = _table(access), requester.actor, access.clock()
    return _show_webhook(
        _store("name", lambda: table.create("webhook", team.id, body.name, values, by, now_ms))
    )


@router.post(_SLACK, needs("slack:manage"), response_model=SlackDestinationSchema, status_code=201)
def create_slack_destination(
    body: NewSlackDestination,
    team: TheAutomationOwner,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
) -> StoredDestination:
    """Add a Slack channel by the URL of its incoming webhook."""
    url = sealed_slack_url(body.webhook_url, slack_purpose(team.id), outside)._asdict()
    table, by, now_ms = _table(access), requester.actor, access.clock()
    return _store("channel", lambda: table.create("slack", team.id, body.channel, url, by, now_ms))


@router.post(_APPRISE, needs("webhook:manage"), response_model=AppriseDestinationSchema, status_code=201)
def create_apprise_destination(
    body: NewAppriseDestination,
    team: TheAutomationOwner,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
    channels: TheChannels,
) -> StoredDestination:
    """Add a destination by its URL. Apprise says whether it knows it; nothing is sent."""
    address = body.url.strip()
    try:
        result = channels.apprise.check(address)
    except DeliveryFailed as error:
        raise InvalidFields({"url": str(error)}) from None
    if not result.service:
        raise InvalidFields({"url": result.error or "Apprise does not know this URL"})
    sealed = outside.box.seal(address.encode(), apprise_purpose(team.id))
    url = SealedUrl(sealed, result.service)._asdict()
    table, by, now_ms = _table(access), requester.actor, access.clock()
    return _store("name", lambda: table.create("apprise", team.id, body.name, url, by, now_ms))


@router.patch(f"{_WEBHOOKS}/{{webhook}}", needs("webhook:manage"), response_model=WebhookSchema)
def change_webhook(
    webhook: DestinationId,
    body: WebhookChanges,
    team: TheAutomationOwner,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
) -> dict[str, Any]:
    """Change a webhook."""
    changes, present = body.model_dump(exclude_unset=True), _table(access).get("webhook", team.id, webhook)
    name = changes.pop("name", None)
    _check_webhook(changes, changes.get("signing_secret", present.settings["signing_secret"]), outside)
    table, by, now_ms = _table(access), requester.actor, access.clock()
    return _show_webhook(
        _store("name", lambda: table.update("webhook", team.id, webhook, changes, by, now_ms, name=name))
    )


@router.patch(f"{_SLACK}/{{destination}}", needs("slack:manage"), response_model=SlackDestinationSchema)
def change_slack_destination(
    destination: DestinationId,
    body: SlackDestinationChanges,
    team: TheAutomationOwner,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
) -> StoredDestination:
    """Rename a Slack destination, or replace its URL."""
    changes: dict[str, Any] = {}
    if body.webhook_url is not None:
        changes = sealed_slack_url(body.webhook_url, slack_purpose(team.id), outside)._asdict()
    table, by, now_ms = _table(access), requester.actor, access.clock()
    return _store(
        "channel",
        lambda: table.update("slack", team.id, destination, changes, by, now_ms, name=body.channel),
    )


@router.delete(f"{_WEBHOOKS}/{{webhook}}", needs("webhook:manage"), status_code=204)
def delete_webhook(
    webhook: DestinationId, team: TheAutomationOwner, access: TheAccess, requester: TheRequester
) -> None:
    """Delete a webhook. Its secrets stay."""
    _table(access).delete("webhook", team.id, webhook, requester.actor, access.clock())


@router.delete(f"{_SLACK}/{{destination}}", needs("slack:manage"), status_code=204)
def delete_slack_destination(
    destination: DestinationId, team: TheAutomationOwner, access: TheAccess, requester: TheRequester
) -> None:
    """Delete a Slack destination. Its webhook at Slack stays."""
    _table(access).delete("slack", team.id, destination, requester.actor, access.clock())


@router.delete(f"{_APPRISE}/{{destination}}", needs("webhook:manage"), status_code=204)
def delete_apprise_destination(
    destination: DestinationId, team: TheAutomationOwner, access: TheAccess, requester: TheRequester
) -> None:
    """Delete a destination."""
    _table(access).delete("apprise", team.id, destination, requester.actor, access.clock())


@router.post(f"{_WEBHOOKS}/{{webhook}}/test", needs("webhook:manage"), response_model=ReceiverResponse)
def test_webhook(
    webhook: DestinationId,
    body: WebhookTest,
    team: TheAutomationOwner,
    access: TheAccess,
    channels: TheChannels,
) -> ReceiverResponse:
    """Send a signed request about an invented run at once, and return what the receiver answered."""
    destination = _table(access).get("webhook", team.id, webhook)
    if body.payload is not None:
        with checking("payload"):
            check_payload(body.payload, list(filter(None, [destination.settings["signing_secret"]])))
    values = {"event_type": "test", "entity_name": team.name, "run_name": "an example"}
    everything = {"event": "test", "title": f"A test of team {team.name}", **values}
    template = body.payload or destination.settings["payload"]
    key = f"test-{secrets.token_hex(8)}"
    return response_of(lambda: channels.webhook.send(team.id, destination, template, values, everything, key))


@router.post(f"{_SLACK}/{{destination}}/test", needs("slack:manage"), response_model=ReceiverResponse)
def test_slack_destination(
    destination: DestinationId, team: TheAutomationOwner, access: TheAccess, channels: TheChannels
) -> ReceiverResponse:
    """Post a message at once, and return what Slack answered."""
    sealed = _table(access).get("slack", team.id, destination).sealed
    title, text = f"A test of team {team.name}", "Messages of automations will arrive here."
    return response_of(lambda: channels.slack.post_to_team(team.id, sealed, title, text))


@router.post(f"{_APPRISE}/{{destination}}/test", needs("webhook:manage"), response_model=ReceiverResponse)
def test_apprise_destination(
    destination: DestinationId, team: TheAutomationOwner, access: TheAccess, channels: TheChannels
) -> ReceiverResponse:
    """Send a message at once, and return whether the service accepted it."""
    _table(access).get("apprise", team.id, destination)
    title, text = f"A test of team {team.name}", "Messages of rules and automations will arrive here."
    return response_of(lambda: channels.apprise.send(team.id, destination, title, text))


def sealed_slack_url(
    url: str, purpose: str, outside: OutsideServices, field: str = "webhook_url"
) -> SealedUrl:
    """Return the URL of an incoming webhook, encrypted.

    Raises:
        InvalidFields: it is not one of Slack, nor of a host of the setting `slack_hosts`.
    """
    url = url.strip()
    host = _slack_host(url, with_defaults(outside.settings())["slack_hosts"])
    if host is None:
        raise InvalidFields(
            {field: "invalid URL; expected https://hooks.slack.com/services/… of an incoming webhook"}
        )
    return SealedUrl(outside.box.seal(url.encode(), purpose), f"{host}/…/{url[-4:]}")


def _table(access: AccessControl) -> DestinationTable:
    return access.metadata_store.alerts.destinations


def _show_webhook(row: StoredDestination) -> dict[str, Any]:
    return {"id": row.id, "name": row.name, **row.settings, "created_ms": row.created_ms}


def _slack_host(url: str, other_hosts: Collection[str]) -> str | None:
    """Return the host of an incoming webhook of Slack, or of one of the other hosts.

    None if the URL is not one.
    """
    match = _SLACK_URL.fullmatch(url)
    if match is not None:
        return match[1]
    match = _OTHER_URL.fullmatch(url)
    return match[1] if match is not None and match[1].lower() in other_hosts else None


def _check_webhook(values: dict[str, Any], signing_secret: str | None, outside: OutsideServices) -> None:
    """Check the URL and the payload, and strip the URL.

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


def _store(name_field: str, store: Callable[[], StoredDestination]) -> StoredDestination:
    """Store a destination. An error names its field; `name_field` is that of the destination's name."""
    try:
        with checking(name_field):
            return store()
    except UnknownSecret as error:
        raise InvalidFields({error.field: str(error)}) from None
    except NameTaken as error:
        raise DetailedError(409, str(error), {"fields": {name_field: str(error)}}) from None
