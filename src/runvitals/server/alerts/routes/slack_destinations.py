"""`/teams/{team}/slack-destinations`: channels that alerts, rules and automations post to.

A destination is an incoming webhook of Slack. Who has its URL can post, so the URL is never shown again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Annotated, Any, Final

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from runvitals.server.access.control import TheAccess
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import TheRequester
from runvitals.server.accounts.sealed_purposes import slack_purpose
from runvitals.server.alerts.storage.slack_destinations import MAX_CHANNEL, SealedUrl, SlackDestinationRow
from runvitals.server.http.errors import DetailedError, InvalidFields
from runvitals.server.http.field_checks import checking
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.organisation.settings import with_defaults
from runvitals.server.outside_services import OutsideServices, TheOutsideServices
from runvitals.server.teams.routes.parameters import TheTeam
from runvitals.store.errors import NameTaken

DestinationId = Annotated[int, Path(ge=1, le=2**31 - 1)]
MAX_URL: Final = 500
_URL: Final = re.compile(
    r"https://(hooks\.slack\.com|hooks\.slack-gov\.com)/(?:services|workflows|triggers)/[A-Za-z0-9_/-]{12,}",
    re.ASCII,
)
_OTHER_URL: Final = re.compile(r"https://([A-Za-z0-9.-]+)(?::[0-9]{1,5})?/[A-Za-z0-9._~/-]{12,}", re.ASCII)

router = Router()


class NewSlackDestination(BaseModel):
    model_config = ConfigDict(extra="forbid")

    channel: str = Field(
        min_length=1, max_length=MAX_CHANNEL, description="What the team calls it, such as `#training`."
    )
    webhook_url: str = Field(
        min_length=1, max_length=MAX_URL, description="`https://hooks.slack.com/services/…`"
    )


class SlackDestinationChanges(BaseModel):
    """What is left out does not change."""

    model_config = ConfigDict(extra="forbid")

    channel: str | None = Field(None, min_length=1, max_length=MAX_CHANNEL)
    webhook_url: str | None = Field(None, min_length=1, max_length=MAX_URL)


@router.get("/teams/{team}/slack-destinations", dependencies=[needs("slack:manage")])
def slack_destinations(
    team: TheTeam, access: TheAccess, page: ThePage, outside: TheOutsideServices
) -> dict[str, Any]:
    """The team's Slack destinations, in the order in which they were created. `app`: the operator has
    registered an app of Slack, by which a browser can add one."""
    rows = access.accounts.slack_destinations.of_team(team.id)
    listed = page_of("slack_destinations", rows, lambda row: row.id, page, destination_json)
    return {**listed, "app": outside.slack_app.configured}


@router.post("/teams/{team}/slack-destinations", status_code=201, dependencies=[needs("slack:manage")])
def create_slack_destination(
    body: NewSlackDestination,
    team: TheTeam,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
) -> dict[str, Any]:
    """Add a Slack channel by the URL of its incoming webhook."""
    url = sealed_slack_url(body.webhook_url, slack_purpose(team.id), outside)
    table, by, now_ms = access.accounts.slack_destinations, requester.actor, access.clock()
    return _stored(lambda: table.create(team.id, body.channel, url, by, now_ms))


@router.patch("/teams/{team}/slack-destinations/{destination}", dependencies=[needs("slack:manage")])
def change_slack_destination(
    destination: DestinationId,
    body: SlackDestinationChanges,
    team: TheTeam,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
) -> dict[str, Any]:
    """Rename a Slack destination, or replace its URL."""
    url = (
        None
        if body.webhook_url is None
        else sealed_slack_url(body.webhook_url, slack_purpose(team.id), outside)
    )
    table, by, now_ms = access.accounts.slack_destinations, requester.actor, access.clock()
    return _stored(lambda: table.update(team.id, destination, by, now_ms, channel=body.channel, url=url))


@router.delete(
    "/teams/{team}/slack-destinations/{destination}",
    status_code=204,
    dependencies=[needs("slack:manage")],
)
def delete_slack_destination(
    destination: DestinationId, team: TheTeam, access: TheAccess, requester: TheRequester
) -> None:
    """Delete a Slack destination. Its webhook at Slack stays."""
    access.accounts.slack_destinations.delete(team.id, destination, requester.actor, access.clock())


def destination_json(row: SlackDestinationRow) -> dict[str, Any]:
    """A Slack destination in an answer. `shown`: what of the URL may be read."""
    return {
        "id": row.id,
        "channel": row.channel,
        "shown": row.shown,
        "created_ms": row.created_ms,
        "disabled_ms": row.disabled_ms,
    }


def sealed_slack_url(
    url: str, purpose: str, outside: OutsideServices, field: str = "webhook_url"
) -> SealedUrl:
    """The URL of an incoming webhook, encrypted.

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


def _slack_host(url: str, others: Collection[str]) -> str | None:
    """The host of an incoming webhook of Slack, or of one of the other hosts; None: the URL is none."""
    found = _URL.fullmatch(url)
    if found is not None:
        return found[1]
    found = _OTHER_URL.fullmatch(url)
    return found[1] if found is not None and found[1].lower() in others else None


def _stored(store: Callable[[], SlackDestinationRow]) -> dict[str, Any]:
    """What storing a destination answers; what is wrong is said beside its field."""
    try:
        with checking("channel"):
            return destination_json(store())
    except NameTaken as error:
        raise DetailedError(409, str(error), {"fields": {"channel": str(error)}}) from None
