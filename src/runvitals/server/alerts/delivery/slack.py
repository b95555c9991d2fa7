"""Notifications to channels of Slack, by incoming webhooks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from runvitals.server.alerts.delivery.channel import (
    DeliveryFailed,
    check_accepted,
    link_of,
    number_of,
    post,
    title_of,
)
from runvitals.server.alerts.slack_message import slack_message
from runvitals.server.database.secret_box import (
    SecretBox,
    SecretUnreadable,
    slack_purpose,
    user_slack_purpose,
)
from runvitals.server.events.outbox import ChannelResponse, StoredNotification
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.outbound.fetcher import Fetcher
from runvitals.store.errors import NotFound

_GONE: Final = (403, 404, 410)
"""Slack answers these for a webhook that was removed, or whose channel is archived."""


class SlackChannel:
    """Posts to channels of teams and users.

    A destination that Slack no longer accepts is disabled, and whoever added it gets a mail.

    Args:
        fetcher: sends the requests, to allowed addresses only.
        server_url: the address of this server as users know it; None: unknown.
        clock: the time now, ms UTC.
    """

    def __init__(
        self,
        metadata_store: MetadataStore,
        box: SecretBox,
        fetcher: Fetcher,
        server_url: Callable[[], str | None],
        clock: Callable[[], int],
    ) -> None:
        self._destinations = metadata_store.alerts.destinations
        self._box = box
        self._fetcher = fetcher
        self._server_url = server_url
        self._clock = clock

    def deliver_to_team(self, due: StoredNotification) -> ChannelResponse:
        """Post to a Slack destination of a team. Raises `DeliveryFailed`."""
        team_id = due.team_id or 0
        try:
            destination = self._destinations.get("slack", team_id, number_of(due))
        except NotFound as error:
            raise DeliveryFailed(str(error), "failed") from None
        if destination.disabled_ms is not None:
            raise DeliveryFailed("Slack no longer accepts this destination: replace its URL", "failed")
        response = self._post(self._open_url(destination.sealed, slack_purpose(team_id)), due)
        if response.status in _GONE:
            self._destinations.disable(destination, self._clock())
            raise _gone(response)
        return check_accepted(response)

    def deliver_to_user(self, due: StoredNotification) -> ChannelResponse:
        """Post to the channel of a user. Raises `DeliveryFailed`."""
        user_id = number_of(due)
        destination = self._destinations.of_user(user_id)
        if destination is None or destination.disabled_ms is not None:
            raise DeliveryFailed("the user has connected no channel of Slack", "failed")
        response = self._post(self._open_url(destination.sealed, user_slack_purpose(user_id)), due)
        if response.status in _GONE:
            self._destinations.disable(destination, self._clock())
            raise _gone(response)
        return check_accepted(response)

    def post_to_team(self, team_id: int, sealed: bytes, title: str, text: str) -> ChannelResponse:
        """Post a text to a Slack destination of a team. Raises `DeliveryFailed`."""
        return self._post_body(self._open_url(sealed, slack_purpose(team_id)), slack_message(title, text))

    def _open_url(self, sealed: bytes, purpose: str) -> str:
        try:
            return self._box.open(sealed, purpose).decode()
        except SecretUnreadable as error:
            raise DeliveryFailed(str(error), "failed") from None

    def _post(self, url: str, due: StoredNotification) -> ChannelResponse:
        title, text = title_of(due.text)
        link, label = link_of(due, self._server_url()), due.payload.get("link", "Open")
        body = slack_message(title, text, link, label, due.payload.get("level", "info"))
        return self._post_body(url, body)

    def _post_body(self, url: str, body: Mapping[str, Any]) -> ChannelResponse:
        return post(self._fetcher, url, json.dumps(body).encode(), {"Content-Type": "application/json"})


def _gone(response: ChannelResponse) -> DeliveryFailed:
    return DeliveryFailed("Slack no longer accepts this destination; it was disabled", "failed", response)
