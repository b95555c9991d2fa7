"""The audit log as signed requests to a webhook, for services that collect logs."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from typing import Final

from runvitals.server.audit.storage.audit import AuditEvent, event_as_dict
from runvitals.server.audit.storage.audit_webhook import AuditWebhookRow, AuditWebhookTable
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.outbound.fetcher import Fetcher, FetchFailed
from runvitals.server.outbound.policy import Blocked
from runvitals.server.outbound.webhook_signature import signed_headers
from runvitals.store.supervised_thread import SupervisedThread

PURPOSE: Final = "audit webhook"
"""What its secret is sealed for."""
_POLL_S: Final = 2.0
_MAX_PAUSE_S: Final = 300.0
_CLAIM_MS: Final = 60_000
"""Longer than a request, after which another server may send: the one before may have been killed."""


class NotDelivered(OSError):
    """The receiver cannot be reached, or did not accept the events; the text says why."""


class AuditWebhook:
    """Sends every event of the audit log to the webhook, in the order of ids. Thread-safe.

    An event is sent at least once: again if a request fails or the server is killed before it has noted the
    delivery. Servers that share a metadata store take turns. What cannot be delivered waits in the audit log,
    as long as that is kept.

    Args:
        fetcher: sends the requests, to allowed addresses only.
        clock: the time now, ms UTC.

    Attributes:
        thread: sends what is new; start and close it. Its pauses grow while the receiver fails.
    """

    def __init__(
        self, webhooks: AuditWebhookTable, box: SecretBox, fetcher: Fetcher, clock: Callable[[], int]
    ) -> None:
        self._webhooks = webhooks
        self._box = box
        self._fetcher = fetcher
        self._clock = clock
        self._server = secrets.token_hex(8)
        self.thread = SupervisedThread(
            "audit-webhook", self._turn, every_s=_POLL_S, longest_pause_s=_MAX_PAUSE_S
        )

    def send_new(self) -> int:
        """Send new events and return their number; raise NotDelivered if a request failed: the rest waits."""
        sent = 0
        while not self.thread.closing.is_set() and (count := self._send_some()):
            sent += count
        return sent

    def send(self, url: str, secret: str, events: Sequence[AuditEvent]) -> None:
        """Send events, which may be none, to see whether the receiver accepts them.

        Raises:
            NotDelivered: it does not.
        """
        body = json.dumps({"events": [event_as_dict(event) for event in events]}).encode("ascii")
        delivery = f"{events[0].id}-{events[-1].id}" if events else "test"
        headers = signed_headers(body, secret, self._clock() // 1000, delivery)
        try:
            response = self._fetcher.post(url, body, {**headers, "Content-Type": "application/json"})
        except (Blocked, FetchFailed) as error:
            raise NotDelivered(f"the audit log could not be sent: {error}") from None
        if not 200 <= response.status < 300:
            raise NotDelivered(f"the receiver of the audit log answered {response.status}; expected 200")

    def _send_some(self) -> int:
        """Send one request, if there is something to send; returns how many events."""
        webhook = self._webhooks.get()
        if webhook is None or not (webhook.gaps or self._webhooks.waiting(webhook, 1)):
            return 0
        now_ms = self._clock()
        webhook = self._webhooks.claim(self._server, now_ms, now_ms + _CLAIM_MS)
        if webhook is None:
            return 0  # another server sends
        events = self._webhooks.waiting(webhook)
        if events:
            self._deliver(webhook, events)
        self._webhooks.mark_delivered(self._server, webhook, events, self._clock())
        return len(events)

    def _deliver(self, webhook: AuditWebhookRow, events: Sequence[AuditEvent]) -> None:
        try:
            secret = self._box.open(webhook.sealed, PURPOSE).decode()
            self.send(webhook.url, secret, events)
        except Exception as error:
            self._webhooks.mark_failed(self._server, str(error))
            raise

    def _turn(self) -> bool:
        self.send_new()
        return not self.thread.closing.is_set()
