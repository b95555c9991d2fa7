"""Services for routes that reach other servers."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from runvitals.server.alerts.slack_app import SlackApp
from runvitals.server.audit.audit_webhook import AuditWebhook
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.http.workers import Workers
from runvitals.server.mail.settings import URL_ENVIRONMENT, server_url
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.organisation.settings import policy_of, with_defaults
from runvitals.server.outbound.fetcher import Fetcher
from runvitals.server.outbound.policy import OutboundPolicy
from runvitals.server.user_content.image_links import PURPOSE, ImageLinks
from runvitals.server.user_content.outside_images import OutsideImages

if TYPE_CHECKING:
    from runvitals.server.sign_on.discovery import Discovery
    from runvitals.server.sign_on.service_tokens import ServiceTokens
    from runvitals.server.sign_on.sign_on import SingleSignOn

_THREADS = 8
_DEADLINE_S = 60.0
"""A sign-in asks its provider up to five times, each for ten seconds."""


T = TypeVar("T")


class MadeOnce(Generic[T]):
    """Makes a value at the first call, in one thread, and returns it at every call.

    Example:
        >>> numbers = MadeOnce(lambda: [1, 2])
        >>> numbers() is numbers()
        True
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: list[T] = []
        self._making = threading.Lock()

    def __call__(self) -> T:
        """Return the value, which the first call makes."""
        if not self._made:
            with self._making:
                if not self._made:
                    self._made.append(self._make())
        return self._made[0]


class OutsideServices:
    """Single sign-on, images from elsewhere, and where the audit log is sent.

    Args:
        clock: the time now, ms UTC.
        monotonic: seconds that only grow.
        asks_second_factor: whether a user has a second factor.
        fetcher: sends the requests; None: to public addresses and those of the setting `outbound_allow`.

    Attributes:
        images: fetches and keeps images, until the server ends.
        slack_app: connects channels of Slack.
        audit_webhook: sends the audit log; start its thread.
        workers: threads for what waits for other servers.
    """

    def __init__(
        self,
        metadata_store: MetadataStore,
        box: SecretBox,
        clock: Callable[[], int],
        monotonic: Callable[[], float],
        asks_second_factor: Callable[[int], bool],
        fetcher: Fetcher | None = None,
    ) -> None:
        fetcher = fetcher or Fetcher(self.policy)
        self.box = box
        self.fetcher = fetcher
        self.workers = Workers(_THREADS, _DEADLINE_S, goes_on=True)
        self._settings = metadata_store.accounts.settings
        self._image_key = box.derived_key(PURPOSE)
        self._folder = tempfile.TemporaryDirectory(prefix="runvitals-images-", ignore_cleanup_errors=True)
        self.images = OutsideImages(self._folder.name, fetcher, time.time)
        self.slack_app = SlackApp(self.settings, box, fetcher, self.server_url, clock)

        # What signs users in needs packages that take 0.07 s to import.
        def sign_on() -> SingleSignOn:
            from runvitals.server.sign_on.sign_on import SingleSignOn

            return SingleSignOn(
                metadata_store, box, fetcher, clock, monotonic, self.server_url, asks_second_factor
            )

        def discovery() -> Discovery:
            from runvitals.server.sign_on.discovery import Discovery

            return Discovery(fetcher, monotonic)

        def service_tokens() -> ServiceTokens:
            from runvitals.server.sign_on.service_tokens import ServiceTokens

            return ServiceTokens(metadata_store, self.discovery, clock)

        self._sign_on, self._discovery = MadeOnce(sign_on), MadeOnce(discovery)
        self._service_tokens = MadeOnce(service_tokens)
        self.audit_webhook = AuditWebhook(metadata_store.accounts.audit_webhook, box, fetcher, clock)

    @property
    def sign_on(self) -> SingleSignOn:
        """Signs users in by providers."""
        return self._sign_on()

    @property
    def discovery(self) -> Discovery:
        """Finds the addresses and keys of providers."""
        return self._discovery()

    @property
    def service_tokens(self) -> ServiceTokens:
        """Finds the service account of another service's token."""
        return self._service_tokens()

    def settings(self) -> dict[str, Any]:
        """The settings that differ from their defaults."""
        return self._settings.all()

    def policy(self) -> OutboundPolicy:
        """Where requests may go besides public addresses by https, and through which proxy."""
        return policy_of(self.settings())

    def image_links(self) -> ImageLinks:
        """Makes the addresses of images in texts."""
        return ImageLinks(self._image_key, with_defaults(self.settings())["outside_images"] == "proxy")

    def server_url(self) -> str:
        """Return this server's address as users know it; raise ValueError without a valid setting `url`."""
        url = os.environ.get(URL_ENVIRONMENT) or self.settings().get("url")
        if not url:
            raise ValueError("the setting url is missing: providers send browsers back to it")
        return server_url(url)

    def known_server_url(self) -> str | None:
        """The address of this server as users know it; None if it is not set."""
        try:
            return self.server_url()
        except ValueError:
            return None

    def close(self) -> None:
        """Remove the images, and stop sending the audit log."""
        self.audit_webhook.thread.close()
        self._folder.cleanup()
