"""The shared server as one ASGI application: ingest, the API over the store, the page, its own health."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from runvitals.server import page
from runvitals.server.access.same_origin import (
    Guarded,
    LoopbackNames,
    LoopbackOnly,
    SameOrigin,
    is_for_loopback,
)
from runvitals.server.access.token_required import TokenRequired
from runvitals.server.app import application
from runvitals.server.clock import Clock
from runvitals.server.housekeeping import HousekeepingTotals
from runvitals.server.http.connection import Headers
from runvitals.server.ingest.endpoint import PATH, IngestEndpoint
from runvitals.server.ingest.limits import Limits
from runvitals.server.ingest.openapi import describe
from runvitals.server.ingest.recorder import Recorder
from runvitals.server.response_memory import ResponseLimits, ResponseMemory
from runvitals.server.self_metrics import SelfMetrics
from runvitals.server.stored.library import StoredLibrary
from runvitals.store.metadata import MetadataStore
from runvitals.store.samples.contract import SampleStore, StoreError, StoreStats
from runvitals.store.supervised_thread import SupervisedThread

_LOOK_S = 2.0


class IngestFastPath:
    """Samples of writers that are known, taken in without the framework: see `connection.FastPath`."""

    path = PATH.encode("ascii")

    def __init__(self, ingest: IngestEndpoint, admits: Callable[[Headers], bool]) -> None:
        self.admits = admits
        self.post = ingest.post


class SharedServer:
    """An ASGI application over a store and a catalogue, both of which stay the caller's to close, after it.

    Args:
        token_required: every request must show a token; else only requests to a loopback name are answered.
        clock: the time now, ms UTC.
        static: the folder of the built page.

        response_limits: of the memory of answers that are being sent.

    Attributes:
        response_memory: what those answers hold.
        kept: what housekeeping has done, for `/metrics`; the caller may set it.
        threads: those whose failures `/readyz` and `/metrics` report; the caller may add to them.

    Example:
        >>> with SqliteChunks(folder) as store, open_metadata_store(address) as catalogue:
        ...     serve(SharedServer(store, catalogue), listener)
    """

    def __init__(
        self,
        store: SampleStore,
        catalogue: MetadataStore,
        token_required: bool = False,
        clock: Callable[[], int] | None = None,
        limits: Limits | None = None,
        static: str = page.FOLDER,
        response_limits: ResponseLimits | None = None,
    ) -> None:
        limits, clock = limits or Limits(), clock or Clock()
        self.tally = SelfMetrics()
        self.kept = HousekeepingTotals()
        self._store = store
        self._recorder = Recorder(store, catalogue, clock, limits)
        self._catalogue = catalogue
        self._looking = SupervisedThread(
            "catalogue-file", self._look_at_catalogue, every_s=_LOOK_S, longest_pause_s=_LOOK_S
        )
        self.threads: list[SupervisedThread] = [*self._recorder.threads, self._looking]
        self._looking.start()
        self._ingest = IngestEndpoint(self._recorder, limits, self.tally)
        self._api = self._with_health(
            application(
                StoredLibrary(store, catalogue, clock, self._recorder.version), static, response_limits
            )
        )
        describe(self._api)
        self.response_memory: ResponseMemory = self._api.state.response_memory
        self.closing = self._api.state.closing
        if token_required:
            entrance = TokenRequired(self._ingest, catalogue.tokens, clock)
            self._for_programs: ASGIApp = entrance
            self.fast_path = IngestFastPath(self._ingest, entrance.admits)
            # Behind a proxy that speaks TLS, addresses that a page is sent to begin with https.
            guarded: Any = Guarded(SameOrigin(TokenRequired(self._api, catalogue.tokens, clock)))
            behind_proxy: Any = ProxyHeadersMiddleware(guarded)  # uvicorn has types of its own for the same
            self._for_pages: ASGIApp = behind_proxy
        else:
            self._for_programs = LoopbackNames(self._ingest)
            self.fast_path = IngestFastPath(self._ingest, is_for_loopback)
            self._for_pages = LoopbackOnly(self._api)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Past the framework, and without what is said to browsers: that would cost more than the work itself.
        if scope["type"] == "http" and scope["path"] == PATH:
            await self._for_programs(scope, receive, send)
        else:
            await self._for_pages(scope, receive, send)

    def forget(self, run_ids: Collection[int]) -> None:
        """Runs that are gone for good. For any thread."""
        self._recorder.forget(run_ids)

    def close(self) -> None:
        """Finish what was begun; nothing more may come."""
        self._looking.close()
        self._recorder.close()

    def _look_at_catalogue(self) -> bool:
        """Log that the file was deleted, also while no requests come."""
        problem = self._catalogue.problem()
        if problem is not None:
            raise OSError(problem)
        return not self._looking.closing.is_set()

    def _stats(self) -> StoreStats:
        stats = self._store.stats()
        return replace(stats, problem=stats.problem or self._catalogue.problem())

    def _with_health(self, app: FastAPI) -> FastAPI:
        # Before the page, which answers every other path.
        for path, answer in (("/healthz", _healthy), ("/readyz", self._ready), ("/metrics", self._metrics)):
            app.add_route(path, answer, methods=["GET"], include_in_schema=False)
            app.router.routes.insert(0, app.router.routes.pop())
        return app

    async def _ready(self, request: Request) -> Response:
        warnings: list[str] = []
        try:
            stats = await run_in_threadpool(self._stats)
        except StoreError as error:
            problem: str | None = str(error)
        else:
            problem = stats.problem
            warnings += stats.warnings
        warnings += [f"{one.name}: {one.problem}" for one in self.threads if one.problem]
        found = {"ready": problem is None, "problem": problem, "warnings": warnings}
        return JSONResponse(found, 503 if problem else 200)

    async def _metrics(self, request: Request) -> Response:
        stats = await run_in_threadpool(self._stats)
        threads = {**stats.threads, **{one.name: one.problem for one in self.threads}}
        text = self.tally.exposition(stats, self.kept, threads)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


async def _healthy(request: Request) -> Response:
    return PlainTextResponse("ok\n")
