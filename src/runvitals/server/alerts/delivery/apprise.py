"""Notifications by Apprise to Teams, Discord, Telegram, ntfy, PagerDuty and what else it speaks."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from runvitals.server.alerts.delivery.channel import DeliveryFailed, link_of, number_of, title_of
from runvitals.server.database.secret_box import SecretBox, SecretUnreadable, apprise_purpose
from runvitals.server.events.outbox import ChannelResponse, StoredNotification
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.outbound.fetcher import Fetcher
from runvitals.server.outbound.forward_proxy import ForwardProxy
from runvitals.store.errors import NotFound

TOTAL_S: Final = 20.0
_AT_ONCE: Final = 2
_PROCESS: Final = os.path.join(os.path.dirname(__file__), "apprise_process.py")
_KEPT: Final = ("PATH", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
_INSTALL: Final = "Apprise is not installed on this server: pip install 'runvitals[apprise]'"


@dataclass(frozen=True, slots=True)
class AppriseResult:
    """The result of sending a message.

    Attributes:
        service: what its URL leads to, such as Discord; None: Apprise does not know it.
    """

    service: str | None
    sent: bool
    error: str | None


def is_installed() -> bool:
    """Return whether this server has Apprise."""
    return importlib.util.find_spec("apprise") is not None


class AppriseChannel:
    """Sends messages by Apprise, each in a process of its own (`apprise_process`).

    The process reaches nothing but a proxy of ours: so it reaches public addresses by https only, as webhooks
    do.

    Args:
        fetcher: makes the connections.
        server_url: the address of this server as users know it; None: unknown.
    """

    def __init__(
        self, store: MetadataStore, box: SecretBox, fetcher: Fetcher, server_url: Callable[[], str | None]
    ) -> None:
        self._destinations = store.alerts.destinations
        self._box = box
        self._fetcher = fetcher
        self._server_url = server_url
        self._room = threading.BoundedSemaphore(_AT_ONCE)
        self._room_for_checks = threading.BoundedSemaphore(_AT_ONCE)

    def deliver(self, due: StoredNotification) -> ChannelResponse:
        """Send a notification to a destination of a team. Raises `DeliveryFailed`."""
        team_id = due.team_id or 0
        title, text = title_of(due.text)
        link = link_of(due, self._server_url())
        body = "\n\n".join(part for part in (text, link) if part)
        return self.send(team_id, number_of(due), title, body, str(due.payload.get("level", "info")))

    def send(
        self, team_id: int, destination: int, title: str, text: str, level: str = "info"
    ) -> ChannelResponse:
        """Send a text to a destination of a team. Raises `DeliveryFailed`."""
        try:
            url = self._box.open(
                self._destinations.get("apprise", team_id, destination).sealed, apprise_purpose(team_id)
            ).decode()
        except (NotFound, SecretUnreadable) as error:
            raise DeliveryFailed(str(error), "failed") from None
        result = self._run({"url": url, "title": title, "text": text, "level": level, "check": False})
        if not result.sent:
            raise DeliveryFailed(result.error or "not accepted", "pending" if result.service else "failed")
        return ChannelResponse(text=f"{result.service} accepted it")

    def check(self, url: str) -> AppriseResult:
        """Return whether Apprise knows a URL. Nothing is sent. Raises `DeliveryFailed`."""
        return self._run({"url": url, "title": "", "text": "", "level": "info", "check": True})

    def _run(self, message: dict[str, Any]) -> AppriseResult:
        if not is_installed():
            raise DeliveryFailed(_INSTALL, "dropped")
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        command = [sys.executable, "-I", _PROCESS]
        # Who saves a URL does not wait for messages to slow services.
        room = self._room_for_checks if message["check"] else self._room
        with room, ForwardProxy(self._fetcher, TOTAL_S) as proxy:
            request = json.dumps({**message, "proxy": proxy.url, "port": proxy.port})
            try:
                done = subprocess.run(
                    command,
                    input=request,
                    capture_output=True,
                    text=True,
                    timeout=TOTAL_S,
                    env=environment,
                    cwd="/",
                )
            except subprocess.TimeoutExpired:
                raise DeliveryFailed(f"it took longer than {TOTAL_S:.0f} s") from None
            problem = proxy.problem
        if done.returncode != 0:
            raise DeliveryFailed(f"Apprise ended with status {done.returncode}")
        result = json.loads(done.stdout.splitlines()[-1])
        error = result["error"]
        if error is not None and problem is not None:
            error = f"{problem} ({error})"
        return AppriseResult(result["service"], result["sent"], error)
