"""The entrances of a shared server: who makes a request, what it may do, and what changes that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from starlette.types import ASGIApp
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from runvitals.server.access.control import AccessControl
from runvitals.server.access.decisions.decision_cache import CHECK_S
from runvitals.server.access.decisions.directory import Directory
from runvitals.server.access.identification.authentication import RequesterMiddleware
from runvitals.server.access.identification.authenticator import Authenticator
from runvitals.server.access.identification.request_ids import RequestIds
from runvitals.server.access.identification.token_required import TokenRequired
from runvitals.server.access.principals import Principal, ServiceAccount, User
from runvitals.server.events.usage_marks import RequestOwner
from runvitals.server.http.fast_path import Headers
from runvitals.server.http.public_path import PublicPath
from runvitals.server.http.same_origin import SameOrigin, SecurityHeaders
from runvitals.server.ingest.envelope_decisions import KeyIngestRights
from runvitals.server.ingest.sender_rights import IngestRightsCache
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.supervised_thread import SupervisedThread

_MAX_PAUSE_S = 5.0


class Entrances:
    """The middleware before ingest, the API and the page, and the thread that notices changes of rights.

    Args:
        monotonic: seconds that only grow.
        requested: told of each request of a user or service account.
        token_required, first_team, offers_setup, trusted_proxies: as in `build.ServerOptions`.

    Attributes:
        control: decides for the routes.
        ingest: decides for envelopes.
        thread: notices what other processes changed; the caller starts and closes it.
    """

    def __init__(
        self,
        metadata_store: MetadataStore,
        clock: Callable[[], int],
        monotonic: Callable[[], float],
        *,
        token_required: bool,
        first_team: str,
        offers_setup: bool,
        trusted_proxies: Sequence[str],
        requested: Callable[[RequestOwner], None],
    ) -> None:
        self._requested = requested
        self._metadata_store = metadata_store
        self._clock = clock
        self._token_required = token_required
        self._first_team = first_team
        self._offers_setup = offers_setup
        self._trusted_proxies = trusted_proxies
        self._directory = Directory(metadata_store, clock, monotonic)
        self._authenticator = Authenticator(self._directory, monotonic)
        self.control = AccessControl(metadata_store, self._directory, clock, token_required)
        self.control.rights_changed()
        self.ingest = IngestRightsCache(
            metadata_store,
            self._directory,
            self._authenticator.known_key,
            lambda: self._directory.accounts_exist,
            clock,
            self.control.refusals,
        )
        self.thread = SupervisedThread("rights", self._check, every_s=CHECK_S, longest_pause_s=_MAX_PAUSE_S)

    def for_ingest(self, app: ASGIApp) -> tuple[ASGIApp, Callable[[Headers], bool]]:
        """Ingest with authentication, and whether a request is known to pass it without a look-up."""
        guarded = self._authenticate(app, browsers=False)

        def admits(headers: Headers) -> bool:
            if self._directory.accounts_exist:
                return self.ingest.known(headers) is not None  # quicker than looking up the key twice
            return guarded.admits(headers)

        return self._behind_proxies(RequestIds(guarded)), admits

    def for_browsers(self, app: ASGIApp) -> ASGIApp:
        """Return the page and the API with authentication."""
        guarded = SameOrigin(self._authenticate(app, browsers=True))
        framed = SecurityHeaders(guarded, lambda: self._directory.policies().embed_origins)
        return self._behind_proxies(RequestIds(framed))

    def _authenticate(self, app: ASGIApp, browsers: bool) -> RequesterMiddleware:
        tokens = (
            TokenRequired(app, self._metadata_store.tokens, self._clock) if self._token_required else None
        )
        return RequesterMiddleware(
            app, self._authenticator, tokens, browsers, self._offers_setup, self._count
        )

    def count_ingest(self, headers: Headers) -> None:
        """Count a request that was answered without the application."""
        access = self.ingest.known(headers)
        if isinstance(access, KeyIngestRights):
            self._count(access.principal)

    def _count(self, principal: Principal) -> None:
        if isinstance(principal, User):
            self._requested(("user", principal.id))
        elif isinstance(principal, ServiceAccount):
            self._requested(("service_account", principal.id))

    def _behind_proxies(self, app: Any) -> ASGIApp:
        """Take scheme, client and path from the headers of trusted proxies."""
        behind: Any = ProxyHeadersMiddleware(
            app, list(self._trusted_proxies)
        )  # uvicorn has ASGI types of its own
        return PublicPath(behind, behind.trusted_hosts)

    def _check(self) -> bool:
        """Notice what other processes changed, so that requests need not read the database for it."""
        existed = self._directory.accounts_exist
        self.control.rights_changed()
        # Not in the turn that notices the first administrator: the setup page names a team of its own.
        if existed and self.control.accounts.adopt_earlier_projects(self._first_team, self._clock()):
            self.control.rights_changed()
        self.control.refusals.write_counts()
        return not self.thread.closing.is_set()
