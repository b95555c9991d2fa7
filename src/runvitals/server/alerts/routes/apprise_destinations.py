"""`/teams/{team}/apprise-destinations`: what rules and automations reach by Apprise, such as Teams or ntfy.

A destination is a URL of Apprise. It holds secrets, so it is never shown again.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from runvitals.server.access.control import TheAccess
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import TheRequester
from runvitals.server.accounts.sealed_purposes import apprise_purpose
from runvitals.server.alerts.delivery.apprise import is_installed
from runvitals.server.alerts.delivery.channel import DeliveryFailed
from runvitals.server.alerts.routes.notifications import TheChannels, answered
from runvitals.server.alerts.storage.apprise_destinations import MAX_NAME, AppriseDestinationRow
from runvitals.server.alerts.storage.slack_destinations import SealedUrl
from runvitals.server.http.errors import DetailedError, InvalidFields
from runvitals.server.http.field_checks import checking
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.outside_services import TheOutsideServices
from runvitals.server.teams.routes.parameters import TheTeam
from runvitals.store.errors import NameTaken

DestinationId = Annotated[int, Path(ge=1, le=2**31 - 1)]
MAX_URL: Final = 2000
_PATH: Final = "/teams/{team}/apprise-destinations"

router = Router()


class NewAppriseDestination(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=MAX_NAME, description="What the team calls it.")
    url: str = Field(
        min_length=1, max_length=MAX_URL, description="Of Apprise, such as `ntfys://ntfy.sh/our-runs`."
    )


@router.get(_PATH, dependencies=[needs("webhook:manage")])
def apprise_destinations(team: TheTeam, access: TheAccess, page: ThePage) -> dict[str, Any]:
    """The team's destinations, in the order in which they were created. `installed`: the server has
    Apprise."""
    rows = access.metadata_store.alerts.apprise.of_team(team.id)
    listed = page_of("apprise_destinations", rows, lambda row: row.id, page, destination_json)
    return {**listed, "installed": is_installed()}


@router.post(_PATH, status_code=201, dependencies=[needs("webhook:manage")])
def create_apprise_destination(
    body: NewAppriseDestination,
    team: TheTeam,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
    channels: TheChannels,
) -> dict[str, Any]:
    """Add a destination by its URL. Apprise says whether it knows it; nothing is sent."""
    url = body.url.strip()
    try:
        found = channels.apprise.check(url)
    except DeliveryFailed as error:
        raise InvalidFields({"url": str(error)}) from None
    if not found.service:
        raise InvalidFields({"url": found.error or "Apprise does not know this URL"})
    sealed = SealedUrl(outside.box.seal(url.encode(), apprise_purpose(team.id)), found.service)
    table, by, now_ms = access.metadata_store.alerts.apprise, requester.actor, access.clock()
    try:
        with checking("name"):
            return destination_json(table.create(team.id, body.name, sealed, by, now_ms))
    except NameTaken as error:
        raise DetailedError(409, str(error), {"fields": {"name": str(error)}}) from None


@router.delete(f"{_PATH}/{{destination}}", status_code=204, dependencies=[needs("webhook:manage")])
def delete_apprise_destination(
    destination: DestinationId, team: TheTeam, access: TheAccess, requester: TheRequester
) -> None:
    """Delete a destination."""
    access.metadata_store.alerts.apprise.delete(team.id, destination, requester.actor, access.clock())


@router.post(f"{_PATH}/{{destination}}/test", dependencies=[needs("webhook:manage")])
def test_apprise_destination(
    destination: DestinationId, team: TheTeam, access: TheAccess, channels: TheChannels
) -> dict[str, Any]:
    """Send a message at once; answers whether the service accepted it."""
    access.metadata_store.alerts.apprise.sealed(team.id, destination)
    title, text = f"A test of team {team.name}", "Messages of rules and automations will arrive here."
    return answered(lambda: channels.apprise.send(team.id, destination, title, text))


def destination_json(row: AppriseDestinationRow) -> dict[str, Any]:
    """A destination in an answer. `shown`: the service that it leads to."""
    return {"id": row.id, "name": row.name, "shown": row.shown, "created_ms": row.created_ms}
