"""`/account/slack`: the channel of Slack that gets what a user is notified."""

from __future__ import annotations

from pydantic import Field

from runvitals.server.access.permission import needs
from runvitals.server.accounts.routes.own_account import TheOwner
from runvitals.server.alerts.routes.destinations import MAX_SLACK_URL, OwnSlackChannel, sealed_slack_url
from runvitals.server.alerts.storage.destinations import StoredDestination
from runvitals.server.database.secret_box import user_slack_purpose
from runvitals.server.http.bodies import RequestBody
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheOutsideServices

router = Router()


class OwnSlack(RequestBody):
    """The user's own channel of Slack."""

    url: str = Field(
        min_length=1, max_length=MAX_SLACK_URL, description="`https://hooks.slack.com/services/…`"
    )


@router.put("/account/slack", needs("account:update"), response_model=OwnSlackChannel)
def connect_slack(
    body: OwnSlack, access: TheAccess, outside: TheOutsideServices, owner: TheOwner
) -> StoredDestination:
    """Connect a channel by the URL of its incoming webhook, in place of the one before."""
    url = sealed_slack_url(body.url, user_slack_purpose(owner.id), outside, "url")
    destinations = access.metadata_store.alerts.destinations
    return destinations.put_of_user(owner.id, url, access.clock())


@router.delete("/account/slack", needs("account:update"), status_code=204)
def disconnect_slack(access: TheAccess, owner: TheOwner) -> None:
    """Forget the channel. Its webhook at Slack stays."""
    access.metadata_store.alerts.destinations.delete_of_user(owner.id)
