"""`/account/slack`: the channel of Slack that gets what a user is notified."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from runvitals.server.access.control import TheAccess
from runvitals.server.access.permission import needs
from runvitals.server.accounts.routes.own_account import TheOwner
from runvitals.server.accounts.sealed_purposes import user_slack_purpose
from runvitals.server.alerts.routes.slack_destinations import MAX_URL, sealed_slack_url
from runvitals.server.alerts.storage.user_slack import UserSlackRow
from runvitals.server.http.router import Router
from runvitals.server.outside_services import TheOutsideServices

router = Router()


class OwnSlack(BaseModel):
    model_config = ConfigDict(extra="forbid")

    url: str = Field(min_length=1, max_length=MAX_URL, description="`https://hooks.slack.com/services/…`")


@router.put("/account/slack", dependencies=[needs("account:update")])
def connect_slack(
    body: OwnSlack, access: TheAccess, outside: TheOutsideServices, owner: TheOwner
) -> dict[str, Any]:
    """Connect a channel by the URL of its incoming webhook, in place of the one before."""
    url = sealed_slack_url(body.url, user_slack_purpose(owner.id), outside, "url")
    table = access.metadata_store.alerts.user_slack
    table.put(owner.id, url.sealed, url.shown, access.clock())
    found = table.get(owner.id)
    assert found is not None
    return slack_json(found)


@router.delete("/account/slack", status_code=204, dependencies=[needs("account:update")])
def disconnect_slack(access: TheAccess, owner: TheOwner) -> None:
    """Forget the channel. Its webhook at Slack stays."""
    access.metadata_store.alerts.user_slack.remove(owner.id)


def slack_json(row: UserSlackRow) -> dict[str, Any]:
    """The channel in an answer. `shown`: what of the URL may be read."""
    return {"shown": row.shown, "created_ms": row.created_ms, "disabled_ms": row.disabled_ms}
