"""Notifications to webhooks of teams, signed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from runvitals.monitoring.environment.secret_patterns import HIDDEN
from runvitals.server.alerts.delivery.channel import (
    DeliveryFailed,
    check_accepted,
    link_of,
    number_of,
    post,
    title_of,
)
from runvitals.server.alerts.payload_template import fill_payload
from runvitals.server.alerts.storage.destinations import StoredDestination
from runvitals.server.database.secret_box import SecretBox, SecretUnreadable, team_secret_purpose
from runvitals.server.events.outbox import ChannelResponse, StoredNotification
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.outbound.fetcher import Fetcher
from runvitals.server.outbound.webhook_signature import signed_headers, wandb_signature
from runvitals.store.errors import NotFound
from runvitals.version import __version__


class WebhookChannel:
    """Posts to webhooks. Their payload is the automation's, else their own, else all values.

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
        self._secrets = metadata_store.accounts.team_secrets
        self._destinations = metadata_store.alerts.destinations
        self._box = box
        self._fetcher = fetcher
        self._server_url = server_url
        self._clock = clock

    def deliver(self, due: StoredNotification) -> ChannelResponse:
        """Post to a webhook of a team. Raises `DeliveryFailed`."""
        team_id = due.team_id or 0
        try:
            webhook = self._destinations.get("webhook", team_id, number_of(due))
        except NotFound as error:
            raise DeliveryFailed(str(error), "failed") from None
        if not webhook.settings["enabled"]:
            raise DeliveryFailed("the webhook is disabled", "failed")
        title, text = title_of(due.text)
        link = link_of(due, self._server_url())
        values = {**due.payload.get("values", {}), "run_url": link or ""}
        everything = {**values, "event": due.kind, "title": title, "text": text, "created_ms": due.created_ms}
        template = due.payload.get("payload") or webhook.settings["payload"]
        return check_accepted(self.send(team_id, webhook, template, values, everything, str(due.id)))

    def send(
        self,
        team_id: int,
        webhook: StoredDestination,
        template: str | None,
        values: Mapping[str, Any],
        everything: Mapping[str, Any],
        delivery: str,
    ) -> ChannelResponse:
        """Post, and return the response of the receiver, whatever its status.

        Args:
            template: the payload with places for values; None: `everything` is sent.
            delivery: the same when the request is repeated.

        Raises:
            DeliveryFailed: there was no response, or a secret cannot be read.
        """
        signing_name = webhook.settings["signing_secret"]
        access = self._secret(team_id, webhook.settings["access_secret"])
        signing = self._secret(team_id, signing_name)
        secrets = {} if signing_name is None else {signing_name: signing or ""}
        values_by_name = {**values, "ACCESS_TOKEN": access or "", **secrets}
        body = (
            json.dumps(everything) if template is None else fill_payload(template, values_by_name)
        ).encode()
        headers = {"Content-Type": "application/json", "User-Agent": f"runvitals/{__version__}"}
        if access is not None:
            headers["Authorization"] = f"Bearer {access}"
        headers |= signed_headers(body, signing, self._clock() // 1000, delivery)
        if signing is not None:
            headers["X-Wandb-Signature"] = wandb_signature(body, signing)
        response = post(self._fetcher, webhook.settings["url"], body, headers)
        return replace(response, text=_without(response.text or "", access, signing))

    def _secret(self, team_id: int, name: str | None) -> str | None:
        if name is None:
            return None
        try:
            sealed = self._secrets.sealed_value(team_id, name)
            return self._box.open(sealed, team_secret_purpose(team_id, name)).decode()
        except (NotFound, SecretUnreadable) as error:
            raise DeliveryFailed(str(error), "failed") from None


def _without(text: str, *secrets: str | None) -> str:
    """Return what a receiver answered, without the secrets that it was sent.

    Members of the team may read it.
    """
    for secret in secrets:
        if secret:
            text = text.replace(secret, HIDDEN).replace(json.dumps(secret)[1:-1], HIDDEN)
    return text
