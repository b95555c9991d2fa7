"""The shared server as one ASGI application: ingest, API, page, health and metrics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Receive, Scope, Send

from runvitals.base.once import Once
from runvitals.server.doors.mlflow.prefixes import with_common_prefix
from runvitals.server.doors.otlp.paths import is_for_otlp
from runvitals.server.health.other_servers import OtherServers
from runvitals.server.http.fast_path import Headers
from runvitals.server.ingest.endpoint import PATH, IngestEndpoint
from runvitals.server.ingest.envelope_recorder import Recorder
from runvitals.server.services import SharedServices

if TYPE_CHECKING:
    from fastapi import FastAPI


class IngestFastPath:
    """Accepts envelopes of known writers without the framework: see `connection.FastPath`."""

    path = PATH.encode("ascii")

    def __init__(
        self,
        ingest: IngestEndpoint,
        admits: Callable[[Headers], bool],
        count: Callable[[Headers], None],
    ) -> None:
        self.admits = admits
        self._ingest = ingest
        self._count = count

    def post(self, headers: Headers, body: bytes, done: Callable[[bytes | None], None]) -> bool:
        """Take a short ingest request and count its use; return False if the application has to take it."""

        def answer(response: bytes | None) -> None:
            if response is not None:  # the application counts the others
                self._count(headers)
            done(response)

        return self._ingest.post(headers, body, answer)


class SharedServer:
    """An ASGI application over a sample store and a metadata store; `build.build_server` makes one.

    Args:
        ingest_entry, api_entry, otlp_entry: the applications by path, with authentication.
        closed_first: what ends before envelopes are no longer recorded.

    Attributes:
        services: what the routes work with.
        closing: is set when the server ends.
    """

    def __init__(
        self,
        services: SharedServices,
        api: Once[FastAPI],
        recorder: Recorder,
        others: OtherServers,
        *,
        ingest_entry: ASGIApp,
        api_entry: ASGIApp,
        otlp_entry: ASGIApp,
        fast_path: IngestFastPath,
        closed_first: Sequence[Callable[[], None]],
    ) -> None:
        self.services = services
        self._api = api
        self.closing = services.closing
        self.fast_path = fast_path
        self._recorder = recorder
        self._others = others
        self._ingest_entry = ingest_entry
        self._api_entry = api_entry
        self._otlp_entry = otlp_entry
        self._closed_first = closed_first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Ingest bypasses the framework and the headers for browsers: they would cost more than the work
        # itself.
        """Answer a request of ingest, OTLP or the API."""
        if scope["type"] == "http" and scope["path"] == PATH:
            await self._ingest_entry(scope, receive, send)
        elif scope["type"] == "http" and is_for_otlp(scope["path"]):
            await self._otlp_entry(scope, receive, send)
        else:
            entered = with_common_prefix(scope) if scope["type"] == "http" else scope
            await self._api_entry(entered, receive, send)

    @property
    def api(self) -> FastAPI:
        """The application behind the authentication."""
        return self._api()

    def forget(self, run_ids: Collection[int]) -> None:
        """Forget runs that were removed for good, here and at the other servers. Call it from any thread."""
        self._recorder.forget(run_ids)
        self._others.forget(run_ids)

    def close(self) -> None:
        """Finish the requests in flight. No request may follow."""
        for close in self._closed_first:
            close()
        self._recorder.close()
        self._others.close()
